"""The step in the invariant metric: every plane turns by an angle of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth.group.slopes import skew_gradient
from jorth.kernels.angles import FIRST_GAIN, AngleRule, kinds, next_angles
from jorth.kernels.averages import SlopeAverages
from jorth.kernels.turning import turned
from jorth.optim.guard import feasible, within_norm
from jorth.optim.outcome import Outcome, rounds_of
from jorth.optim.weight_decay import decay_angles

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
    rounds = rounds_of(group, theta.square().sum(dim=1))
    moved = _turned(group, X, theta, rounds)
    held = ~within_norm(moved, X, group["max_norm"])
    if bool(held.any()):
        boosts = kinds(group["signature"], theta)
        moved[held] = _turned(group, X[held], theta[held] * (1 - boosts), rounds)
        state["momentum"][held] *= (1 - boosts).to(X.dtype)
        if group["gain_rate"] > 0:
            state["gain"][held, :, 1:] = FIRST_GAIN
    refused = ~feasible(moved.to(X.dtype), X, group["signature"])
    moved = torch.where((refused | ~finite)[:, None, None], X, moved.to(X.dtype))
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
        pull = decay_angles(views[0][0], signature, group["decay_towards"])
        theta[:, 0] += torch.where(finite[:, None, None], share * pull, 0.0)
    return theta


def _turned(group: dict[str, Any], X: Tensor, theta: Tensor, rounds: NDArray[np.int64]) -> Tensor:
    """The matrices X (b, n, k), float64, turned on the sides of the group."""
    moved = X.double()
    for number, side in enumerate(sides_of(group, X)):
        rows = moved if side == "left" else moved.mT
        rows = turned(rows, theta[:, number], group["signature"], rounds)
        moved = rows if side == "left" else rows.mT
    return moved
