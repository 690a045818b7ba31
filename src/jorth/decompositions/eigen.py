"""The eigenvalue problem A x = lambda J x of a definite pencil."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jorth.arrays import ArrayT, Convertible, check_symmetric, like_input, square_matrix
from jorth.decompositions.batch import Floats, check_matrices, over_batch
from jorth.decompositions.singular import one_sided_jacobi
from jorth.signature import Signature
from jorth.suggestions import explained

MAX_BISECTIONS = 100


@explained
def eigh(A: ArrayT | Convertible, signature: Signature) -> tuple[ArrayT, ArrayT]:
    """All lambda and x of A x = lambda J x for symmetric A (..., n, n), with X^T J X = J.

    Then X^T A X = J diag(lambda). The pencil must be *definite*, that is, A - mu J is positive
    definite for some mu. All lambda are then real, those at the positions of + lie above mu and
    those at the positions of - below, and mu may be any number in the gap between. mu = 0 if A is
    positive definite; min tr(Z^T A Z) over all J-orthogonal Z is then sum |lambda|, attained at X.
    With p = 0 or q = 0 every A qualifies.

    A Cholesky factorisation A - mu J = R^T R is followed by one-sided J-Jacobi on R (see `hsvd`),
    with |lambda - mu| = S^2. X is a product of rotations and boosts, so its residual is a few n u
    whatever the condition of A; `scipy.linalg.eigh(J, A)`, a reduction to a symmetric problem, does
    not give that. If A = D B D is positive definite with D diagonal of any grading, each lambda has
    a relative error of about u cond(B) ||X||^2.

    Otherwise mu is found by bisection, where a vector z with z^T (A - mu J) z <= 0 proves each
    cut, and each lambda has an error of a few n u ||A - mu J|| ||x||^2. The computation is in
    float64 on the CPU and carries no gradient.

    References: K. Veselic, A Jacobi eigenreduction algorithm for definite matrix pairs, Numer.
    Math. 64 (1993); C.-H. Guo, N. J. Higham, F. Tisseur, An improved arc algorithm for detecting
    definite Hermitian pairs, SIAM J. Matrix Anal. Appl. 31 (2009).

    Args:
        A: (..., n, n), symmetric.
        signature: The signs of J.

    Returns:
        (eigenvalues (..., n), X (..., n, n)), sorted outwards from the gap: lambda ascends among
        the positions of + and descends among those of -. For positive definite A, |lambda| ascends
        within each sign.

    Raises:
        ValueError: A is not symmetric, or A - mu J is positive definite for no mu.
    """
    matrix = square_matrix(A, signature, "A")
    check_matrices(matrix, "A")
    check_symmetric(matrix, "A")
    values, X = over_batch(partial(_eigh, signs=signature.signs), matrix)
    return like_input(values, A), like_input(X, A)


def is_definite_pencil(A: Floats, signs: NDArray[np.int8]) -> bool:
    """Whether A - mu J is positive definite for some mu, for a finite symmetric A (n, n)."""
    if _cholesky(A) is not None or np.all(signs == signs[0]):
        return True
    try:
        _definite_shift(A, signs)
    except ValueError:
        return False
    return True


def definite_factor(A: Floats, signs: NDArray[Any], *, shifts: bool) -> Floats | None:
    """R with A - mu J = R^T R for a finite symmetric A (n, n), or None if there is none.

    mu is 0 if A is positive definite, and if not ``shifts``.
    """
    R = _cholesky(A)
    if R is not None or not shifts or np.all(signs == signs[0]):
        return R
    try:
        return _definite_shift(A, signs)[1]
    except ValueError:
        return None


def _eigh(A: Floats, signs: NDArray[np.int8]) -> tuple[Floats, Floats]:
    from scipy.linalg import eigh as symmetric_eigh

    A = 0.5 * A + 0.5 * A.T
    shift = 0.0
    R = _cholesky(A)
    if R is None:
        if np.all(signs == signs[0]):  # J = I or J = -I: ascending or descending
            values, X = symmetric_eigh(A)
            return signs * values, X
        shift, R = _definite_shift(A, signs)
    _, S, X = one_sided_jacobi(R, signs)
    # S descends within each sign, and |lambda - mu| is to ascend
    order = np.empty(len(signs), dtype=np.intp)
    for sign in (1, -1):
        order[signs == sign] = np.flatnonzero(signs == sign)[::-1]
    return shift + (signs * S**2)[order], X[:, order]


def _cholesky(A: Floats) -> Floats | None:
    """R with A = R^T R, or None if A is not positive definite."""
    from scipy.linalg import LinAlgError, cholesky

    try:
        R: Floats = cholesky(A)
    except LinAlgError:
        return None
    return R


def _definite_shift(A: Floats, signs: NDArray[Any]) -> tuple[float, Floats]:
    """(mu, R) with A - mu J = R^T R, or a ValueError if there is no such mu."""
    from scipy.linalg import eigh as symmetric_eigh

    plus, minus = signs > 0, signs < 0
    low = -np.linalg.eigvalsh(A[np.ix_(minus, minus)])[0]
    high = np.linalg.eigvalsh(A[np.ix_(plus, plus)])[0]
    for _ in range(MAX_BISECTIONS):
        shift = 0.5 * (low + high)
        if not low < shift < high:
            break
        shifted = A - shift * np.diag(signs)
        R = _cholesky(shifted)
        if R is not None:
            return shift, R
        value, vector = symmetric_eigh(shifted, subset_by_index=[0, 0])
        form = float(signs @ vector[:, 0] ** 2)
        # z^T (A - mu J) z > 0 requires mu < bound if z^T J z > 0, else mu > bound
        bound = shift + min(float(value[0]), 0.0) / form if form else shift
        low = low if form > 0 else bound
        high = high if form < 0 else bound
    raise ValueError(
        "A must form a definite pencil with J: A - mu J positive definite for some mu, got none to "
        f"working precision: it would have to be above {low:.6g} and below {high:.6g}"
    )
