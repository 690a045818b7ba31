"""Factorisations of S = A - mu J: solves, inertia, and a shift mu at which S is definite.

SuperLU in its symmetric mode with pivots from the diagonal gives P S P^T = L D L^T. All pivots are
positive exactly if S is positive definite, and otherwise their signs are the inertia of S
(Sylvester), as long as the factorisation is accurate, which a solve shows. A dense S takes Cholesky
for the former and LAPACK's L D L^T for the latter.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from jorth.linalg.batch import Floats
from jorth.linalg.partial.davidson import Map

ACCURATE = 1e-8
"""The largest backward error of a solve with a factorisation whose inertia is trusted."""


class NoDefiniteShift(ValueError):
    """A - mu J is positive definite for no mu, or not for the one that was given."""


def shifted(A: Any, signs: NDArray[Any], mu: float) -> Any:
    """A - mu J, like A: a dense array or a CSC matrix."""
    if mu == 0:
        return A
    if isinstance(A, np.ndarray):
        return A - np.diag(mu * signs)
    from scipy.sparse import dia_array

    J = dia_array((signs[None, :].astype(np.float64), [0]), shape=A.shape)
    return (A - mu * J).tocsc()


def solver(S: Any) -> Map | None:
    """S^-1 applied to rows (b, n), or None if S is not positive definite."""
    if isinstance(S, np.ndarray):
        from scipy.linalg import LinAlgError, cho_factor, cho_solve

        try:
            R = cho_factor(S)
        except LinAlgError:
            return None
        return lambda W: np.asarray(cho_solve(R, W.T).T)
    factors = _SparseFactors.of(S)
    return factors.solve if factors is not None and factors.negative == 0 else None


def negative_count(S: Any) -> int | None:
    """How many eigenvalues of S are negative, or None if the factorisation cannot be trusted."""
    if isinstance(S, np.ndarray):
        from scipy.linalg import ldl

        return _negative_in_blocks(ldl(S)[1])
    factors = _SparseFactors.of(S)
    return factors.negative if factors is not None and factors.is_accurate(S) else None


def _negative_in_blocks(D: Floats) -> int:
    """The negative eigenvalues of a block diagonal matrix with blocks of one or two rows."""
    diagonal, beside = np.diagonal(D), np.append(np.diagonal(D, -1), 0.0)
    first = beside != 0  # a 2x2 block of Bunch and Kaufman has one negative eigenvalue
    alone = ~(first | np.append(False, first[:-1]))
    return int(first.sum() + (diagonal[alone] < 0).sum())


class _SparseFactors:
    """P S P^T = L D L^T by SuperLU."""

    def __init__(self, lu: Any) -> None:
        self._lu = lu
        self._pivots = lu.U.diagonal()
        self.negative = int((self._pivots <= 0).sum())

    @classmethod
    def of(cls, S: Any) -> _SparseFactors | None:
        """The factors, or None if they do not exist: a pivot is zero."""
        from scipy.sparse.linalg import splu

        options = {"SymmetricMode": True}
        try:
            lu = splu(S, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options)
        except RuntimeError:  # exactly singular
            return None
        return cls(lu) if np.array_equal(lu.perm_r, lu.perm_c) else None

    def solve(self, W: Floats) -> Floats:
        return np.asarray(self._lu.solve(np.ascontiguousarray(W).T).T)

    def is_accurate(self, S: Any) -> bool:
        b = np.random.default_rng(0).standard_normal((1, S.shape[0]))
        x = self.solve(b)
        size = np.linalg.norm(x) * abs(S).sum(axis=0).max()
        return bool(np.linalg.norm(S @ x[0] - b[0]) <= ACCURATE * size)

    def downwards(self) -> Floats:
        """A vector z with z^T S z < 0 from the most negative pivot: P z = L^-T e."""
        from scipy.sparse.linalg import spsolve_triangular

        e = np.zeros(len(self._pivots))
        e[np.argmin(self._pivots)] = 1.0
        y = spsolve_triangular(self._lu.L.T.tocsr(), e, lower=False, unit_diagonal=True)
        return np.asarray(y[self._lu.perm_c])


def definite_shift(A: Any, signs: NDArray[Any], scale: float) -> tuple[float, Map]:
    """(mu, solves with A - mu J) for a sparse A whose pencil is definite, or an error.

    Every vector z gives a bound: z^T (A - mu J) z > 0. The interval starts with the unit vectors,
    and each trial halves it at least. The error has bounds times ``scale``.
    """
    low, high = _bounds(A, signs)
    while low < 0.5 * (low + high) < high:
        mu, factors = _trial(A, signs, low, high)
        if factors is None:
            break
        if factors.negative == 0:
            return mu, factors.solve
        z = factors.downwards()
        value, form = float(z @ (A @ z)), float(signs @ z**2)
        if form == 0 or value > mu * form:  # z proves nothing, or that there is no mu
            break
        low = value / form if form < 0 else low
        high = value / form if form > 0 else high
    raise NoDefiniteShift(
        "A must form a definite pencil with J: A - mu J positive definite for some mu, got none to "
        f"working precision: it would have to be above {low * scale:.6g} and below "
        f"{high * scale:.6g}"
    )


def _bounds(A: Any, signs: NDArray[Any]) -> tuple[float, float]:
    """An interval for mu from the diagonal of A; if J = +-I, one with a mu that will do inside."""
    diagonal = A.diagonal()
    radius = np.asarray(abs(A).sum(axis=0)).ravel() - np.abs(diagonal)
    far = 2 * float(np.min(diagonal - radius)) - float(np.max(diagonal + radius))  # Gershgorin
    plus, minus = diagonal[signs > 0], diagonal[signs < 0]
    return -float(minus.min()) if len(minus) else far, float(plus.min()) if len(plus) else -far


def _trial(
    A: Any, signs: NDArray[Any], low: float, high: float
) -> tuple[float, _SparseFactors | None]:
    """A mu in the interval and the factors of A - mu J; None if its pivots are zero everywhere."""
    for part in (0.5, 0.501, 0.49):
        mu = low + part * (high - low)
        factors = _SparseFactors.of(shifted(A, signs, mu))
        if factors is not None:
            break
    return mu, factors
