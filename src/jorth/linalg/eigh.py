"""The eigenvalue problem A x = lambda J x of a definite or semidefinite pencil."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from jorth._inputs import (
    ArrayT,
    Convertible,
    check_symmetric,
    finite_number,
    like_input,
    real_number,
    square_matrix,
)
from jorth.linalg.batch import Floats, call_on_matrix, check_matrices, flatten_batch, restore_batch
from jorth.linalg.hsvd import jacobi_of_triangles, one_sided_jacobi, order_by_sign
from jorth.linalg.subset import eigh_subset, is_sparse_matrix, read_sparse, subset_counts
from jorth.signature import Signature

Pairs = tuple[Floats, Floats]
"""Eigenvalues (n,), and X (n, n) with the eigenvectors as columns."""


def eigh(
    A: ArrayT | Convertible,
    signature: Signature,
    *,
    subset: tuple[int, int] | None = None,
    shift: float | None = None,
    tolerance: float | None = None,
) -> tuple[ArrayT, ArrayT]:
    """Return all lambda and x of A x = lambda J x for symmetric A (..., n, n), with X^T J X = J.

    Then X^T A X = J diag(lambda). The pencil must be *definite*, that is, A - mu J is positive or
    negative definite for some mu, or semidefinite with a null space on which J is regular.

    If it is positive definite, all lambda are real, those at the positions of + lie above mu and
    those at the positions of - below. For A itself positive definite, mu = 0, and sum |lambda| is
    the minimum of tr(Z^T A Z) over all J-orthogonal Z, attained at X. If it is negative definite,
    the same holds for -A. If it is semidefinite, some lambda at both signs equal mu. With p = 0 or
    q = 0 every A qualifies.

    A pivoted Cholesky factorisation A - mu J = R^T R is followed by J-Jacobi on R (see `hsvd`). X
    is a product of rotations and boosts, so its residual is a few n u whatever the condition of A,
    unlike that of `scipy.linalg.eigh(J, A)`. If A = D B D is positive definite with D diagonal of
    any grading, each lambda has a relative error of about u cond(B) ||X||^2.

    Otherwise mu is found by bisection, and each lambda has an error of a few n u ||A - mu J||
    ||x||^2. If A - mu J is singular to rounding, the null space is split off, with lambda = mu. The
    computation is in float64 on the CPU and carries no gradient.

    References: K. Veselic, A Jacobi eigenreduction algorithm for definite matrix pairs, Numer.
    Math. 64 (1993); C.-H. Guo, N. J. Higham, F. Tisseur, An improved arc algorithm for detecting
    definite Hermitian pairs, SIAM J. Matrix Anal. Appl. 31 (2009).

    Args:
        A: (..., n, n), symmetric.
        signature: The signs of J.
        subset: (k_positive, k_negative) for only so many eigenpairs of each sign, those nearest to
            mu: eigenvalues (..., k) and X (..., n, k), k = k_positive + k_negative, with X^T J X =
            diag(I, -I), the positive ones first. A may then also be a sparse matrix of any size.
        shift: mu, if it is known; None searches for it, or is 0 for a subset of a sparse A.
        tolerance: Eigenvalues of A - mu J up to this count as zero, relative to the largest and
            after scaling to a unit diagonal. By default n eps, and only if Cholesky fails. With a
            subset of a sparse A: the largest relative error of lambda - mu, as the residual bounds
            it; 1e-10 by default.

    Returns:
        (eigenvalues (..., n), X (..., n, n)), sorted outwards from mu: |lambda - mu| ascends within
        each sign. For positive definite A, |lambda| ascends within each sign.

    Raises:
        ValueError: A is not symmetric, A - mu J is semidefinite for no mu, or it is for one, but no
            J-orthogonal X diagonalises A.
        RuntimeError: The search for a subset has not reached the tolerance.

    >>> eigenvalues, X = jorth.eigh(np.array([[2.0, 1.0], [1.0, 3.0]]), jorth.Signature(1, 1))
    >>> np.round(eigenvalues, 4)
    array([ 1.7913, -2.7913])
    """
    if shift is not None:
        shift = finite_number(shift, "shift")
    if tolerance is not None:
        expected = "a number of at least 0 and below 1"
        tolerance = real_number(tolerance, "tolerance", expected, lambda number: 0 <= number < 1)
    if subset is not None:
        chosen: tuple[ArrayT, ArrayT] = _eigh_of_subset(A, signature, subset, shift, tolerance)
        return chosen
    matrix = square_matrix(A, signature, "A")
    check_matrices(matrix, "A")
    check_symmetric(matrix, "A")
    signs, zero = signature.signs, tolerance
    if zero is None:
        zero = signature.n * torch.finfo(matrix.dtype).eps
    work = flatten_batch(matrix)
    work = 0.5 * work + 0.5 * work.transpose(0, 2, 1)
    if tolerance is None:
        solved, values, X = _eigh_of_definite(work, signs, 0.0 if shift is None else shift)
    else:
        solved, values, X = np.zeros(len(work), bool), np.empty(work.shape[:2]), np.empty_like(work)
    for k in map(int, np.flatnonzero(~solved)):
        values[k], X[k] = call_on_matrix(
            lambda one: _eigh(one, signs, shift, zero, trusting=tolerance is None),
            work,
            k,
            matrix.shape[:-2],
        )
    found = restore_batch((values, X), matrix)
    given: Any = A
    return like_input(found[0], given), like_input(found[1], given)


def _eigh_of_subset(
    A: Any,
    signature: Signature,
    subset: tuple[int, int],
    shift: float | None,
    tolerance: float | None,
    *,
    smallest: int = 300,
    largest_part: int = 8,
) -> Any:
    """Return some of the eigenpairs: by a search if A is large and sparse, else of all of them.

    Large is from ``smallest`` rows on, if at most one in ``largest_part`` eigenpairs is wanted.
    """
    counts = subset_counts(subset, signature)
    if not is_sparse_matrix(A):
        values, X = eigh(A, signature, shift=shift, tolerance=tolerance)
        chosen = [*signature.positive[: counts[0]], *signature.negative[: counts[1]]]
        return values[..., chosen], X[..., chosen]
    matrix, wrap = read_sparse(A, signature)
    if signature.n < smallest or largest_part * sum(counts) > signature.n:
        found = eigh(matrix.toarray(), signature, subset=counts, shift=shift)
    else:
        found = eigh_subset(matrix, signature, counts, shift, tolerance)
    return tuple(map(wrap, found))


def _eigh_of_definite(
    A: Floats, signs: NDArray[np.int8], shift: float
) -> tuple[NDArray[np.bool_], Floats, Floats]:
    """Return which of A (b, n, n) have A - shift J positive definite, and their pairs."""
    L, columns, definite = _cholesky_factors(subtract_shift(A, signs, shift))
    values, X = np.empty(A.shape[:2]), np.empty_like(A)
    if definite.any():
        R = L[definite].transpose(0, 2, 1)
        steps, _, S, X[definite] = jacobi_of_triangles(
            R, columns[definite], signs, len(signs), descending=False
        )
        values[definite] = shift + signs * S**2
        definite[definite] = steps == 0
    return definite, values, X


def _eigh(
    A: Floats, signs: NDArray[np.int8], shift: float | None, zero: float, *, trusting: bool
) -> Pairs:
    """Solve for one matrix, ``trusting`` a Cholesky factorisation that succeeds, or not."""
    found = _positive_eigh(A, signs, shift, zero, trusting)
    if not isinstance(found, ShiftSearch):
        return found
    negated = _positive_eigh(-A, signs, None if shift is None else -shift, zero, trusting)
    if not isinstance(negated, ShiftSearch):
        return 0.0 - negated[0], negated[1]
    if shift is not None:
        eigenvalues = np.linalg.eigvalsh(subtract_shift(A, signs, shift))
        refused = f"one with eigenvalues from {eigenvalues[0]:.6g} to {eigenvalues[-1]:.6g}"
        raise ValueError(f"shift must be a mu for which A - mu J is definite, got {refused}")
    raise ValueError(
        "A must form a definite pencil with J: A - mu J positive or negative definite for some mu, "
        "got none to working precision: for a positive definite one mu would have to be "
        f"above {found.low:.6g} and below {found.high:.6g}"
    )


def _positive_eigh(
    A: Floats, signs: NDArray[np.int8], shift: float | None, zero: float, trusting: bool
) -> Pairs | ShiftSearch:
    """Solve for one matrix for which A - mu J is positive (semi)definite for some mu.

    Returns where such a mu would have to be if there is none.
    """
    mu = 0.0 if shift is None else shift
    definite = is_definite(subtract_shift(A, signs, mu))
    if not definite and np.all(signs == signs[0]):  # J = I or J = -I: ascending or descending
        values, X = np.linalg.eigh(A)
        return signs * values, X
    search = ShiftSearch(mu, definite)
    for exact in (True, False):
        if not search.definite or not trusting:
            found = _semidefinite_eigh(A, signs, search.shift, zero, exact=exact)
            if found is not None:
                return found
        if search.definite:
            solved, values, Y = _eigh_of_definite(A[None], signs, search.shift)
            if solved[0]:
                return values[0], Y[0]
        if shift is not None:
            return ShiftSearch(mu, False)
        search = find_shift(A, signs) if exact else search
    return search


@dataclass(frozen=True)
class ShiftSearch:
    """The mu for which A - mu J is positive definite: all lie above low and below high.

    ``shift`` is one of them if ``definite``, or else where A - mu J comes closest to it.
    """

    shift: float
    definite: bool
    low: float = -math.inf
    high: float = math.inf


def is_definite_pencil(A: Floats, signs: NDArray[np.int8]) -> bool:
    """Check whether A - mu J is positive definite for some mu, for a finite symmetric A (n, n)."""
    if np.all(signs == signs[0]) or is_definite(A):
        return True
    return find_shift(A, signs).definite


def is_definite(A: Floats) -> bool:
    """Check whether A (n, n) has a Cholesky factor."""
    return bool(_cholesky_factors(A[None])[2][0])


def _cholesky_factors(A: Floats) -> tuple[Floats, NDArray[np.intp], NDArray[np.bool_]]:
    """Return L, orders and which of A (b, n, n) are definite: A[order][:, order] = L L^T.

    The pivots descend, so that a grading of A does no harm.
    """
    from scipy.linalg.lapack import dpstrf

    L = A.copy()
    orders, definite = np.empty(A.shape[:2], dtype=np.intp), np.empty(len(A), dtype=np.bool_)
    for k, one in enumerate(L):  # in place: for Fortran the symmetric rows are columns
        _, order, rank, _ = dpstrf(one.T, tol=0.0, overwrite_a=1)
        orders[k], definite[k] = order - 1, rank == len(one)
    return np.tril(L), orders, definite


def subtract_shift(A: Floats, signs: NDArray[Any], shift: float) -> Floats:
    """Return A - shift J for A (..., n, n)."""
    shifted = A.copy()
    np.einsum("...ii->...i", shifted)[...] -= shift * signs
    return shifted


def find_shift(A: Floats, signs: NDArray[Any], *, max_bisections: int = 100) -> ShiftSearch:
    """Search for mu with A - mu J positive definite, for signs of both kinds.

    A bisection in which a vector z with z^T (A - mu J) z <= 0 proves each cut. It is as deep as z
    allows, so that low > high where no mu is in sight. A is scaled, so that nothing overflows.
    """
    half = math.frexp(float(np.abs(A).max()))[1] // 2
    A = np.ldexp(A, -2 * half)
    plus, minus = signs > 0, signs < 0
    low = -float(np.linalg.eigvalsh(A[np.ix_(minus, minus)])[0])
    high = float(np.linalg.eigvalsh(A[np.ix_(plus, plus)])[0])
    best, least = 0.5 * (low + high), -math.inf
    definite = False
    for _ in range(max_bisections):
        shift = 0.5 * (low + high)
        if not low < shift < high:
            break
        shifted = subtract_shift(A, signs, shift)
        definite = is_definite(shifted)
        if definite:
            best = shift
            break
        value, form = _lowest_eigenpair(shifted, signs)
        best, least = (shift, value) if value > least else (best, least)
        # z^T (A - mu J) z > 0 requires mu < bound if z^T J z > 0, else mu > bound
        bound = shift + min(value, 0.0) / form if form else shift
        low = low if form > 0 else bound
        high = high if form < 0 else bound
    last = 0.5 * (low + high)
    if not definite and _lowest_eigenpair(subtract_shift(A, signs, last), signs)[0] > least:
        best = last
    best, low, high = (math.ldexp(number, 2 * half) for number in (best, low, high))
    return ShiftSearch(best, definite, low, high)


def _lowest_eigenpair(A: Floats, signs: NDArray[Any]) -> tuple[float, float]:
    """Return the smallest eigenvalue of A, and z^T J z of its unit vector z."""
    from scipy.linalg import eigh

    value, vector = eigh(A, subset_by_index=[0, 0])
    return float(value[0]), float(signs @ vector[:, 0] ** 2)


def _semidefinite_eigh(
    A: Floats, signs: NDArray[np.int8], shift: float, tolerance: float, *, exact: bool
) -> Pairs | None:
    """Solve for one matrix for which A - shift J is singular and semidefinite; None for others.

    Eigenvalues count as zero up to ``tolerance`` times the largest, after rows and columns are
    scaled by the roots of |a_ii| + |shift|. The null space has lambda = shift; J-Jacobi applies to
    its J-orthogonal complement. A ValueError is raised where a null vector z has z^T J y = 0 for
    all others. A shift that is not ``exact`` may be off by the square root of the tolerance.
    """
    n = len(A)
    scale = np.sqrt(np.abs(A.diagonal()) + abs(shift))
    scale[scale == 0] = 1.0
    values, V = np.linalg.eigh(subtract_shift(A, signs, shift) / scale / scale[:, None])
    zero = tolerance * max(float(values[-1]), 0.0)
    rank = int(np.count_nonzero(values > zero))
    if values[0] < -zero or rank == n:
        return None
    kernel = np.linalg.qr(V[:, : n - rank] / scale[:, None])[0]
    null_forms, W = np.linalg.eigh(kernel.T @ (signs[:, None] * kernel))
    rounding = min(10 * zero / values[-rank], tolerance**0.5) if rank else 0.0
    least = max(rounding, 10 * tolerance, 10 * n * 2.0**-52, 0.0 if exact else tolerance**0.5)
    if np.abs(null_forms).min() <= least:
        raise ValueError(
            "no J-orthogonal X diagonalises A: A - mu J is semidefinite for a mu, and has a null "
            "vector z with z^T J y = 0 for all of its null vectors y"
        )
    X = kernel @ (W / np.sqrt(np.abs(null_forms)))
    own, theta = np.sign(null_forms), np.zeros(n)
    if rank:
        others = np.linalg.qr(signs[:, None] * kernel, mode="complete")[0][:, n - rank :]
        forms, W = np.linalg.eigh(others.T @ (signs[:, None] * others))
        others = others @ (W / np.sqrt(np.abs(forms)))
        R = np.sqrt(values[n - rank :, None]) * V[:, n - rank :].T * scale
        _, S, turn = one_sided_jacobi(R @ others, np.sign(forms).astype(np.int8))
        theta[n - rank :] = np.sign(forms) * S**2
        X, own = np.hstack([X, others @ turn]), np.concatenate([own, np.sign(forms)])
    order = order_by_sign(np.abs(theta), own.astype(np.int8), signs)
    X = X[:, order]
    for _ in range(2):  # the columns were J-orthonormal to u / |form|
        X = 1.5 * X - 0.5 * X @ (signs[:, None] * (X.T @ (signs[:, None] * X)))
    return shift + theta[order], X
