"""The dual of the Procrustes problem: multipliers that bound f from below.

Let f(X) = 1/2 <X, A X> - <B, X> + c, and let Lam and M be symmetric. The Lagrangian of both forms
of the constraint, X^T J X = J and X J X^T = J, is a quadratic with the Hessian

    H : K -> A K - J K Lam - M K J.

If H is positive semidefinite, the Lagrangian's minimum over all matrices is a lower bound on f over
all J-orthogonal ones. Seen from any X with gradient G, it is f(X) - 1/2 <r, H^-1 r>, with

    r = G - J X Lam - M X J

and, where X is not quite J-orthogonal, minus <Lam, X^T J X - J> / 2 and <M, X J X^T - J> / 2. So
the gap is computed itself, not as the difference of two large numbers. It is a convex function of
(Lam, M), whose derivatives are (Z^T J Z - J) / 2 and (Z J Z^T - J) / 2 at the minimiser Z of the
Lagrangian: where the bound is best and H is regular, Z is J-orthogonal, and the answer.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

Matrix = NDArray[np.float64]
Pair = tuple[Matrix, Matrix]
UNIT = 2.0**-53
MAX_STEPS = 100
SHRINK = 0.1
"""The weight of the barrier falls by this factor when its minimiser is nearly reached."""
PRECISE = 1e-4
"""The gap is known to this relative precision when the search for better multipliers ends."""
LEAST_STEP = 1e-6
RETREATS = tuple(10.0**-k for k in range(12, -1, -1))
SPLIT = 2.0**31
"""x + c - c with c = 3 SPLIT max |x| leaves x the 22 bits, whose products and their sums are
exact."""


class Dual(NamedTuple):
    """Multipliers, the bound on f(X) - f they give, and the minimiser of their Lagrangian."""

    Lam: Matrix
    M: Matrix
    gap: float
    Z: Matrix


def norms(matrices: Matrix) -> Matrix:
    """Return the Frobenius norms (...,)."""
    found: Matrix = np.sqrt(np.einsum("...ij,...ij->...", matrices, matrices))
    return found


def defects(X: Matrix, signs: Matrix) -> tuple[Matrix, Matrix]:
    """Return X^T J X - J and X J X^T - J, (..., n, n).

    They are accurate even where ||X||^2 is much larger than they are.
    """
    J = np.diag(signs)
    pivot = 3 * SPLIT * np.abs(X).max((-2, -1), keepdims=True).clip(1.0)
    high = (X + pivot) - pivot
    low = X - high
    found = []
    for transposed in (False, True):
        top, rest = (part.swapaxes(-2, -1) if transposed else part for part in (high, low))
        left = top.swapaxes(-2, -1)
        mixed = left @ (signs[:, None] * rest)
        small = rest.swapaxes(-2, -1) @ (signs[:, None] * rest)
        found.append((left @ (signs[:, None] * top) - J) + (mixed + mixed.swapaxes(-2, -1) + small))
    return found[0], found[1]


def half_energy(
    r: Matrix, error: Any, least: Any, q: Any = None, Hq: Any = None, of_Hq: Any = 0.0
) -> Matrix:
    """Return <r, H^-1 r> / 2 or more; inf where H is not certainly positive definite.

    With e = H q - r this is at most (sqrt <q, H q> + |e| / sqrt(least))^2 / 2, for any q: here 0,
    or nearly H^-1 r. ``least`` is a lower bound on the eigenvalues of H, ``error`` and ``of_Hq``
    are the rounding errors of r and of H q.
    """
    energy = 0.0
    if q is not None:
        energy = np.maximum((q * Hq).sum((-2, -1)) + norms(q) * of_Hq, 0.0)
        r = Hq - r
    with np.errstate(all="ignore"):
        root = np.sqrt(energy) + (norms(r) + error + of_Hq) / np.sqrt(least)
        found: Matrix = np.where((least > 0) & np.isfinite(root), 0.5 * root**2, np.inf)
    return found


class JointDual:
    """The best multipliers for one A and J, by Newton's method with a barrier, in O(n^6) per step.

    The function that is minimised is 1/2 <r, H^-1 r> - weight log det H. Its minimiser is at most
    weight n^2 above the least gap. Newton's equations are singular along Lam = J, M = -J, which
    changes nothing.

    Args:
        A: (n, n), positive definite.
        signs: (n,), the diagonal of J.
        of_A: The rounding error of A, in the Frobenius norm.
        of_G: The rounding error of a gradient G, likewise.
    """

    def __init__(self, A: Matrix, signs: Matrix, of_A: float = 0.0, of_G: float = 0.0) -> None:
        n = len(A)
        self.A, self.signs, self.n, self.of_A, self.of_G = A, signs, n, of_A, of_G
        rows, columns = np.triu_indices(n)
        basis = np.zeros((n, n, len(rows)))
        size = np.where(rows == columns, 1.0, np.sqrt(0.5))
        basis[rows, columns, np.arange(len(rows))] = size
        basis[columns, rows, np.arange(len(rows))] = size
        self._basis = basis.reshape(n * n, len(rows))
        idle = self._basis.T @ np.diag(signs).ravel()
        self._idle = np.concatenate([idle, -idle]) / np.sqrt(2 * n)
        self._products = np.outer(signs, signs).ravel()

    def hessian(self, Lam: Matrix, M: Matrix) -> Matrix:
        """H (n^2, n^2), for the columns of K one after the other."""
        n, s = self.n, self.signs
        H = np.zeros((n, n, n, n))
        each = np.arange(n)
        H[each, :, each, :] = self.A - s[:, None, None] * M
        H[:, each, :, each] -= s[:, None, None] * Lam
        return H.reshape(n * n, n * n)

    def residual(self, X: Matrix, G: Matrix, Lam: Matrix, M: Matrix) -> Matrix:
        """r."""
        s = self.signs
        return G - s[:, None] * (X @ Lam) - (M @ X) * s

    def best(self, X: Matrix, G: Matrix, enough: float) -> Dual | None:
        """Multipliers whose gap at X is at most ``enough``, or the least one.

        None if rounding hides that H is positive definite.
        """
        n = self.n
        found: Dual | None = None
        Lam, M = np.zeros((n, n)), np.zeros((n, n))
        factor, r = _factor(self.hessian(Lam, M)), G
        weight = 0.0
        for _ in range(MAX_STEPS):
            if factor is None:
                break
            inverse = _inverse(factor)
            Q = (inverse @ r.T.ravel()).reshape(n, n).T
            value = 0.5 * float((r * Q).sum())
            if found is None or value < found.gap:
                found = Dual(Lam, M, value, X - Q)
            if not value > enough:
                break
            weight = weight or value / n**2
            try:
                step, decrement = self._newton(X - Q, inverse, weight)
            except np.linalg.LinAlgError:  # singular to rounding: the best so far is kept
                break
            before = value - weight * _log_det(factor)
            moved = self._search((X, G), (Lam, M), step, before - 1e-4 * decrement, weight)
            if moved is None or not decrement > 0:
                break
            Lam, M, factor, r = moved
            if decrement < weight:
                if weight * n**2 < PRECISE * value:
                    break
                weight *= SHRINK
        return None if found is None else self._safe(X, G, found)

    def _safe(self, X: Matrix, G: Matrix, dual: Dual) -> Dual:
        """The multipliers, made smaller until rounding cannot hide that H is definite."""
        for share in (0.0, *RETREATS):
            Lam, M = ((1 - share) * part for part in (dual.Lam, dual.M))
            kept = dual._replace(Lam=Lam, M=M)
            gap = self.gap(X, G, kept)
            if np.isfinite(gap):
                break
        return kept._replace(gap=gap)

    def gap(self, X: Matrix, G: Matrix, dual: Dual) -> float:
        """Return <r, H^-1 r> / 2, or a little more because of rounding.

        It is inf if H is not certainly positive definite: a Cholesky factorisation of the computed
        H - t I shows that the exact H has no eigenvalue below t - margin. The factorisation has an
        error of at most (n^2 + 1) u tr H (Demmel).
        """
        n = self.n
        H = self.hessian(dual.Lam, dual.M)
        r = self.residual(X, G, dual.Lam, dual.M)
        size = norms(self.A) + norms(dual.Lam) + norms(dual.M)
        margin = self.of_A + 2 * UNIT * ((n**2 + 2) * float(np.abs(H.diagonal()).sum()) + 2 * size)
        factor = _factor(H)
        if factor is None or _factor(H - 2 * margin * np.eye(n * n)) is None:
            return np.inf
        least, better = margin, 0.5 / float(norms(_inverse(factor)))
        if better > 2 * margin and _factor(H - better * np.eye(n * n)) is not None:
            least = better - margin
        flat = r.T.ravel()
        q = _solve(factor, flat)
        Hq = (H @ q).reshape(n, n).T
        q = q.reshape(n, n).T
        error = self.of_G + 2 * n * UNIT * norms(X) * (norms(dual.Lam) + norms(dual.M))
        of_Hq = (self.of_A + (n**2 + 2) * UNIT * norms(H)) * norms(q)
        return float(half_energy(r, error, least, q, Hq, of_Hq))

    def _newton(self, Z: Matrix, inverse: Matrix, weight: float) -> tuple[Pair, float]:
        """Newton's step for (Lam, M), and its decrement."""
        n, s, S = self.n, self.signs, self._basis
        blocks = inverse.reshape(n, n, n, n)  # [column, row, column, row]
        by_kind = blocks.transpose(0, 2, 1, 3).reshape(n * n, n * n)
        J = np.diag(s)
        traces = (-(by_kind @ J.ravel()).reshape(n, n), -(J.ravel() @ by_kind).reshape(n, n))
        slopes = (0.5 * (Z.T @ (s[:, None] * Z) - J), 0.5 * ((Z * s) @ Z.T - J))
        g = np.concatenate(
            [S.T @ (a - weight * b).ravel() for a, b in zip(slopes, traces, strict=True)]
        )
        crossed = blocks.transpose(2, 1, 0, 3).reshape(n * n, n * n)
        signed = self._products[:, None]
        LL = self._paired(by_kind @ (signed * by_kind.T), (1, 3, 2, 0))
        MM = self._paired(by_kind.T @ (signed * by_kind), (1, 3, 2, 0))
        LM = self._paired(crossed @ (signed * crossed), (0, 2, 3, 1))
        basis = S.reshape(n, n, -1)  # the change of r - H q with Lam and with M
        with_Lam = np.einsum("ab,bjk->jak", s[:, None] * Z, basis)
        with_M = np.einsum("abk,bj->jak", basis, Z * s)
        moves = -np.concatenate([with_Lam, with_M], axis=2).reshape(n * n, -1)
        second = moves.T @ inverse @ moves + weight * np.block([[LL, LM], [LM.T, MM]])
        scale = 1 / np.sqrt(np.maximum(second.diagonal(), 1e-300))
        second = second * scale * scale[:, None]
        idle = self._idle / scale
        second += np.outer(idle, idle) / (idle @ idle)
        second[np.diag_indices(len(g))] += len(g) * UNIT
        move = -scale * np.linalg.solve(second, scale * g)
        half = len(g) // 2
        parts = ((S @ part).reshape(n, n) for part in (move[:half], move[half:]))
        return (next(parts), next(parts)), float(-g @ move)

    def _paired(self, product: Matrix, order: tuple[int, ...]) -> Matrix:
        """Second derivatives of log det H with its indices in pairs, for symmetric matrices."""
        n, S = self.n, self._basis
        sorted_ = product.reshape(n, n, n, n).transpose(order).reshape(n * n, n * n)
        found: Matrix = S.T @ sorted_ @ S
        return found

    def _search(
        self, at: Pair, point: Pair, step: Pair, most: float, weight: float
    ) -> tuple[Matrix, Matrix, Matrix, Matrix] | None:
        """(Lam, M, factor, r) after a step that keeps H definite and descends."""
        length = 1.0
        while length > LEAST_STEP:
            Lam, M = (old + length * new for old, new in zip(point, step, strict=True))
            factor, r = _factor(self.hessian(Lam, M)), self.residual(*at, Lam, M)
            if factor is not None:
                flat = r.T.ravel()
                after = 0.5 * float(flat @ _solve(factor, flat)) - weight * _log_det(factor)
                if after <= most + 1e-12 * abs(most):
                    return Lam, M, factor, r
            length /= 2
        return None


def _factor(H: Matrix) -> Matrix | None:
    """The Cholesky factor of H, or None if H is not positive definite."""
    factor, info = dpotrf(H, lower=1)
    return None if info or not np.isfinite(factor).all() else factor


def _inverse(factor: Matrix) -> Matrix:
    """H^-1 by the factor of H."""
    found = dpotri(factor, lower=1)[0]
    inverse: Matrix = np.tril(found) + np.tril(found, -1).T
    return inverse


def _solve(factor: Matrix, r: Matrix) -> Matrix:
    """H^-1 r by the factor of H."""
    found: Matrix = dpotrs(factor, r, lower=1)[0]
    return found


def _log_det(factor: Matrix) -> float:
    """log det H by the factor of H."""
    return 2 * float(np.log(factor.diagonal()).sum())
