"""Momentum and root mean squares of slopes.

A left step moves X along J S X with S skew. The slopes S = skew(J G X^T) of different steps belong
to the same planes wherever X is, so they can be averaged without a transport: the momentum M is an
average of S, and r^2 one of the squares S_ij^2 (per plane) or of their mean (per matrix). Each
average keeps the sum of its weights, by which it is divided, so that it is right from the first
step on, also where a decay changes on the way. The root r is stored, not its square, so that slopes
of 1e-30 and 1e30 can be averaged in float32.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

LARGEST_GROWTH = 10
"""The most by which a single gradient multiplies a mean square."""


@dataclass
class SlopeAverages:
    """The averages for slopes (..., n, n); they change in place.

    Attributes:
        momentum: (..., n, n), or None if slopes are not averaged.
        momentum_weight: (..., 1, 1), the sum of its weights.
        root: (..., n, n) per plane, (..., 1, 1) per matrix, or None if it is not used.
        root_weight: (..., 1, 1), the sum of the weights of its square.
    """

    momentum: Tensor | None
    momentum_weight: Tensor | None
    root: Tensor | None
    root_weight: Tensor | None

    @classmethod
    def zeros(cls, S: Tensor) -> SlopeAverages:
        """Return both averages, per plane, before the first slopes (..., n, n)."""
        weight = S.new_zeros((*S.shape[:-2], 1, 1))
        return cls(torch.zeros_like(S), weight, torch.zeros_like(S), weight.clone())

    def update(
        self, S: Tensor, *, momentum: float, decay: float, largest_growth: float = math.inf
    ) -> Tensor:
        """Average new slopes S (..., n, n) and return them, as float64 and limited.

        Slopes that are not finite are ignored; they are returned as zero.

        Args:
            S: The slopes.
            momentum: The decay of M.
            decay: The decay of r^2.
            largest_growth: Slopes whose squares would multiply r^2 by more than this are scaled
                down.
        """
        finite = finite_matrices(S)
        S = torch.where(finite, S, 0.0).double()
        if self.root is not None and self.root_weight is not None:
            r, weight = self.root.double(), self.root_weight.double()
            if largest_growth < math.inf:
                S = _limited(S, r, weight, decay, largest_growth)
            squares = decay * r.square() + (1 - decay) * _squares(S, r)
            self.root.copy_(torch.where(finite, squares.sqrt(), r))
            _forget(self.root_weight, decay, finite)
        if self.momentum is not None and self.momentum_weight is not None:
            M = self.momentum.double()
            self.momentum.copy_(torch.where(finite, M.lerp(S, 1 - momentum), M))
            _forget(self.momentum_weight, momentum, finite)
        return S

    def direction(self, S: Tensor | None = None, *, eps: float = 0.0) -> Tensor:
        """Return M / (r + eps ||r||), float64; ||r|| is the root mean square of r over a matrix.

        Zero where r is. Without momentum the slopes S take the place of M.
        """
        if self.momentum is not None and self.momentum_weight is not None:
            S = _mean(self.momentum, self.momentum_weight)
        assert S is not None
        if self.root is None or self.root_weight is None:
            return S
        r = _mean(self.root, self.root_weight.double().sqrt())
        size = torch.linalg.matrix_norm(r, keepdim=True) / math.sqrt(r.shape[-1] * r.shape[-2])
        return torch.where(r > 0, S / (r + eps * size), 0.0)


def finite_matrices(batch: Tensor) -> Tensor:
    """Return which of the matrices (..., n, k) have finite entries only: (..., 1, 1)."""
    return torch.isfinite(batch).all(dim=-1, keepdim=True).all(dim=-2, keepdim=True)


def _mean(average: Tensor, weight: Tensor) -> Tensor:
    """Return the average over its weight, float64; zero before the first."""
    total = weight.double()
    return torch.where(total > 0, average.double() / total, 0.0)


def _forget(weight: Tensor, decay: float, finite: Tensor) -> None:
    """Set the sum of the weights to that after one more."""
    weight.copy_(torch.where(finite, decay * weight + (1 - decay), weight))


def _squares(S: Tensor, root: Tensor) -> Tensor:
    """Return S_ij^2, or their mean over i != j if the root is one number per matrix."""
    if root.shape[-1] > 1:
        return S.square()
    n = S.shape[-1]
    return S.square().sum(dim=(-2, -1), keepdim=True) / max(n * (n - 1), 1)


def _limited(S: Tensor, r: Tensor, weight: Tensor, decay: float, largest_growth: float) -> Tensor:
    """Return S, scaled down where its squares would multiply r^2 by more than ``largest_growth``.

    An average forgets only at the rate of ``decay``: after a square of 1e30, steps would be tiny
    for a long time. A scaled gradient still takes the step that it would take in Adam, about
    1 / sqrt(1 - decay).
    """
    most = r.square() / weight * (largest_growth / (1 - decay))
    squares = _squares(S, r)
    return torch.where((r > 0) & (squares > most), S * (most / squares).sqrt(), S)
