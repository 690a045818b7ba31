"""Whether a symmetric matrix is positive (semi)definite up to rounding, and its square root."""

from __future__ import annotations

import torch
from torch import Tensor

from jorth._inputs import frobenius


def _rounding(A: Tensor) -> float:
    """16 eps ||A||_F: rounding cannot change the sign of an eigenvalue that is larger than this.

    Each entry is a sum in floating point and off by a few eps of its size. So A, and by Weyl's
    theorem each eigenvalue, is off by a few eps ||A||_F. Only the rounding of A itself counts, as
    single precision is factored in double.
    """
    return 16 * torch.finfo(A.dtype).eps * frobenius(A)


def is_semidefinite(A: Tensor) -> bool:
    """Whether A has no eigenvalue below minus its rounding."""
    return not bool(A.any()) or _has_cholesky_factor(A, _rounding(A))


def is_definite(A: Tensor) -> bool:
    """Whether A has all eigenvalues above its rounding."""
    return _has_cholesky_factor(A, -_rounding(A))


def square_root(A: Tensor) -> Tensor:
    """F (n, n) with F^T F = A for a semidefinite A; eigenvalues below 0 by rounding become 0.

    ||F z||^2 is off by a few u ||A|| ||z||^2. For z the difference of two columns, that is small
    relative to the difference and not only to the columns.
    """
    values, vectors = torch.linalg.eigh(A)
    root: Tensor = values.clamp(min=0).sqrt()[:, None] * vectors.mT
    return root


def _has_cholesky_factor(A: Tensor, shift: float) -> bool:
    moved = A.double() if A.dtype != torch.float64 else A.clone()
    moved.diagonal().add_(shift)
    return int(torch.linalg.cholesky_ex(moved).info) == 0
