"""The eigenvalue problem A x = lambda J x of a definite or semidefinite pencil."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth._inputs import (
    ArrayT,
    Convertible,
    check_symmetric,
    finite_number,
    like_input,
    real_number,
    square_matrix,
)
from jorth.linalg.batch import (
    Floats,
    call_on_matrix,
    check_matrices,
    flatten_batch,
    map_batch,
    restore_batch,
)
from jorth.linalg.definite import ShiftSearch, cholesky_factor, find_shift, subtract_shift
from jorth.linalg.hsvd import MAX_SWEEPS, one_sided_jacobi
from jorth.linalg.semidefinite import diagonalise, find_kernel
from jorth.linalg.subset import (
    Operator,
    eigh_subset,
    has_no_array,
    is_operator,
    read_large,
    subset_counts,
)
from jorth.signature import Signature

MANY = 32
"""From so many matrices on a batch is worth the compiled loop"""
SMALL = 32
"""if they have at most so many rows."""
SMALLEST = 300
"""From this n on a few eigenpairs of a sparse A are found without all the others."""
LARGEST_PART = 8
"""If more than one in so many eigenpairs is wanted, all are computed."""
Pairs = tuple[Floats, Floats]
"""Eigenvalues (n,), and X (n, n) with the eigenvectors as columns."""


def eigh(
    A: ArrayT | Convertible | Operator,
    signature: Signature,
    *,
    subset: tuple[int, int] | None = None,
    shift: float | None = None,
    tolerance: float | None = None,
) -> tuple[ArrayT, ArrayT]:
    """Return all lambda and x of A x = lambda J x for symmetric A (..., n, n), with X^T J X = J.

    Then X^T A X = J diag(lambda). The pencil must be *definite*, that is, A - mu J is positive or
    negative definite for some mu, or semidefinite with a null space on which J is regular.

    Positive definite: all lambda are real, those at the positions of + lie above mu and
    those at the positions of - below, and mu may be any number in the gap between. mu = 0 if A is
    positive definite; min tr(Z^T A Z) over all J-orthogonal Z is then sum |lambda|, attained at X.
    Negative definite: the same for -A, so that those at the positions of + lie below mu.
    Semidefinite: some lambda at both signs are equal to mu. With p = 0 or q = 0 every A qualifies.

    A Cholesky factorisation A - mu J = R^T R is followed by one-sided J-Jacobi on R (see `hsvd`),
    with |lambda - mu| = S^2. X is a product of rotations and boosts, so its residual is a few n u
    whatever the condition of A; `scipy.linalg.eigh(J, A)`, a reduction to a symmetric problem, does
    not give that. If A = D B D is positive definite with D diagonal of any grading, each lambda has
    a relative error of about u cond(B) ||X||^2.

    Otherwise mu is found by bisection, where a vector z with z^T (A - mu J) z <= 0 proves each
    cut, and each lambda has an error of a few n u ||A - mu J|| ||x||^2. If no factorisation
    succeeds and A - mu J is singular to rounding, the null space is split off: its lambda are
    exactly mu. The computation is in float64 on the CPU and carries no gradient. Batches of many
    small matrices run in one compiled loop.

    References: K. Veselic, A Jacobi eigenreduction algorithm for definite matrix pairs, Numer.
    Math. 64 (1993); C.-H. Guo, N. J. Higham, F. Tisseur, An improved arc algorithm for detecting
    definite Hermitian pairs, SIAM J. Matrix Anal. Appl. 31 (2009).

    Args:
        A: (..., n, n), symmetric.
        signature: The signs of J.
        subset: (k_positive, k_negative) for only so many eigenpairs of each sign, those nearest to
            mu: eigenvalues (..., k) and X (..., n, k), k = k_positive + k_negative, with
            X^T J X = diag(I, -I), the positive ones first. A may then also be a sparse matrix of
            any size or a `scipy.sparse.linalg.LinearOperator`.
        shift: mu, if it is known; None searches for it.
        tolerance: Eigenvalues of A - mu J up to this count as zero, relative to the largest and
            after scaling to a unit diagonal. By default n eps, and only if Cholesky fails. With a
            subset of a sparse A or an operator: the largest relative error of lambda - mu, as the
            residual bounds it; 1e-10 by default, 1e-3 for an operator of float32.

    Returns:
        (eigenvalues (..., n), X (..., n, n)), sorted outwards from mu: |lambda - mu| ascends
        within each sign. For positive definite A, |lambda| ascends within each sign.

    Raises:
        ValueError: A is not symmetric, A - mu J is semidefinite for no mu, or it is for one, but no
            J-orthogonal X diagonalises A.
        RuntimeError: The search for a subset has not reached the tolerance.
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
    zero = signature.n * torch.finfo(matrix.dtype).eps if tolerance is None else tolerance
    one = partial(_eigh, signs=signature.signs, shift=shift, zero=zero, trusting=tolerance is None)
    plain = shift is None and tolerance is None
    many = plain and matrix.shape[:-2].numel() >= MANY and signature.n <= SMALL
    values, X = _eigh_of_many(matrix, signature, one) if many else map_batch(one, matrix)
    given: Any = A
    return like_input(values, given), like_input(X, given)


