"""Whether a symmetric matrix is positive definite or semidefinite beyond doubt, and a factor of one that is."""

from __future__ import annotations

import torch
from torch import Tensor


def rounding_of(A: Tensor) -> float:
    """64 n u max a_ii, u = eps: beyond it an eigenvalue of A has a sign of its own.

    An entry that was summed up in floating point is off by a few u of the diagonal; n of them add up to n times as much
    in the spectral norm, and so does the Cholesky factorisation (Higham 2002, Theorem 10.7).
    """
    return 64 * len(A) * torch.finfo(A.dtype).eps * float(A.diagonal().abs().max())


def is_semidefinite(A: Tensor) -> bool:
    """Whether A has no eigenvalue below minus its rounding."""
    return not bool(A.any()) or _factors(A, rounding_of(A))


def is_definite(A: Tensor) -> bool:
    """Whether A has all eigenvalues above its rounding."""
    return _factors(A, -rounding_of(A))


def square_root(A: Tensor) -> Tensor:
    """F (n, n) with F^T F = A for a semidefinite A; what rounding made negative is zero.

    ||F z||^2 is off by a few u ||A|| ||z||^2: relative to the vector z at hand, such as the difference of two columns,
    and not to the columns themselves.
    """
    values, vectors = torch.linalg.eigh(A)
    root: Tensor = values.clamp(min=0).sqrt()[:, None] * vectors.mT
    return root


def _factors(A: Tensor, shift: float) -> bool:
    """Whether A + shift I has a Cholesky factor."""
    moved = A.clone()
    moved.diagonal().add_(shift)
    return int(torch.linalg.cholesky_ex(moved).info) == 0
