"""The infimum of tr(X^T A X) over all J-orthogonal X, and whether it is attained."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Generic

import torch

from jorth.arrays import ArrayT, Convertible, check_symmetric, describe, like_input, square_matrix
from jorth.decompositions.batch import check_matrices
from jorth.decompositions.eigen import checked_options, positive_eigh
from jorth.decompositions.pencils import Search
from jorth.decompositions.semidefinite import NotAttainedError
from jorth.signature import Signature
from jorth.suggestions import explained


@dataclass(frozen=True)
class TraceInfimum(Generic[ArrayT]):
    """The infimum of tr(X^T A X) over all J-orthogonal X.

    Attributes:
        value: The infimum; -inf if tr(X^T A X) is unbounded below.
        attained: Whether it is a minimum.
        X: (n, n), where it is attained; None if it is not.
    """

    value: float
    attained: bool
    X: ArrayT | None


@explained
def trace_infimum(
    A: ArrayT | Convertible,
    signature: Signature,
    *,
    shift: float | None = None,
    tolerance: float | None = None,
) -> TraceInfimum[ArrayT]:
    """The infimum of tr(X^T A X) over all J-orthogonal X for symmetric A (n, n).

    With p, q > 0 it is finite exactly if A - mu J is positive semidefinite for some mu. Its value
    is then mu (p - q) + sum |lambda - mu| over the eigenvalues of A x = lambda J x. It is attained
    exactly if a J-orthogonal X diagonalises A, at that X: always if A - mu J is positive definite
    for some mu. If it is not attained, X -> infinity in every sequence that approaches it, and mu
    is known to about the square root of rounding only, unless it is 0 or given.

    For a pencil that is semidefinite to rounding, a change of A by rounding makes it definite or
    indefinite. The answer is that for a null space of the dimension that ``tolerance`` decides.

    Args:
        A: (n, n), symmetric.
        signature: The signs of J.
        shift: mu, if it is known; None searches for it.
        tolerance: Eigenvalues of A - mu J up to this count as zero, as in `eigh`.

    Returns:
        TraceInfimum(value, attained, X).

    Raises:
        ValueError: A is not symmetric, or A - mu J is not positive semidefinite for the given mu.
    """
    matrix = square_matrix(A, signature, "A")
    if matrix.ndim != 2:
        raise ValueError(f"A must be one matrix (n, n), got {describe(A)}")
    check_matrices(matrix, "A")
    check_symmetric(matrix, "A")
    shift, tolerance = checked_options(shift, tolerance)
    work = matrix.detach().to("cpu", torch.float64).numpy()
    try:
        found = positive_eigh(0.5 * work + 0.5 * work.T, signature.signs, shift, tolerance)
    except NotAttainedError as error:
        return TraceInfimum(error.infimum, attained=False, X=None)
    if isinstance(found, Search) and shift is not None:
        expected = "a mu for which A - mu J is positive semidefinite, or None"
        raise ValueError(f"shift must be {expected}, got {shift:.6g}, for which it is not")
    if isinstance(found, Search):
        return TraceInfimum(-math.inf, attained=False, X=None)
    values, X = found
    point = like_input(torch.from_numpy(X).to(matrix), A)
    return TraceInfimum(float(signature.signs @ values), attained=True, X=point)
