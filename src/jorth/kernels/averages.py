"""Momentum and running mean squares of slopes.

A left step moves X along J S X with S skew. The slopes S = skew(J G X^T) of different steps belong
to the same planes wherever X is, so they can be averaged without a transport: the momentum M is an
average of S, and v one of the squares S_ij^2 (per plane) or of their mean (per matrix). Both have
Adam's correction for starting at zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from jorth.kernels.majoriser import finite_matrices

LARGEST_GROWTH = 10
"""The most by which a single gradient multiplies a mean square."""


@dataclass
class SlopeAverages:
    """The averages for a batch of b matrices; they change in place.

    Attributes:
        step: (b, 1, 1), the number of finite gradients of each matrix so far.
        momentum: (b, n, n), or None if slopes are not averaged.
        mean_square: (b, n, n) per plane, (b, 1, 1) per matrix, or None if it is not used.
    """

    step: Tensor
    momentum: Tensor | None
    mean_square: Tensor | None

    @classmethod
    def zeros(cls, S: Tensor) -> SlopeAverages:
        """Both averages, per plane, before the first slopes (b, n, n)."""
        return cls(S.new_zeros((len(S), 1, 1)), torch.zeros_like(S), torch.zeros_like(S))

    def direction(
        self,
        S: Tensor,
        *,
        momentum: float,
        decay: float,
        eps: float = 0.0,
        largest_growth: float = math.inf,
    ) -> tuple[Tensor, Tensor]:
        """M / (sqrt(v) + eps) after new slopes S (b, n, n), and which of them are finite (b, 1, 1).

        Slopes that are not finite, or whose averaged squares are not, are ignored; the direction
        is zero there.

        Args:
            S: The slopes.
            momentum: The decay of M.
            decay: The decay of v.
            eps: Added to the root of v.
            largest_growth: Slopes whose squares would multiply v by more than this are scaled down.
        """
        v = self.mean_square
        finite = finite_matrices(S if v is None else _squares(S, v))
        S = torch.where(finite, S, 0.0)
        if v is not None and largest_growth < math.inf:
            S = _limited(S, v, decay, self.step, largest_growth)
        self.step += finite
        D = S
        if self.momentum is not None:
            D = _updated(self.momentum, S, momentum, finite) / (1 - momentum**self.step)
        if v is not None:
            _updated(v, _squares(S, v), decay, finite)
            root = (v / (1 - decay**self.step)).sqrt()
            D = torch.where(root > 0, D / (root + eps), 0.0)
        return torch.where(finite, D, 0.0), finite


def _squares(S: Tensor, mean_square: Tensor) -> Tensor:
    """S_ij^2, or their mean over i != j if the mean square is one number per matrix."""
    if mean_square.shape[-1] > 1:
        return S.square()
    n = S.shape[-1]
    return S.square().sum(dim=(-2, -1), keepdim=True) / max(n * (n - 1), 1)


def _limited(S: Tensor, v: Tensor, decay: float, step: Tensor, largest_growth: float) -> Tensor:
    """S, scaled down where its squares would multiply v by more than ``largest_growth``.

    An average forgets only at the rate of ``decay``: after a square of 1e30, steps would be tiny
    for tens of thousands of iterations. A scaled gradient still takes the step that it would take
    in Adam, about 1 / sqrt(1 - decay).
    """
    most = v / (1 - decay**step) * (largest_growth / (1 - decay))
    squares = _squares(S, v)
    return torch.where((v > 0) & (squares > most), S * (most / squares).sqrt(), S)


def _updated(average: Tensor, value: Tensor, decay: float, finite: Tensor) -> Tensor:
    """The average, updated in place with the value where that is finite."""
    return average.copy_(torch.where(finite, average.lerp(value, 1 - decay), average))
