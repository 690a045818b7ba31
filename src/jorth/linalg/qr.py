"""Hyperbolic QR, a J-orthogonal Q and a triangular R, and indefinite least squares."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from jorth import _inputs
from jorth._inputs import (
    ArrayT,
    Convertible,
    describe,
    like_input,
    tensor_alike,
    to_tensor,
    unit_roundoff,
)
from jorth.group.elements import power_of_two
from jorth.group.sampling import compose_cs
from jorth.linalg.batch import check_matrices
from jorth.signature import Signature


def hyperbolic_qr(A: ArrayT | Convertible, signature: Signature) -> tuple[ArrayT, ArrayT]:
    """Return (Q, R) with A = Q[:, signature.positive[:k]] R for A (..., m, k), m = p + q.

    If the signs are sorted, A = Q [R; 0]. A^T J A must be positive definite, which needs k <= p. Q
    (..., m, m) is J-orthogonal, R (..., k, k) upper triangular with a positive diagonal, so that
    A^T J A = R^T R: a Cholesky factor without the product.

    Both come from a plain QR and the CS decomposition of its factor, in float64: the residual of Q
    is a few m u at any condition number, and A - Q [R; 0] is a few m u ||Q|| ||R||.

    Reference: A. Bojanczyk, N. J. Higham, H. Patel, SIAM J. Matrix Anal. Appl. 24 (2003), who
    multiply hyperbolic rotations where the CS form gives Q directly.

    Args:
        A: (..., m, k) with A^T J A positive definite.
        signature: The m signs of J.

    Returns:
        (Q, R), like A.

    Raises:
        ValueError: A^T J A is not positive definite, or A has linearly dependent columns.

    >>> Q, R = jorth.hyperbolic_qr(np.array([[2.0], [1.0], [1.0]]), jorth.Signature(2, 1))
    >>> R
    array([[2.]])
    """
    matrix = tall_matrix(A, signature)
    unit = unit_roundoff(matrix)
    V, R0, scale = column_basis(matrix.to(torch.float64), unit)
    plus, minus = signature.positions(matrix.device)
    U2, sine, Zh = torch.linalg.svd(V[..., minus, :])
    U1, C = positive_qr(V[..., plus, :] @ Zh.mT, mode="complete")
    cosine = torch.diagonal(C, dim1=-2, dim2=-1)
    r, k = sine.shape[-1], V.shape[-1]
    check_definite((cosine[..., :r] - sine) * (cosine[..., :r] + sine), signature, unit)
    mu = torch.atanh(sine / cosine[..., :r])
    D = torch.cat([cosine[..., :r] / mu.cosh(), cosine[..., r:]], dim=-1)
    Y, R = positive_qr(D[..., None] * (Zh @ R0))
    V1 = torch.eye(signature.p, dtype=V.dtype, device=V.device).repeat(*V.shape[:-2], 1, 1)
    V1[..., :k, :k] = Y.mT
    V2 = torch.eye(signature.q, dtype=V.dtype, device=V.device).expand(*V.shape[:-2], -1, -1)
    mu = torch.nn.functional.pad(mu, (0, min(signature.p, signature.q) - r))
    Q = compose_cs(U1, U2, mu, V1, V2, signature).to(matrix.dtype)
    R = (R * scale[..., None, :]).to(matrix.dtype)
    _inputs.check_overflow(R, "A", "R")
    return like_input(Q, A), like_input(R, A)


def indefinite_lstsq(
    A: ArrayT | Convertible, b: ArrayT | Convertible, signature: Signature
) -> ArrayT:
    """Return the x that minimises (b - A x)^T J (b - A x), for A (..., m, k) with m = p + q.

    A^T J A must be positive definite, which needs k <= p; with q = 0 this is ordinary least
    squares. A plain QR, A = V R, and a Cholesky factor of V^T J V give x in float64, backward
    stable unlike the normal equations (S. Chandrasekaran, M. Gu, A. H. Sayed, SIAM J. Matrix Anal.
    Appl. 20, 1998).

    Args:
        A: (..., m, k).
        b: One right-hand side per matrix, (..., m), or r of them, (..., m, r); the batch is that of
            A.
        signature: The signs of J, one for each row.

    Returns:
        x, (..., k) or (..., k, r), like A.

    Raises:
        ValueError: A^T J A is not positive definite, or A has linearly dependent columns.

    >>> A, b = np.array([[2.0], [1.0], [1.0]]), np.array([4.0, 2.0, 2.0])
    >>> jorth.indefinite_lstsq(A, b, jorth.Signature(2, 1))
    array([2.])
    """
    matrix = tall_matrix(A, signature)
    right = tensor_alike(b, "b", matrix, "A")
    deep = right.ndim not in (matrix.ndim - 1, matrix.ndim)
    if deep or right.shape[: matrix.ndim - 1] != matrix.shape[:-1]:
        rows = ", ".join(map(str, matrix.shape[:-1]))
        expected = f"({rows},) or ({rows}, r) to go with A"
        raise ValueError(f"b must have shape {expected}, got {describe(b)}")
    _inputs.check_finite(right, "b")
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


def tall_matrix(A: object, signature: Signature) -> Tensor:
    """Return a tensor (..., m, k) with m = p + q rows and 1 <= k <= p columns."""
    matrix = to_tensor(A, "A")
    m, p = _inputs.check_signature(signature).n, signature.p
    if matrix.ndim < 2 or matrix.shape[-2] != m or not 1 <= matrix.shape[-1] <= p:
        reason = "(A^T J A is not positive definite otherwise)"
        expected = f"(..., {m}, k) with 1 <= k <= p = {p} for {signature} {reason}"
        raise ValueError(f"A must have shape {expected}, got {describe(A)}")
    check_matrices(matrix, "A")
    return matrix


def column_basis(A: Tensor, unit: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return (V, R, d) with A = V R diag(d), or raise a ValueError: dependent columns to rounding.

    V has orthonormal columns, and d (..., k) makes those of A about equally long.
    """
    scale = power_of_two(A.abs().amax(dim=-2))
    V, R = torch.linalg.qr(A / scale[..., None, :])
    smallest = torch.linalg.svdvals(R)[..., -1].min().item()
    if smallest <= A.shape[-2] * unit:
        found = f"a smallest singular value of {smallest:.3g} once they are scaled"
        raise ValueError(f"A must have linearly independent columns, got {found}")
    return V, R, scale


def check_definite(eigenvalues: Tensor, signature: Signature, unit: float) -> None:
    """Raise a ValueError if an eigenvalue of V^T J V, V orthonormal, is not above rounding."""
    worst = min(eigenvalues.flatten().tolist(), default=1.0)
    if not worst > 4 * signature.n * unit:
        raise ValueError(
            "A^T J A must be positive definite, got a matrix A whose smallest eigenvalue of "
            f"A^T J A relative to A^T A is {worst:.3g} for {signature}"
        )


def positive_qr(
    A: Tensor, mode: Literal["reduced", "complete"] = "reduced"
) -> tuple[Tensor, Tensor]:
    """Return the QR factorisation with a positive diagonal of R."""
    Q, R = torch.linalg.qr(A, mode=mode)
    diagonal = torch.diagonal(R, dim1=-2, dim2=-1)
    signs = Q.new_ones((*Q.shape[:-2], Q.shape[-1]))
    signs[..., : diagonal.shape[-1]] = torch.where(diagonal < 0, -1.0, 1.0).to(Q)
    return Q * signs[..., None, :], signs[..., None] * R
