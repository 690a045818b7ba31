"""Momentum and running mean squares of the slopes, in coordinates in which nothing has to be transported.

A left step moves X along J S X with S skew. The slopes S = skew(J G X^T) of different steps belong to the same planes
wherever X is, so they can be averaged as they stand: momentum M of S, mean square v of S_ij (per plane) or of
all of a matrix (per matrix), both with Adam's correction for their start at zero.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor

from jorth.group.slopes import skew_gradient

Curvature = Literal["scheduled", "per-matrix", "per-plane"]
CURVATURES = ("scheduled", "per-matrix", "per-plane")


LARGEST_GROWTH = 10
"""How many times larger a mean square of slopes, once it is settled, becomes by one gradient, at most."""


def averages_needed(group: dict[str, Any]) -> list[str]:
    """The names of the averages that the options of a group ask for."""
    names = ["momentum"] if group["momentum"] > 0 else []
    return names if group["curvature"] == "scheduled" else [*names, "mean_square"]


def start_averages(group: dict[str, Any], X: Tensor) -> dict[str, Tensor]:
    """The state of a parameter (..., n, n) before its first step."""
    one_each = (*X.shape[:-2], 1, 1)
    shapes = {"step": one_each}
    for name in averages_needed(group):
        shapes[name] = (
            one_each
            if name == "mean_square" and group["curvature"] == "per-matrix"
            else tuple(X.shape)
        )
    return {
        name: torch.zeros(shape, dtype=X.dtype, device=X.device) for name, shape in shapes.items()
    }


def averaged_gradient(
    X: Tensor, G: Tensor, signs: Tensor, group: dict[str, Any], averages: dict[str, Tensor]
) -> tuple[Tensor, Tensor]:
    """The gradient (b, n, n) that stands for the averaged slopes, and which of the gradients were finite (b,).

    For the direction D = M / (sqrt(v) + eps) it is J D X^-T = J D J X J, whose slopes are D. Without averages it is G.
    The averages change in place. A gradient that is not finite, or whose slopes or squares are not where those are
    averaged, leaves no trace: zero stands for it, and it is not counted.

    Args:
        X: (b, n, n).
        G: (b, n, n).
        signs: (n,).
        group: momentum, curvature, decay, eps.
        averages: "step" (b, 1, 1), how many finite gradients each matrix has seen; "momentum" (b, n, n) and
            "mean_square" (b, n, n) or (b, 1, 1), as far as they are needed.
    """
    step = averages["step"]
    momentum = averages.get("momentum")
    mean_square = averages.get("mean_square")
    if momentum is None and mean_square is None:
        finite = _finite(G)
        step += finite
        return torch.where(finite, G, 0.0), finite[:, 0, 0]
    S = skew_gradient(X, G, signs)
    finite = _finite(S if mean_square is None else _squares(S, mean_square))
    S = torch.where(finite, S, 0.0)
    if mean_square is not None:
        S = _tempered(S, mean_square, group["decay"], step)
    step += finite
    D = S
    if momentum is not None:
        D = _updated(momentum, S, group["momentum"], finite) / (1 - group["momentum"] ** step)
    if mean_square is not None:
        v = _updated(mean_square, _squares(S, mean_square), group["decay"], finite)
        D = D / ((v / (1 - group["decay"] ** step)).sqrt() + group["eps"])
    D = torch.where(finite, D, 0.0)
    return signs[:, None] * (D @ (signs[:, None] * X * signs)), finite[:, 0, 0]


def _finite(batch: Tensor) -> Tensor:
    """Which matrices of a batch have finite entries only: (b, 1, 1)."""
    return torch.isfinite(batch).all(dim=-1, keepdim=True).all(dim=-2, keepdim=True)


def _squares(S: Tensor, mean_square: Tensor) -> Tensor:
    """S_ij^2, or their mean over i != j where the mean square is one number a matrix."""
    if mean_square.shape[-1] > 1:
        return S.square()
    n = S.shape[-1]
    return S.square().sum(dim=(-2, -1), keepdim=True) / max(n * (n - 1), 1)


def _tempered(S: Tensor, mean_square: Tensor, decay: float, step: Tensor) -> Tensor:
    """S, scaled down where its squares would multiply the mean square by more than `LARGEST_GROWTH`.

    An average forgets a square that it has taken in at the rate of ``decay`` only: one of 1e30 would stand still for
    tens of thousands of steps. The step D of such a gradient is that of Adam all the same, about 1 / sqrt(1 - decay).
    """
    most = mean_square / (1 - decay**step) * (LARGEST_GROWTH / (1 - decay))
    squares = _squares(S, mean_square)
    return torch.where((mean_square > 0) & (squares > most), S * (most / squares).sqrt(), S)


def _updated(average: Tensor, value: Tensor, decay: float, where: Tensor) -> Tensor:
    """The average after the value has entered it, in place."""
    return average.copy_(torch.where(where, average.lerp(value, 1 - decay), average))
