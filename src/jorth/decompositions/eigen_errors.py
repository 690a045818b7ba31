"""Error bounds and condition numbers of the eigenvalues of A x = lambda J x."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Generic

import numpy as np
import torch
from torch import Tensor

from jorth.arrays import (
    ArrayT,
    Convertible,
    check_finite,
    check_signature,
    check_symmetric,
    describe,
    is_sparse,
    like_input,
    square_matrix,
    tensor_after,
    to_tensor,
)
from jorth.decompositions.batch import Floats, check_matrices
from jorth.decompositions.exact_products import UNIT, residuals
from jorth.decompositions.inclusion import inclusion_radii
from jorth.signature import Signature
from jorth.suggestions import explained

TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class EighErrors(Generic[ArrayT]):
    """What is known of the errors of eigenvalues: arrays of shape (..., k) in float64.

    Attributes:
        bounds: |computed - exact| is at most this; see ``guaranteed``.
        conditions: ||x||^2 / |x^T J x|: a change of A by dA moves lambda by at most this times
            ||dA||_2, to first order. Infinite where x^T J x is zero to rounding.
        relative_conditions: conditions ||A|| / |lambda|, with the largest column sum of |A| for
            ||A||: a relative change of A gives a relative change of lambda by at most this factor.
            Infinite where lambda is zero.
        gaps: The distance of each eigenvalue to the nearest other of those given; infinite if there
            is only one.
        guaranteed: Whether the bounds are strict, rounding errors included. They are for all n
            pairs of an array or a sparse matrix. For fewer pairs they hold to first order in the
            residual, and for an operator if its products are as accurate as those of a matrix.
    """

    bounds: ArrayT
    conditions: ArrayT
    relative_conditions: ArrayT
    gaps: ArrayT
    guaranteed: bool


@explained
def eigh_errors(
    A: Any, eigenvalues: ArrayT | Convertible, X: ArrayT | Convertible, signature: Signature
) -> EighErrors[ArrayT]:
    """Error bounds and condition numbers for each eigenvalue of A x = lambda J x.

    The residuals r_i = A x_i - lambda_i J x_i are computed with nearly twice the working precision,
    so that E = R^T X and G = X^T J X describe the exact pencil in the coordinates X. Gershgorin's
    theorem for this nearly diagonal pencil then contains each eigenvalue, with weights that make
    the effect of the off-diagonal elements one of second order: a bound is about
    |x^T r| / |x^T J x|, the error itself, unless the eigenvalue is in a cluster whose gaps are as
    small as the errors. There the bound is the width of the cluster. Nothing has to be definite,
    and X need not be J-orthogonal to rounding.

    With fewer than n columns, nothing is known outside of their span: the bounds are
    ||r|| ||x|| / |x^T J x|, the error to first order of a matrix whose exact eigenpair this is.

    Args:
        A: (..., n, n), symmetric; or one scipy.sparse matrix, or one LinearOperator of
            scipy.sparse.linalg, of shape (n, n), of which only products are used.
        eigenvalues: (..., k), as `eigh` returns them.
        X: (..., n, k), with the eigenvectors as columns, k <= n.
        signature: The signs of J.

    Returns:
        EighErrors(bounds, conditions, relative_conditions, gaps, guaranteed).
    """
    values, vectors = _checked_pairs(eigenvalues, X, signature)
    matrices = _matrices(A, signature, vectors)
    work = vectors.detach().to("cpu", torch.float64).reshape(-1, *vectors.shape[-2:]).numpy()
    numbers = values.detach().to("cpu", torch.float64).reshape(-1, values.shape[-1]).numpy()
    found = [
        _errors(matrix, number, vector, signature)
        for matrix, number, vector in zip(matrices, numbers, work, strict=True)
    ]
    parts = (
        torch.from_numpy(np.stack(part)).reshape(values.shape) for part in zip(*found, strict=True)
    )
    bounds, conditions, relative, gaps = (like_input(part, eigenvalues) for part in parts)
    full = vectors.shape[-1] == signature.n and not _is_operator(A)
    return EighErrors(bounds, conditions, relative, gaps, guaranteed=full)


def _checked_pairs(eigenvalues: object, X: object, signature: Signature) -> tuple[Tensor, Tensor]:
    """The eigenvalues (..., k) and the vectors (..., n, k)."""
    n = check_signature(signature).n
    values = to_tensor(eigenvalues, "eigenvalues")
    vectors = tensor_after(X, "X", values)
    k = vectors.shape[-1] if vectors.ndim > 1 else 0
    if vectors.ndim < 2 or vectors.shape[-2] != n or not 1 <= k <= n:
        expected = f"(..., {n}, k) with 1 <= k <= {n} for {signature}"
        raise ValueError(f"X must have shape {expected}, got {describe(X)}")
    if values.shape != (*vectors.shape[:-2], k):
        expected = f"{(*vectors.shape[:-2], k)} to go with X"
        raise ValueError(f"eigenvalues must have shape {expected}, got {describe(eigenvalues)}")
    check_matrices(vectors, "X")
    check_finite(values, "eigenvalues")
    return values, vectors


def _is_operator(A: object) -> bool:
    """Whether A has products only, as a `scipy.sparse.linalg.LinearOperator`."""
    return hasattr(A, "matvec") and not is_sparse(A)


def _matrices(A: Any, signature: Signature, vectors: Tensor) -> list[Any]:
    """One matrix or operator for each (n, k) of the vectors, symmetric, in float64 on the CPU."""
    n = signature.n
    if is_sparse(A) or _is_operator(A):
        if A.shape != (n, n) or vectors.ndim != 2:
            expected = f"shape ({n}, {n}) for {signature}, with one X ({n}, k)"
            raise ValueError(f"A must have {expected}, got {describe(A)} and {describe(vectors)}")
        dtype = np.dtype(np.float64 if A.dtype is None else A.dtype)
        if dtype.kind not in "fiu":
            found = f"an operator of dtype {dtype}" if _is_operator(A) else describe(A)
            raise TypeError(f"A must hold real numbers, got {found}")
        return [A if _is_operator(A) else _symmetric_rows(A)]
    matrix = square_matrix(A, signature, "A")
    if matrix.shape[:-2] != vectors.shape[:-2]:
        expected = f"shape {(*vectors.shape[:-2], n, n)} to go with X"
        raise ValueError(f"A must have {expected}, got {describe(A)}")
    check_matrices(matrix, "A")
    check_symmetric(matrix, "A")
    work = matrix.detach().to("cpu", torch.float64).reshape(-1, n, n).numpy()
    return [0.5 * one + 0.5 * one.T for one in work]


def _symmetric_rows(A: Any) -> Any:
    """A sparse matrix as a symmetric csr matrix of finite floats."""
    rows = A.tocsr().astype(np.float64)
    rows.sum_duplicates()
    check_finite(torch.from_numpy(rows.data), "A")
    largest = abs(rows).max() if rows.nnz else 0.0
    defect = abs(rows - rows.T).max() if rows.nnz else 0.0
    if defect > 64 * 2 * UNIT * largest:
        raise ValueError(f"A must be symmetric, got max |A - A^T| = {defect:.3g}")
    return (0.5 * rows + 0.5 * rows.T).tocsr()


def _errors(A: Any, values: Floats, X: Floats, signature: Signature) -> tuple[Floats, ...]:
    """Bounds, conditions, relative conditions and gaps (k,) for one matrix."""
    signs = signature.signs[:, None].astype(float)
    size, A, scaled = _normalised(A, values)
    X = np.ldexp(X, -np.frexp(np.abs(X).max(axis=0))[1])  # no length of a column matters here
    R, doubt = _residuals(A, X, signs * X, scaled)
    E = np.abs(R.T @ X) + 2 * len(X) * UNIT * (np.abs(R).T @ np.abs(X)) + doubt.T @ np.abs(X)
    rounding = 2 * len(X) * UNIT * (np.abs(X).T @ np.abs(X))
    G = np.abs(X.T @ (signs * X)) + rounding
    G.flat[:: len(G) + 1] -= 2 * rounding.diagonal()
    lengths = np.linalg.norm(X, axis=0)
    forms = np.maximum(G.diagonal(), 0.0)
    with np.errstate(over="ignore"):
        if len(G) < len(X):
            bounds = _ratios(np.linalg.norm(np.abs(R) + doubt, axis=0) * lengths, forms)
        elif forms.all():
            row_sums = E.sum(axis=1)
            weights = (1 / lengths, 1 / np.maximum(row_sums, 1e-60 * row_sums.max()))
            bounds = np.minimum(*(inclusion_radii(scaled, E, G, weight) for weight in weights))
        else:
            bounds = np.full_like(forms, np.inf)
        conditions = _ratios(lengths**2, forms)
        relative = _ratios(conditions * max(_column_sum(A), TINY), np.abs(scaled))
        return np.ldexp(bounds, size), conditions, relative, _gaps(values)


def _ratios(numerators: Floats, denominators: Floats) -> Floats:
    """Infinite where the denominator is zero, whatever the numerator."""
    infinite = np.full_like(denominators, np.inf)
    return np.divide(numerators, denominators, out=infinite, where=denominators > 0)


def _normalised(A: Any, values: Floats) -> tuple[int, Any, Floats]:
    """(e, A / 2^e, values / 2^e) with entries of A of at most 1."""
    if _is_operator(A):
        e = math.frexp(_column_sum(A))[1]
        return e, _scaled_operator(A, e), np.ldexp(values, -e)
    e = math.frexp(float(abs(A).max()))[1]
    if not is_sparse(A):
        return e, np.ldexp(A, -e), np.ldexp(values, -e)
    scaled = A.copy()
    scaled.data = np.ldexp(A.data, -e)
    return e, scaled, np.ldexp(values, -e)


def _scaled_operator(A: Any, e: int) -> Any:
    """A / 2^e, with products in float64."""
    from scipy.sparse.linalg import LinearOperator

    def multiply(X: Floats) -> Floats:
        return np.ldexp(np.asarray(A @ X, dtype=np.float64), -e)

    return LinearOperator(A.shape, matvec=multiply, matmat=multiply, dtype=np.float64)


def _residuals(A: Any, X: Floats, J_X: Floats, values: Floats) -> tuple[Floats, Floats]:
    """A X - J X diag(values), and bounds of the errors of its entries."""
    if not _is_operator(A):
        return residuals(A, X, J_X, values)
    product = np.asarray(A @ X, dtype=np.float64)
    check_finite(torch.from_numpy(product), "A @ X")
    doubt = UNIT * _column_sum(A) * np.linalg.norm(X, axis=0) + 4 * UNIT * np.abs(J_X * values)
    return product - J_X * values, doubt


def _column_sum(A: Any) -> float:
    """The largest column sum of |A|, estimated from products for an operator."""
    if not _is_operator(A):
        return float(abs(A).sum(axis=0).max())
    from scipy.sparse.linalg import LinearOperator, onenormest

    symmetric = LinearOperator(A.shape, matvec=A.matvec, rmatvec=A.matvec, dtype=np.float64)
    return float(onenormest(symmetric))


def _gaps(values: Floats) -> Floats:
    """The distance of each value to the nearest other."""
    order = np.argsort(values)
    steps = np.diff(values[order], prepend=-np.inf, append=np.inf)
    gaps = np.empty_like(values)
    gaps[order] = np.minimum(steps[:-1], steps[1:])
    return gaps
