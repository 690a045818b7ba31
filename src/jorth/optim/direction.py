"""Momentum and running mean squares of the slopes, in coordinates in which nothing has to be transported.

A left step moves X along J S X with S skew. The slopes S = skew(J G X^T) of different steps belong to the same planes
wherever X is, so they can be averaged as they stand: momentum M of S, mean square v of S_ij (per plane) or of
all of a matrix (per matrix), both with Adam's correction for their start at zero.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor

from jorth.solvers.criticality import skew_gradient

Curvature = Literal["scheduled", "per-matrix", "per-plane"]
CURVATURES = ("scheduled", "per-matrix", "per-plane")


def averages_needed(group: dict[str, Any]) -> list[str]:
    """The names of the averages that the options of a group ask for."""
    names = ["momentum"] if group["momentum"] > 0 else []
    return names if group["curvature"] == "scheduled" else [*names, "mean_square"]


def start_averages(group: dict[str, Any], X: Tensor) -> dict[str, Any]:
    """The state of a parameter (..., n, n) before its first step."""
    entry: dict[str, Any] = {"step": 0}
    for name in averages_needed(group):
        per_matrix = name == "mean_square" and group["curvature"] == "per-matrix"
        shape = (*X.shape[:-2], 1, 1) if per_matrix else X.shape
        entry[name] = torch.zeros(shape, dtype=X.dtype, device=X.device)
    return entry


def averaged_gradient(
    X: Tensor, G: Tensor, signs: Tensor, group: dict[str, Any], averages: dict[str, Tensor], step: Tensor
) -> Tensor:
    """The gradient (b, n, n) that stands for the averaged slopes; the averages change in place.

    For the direction D = M / (sqrt(v) + eps) it is J D X^-T = J D J X J, whose slopes are D. Without averages it is G.

    Args:
        X: (b, n, n).
        G: (b, n, n).
        signs: (n,).
        group: momentum, curvature, decay, eps.
        averages: "momentum" (b, n, n) and "mean_square" (b, n, n) or (b, 1, 1), as far as they are needed.
        step: (b, 1, 1), how many gradients each matrix has seen, this one included.
    """
    if not averages:
        return G
    S = skew_gradient(X, G, signs)
    finite = torch.isfinite(S).all(dim=-1).all(dim=-1)[:, None, None]  # others leave no trace in the averages
    D = torch.where(finite, S, 0.0)
    if "mean_square" in averages:
        n, v, decay = len(signs), averages["mean_square"], group["decay"]
        square = D.square()
        if v.shape[-1] == 1:
            square = square.sum(dim=(-2, -1), keepdim=True) / max(n * (n - 1), 1)
        v.copy_(torch.where(finite, v.lerp(square, 1 - decay), v))
        root = (v / (1 - decay**step)).sqrt()
    if "momentum" in averages:
        M, momentum = averages["momentum"], group["momentum"]
        M.copy_(torch.where(finite, M.lerp(D, 1 - momentum), M))
        D = M / (1 - momentum**step)
    if "mean_square" in averages:
        D = D / (root + group["eps"])
    D = torch.where(finite, D, 0.0)
    return signs[:, None] * (D @ (signs[:, None] * X * signs))
