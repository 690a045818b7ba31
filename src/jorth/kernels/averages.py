"""Momentum and running mean squares of slopes, in coordinates in which nothing is transported.

A left step moves X along J S X with S skew. The slopes S = skew(J G X^T) of different steps belong
to the same planes wherever X is, so they can be averaged as they stand: momentum M of S, and the
mean square v of S_ij (per plane) or of all slopes of a matrix (per matrix), both with Adam's
correction for their start at zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from jorth.kernels.majoriser import finite_matrices

LARGEST_GROWTH = 10
"""A single gradient multiplies an established mean square by at most this."""


@dataclass
class SlopeAverages:
    """The averages for a batch of b matrices; they change in place.

    Attributes:
        step: (b, 1, 1), how many finite gradients each matrix has seen.
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
        """M / (sqrt(v) + eps) after slopes S (b, n, n), and which of them were finite (b, 1, 1).

        Slopes that are not finite, or whose squares are not where those are averaged, leave no
        trace: zero stands for them, and they are not counted.

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
            S = _tempered(S, v, decay, self.step, largest_growth)
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


def _tempered(S: Tensor, v: Tensor, decay: float, step: Tensor, largest_growth: float) -> Tensor:
    """S, scaled down where its squares would multiply v by more than ``largest_growth``.

    An average forgets a square only at the rate of ``decay``: after one of 1e30 it would hardly
    move for tens of thousands of steps. The step D of such a gradient is that of Adam all the
    same, about 1 / sqrt(1 - decay).
    """
    most = v / (1 - decay**step) * (largest_growth / (1 - decay))
    squares = _squares(S, v)
    return torch.where((v > 0) & (squares > most), S * (most / squares).sqrt(), S)


def _updated(average: Tensor, value: Tensor, decay: float, where: Tensor) -> Tensor:
    """The average after the value has entered it, in place."""
    return average.copy_(torch.where(where, average.lerp(value, 1 - decay), average))
