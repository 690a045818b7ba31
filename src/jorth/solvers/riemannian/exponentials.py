"""The inverse of T -> B T + T B from products alone, to nine per cent, for a device.

For eigenvalues x, y >= 0 of B the inverse is 1 / (x + y) = int exp(-t x) exp(-t y) dt over t > 0.
The trapezoidal rule in log t, with t = 1, 8, 64, ... in units of 1 / ||B||_2, turns it into

    T = 0.144 R + sum_j w_j G_j R G_j,    G_0 = I - B + 0.38 B^2 ~ exp(-B),    G_j = G_(j-1)^8,

where w_0 = 2.4 and w_j = log(8) 8^j. The first two weights make up for the missing t < 1. The
result lies within nine per cent of the inverse on every pair of eigenvalues that the sum covers,
and up to 45 per cent below it on the smallest. It is a fixed, symmetric and positive map, and
nothing in it can break down: all factors are contractions.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from jorth.solvers.riemannian.scalars import fetch

RATIO = 8
AT_ZERO = 0.144
CURVED = 0.38
"""The coefficient that brings I - B + c B^2 nearest to exp(-B) for eigenvalues from 0 to 1."""
FIRST_WEIGHT = 2.4
MOST_TERMS = 9
"""The most terms, which cover eigenvalues of B over seven orders of magnitude."""
SPENT = 1.0
"""The ||G_j^2||_F from which on no further term is needed: exp(-t (x + y)) is then at most 0.71 for
any two eigenvalues, and at least 64 per cent of the inverse are there."""


class ExponentialSum(NamedTuple):
    """The map r -> W T W^T with W = J X J and T as above, for R = W^T r W and B / scale.

    Further dimensions in front are those of a batch.
    """

    W: Tensor
    factors: Tensor
    """(..., terms, n, n): sqrt(w_j) G_j."""
    size: Tensor
    """(..., 1, 1): a bound on ||B||_2 / scale, on the device."""
    scale: float | Tensor

    def apply(self, r: Tensor) -> Tensor:
        """The inverse of S -> (J A J S X X^T + X X^T S J A J) / 2 times a skew r."""
        R = self.W.mT @ r @ self.W
        images = R.unsqueeze(-3) @ self.factors
        T = torch.add(self.factors.flatten(-3, -2).mT @ images.flatten(-3, -2), R, alpha=AT_ZERO)
        S = self.W @ T @ self.W.mT
        return (S - S.mT) / (self.size * self.scale)


def exponential_sum(
    A: Tensor, X: Tensor, s: Tensor, scale: float | Tensor, expected_terms: int
) -> ExponentialSum:
    """The sum for B = J X^T A X J, A positive semidefinite with entries up to 1, times scale.

    ``expected_terms`` are formed before the first norm is fetched; it does not change the result.
    """
    XJ = X * s
    B = XJ.mT @ (A @ XJ)
    B = B + B.mT  # twice B, as a product is not symmetric to the last digit
    square = B @ B
    size = _norm(square).sqrt()  # between ||B||_2 and n^(1/4) ||B||_2
    power = square * (CURVED / size**2) - B / size
    power.diagonal(dim1=-2, dim2=-1).add_(1)
    powers, squares = [power], [power @ power]
    while True:
        while len(powers) < expected_terms:
            fourth = squares[-1] @ squares[-1]
            powers.append(fourth @ fourth)
            squares.append(powers[-1] @ powers[-1])
        norms = fetch(*(_norm(square).amax() for square in squares))
        needed = next((count for count, norm in enumerate(norms, 1) if norm <= SPENT), MOST_TERMS)
        if needed <= len(powers):
            break
        expected_terms = len(powers) + 1
    factors = torch.stack(powers[:needed], -3).mul_(_square_roots(needed, B.dtype, B.device))
    return ExponentialSum(s[:, None] * XJ, factors, size / 2, scale)


def _norm(B: Tensor) -> Tensor:
    """||B||_F (..., 1, 1)."""
    norm: Tensor = torch.linalg.vector_norm(B, dim=(-2, -1), keepdim=True)
    return norm


@lru_cache(maxsize=32)
def _square_roots(terms: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """sqrt(w_j) (terms, 1, 1)."""
    weights = [FIRST_WEIGHT, *(math.log(RATIO) * RATIO**j for j in range(1, terms))]
    return torch.tensor(weights, dtype=dtype, device=device).sqrt()[:, None, None]
