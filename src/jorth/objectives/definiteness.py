"""Whether a symmetric matrix is positive (semi)definite up to rounding, and its square root."""

from __future__ import annotations

import torch
from torch import Tensor

from jorth.arrays import frobenius


def rounding_of(A: Tensor) -> float:
    """16 eps ||A||_F: an eigenvalue of A beyond it has a sign of its own.

    Entries that were summed up in floating point are each off by a few eps of their size: A by as
    much of ||A||_F, and so are its eigenvalues (Weyl). Single precision is factored in double: only
    the rounding of A itself counts.
    """
    return 16 * torch.finfo(A.dtype).eps * frobenius(A)


def is_semidefinite(A: Tensor) -> bool:
    """Whether A has no eigenvalue below minus its rounding."""
    return not bool(A.any()) or _has_cholesky_factor(A, rounding_of(A))


def is_definite(A: Tensor) -> bool:
    """Whether A has all eigenvalues above its rounding."""
    return _has_cholesky_factor(A, -rounding_of(A))


def square_root(A: Tensor) -> Tensor:
    """F (n, n) with F^T F = A for a semidefinite A; what rounding made negative is zero.

    ||F z||^2 is off by a few u ||A|| ||z||^2: relative to the vector z itself, such as the
    difference of two columns, and not relative to the columns.
    """
    values, vectors = torch.linalg.eigh(A)
    root: Tensor = values.clamp(min=0).sqrt()[:, None] * vectors.mT
    return root


def _has_cholesky_factor(A: Tensor, shift: float) -> bool:
    """Whether A + shift I has a Cholesky factor."""
    moved = A.double() if A.dtype != torch.float64 else A.clone()
    moved.diagonal().add_(shift)
    return int(torch.linalg.cholesky_ex(moved).info) == 0
