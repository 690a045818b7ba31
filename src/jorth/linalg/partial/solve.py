"""`partial_eigh`: a few eigenpairs by iteration where that pays, else all of them and a cut."""

from __future__ import annotations

from typing import Any

import numpy as np

from jorth.arrays import check_symmetric, like_input, square_matrix
from jorth.linalg.batch import Floats, check_matrices, over_batch
from jorth.linalg.partial.factors import NoDefiniteShift
from jorth.linalg.partial.inputs import Matrix, dense_matrix, is_large, read_matrix
from jorth.linalg.partial.options import Subset, subset_of
from jorth.linalg.partial.polish import Whole, polished
from jorth.linalg.partial.problem import make_problem
from jorth.linalg.partial.search import search
from jorth.signature import Signature

SMALLEST = 300
"""From this n on a few eigenpairs are found without all the others."""
LARGEST_PART = 8
"""If more than one in so many eigenpairs is wanted, all are computed."""


def partial_eigh(
    A: Any, signature: Signature, subset: Any, shift: float | None, whole: Whole
) -> tuple[Any, Any]:
    """(eigenvalues (..., k), X (..., n, k)) of `jorth.eigh` for a subset of k eigenpairs.

    ``whole`` finds all eigenpairs of a matrix that is small enough for that.
    """
    wanted = subset_of(subset, signature)
    if is_large(A):
        matrix = read_matrix(A, signature)
        values, X = _of_one(matrix, signature, wanted, shift, whole)
        return matrix.wrap(values), matrix.wrap(X)
    dense = square_matrix(A, signature, "A")
    check_matrices(dense, "A")
    check_symmetric(dense, "A")
    answers = over_batch(
        lambda entries: _of_one(dense_matrix(entries), signature, wanted, shift, whole), dense
    )
    return like_input(answers[0], A), like_input(answers[1], A)


def _of_one(
    matrix: Matrix, signature: Signature, wanted: Subset, shift: float | None, whole: Whole
) -> tuple[Floats, Floats]:
    """The eigenpairs of one matrix."""
    found = None
    if signature.n >= SMALLEST and LARGEST_PART * wanted.k <= signature.n:
        found = _by_iteration(matrix, signature, wanted, shift, whole)
    if found is not None:
        return found
    values, X = whole(
        _dense(matrix, signature),
        signs=signature.signs,
        shift=None if shift is None else shift / matrix.scale,
    )
    chosen = np.concatenate(
        [signature.positive[: wanted.positive], signature.negative[: wanted.negative]]
    )
    return matrix.scale * values[chosen], X[:, chosen]


def _by_iteration(
    matrix: Matrix, signature: Signature, wanted: Subset, shift: float | None, whole: Whole
) -> tuple[Floats, Floats] | None:
    """The eigenpairs of A, or of -A with the other sign; None if a dense A needs another method."""
    try:
        return _of_positive(matrix, signature, wanted, shift, whole)
    except NoDefiniteShift as refused:
        if matrix.entries is None and 0 in (signature.p, signature.q):
            raise  # J = I: these would be those at the other end
        try:
            negated = None if shift is None else -shift
            found = _of_positive(matrix.negated(), signature, wanted, negated, whole)
        except NoDefiniteShift:
            raise refused from None
    return None if found is None else (-found[0], found[1])


def _of_positive(
    matrix: Matrix, signature: Signature, wanted: Subset, shift: float | None, whole: Whole
) -> tuple[Floats, Floats] | None:
    """The eigenpairs if A - mu J is positive definite for some mu, else an error."""
    problem = make_problem(matrix, signature, wanted, shift)
    if problem is None:
        return None
    values, X = polished(search(problem, wanted), problem, wanted, whole)
    return matrix.scale * values, X


def _dense(matrix: Matrix, signature: Signature) -> Floats:
    """All entries of A / scale, if they fit into the memory."""
    if matrix.entries is not None:
        return square_matrix(matrix.entries, signature, "A").numpy()
    entries = matrix.apply(np.eye(signature.n))
    return 0.5 * (entries + entries.T)
