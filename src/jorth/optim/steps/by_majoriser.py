"""The step in the embedding metric, the paper's: exact on the majoriser for every pair of rows."""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch import Tensor

from jorth.group.slopes import gradient_of_slopes, skew_gradient
from jorth.kernels.averages import LARGEST_GROWTH, SlopeAverages
from jorth.kernels.majoriser import Majoriser, finite_matrices
from jorth.optim.steps.guard import may_be_written, without_drift
from jorth.optim.steps.outcome import Outcome, rounds_of


def state_shapes(group: dict[str, Any], X: Tensor) -> dict[str, tuple[int, ...]]:
    """The shapes of the state of parameters X (..., n, k), by name; all begin with the batch."""
    batch, n = X.shape[:-2], group["signature"].n
    shapes: dict[str, tuple[int, ...]] = {}
    if group["momentum"] > 0:
        shapes |= {"momentum": (*batch, n, n), "momentum_weight": (*batch, 1, 1)}
    if group["curvature"] != "scheduled":
        planes = (1, 1) if group["curvature"] == "per-matrix" else (n, n)
        shapes |= {"root": (*batch, *planes), "root_weight": (*batch, 1, 1)}
    return shapes


def embedding_step(
    group: dict[str, Any], X: Tensor, G: Tensor, state: dict[str, Tensor]
) -> Outcome:
    """X (b, n, k) after one step along the gradients G; the state changes in place."""
    right = group["side"] == "right"
    moved, finite, too_far = _left_step(group, *((X.mT, G.mT) if right else (X, G)), state)
    return Outcome(moved.mT if right else moved, finite, too_far)


def _left_step(group: dict[str, Any], X: Tensor, G: Tensor, state: dict[str, Tensor]) -> Outcome:
    signature = group["signature"]
    signs = signature.vector(X)
    G, slopes, finite = _averaged(group, X, G, state)
    if float(group["lr"]) < sys.float_info.min:  # at 0, where schedulers begin, L is infinite
        return Outcome(X, finite, torch.zeros_like(finite))
    if slopes is None and group["matching"] == "greedy":
        slopes = skew_gradient(X, G, signs)
    rounds = rounds_of(group, G if slopes is None else slopes.square())
    majoriser = Majoriser(signature, all_components=group["components"] == "all")
    moved = majoriser.rounds(X, G, 1 / float(group["lr"]), rounds).X
    moved = without_drift(moved, signature)
    accepted = may_be_written(moved, X, signature, group["max_norm"])
    if "momentum" in state:  # it would lead there again
        state["momentum"] *= accepted[:, None, None]
    return Outcome(torch.where(accepted[:, None, None], moved, X), finite, ~accepted)


def _averaged(
    group: dict[str, Any], X: Tensor, G: Tensor, state: dict[str, Tensor]
) -> tuple[Tensor, Tensor | None, Tensor]:
    """G, the averaged slopes (None without averages), and which gradients are finite (b,).

    With averages G is the gradient whose slopes they are.
    """
    finite = finite_matrices(G)
    if "momentum" not in state and "root" not in state:
        return torch.where(finite, G, 0.0), None, finite[:, 0, 0]
    signs = group["signature"].vector(X)
    averages = SlopeAverages(
        state.get("momentum"), state.get("momentum_weight"),
        state.get("root"), state.get("root_weight"),
    )  # fmt: skip
    S = skew_gradient(X, G, signs)
    finite = finite_matrices(S)
    S = averages.update(
        S, momentum=group["momentum"], decay=group["decay"], largest_growth=LARGEST_GROWTH
    )
    D = torch.where(finite, averages.direction(S, eps=group["eps"]), 0.0).to(X.dtype)
    return gradient_of_slopes(D, X, group["signature"]), D, finite[:, 0, 0]
