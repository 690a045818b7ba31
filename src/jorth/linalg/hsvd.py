"""The hyperbolic singular value decomposition by one-sided J-Jacobi."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic

import numpy as np
import torch
from numpy.typing import NDArray

from jorth._inputs import (
    ArrayT,
    Convertible,
    check_overflow,
    check_signature,
    describe,
    like_input,
    real_number,
    to_tensor,
)
from jorth.group.polish import PolishError, orthogonal_factor
from jorth.linalg.batch import Floats, call_on_matrix, check_matrices, flatten_batch, restore_batch
from jorth.signature import Signature


@dataclass(frozen=True)
class HSVD(Generic[ArrayT]):
    """G X = U diag(S), so that G = U diag(S) X^-1 with X^-1 = J X^T J, and G J G^T = U (J S^2) U^T.

    For G with full column rank, S is positive and U has orthonormal columns. Otherwise as many S
    are exactly 0 as G has independent null vectors; these are the columns of X at the same places,
    where the columns of U are 0.

    Attributes:
        U: (..., m, n), orthonormal columns where S > 0, zero columns where S = 0.
        S: (..., n), positive or 0.
        X: (..., n, n), J-orthogonal.
        signature: The signs of J.
    """

    U: ArrayT
    S: ArrayT
    X: ArrayT
    signature: Signature

    def __iter__(self) -> Iterator[ArrayT]:
        """Yield U, S and X: ``U, S, X = hsvd(G, signature)``."""
        return iter((self.U, self.S, self.X))

    def compose(self) -> ArrayT:
        """Return the matrix G (..., m, n)."""
        U, S, X = (to_tensor(factor, "each factor") for factor in self)
        s = self.signature.vector(X)
        G = (U * (S * s)[..., None, :]) @ X.mT * s
        check_overflow(G, "U, S and X", "G")
        return like_input(G, self.S)


def hsvd(
    G: ArrayT | Convertible, signature: Signature, *, tolerance: float | None = None
) -> HSVD[ArrayT]:
    """Return the hyperbolic SVD G X = U diag(S) of G (..., m, n), n = p + q, with X^T J X = J.

    The squares of S are the |lambda| of G^T G x = lambda J x, and s_i S_i^2 are the nonzero
    eigenvalues of G J G^T. One-sided J-Jacobi forms neither product: it rotates columns of equal
    sign and boosts columns of opposite sign until they are orthogonal to rounding. For G = D1 B D2,
    D1 and D2 diagonal of any grading, each value has a relative error of about u cond(B) ||X||^2.

    A wide or rank-deficient G has S = 0 for each independent null vector, and that vector in X.
    This needs a null space on which x^T J y is nondegenerate, in other words, G J G^T of the same
    rank as G. ||X|| grows as the null space comes near that, and the other S are then right to
    about u ||G|| ||X||^2. The rank is that of G with rows and columns scaled to equal size.

    The computation is in float64 on the CPU and carries no gradient.

    References: R. Onn, A. O. Steinhardt, A. W. Bojanczyk, IEEE Trans. Signal Processing 39 (1991);
    K. Veselic, Numer. Math. 64 (1993); I. Slapnicar, Linear Algebra Appl. 358 (2003).

    Args:
        G: (..., m, n).
        signature: The signs of J.
        tolerance: What is taken for zero when the rank is judged, relative to the largest pivot of
            a QR factorisation of the scaled G. None is max(m, n) eps in the dtype of G; data with
            larger errors need more.

    Returns:
        HSVD(U, S, X). S descends among the positions of each sign.

    Raises:
        ValueError: The null space of G is degenerate.

    >>> G = np.random.default_rng(0).standard_normal((5, 3))
    >>> svd = jorth.hsvd(G, jorth.Signature(2, 1))
    >>> np.allclose(G @ svd.X, svd.U * svd.S)
    True
    """
    matrix = to_tensor(G, "G")
    n = check_signature(signature).n
    if matrix.ndim < 2 or matrix.shape[-1] != n:
        expected = f"(..., m, {n}) for {signature}"
        raise ValueError(f"G must have shape {expected}, got {describe(G)}")
    check_matrices(matrix, "G")
    if tolerance is None:
        zero = max(matrix.shape[-2:]) * torch.finfo(matrix.dtype).eps
    else:
        expected = "None or a number of at least 0 and below 1"
        zero = real_number(tolerance, "tolerance", expected, lambda x: 0 <= x < 1)
    work, batch = flatten_batch(matrix), matrix.shape[:-2]
    found = [
        call_on_matrix(lambda one: _hsvd(one, signature.signs, zero), work, k, batch)
        for k in range(len(work))
    ]
    U, S, X = restore_batch([np.stack(parts) for parts in zip(*found, strict=True)], matrix)
    return HSVD(U=like_input(U, G), S=like_input(S, G), X=like_input(X, G), signature=signature)


def _hsvd(G: Floats, signs: NDArray[np.int8], tolerance: float) -> tuple[Floats, Floats, Floats]:
    """Return (U, S, X) of one matrix, with exact zeros in S for its null space.

    With orthonormal bases Q1 of the row space of G and Q2 of its null space, the eigenvectors of
    Q1^T J Q1 and Q2^T J Q2 make both J-orthonormal, unless an eigenvalue is zero.
    """
    from scipy.linalg import qr

    m, n = G.shape
    if not G.any():
        return np.zeros((m, n)), np.zeros(n), np.eye(n)
    scaled = G  # rows and columns of about equal size, so that a grading is no deficiency
    for axis in (1, 0, 1, 0):
        largest = np.abs(scaled).max(axis=axis, keepdims=True)
        scaled = scaled / np.where(largest > 0, largest, 1.0)
    R, rows = qr(scaled.T, mode="r", pivoting=True)
    pivots = np.abs(np.diagonal(R))
    rank = int(np.count_nonzero(pivots > tolerance * pivots[0]))
    if rank == n:
        return one_sided_jacobi(G, signs)
    # Householder QR of rows that span the row space, sorted by columns, preserves a grading
    spanning = G[rows[:rank]] / np.abs(G[rows[:rank]]).max(axis=1, keepdims=True)
    order = np.argsort(-np.abs(spanning).max(axis=0), kind="stable")
    Q = np.empty((n, n))
    Q[order] = qr(spanning[:, order].T, pivoting=True)[0]
    outer, null_space = signs[:, None] * Q[:, :rank], Q[:, rank:]
    forms = [np.linalg.eigh(Q.T @ (signs[:, None] * Q)) for Q in (outer, null_space)]
    squares = np.concatenate([values for values, _ in forms])
    smallest = float(np.abs(squares).min())
    # a change of G by the tolerance turns its null space by this much
    least = min(4 * tolerance * float(pivots[0] / pivots[rank - 1]), 0.5)
    if smallest <= least or np.count_nonzero(squares > 0) != np.count_nonzero(signs > 0):
        raise ValueError(
            "G must have a null space on which x^T J y is nondegenerate, or else there is no "
            "hyperbolic SVD (there is one if G J G^T has the rank of G), got a null vector x with "
            f"|x^T J y| <= {max(smallest, least):.1g} ||x|| ||y|| for all null vectors y"
        )
    outer, null_space = (
        Q @ (vectors / np.sqrt(np.abs(values)))
        for Q, (values, vectors) in zip((outer, null_space), forms, strict=True)
    )
    own = np.sign(squares).astype(np.int8)
    exponent = max(math.frexp(float(np.abs(G).max()))[1] - 900, 0)  # no product overflows
    U1, S1, X1 = one_sided_jacobi(np.ldexp(G, -exponent) @ outer, own[:rank])
    with np.errstate(over="ignore"):
        S = np.concatenate([np.ldexp(S1, exponent), np.zeros(n - rank)])
    check_overflow(S, "G", "a singular value")
    order = order_by_sign(-S, own, signs)
    U = np.hstack([U1, np.zeros((m, n - rank))])
    X = np.hstack([outer @ X1, null_space])
    return U[:, order], S[order], X[:, order]


def one_sided_jacobi(G: Floats, signs: NDArray[np.int8]) -> tuple[Floats, Floats, Floats]:
    """Return (U, S, X) of one matrix (m, n) with full column rank; S descends within each sign."""
    from scipy.linalg import qr

    # Householder QR preserves a grading of rows if large ones come first (Cox and Higham, 1998)
    rows = np.argsort(-np.abs(G).max(axis=1), kind="stable")
    Q, R, columns = qr(G[rows], mode="economic", pivoting=True)
    steps, V, S, X = jacobi_of_triangles(R[None], columns[None], signs, len(G), descending=True)
    if steps[0] < 0:
        raise ValueError(
            "G is too close to rank-deficient for a hyperbolic singular value decomposition: "
            "two columns of opposite sign became parallel and equally long"
        )
    if steps[0] > 0:
        found = f"{steps[0]} pairs were not orthogonal in the last sweep"
        raise RuntimeError(f"one-sided J-Jacobi did not converge: {found}")
    U = np.empty_like(G)
    U[rows] = Q @ V[0]
    return U, S[0], X[0]


def jacobi_of_triangles(
    R: Floats,
    columns: NDArray[np.intp],
    signs: NDArray[np.int8],
    rows: int,
    *,
    descending: bool,
    max_sweeps: int = 60,
    smallest_start: int = 64,
) -> tuple[NDArray[np.int64], Floats, Floats, Floats]:
    """Return (steps, U, S, X) with G[k] X[k] = U[k] diag(S[k]) for b matrices G[k].

    R[k] = G[k][:, columns[k]] is triangular, long columns first. ``steps`` (b,) is 0 where the
    sweeps have converged (about 10 are usual, the most seen were 23) and -1 where there is no X.
    Rounding leaves a cosine of 2 sqrt(rows) u between two columns. S descends within each sign, or
    ascends. From n = ``smallest_start`` on `warm_start` pays.
    """
    from jorth.linalg._jacobi_numba import orthogonalise

    b, n, _ = R.shape
    own = signs[columns]
    work = np.zeros((b, n, 2 * n))
    work[:, :, :n] = R.transpose(0, 2, 1)
    every = np.arange(b)[:, None]
    work[every, np.arange(n), n + columns] = 1.0
    for k in range(b if n >= smallest_start else 0):
        start = warm_start(R[k], own[k])
        if start is not None:
            work[k, :, :n] = (R[k] @ start).T
            work[k][:, n + columns[k]] = start.T
    # for few rows it is 8 u: rounding of a step and of the product of two entries alone is 6 u
    tolerance = max(2 * math.sqrt(rows), 8.0) * 2.0**-53
    largest = np.abs(work[:, :, :n]).max(axis=2)
    scaled = work[:, :, :n] / np.where(largest > 0, largest, 1.0)[:, :, None]
    lengths = largest * np.sqrt(np.square(scaled).sum(axis=2))
    steps = np.empty(b, dtype=np.int64)
    orthogonalise(work, own, tolerance, max_sweeps, lengths, steps)
    order = order_by_sign(-lengths if descending else lengths, own, signs)
    S, work = lengths[every, order], work[every, order].transpose(0, 2, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return steps, work[:, :n] / S[:, None, :], S, np.ascontiguousarray(work[:, n:])


def order_by_sign(keys: Floats, own: NDArray[np.int8], signs: NDArray[np.int8]) -> NDArray[np.intp]:
    """Return which of ``keys`` (..., n) goes to each place of ``signs``: of its sign, ascending."""
    order = np.empty(keys.shape, dtype=np.intp)
    order[..., np.argsort(-signs, kind="stable")] = np.lexsort((keys, -own), axis=-1)
    return order


def warm_start(R: Floats, signs: NDArray[np.int8]) -> Floats | None:
    """Return a J-orthogonal X for which the columns of R X are nearly orthogonal, or None.

    The eigenvectors of R J R^T = U (J S^2) U^T give X = J R^T U S^-1, feasible to u cond(R)^2, and
    its J-orthogonal polar factor leaves two or three sweeps to J-Jacobi. There is none if the
    lengths of the columns differ by more than a factor of 10, as R X would blur much shorter ones.
    """
    R = R / np.abs(R).max()
    lengths = np.linalg.norm(R, axis=0)
    if lengths.max() > 10 * lengths.min():
        return None
    squares, U = np.linalg.eigh((R * signs) @ R.T)
    if not np.all(squares) or np.count_nonzero(squares > 0) != np.count_nonzero(signs > 0):
        return None
    order = np.empty(len(signs), dtype=np.intp)
    order[signs > 0] = np.flatnonzero(squares > 0)
    order[signs < 0] = np.flatnonzero(squares < 0)
    X = signs[:, None] * (R.T @ U[:, order]) / np.sqrt(np.abs(squares[order]))
    try:
        X = orthogonal_factor(torch.from_numpy(X), Signature.of(signs), "X").numpy()
    except PolishError:
        return None
    # the factor is feasible to 4 n u; one more Schulz step takes it to rounding level
    polished: Floats = 1.5 * X - 0.5 * X @ (signs[:, None] * (X.T @ (signs[:, None] * X)))
    return polished
