"""Indefinite least squares: the stationary point of (b - A x)^T J (b - A x)."""

from __future__ import annotations

import torch
from torch import Tensor

from jorth import _inputs
from jorth._inputs import ArrayT, Convertible, describe, like_input, tensor_alike, unit_roundoff
from jorth.linalg.qr import check_definite, column_basis, tall_matrix
from jorth.signature import Signature


def indefinite_lstsq(
    A: ArrayT | Convertible, b: ArrayT | Convertible, signature: Signature
) -> ArrayT:
    """Return the x that minimises (b - A x)^T J (b - A x), for A (..., m, k) with m = p + q.

    A^T J A must be positive definite, which needs k <= p; with q = 0 this is ordinary least
    squares. A plain QR, A = V R, and a Cholesky factor of V^T J V give R x = (V^T J V)^-1 V^T J b.
    Unlike the normal equations A^T J A x = A^T J b, this is backward stable. It is computed in
    float64.

    Reference: S. Chandrasekaran, M. Gu, A. H. Sayed, A stable and efficient algorithm for the
    indefinite linear least-squares problem, SIAM J. Matrix Anal. Appl. 20 (1998).

    Args:
        A: (..., m, k).
        b: One right-hand side per matrix, (..., m), or r of them, (..., m, r); the batch is that
            of A.
        signature: The signs of J, one for each row.

    Returns:
        x, (..., k) or (..., k, r), like A.

    Raises:
        ValueError: A^T J A is not positive definite, or A has linearly dependent columns.
    """
    matrix = tall_matrix(A, signature)
    right = right_hand_side(b, matrix)
    unit = unit_roundoff(matrix)
    V, R, scale = column_basis(matrix.to(torch.float64), unit)
    VtJ = V.mT * signature.vector(V)
    M = VtJ @ V
    check_definite(torch.linalg.eigvalsh(M), signature, unit)
    columns = right[..., None] if right.ndim < matrix.ndim else right
    y = torch.cholesky_solve(VtJ @ columns.to(V), torch.linalg.cholesky(M))
    x = torch.linalg.solve_triangular(R, y, upper=True) / scale[..., None]
    x = x.reshape(*matrix.shape[:-2], matrix.shape[-1], *right.shape[matrix.ndim - 1 :]).to(matrix)
    _inputs.check_overflow(x, "A and b", "x")
    return like_input(x, A, b)


def right_hand_side(b: object, A: Tensor) -> Tensor:
    """Return b (..., m) or (..., m, r), finite, to go with A (..., m, k)."""
    right = tensor_alike(b, "b", A, "A")
    if right.shape[: A.ndim - 1] != A.shape[:-1] or right.ndim not in (A.ndim - 1, A.ndim):
        rows = ", ".join(map(str, A.shape[:-1]))
        expected = f"({rows},) or ({rows}, r) to go with A"
        raise ValueError(f"b must have shape {expected}, got {describe(b)}")
    _inputs.check_finite(right, "b")
    return right
