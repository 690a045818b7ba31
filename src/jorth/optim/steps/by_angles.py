"""The step in the invariant metric: every plane turns by an angle of its own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth.group.slopes import skew_gradient
from jorth.kernels.angles import FIRST_GAIN, AngleRule, kinds, next_angles
from jorth.kernels.averages import SlopeAverages
from jorth.kernels.turning import turned
from jorth.optim.steps.by_angles_on_device import device_codes
from jorth.optim.steps.guard import feasible, within_norm, without_drift
from jorth.optim.steps.outcome import Outcome, rounds_of
from jorth.optim.steps.weight_decay import pull

SIDES = {"left": ("left",), "right": ("right",), "both": ("left", "right")}


def sides_of(group: dict[str, Any], X: Tensor) -> tuple[str, ...]:
    """The sides that a step changes; thin matrices X (..., n, k) have but one."""
    return SIDES["left" if X.shape[-1] < X.shape[-2] else group["side"]]


def state_shapes(group: dict[str, Any], X: Tensor) -> dict[str, tuple[int, ...]]:
    """The shapes of the state of parameters X (..., n, k), by name; all begin with the batch."""
    n = group["signature"].n
    sides = (*X.shape[:-2], len(sides_of(group, X)))
    shapes = {"momentum": (*sides, n, n), "momentum_weight": (*sides, 1, 1), "gain": (*sides, 2)}
    if group["curvature"] != "scheduled":
        planes = (1, 1) if group["curvature"] == "per-matrix" else (n, n)
        shapes |= {"root": (*sides, *planes), "root_weight": (*sides, 1, 1)}
    return shapes


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
    return _guarded(group, X, state, finite, partial(_turned, group, X, theta, rounds))


def _guarded(
    group: dict[str, Any],
    X: Tensor,
    state: dict[str, Tensor],
    finite: Tensor,
    turned: Callable[[Tensor | None], Tensor],
) -> Outcome:
    """What comes of a step; ``turned`` gives X after it, or without boosts where a mask is true."""
    moved = turned(None)
    held = ~within_norm(moved, X, group["max_norm"])
    if X.device.type != "cpu" or bool(held.any()):
        moved = torch.where(held[:, None, None], turned(held), moved)
        boosts = kinds(group["signature"], moved) > 0
        state["momentum"].masked_fill_(held[:, None, None, None] & boosts, 0.0)
        if group["gain_rate"] > 0:
            state["gain"][..., 1].masked_fill_(held[:, None], FIRST_GAIN)
    moved = without_drift(moved.to(X.dtype), group["signature"])
    refused = ~feasible(moved, X, group["signature"])
    moved = torch.where((refused | ~finite)[:, None, None], X, moved)
    return Outcome(moved, finite, held | refused)


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