def _eigh_of_subset(
    A: Any,
    signature: Signature,
    subset: tuple[int, int],
    shift: float | None,
    tolerance: float | None,
) -> Any:
    """Return some of the eigenpairs: of all of them, or by a search if A is large and sparse."""
    counts = subset_counts(subset, signature)
    if not has_no_array(A):
        values, X = eigh(A, signature, shift=shift, tolerance=tolerance)
        chosen = [*signature.positive[: counts[0]], *signature.negative[: counts[1]]]
        return values[..., chosen], X[..., chosen]
    matrix, wrap = read_large(A, signature)
    if signature.n < SMALLEST or LARGEST_PART * sum(counts) > signature.n:
        entries = matrix.matmat(np.eye(signature.n)) if is_operator(matrix) else matrix.toarray()
        found = eigh(0.5 * entries + 0.5 * entries.T, signature, subset=counts, shift=shift)
    else:
        found = eigh_subset(matrix, signature, counts, shift, tolerance)
    return tuple(map(wrap, found))


def _eigh_of_many(
    matrices: Tensor, signature: Signature, one: Callable[[Floats], Pairs]
) -> tuple[Tensor, ...]:
    """Solve a batch: positive definite matrices by compiled code, the others one by one."""
    from jorth.linalg._jacobi_numba import eigh_of_definite

    work = flatten_batch(matrices)
    work = 0.5 * work + 0.5 * work.transpose(0, 2, 1)
    values, X = np.empty(work.shape[:2]), np.empty_like(work)
    solved = np.empty(len(work), dtype=np.bool_)
    eigh_of_definite(work, signature.signs, MAX_SWEEPS, values, X, solved)
    for k in map(int, np.flatnonzero(~solved)):
        values[k], X[k] = call_on_matrix(one, work, k, matrices.shape[:-2])
    return restore_batch((values, X), matrices)


def _eigh(
    A: Floats, signs: NDArray[np.int8], shift: float | None, zero: float, *, trusting: bool
) -> Pairs:
    """Solve for one matrix, ``trusting`` a Cholesky factorisation that succeeds, or not."""
    A = 0.5 * A + 0.5 * A.T
    found = _positive_eigh(A, signs, shift, zero, trusting)
    if not isinstance(found, ShiftSearch):
        return found
    negated = _positive_eigh(-A, signs, None if shift is None else -shift, zero, trusting)
    if not isinstance(negated, ShiftSearch):
        return 0.0 - negated[0], negated[1]
    raise ValueError(_refusal(A, signs, shift, found))


def _positive_eigh(
    A: Floats, signs: NDArray[np.int8], shift: float | None, zero: float, trusting: bool
) -> Pairs | ShiftSearch:
    """Solve for one matrix for which A - mu J is positive (semi)definite for some mu.

    Returns where such a mu would have to be if there is none.
    """
    mu = 0.0 if shift is None else shift
    R = cholesky_factor(subtract_shift(A, signs, mu))
    if R is None and np.all(signs == signs[0]):  # J = I or J = -I: ascending or descending
        values, X = np.linalg.eigh(A)
        return signs * values, X
    search = ShiftSearch(mu, R)
    for exact in (True, False):
        found = None
        if search.factor is None or not trusting:
            kernel = find_kernel(A, signs, search.shift, zero, exact=exact)
            if kernel is not None:
                return _sort_outwards(*diagonalise(kernel, signs), signs, kernel.shift)
        if search.factor is not None:
            found = _by_jacobi(search.factor, signs, search.shift)
        if found is not None or shift is not None:
            break
        search = find_shift(A, signs) if exact else search
    if found is None:
        return ShiftSearch(mu, None) if shift is not None else search
    return found


def _by_jacobi(R: Floats, signs: NDArray[np.int8], shift: float) -> Pairs | None:
    """Return lambda and X from A - shift J = R^T R, or None if R is singular to rounding."""
    try:
        _, S, X = one_sided_jacobi(R, signs)
    except ValueError:
        return None
    return _sort_outwards(signs * S**2, X, signs, shift)


def _sort_outwards(theta: Floats, X: Floats, signs: NDArray[np.int8], shift: float) -> Pairs:
    """Return shift + theta and X in the order in which |theta| ascends within each sign."""
    order = np.empty(len(signs), dtype=np.intp)
    for sign in (1, -1):
        places = np.flatnonzero(signs == sign)
        order[places] = places[np.argsort(np.abs(theta[places]), kind="stable")]
    return shift + theta[order], X[:, order]


def _refusal(A: Floats, signs: NDArray[np.int8], shift: float | None, found: ShiftSearch) -> str:
    """Return why a pencil has no answer."""
    if shift is not None:
        values = np.linalg.eigvalsh(subtract_shift(A, signs, shift))
        found_values = f"one with eigenvalues from {values[0]:.6g} to {values[-1]:.6g}"
        return f"shift must be a mu for which A - mu J is definite, got {found_values}"
    bounds = f"above {found.low:.6g} and below {found.high:.6g}"
    return (
        "A must form a definite pencil with J: A - mu J positive or negative definite for some mu, "
        "got none to working precision: for a positive definite one mu would have to be "
        f"{bounds}"
    )
