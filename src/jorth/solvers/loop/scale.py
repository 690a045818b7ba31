"""The size of a problem: the unit in which a run computes, and the scale of its gradient.

The values and gradients that a solver sees are those of f divided by a power of two near the size
of the problem. So f times 2^k is the same run to the last bit, f times any c is the same run up to
rounding, and no square or product inside a solver overflows. Users only see the units of f.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from jorth._inputs import frobenius
from jorth.group.elements import spectral_norm

LARGEST_VALUE = 500
"""|f| at the start is at most two to this power in the unit, however small the gradient is."""


@dataclass
class Scale:
    """The unit of a run, and the scale with which the gradient norm is compared.

    Attributes:
        unit: A power of two, in the units of f.
        largest: The scale of the gradient, in the units of f: what the objective states, or else
            the largest ||G X^T||_F / max(1, ||X||_2^2) seen so far.
        stated: Whether the objective states it.
    """

    unit: float = 1.0
    largest: float = 0.0
    stated: bool = False

    @classmethod
    def of(cls, stated: float | None, X: Tensor, value: float, gradient: Tensor) -> Scale:
        """The scale at the start X; the stated one counts if it is positive and finite."""
        if stated is not None and 0 < stated < math.inf:
            return cls(_unit(stated, value, X.dtype), stated, stated=True)
        size = gradient_size(X, gradient)
        if not 0 < size < math.inf:
            return cls()
        return cls(_unit(size, value, X.dtype), size)

    @property
    def size(self) -> float:
        """The scale of the gradient in the unit of the run; 1 if it is unknown."""
        return self.largest / self.unit or 1.0

    def raise_to(self, size: float) -> None:
        """Take a scale into account that was found at another point, in the units of f."""
        if not self.stated and self.largest < size < math.inf:
            self.largest = size


def gradient_size(X: Tensor, gradient: Tensor, norm: float | None = None) -> float:
    """||G X^T||_F / max(1, ||X||_2^2), without overflow; X may be far out, so its square is not."""
    largest = float(gradient.abs().max())
    if not 0 < largest < math.inf:
        return largest
    size = max(1.0, spectral_norm(X) if norm is None else norm)
    return largest * frobenius((gradient / largest) @ (X / size).mT) / size


def _unit(size: float, value: float, dtype: torch.dtype) -> float:
    """The power of two just above ``size``, in the range of the dtype and not far below |f|."""
    exponent = math.frexp(size)[1]
    if math.isfinite(value):
        exponent = max(exponent, math.frexp(value)[1] - LARGEST_VALUE)
    most = math.frexp(torch.finfo(dtype).max)[1] - 8
    return math.ldexp(1.0, max(-most, min(exponent, most)))
