"""What a step of `JOBCD` does to a batch of matrices: the reference, in torch.

`angle_step` is the step in the invariant metric: every plane turns by an angle of its own.
`embedding_step` is the paper's: exact on the majoriser for every pair of rows.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth.group.gradient import gradient_of_slopes, skew_gradient
from jorth.optim.angles import FIRST_GAIN, AngleRule, kinds, next_angles
from jorth.optim.guard import settled, within_norm
from jorth.optim.rotations import turned
from jorth.optim.rounds import device_codes, rounds_of
from jorth.optim.weight_decay import pull
from jorth.plane.averages import LARGEST_GROWTH, SlopeAverages, finite_matrices
from jorth.plane.rounds import Majoriser

SIDES = {"left": ("left",), "right": ("right",), "both": ("left", "right")}


class Outcome(NamedTuple):
    """Matrices (b, n, k) after a step, which gradients were finite, which steps not taken whole.

    Both masks are (b,).
    """

    X: Tensor
    finite: Tensor
    too_far: Tensor


def state_shapes(group: dict[str, Any], X: Tensor) -> dict[str, tuple[int, ...]]:
    """The shapes of the state of parameters X (..., n, k), by name; all begin with the batch."""
    batch, n = tuple(X.shape[:-2]), X.shape[-2]
    shapes: dict[str, tuple[int, ...]] = {}
    if group["metric"] == "invariant":
        batch = (*batch, len(sides_of(group, X)))
        shapes["gain"] = (*batch, 2)
    if group["metric"] == "invariant" or group["momentum"] > 0:
        shapes |= {"momentum": (*batch, n, n), "momentum_weight": (*batch, 1, 1)}
    if group["curvature"] != "scheduled":
        planes = (1, 1) if group["curvature"] == "per-matrix" else (n, n)
        shapes |= {"root": (*batch, *planes), "root_weight": (*batch, 1, 1)}
    return shapes


def sides_of(group: dict[str, Any], X: Tensor) -> tuple[str, ...]:
    """The sides that a step changes; thin matrices X (..., n, k) have but one."""
    return SIDES["left" if X.shape[-1] < X.shape[-2] else group["side"]]


# -- the invariant metric


def angle_step(group: dict[str, Any], X: Tensor, G: Tensor, state: dict[str, Tensor]) -> Outcome:
    """X (b, n, k) after one step along the gradients G; the state changes in place."""
    finite = torch.isfinite(G).all(dim=-1).all(dim=-1)
    theta = step_angles(group, X, torch.where(finite[:, None, None], G, 0.0), state, finite)
    greedy = group["matching"] == "greedy"
    rounds: NDArray[np.int64] | Tensor
    if X.device.type == "cpu" or greedy:
        rounds = rounds_of(group, theta.square().sum(dim=1) if greedy else theta)
    else:
        rounds = device_codes(group, X.device)
    moved = _turned(group, X, theta, rounds, None)
    held = ~within_norm(moved, X, group["max_norm"])
    if X.device.type != "cpu" or bool(held.any()):  # once more without boosts
        moved = torch.where(held[:, None, None], _turned(group, X, theta, rounds, held), moved)
        boosts = kinds(group["signature"], moved) > 0
        state["momentum"].masked_fill_(held[:, None, None, None] & boosts, 0.0)
        if group["gain_rate"] > 0:
            state["gain"][..., 1].masked_fill_(held[:, None], FIRST_GAIN)
    moved, feasible = settled(moved.to(X.dtype), X, group["signature"])
    moved = torch.where((feasible & finite)[:, None, None], moved, X)
    return Outcome(moved, finite, held | ~feasible)


def step_angles(
    group: dict[str, Any], X: Tensor, G: Tensor, state: dict[str, Tensor], finite: Tensor
) -> Tensor:
    """The angles (b, sides, n, n), float64, from finite gradients; slopes update the state."""
    signature = group["signature"]
    views = [(X, G) if side == "left" else (X.mT, G.mT) for side in sides_of(group, X)]
    signs = signature.vector(X)
    S = torch.stack([skew_gradient(x, g, signs) for x, g in views], dim=1)
    finite &= torch.isfinite(S).all(dim=-1).all(dim=-1).all(dim=-1)
    S = torch.where(finite[:, None, None, None], S, torch.nan)
    averages = SlopeAverages(
        state["momentum"], state["momentum_weight"], state.get("root"), state.get("root_weight")
    )
    names = ("lr", "momentum", "decay", "eps", "gain_rate", "max_angle")
    rule = AngleRule(*(float(group[name]) for name in names))
    state["gain"].masked_fill_(state["gain"] == 0, FIRST_GAIN if rule.gain_rate > 0 else 1.0)
    theta = next_angles(S, averages, state["gain"], rule, signature)
    if group["weight_decay"] > 0:
        share = min(rule.lr * group["weight_decay"], 1.0)
        back = pull(views[0][0], signature, group["decay_towards"], share)
        theta[:, 0] += torch.where(finite[:, None, None], back, 0.0)
    return theta


def _turned(
    group: dict[str, Any],
    X: Tensor,
    theta: Tensor,
    rounds: NDArray[np.int64] | Tensor,
    held: Tensor | None,
) -> Tensor:
    """The matrices X (b, n, k), float64, turned by angles; those of a mask, without boosts."""
    if held is not None:
        theta = theta * (1 - kinds(group["signature"], theta))
    moved = X.double()
    for number, side in enumerate(sides_of(group, X)):
        rows = moved if side == "left" else moved.mT
        rows = turned(rows, theta[:, number], group["signature"], rounds, held)
        moved = rows if side == "left" else rows.mT
    return moved


# -- the embedding metric


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
    within = within_norm(moved, X, group["max_norm"])
    moved, feasible = settled(torch.where(within[:, None, None], moved, X), X, signature)
    accepted = within & feasible
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
