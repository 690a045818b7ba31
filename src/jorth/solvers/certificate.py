"""Lower bounds on f in `procrustes`: proofs that no X is better, for one problem or many.

Let f(X) = 1/2 <X, A X> - <B, X> + c, and let Lam and M be symmetric. The Lagrangian of both forms
of the constraint, X^T J X = J and X J X^T = J, is a quadratic with the Hessian

    H : K -> A K - J K Lam - M K J.

If H is positive semidefinite, the Lagrangian's minimum is a lower bound on f over all J-orthogonal
matrices: from any X with gradient G it is f(X) - 1/2 <r, H^-1 r>, r = G - J X Lam - M X J, less
<Lam, X^T J X - J> / 2 and <M, X J X^T - J> / 2 where X is not quite J-orthogonal. So the gap is not
a difference of large numbers. It is a convex function of (Lam, M), and where it is least and H is
regular, the minimiser Z of the Lagrangian is J-orthogonal, and the answer.

The multipliers are first those of the rows, `_row_multiplier`, and for n <= LARGEST the best pair
by Newton's method. Each quantity comes with a bound on its rounding error, which enters the bound
on f.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

from jorth.signature import Signature
from jorth.solvers.procrustes_starts import UNIT, Clouds, Matrix, inverses, norms

Pair = tuple[Matrix, Matrix]
CLOSED = 1e-6
"""X is the best one if value - bound is at most this share of the value."""
HIDDEN = 1e-3
"""The largest gap that is closed because the rounding of f hides it."""
LARGEST = 16
"""The most columns for which the joint dual is solved, in O(n^6) per step."""
MAX_STEPS = 100
LEAST_STEP = 1e-6
SHRINK = 0.1
"""The weight of the barrier falls by this factor when its minimiser is nearly reached."""
PRECISE = 1e-4
"""The gap is known to this relative precision when the search for better multipliers ends."""
RETREATS = (0.0, *(10.0**-k for k in range(12, -1, -1)))
"""The shares by which multipliers shrink until rounding cannot hide that H is definite."""
REGULAR = 1e10
"""The condition number below which an inverse is as good as a pseudoinverse, which takes longer."""
SPLIT = 2.0**31
"""x + c - c with c = 3 SPLIT max |x| leaves x the 22 bits, whose products and their sums are
exact."""


class Certificate(NamedTuple):
    """What is known of the least f of B problems.

    Attributes:
        bound: (B,), no J-orthogonal matrix has a lower f.
        gap: (B,), (value - bound) / max(value, u f(0)), at least 0.
        closed: (B,), whether value - bound is at most CLOSED * value, or rounding of f hides it and
            the gap is at most HIDDEN.
        nearest: The minimiser of the Lagrangian (n, n) of a single problem, if it is known.
    """

    bound: Matrix
    gap: Matrix
    closed: NDArray[np.bool_]
    nearest: Matrix | None = None


class Neighbourhood:
    """f seen from points X (B, n, n), in units in which the data are about one.

    ``delta`` bounds the rounding error of S X - T, ``doubt`` that of f, ``of_A`` and ``of_G`` those
    of A and of the gradient G, all in the Frobenius norm.
    """

    def __init__(self, clouds: Clouds, X: Matrix, signature: Signature) -> None:
        self.S, T, rest = clouds.source, clouds.target, clouds.rest
        self.m, self.unit = clouds.m, clouds.unit
        self.signs = signature.signs.astype(np.float64)
        with np.errstate(all="ignore"):
            self.sound = np.isfinite(clouds.scale + np.abs(X).max((1, 2)) ** 4)
        self.X = np.where(self.sound[:, None, None], X, np.eye(signature.n))
        self.Y = self.S @ self.X
        self.D = self.Y - T
        self.A, self.G = clouds.A, self.S.transpose(0, 2, 1) @ self.D / self.m
        self.defects = defects(self.X, self.signs)
        square = (self.D**2).sum((1, 2)) + rest
        self.value = square / (2 * self.m)
        of_s, of_x = norms(self.S), norms(self.X)
        of_t = np.sqrt((T**2).sum((1, 2)) + rest)
        self.floor = UNIT * of_t**2 / (2 * self.m)
        self.delta = self.unit * (of_s * of_x + of_t)
        self.doubt = self.delta * (np.sqrt(square) + self.delta) / self.m
        self.of_A = self.unit * of_s**2 / self.m
        self.of_G = 2 * of_s * self.delta / self.m

    def certificate(self, known: Any = 0.0, *, thorough: bool = False) -> Certificate:
        """Return bounds by the rows, or if ``thorough`` for one problem by the best multipliers.

        ``known`` (B,) are other lower bounds, in the units of the clouds.
        """
        loss = self._row_multiplier()
        nearest = None
        size = np.maximum(self.value, self.floor)
        slack = np.maximum(CLOSED * self.value, np.minimum(2 * self.doubt, self.floor))
        small = len(self.signs) <= LARGEST
        if thorough and small and self.sound[0] and not loss[0] + self.doubt[0] <= slack[0]:
            joint = JointDual(self.A[0], self.signs, float(self.of_A[0]), float(self.of_G[0]))
            dual = joint.best(self.X[0], self.G[0], 0.1 * float(slack[0]))
            if dual is not None:
                loss = np.fmin(loss, dual.gap + self._correction(dual.Lam, dual.M))
                nearest = dual.Z if np.isfinite(dual.Z).all() else None
        bound = np.clip(np.fmax(self.value - loss - self.doubt, known), 0.0, self.value)
        gap = np.divide(self.value - bound, size, out=np.zeros_like(size), where=size > 0)
        closed = self.sound & (self.value - bound <= slack) & (gap <= HIDDEN)
        bound, gap = (np.where(self.sound, part, np.nan) for part in (bound, gap))
        return Certificate(bound, gap, closed, nearest)

    def _correction(self, Lam: Matrix, M: Matrix) -> Matrix:
        """Return what the bound loses because X is J-orthogonal only to rounding."""
        lost = np.zeros(len(self.X))
        for part, defect in zip((Lam, M), self.defects, strict=True):
            error = 4 * len(self.signs) * UNIT * (norms(defect) + 2.0**-20 * norms(self.X) ** 2)
            lost += (part * defect).sum((-2, -1)) / 2 + norms(part) * error
        return lost

    def _row_multiplier(self) -> Matrix:
        """Return the losses (B,) by (0, S^T N S / m) with N S X J = S X - T; inf without a bound.

        Y = S X has Y J Y^T = S J S^T, and f is |Y - T|^2 / 2m. The Hessian of the Lagrangian in Y
        is I - N on the columns of + and I + N on those of -. No inverse of S is needed, so that S
        may have any rank.
        """
        k = self.S.shape[1]
        Y, s = self.Y, self.signs
        with np.errstate(over="ignore", invalid="ignore"):  # the inverse of tiny rows
            N = self.D @ _pseudoinverses(Y * s)
            N = (N + N.transpose(0, 2, 1)) / 2
            N = np.where(np.isfinite(norms(N))[:, None, None], N, 0.0)
        of_N = norms(N)
        least = 1 - np.abs(np.linalg.eigvalsh(N)).max(1) - 8 * k * UNIT * (1 + of_N)
        error = (1 + of_N) * self.delta + 2 * k * UNIT * of_N * norms(Y)
        gap = half_energy(self.D - N @ (Y * s), error, least) / self.m
        defect = self.defects[1]
        lost = (N * (self.S @ defect @ self.S.transpose(0, 2, 1))).sum((1, 2)) / 2
        accuracy = self.unit * norms(defect) + 4 * len(s) * UNIT * 2.0**-20 * norms(self.X) ** 2
        loss: Matrix = gap + (lost + of_N * norms(self.S) ** 2 * accuracy) / self.m
        return loss


class Dual(NamedTuple):
    """Multipliers, <r, H^-1 r> / 2, the minimiser of the Lagrangian, and the factor of H."""

    Lam: Matrix
    M: Matrix
    gap: float
    Z: Matrix
    factor: Matrix


class JointDual:
    """The best multipliers for one A and J, by Newton's method with a barrier, in O(n^6) per step.

    The minimiser of 1/2 <r, H^-1 r> - weight log det H is at most weight n^2 above the least gap.
    ``of_A`` and ``of_G`` are the rounding errors of A and of a gradient in the Frobenius norm.
    """

    def __init__(self, A: Matrix, signs: Matrix, of_A: float = 0.0, of_G: float = 0.0) -> None:
        n = len(A)
        self.A, self.signs, self.n, self.of_A, self.of_G = A, signs, n, of_A, of_G
        rows, columns = np.triu_indices(n)
        each, size = np.arange(len(rows)), np.where(rows == columns, 1.0, np.sqrt(0.5))
        self._basis = np.zeros((n * n, len(rows)))  # of symmetric matrices
        self._basis[n * rows + columns, each] = self._basis[n * columns + rows, each] = size

    def hessian(self, Lam: Matrix, M: Matrix) -> Matrix:
        """Return H (n^2, n^2), for the columns of K one after the other."""
        n, s = self.n, self.signs
        H = np.zeros((n, n, n, n))
        each = np.arange(n)
        H[each, :, each, :] = self.A - s[:, None, None] * M
        H[:, each, :, each] -= s[:, None, None] * Lam
        return H.reshape(n * n, n * n)

    def residual(self, X: Matrix, G: Matrix, Lam: Matrix, M: Matrix) -> Matrix:
        """Return r (n^2,), in the order of H."""
        s = self.signs
        return (G - s[:, None] * (X @ Lam) - (M @ X) * s).T.ravel()

    def dual(self, X: Matrix, G: Matrix, Lam: Matrix, M: Matrix) -> Dual | None:
        """Return these multipliers with their gap at X, or None if H is not positive definite."""
        factor, r = _factor(self.hessian(Lam, M)), self.residual(X, G, Lam, M)
        if factor is None:
            return None
        q = dpotrs(factor, r, lower=1)[0]
        return Dual(Lam, M, 0.5 * float(r @ q), X - q.reshape(self.n, self.n).T, factor)

    def best(self, X: Matrix, G: Matrix, enough: float) -> Dual | None:
        """Return multipliers with a gap at X of at most ``enough``, or the least; or None."""
        n = self.n
        best = at = self.dual(X, G, np.zeros((n, n)), np.zeros((n, n)))
        if best is None or at is None:
            return None
        weight = at.gap / n**2

        def potential(dual: Dual) -> float:
            return dual.gap - weight * 2 * float(np.log(dual.factor.diagonal()).sum())

        for _ in range(MAX_STEPS):
            if not at.gap > enough:
                break
            try:
                step, decrement = self._newton(at.Z, _inverse(at.factor), weight)
            except np.linalg.LinAlgError:  # singular to rounding: the best so far is kept
                break
            most, length, after = potential(at) - 1e-4 * decrement, 1.0, None
            while length > LEAST_STEP:  # until H is definite and the potential falls
                after = self.dual(X, G, at.Lam + length * step[0], at.M + length * step[1])
                if after is not None and potential(after) <= most + 1e-12 * abs(most):
                    break
                length /= 2
            if after is None or length <= LEAST_STEP or not decrement > 0:
                break
            at, best = after, min(best, after, key=lambda dual: dual.gap)
            if decrement < weight:
                if weight * n**2 < PRECISE * at.gap:
                    break
                weight *= SHRINK
        return self.safe(X, G, best)

    def safe(self, X: Matrix, G: Matrix, dual: Dual) -> Dual:
        """Return the multipliers, smaller until rounding cannot hide that H is definite."""
        for share in RETREATS:
            Lam, M = (1 - share) * dual.Lam, (1 - share) * dual.M
            gap = self.gap(X, G, Lam, M)
            if np.isfinite(gap):
                break
        return dual._replace(Lam=Lam, M=M, gap=gap)

    def gap(self, X: Matrix, G: Matrix, Lam: Matrix, M: Matrix) -> float:
        """Return <r, H^-1 r> / 2, or a little more because of rounding.

        It is inf if H is not certainly positive definite: a Cholesky factorisation of the computed
        H - t I shows that the exact H has no eigenvalue below t - margin. The factorisation has an
        error of at most (n^2 + 1) u tr H (Demmel).
        """
        n = self.n
        H, r = self.hessian(Lam, M), self.residual(X, G, Lam, M)
        size = norms(self.A) + norms(Lam) + norms(M)
        margin = self.of_A + 2 * UNIT * ((n**2 + 2) * float(np.abs(H.diagonal()).sum()) + 2 * size)
        factor = _factor(H)
        if factor is None or _factor(H - 2 * margin * np.eye(n * n)) is None:
            return np.inf
        least, better = margin, 0.5 / float(norms(_inverse(factor)))
        if better > 2 * margin and _factor(H - better * np.eye(n * n)) is not None:
            least = better - margin
        q = dpotrs(factor, r, lower=1)[0]
        error = self.of_G + 2 * n * UNIT * norms(X) * (norms(Lam) + norms(M))
        of_Hq = (self.of_A + (n**2 + 2) * UNIT * norms(H)) * np.linalg.norm(q)
        return float(half_energy(r[None], error, least, q[None], (H @ q)[None], of_Hq))

    def _newton(self, Z: Matrix, inverse: Matrix, weight: float) -> tuple[Pair, float]:
        """Return Newton's step for (Lam, M), and its decrement."""
        n, s, S = self.n, self.signs, self._basis
        J, signed = np.diag(s), np.outer(s, s).reshape(-1, 1)
        blocks = inverse.reshape(n, n, n, n)  # [column, row, column, row]
        by_kind = blocks.transpose(0, 2, 1, 3).reshape(n * n, n * n)
        crossed = blocks.transpose(2, 1, 0, 3).reshape(n * n, n * n)
        slope_Lam = 0.5 * (Z.T @ (s[:, None] * Z) - J).ravel() + weight * (by_kind @ J.ravel())
        slope_M = 0.5 * ((Z * s) @ Z.T - J).ravel() + weight * (J.ravel() @ by_kind)
        g = np.concatenate([S.T @ slope_Lam, S.T @ slope_M])

        def paired(product: Matrix, order: tuple[int, ...]) -> Matrix:
            """Return second derivatives of log det H: indices in pairs, symmetric matrices."""
            return S.T @ product.reshape(n, n, n, n).transpose(order).reshape(n * n, n * n) @ S

        LL = paired(by_kind @ (signed * by_kind.T), (1, 3, 2, 0))
        MM = paired(by_kind.T @ (signed * by_kind), (1, 3, 2, 0))
        LM = paired(crossed @ (signed * crossed), (0, 2, 3, 1))
        basis = S.reshape(n, n, -1)  # the change of r - H q with Lam and with M
        with_Lam = np.einsum("ab,bjk->jak", s[:, None] * Z, basis)
        with_M = np.einsum("abk,bj->jak", basis, Z * s)
        moves = -np.concatenate([with_Lam, with_M], axis=2).reshape(n * n, -1)
        second = moves.T @ inverse @ moves + weight * np.block([[LL, LM], [LM.T, MM]])
        scale = 1 / np.sqrt(np.maximum(second.diagonal(), 1e-300))
        second = second * scale * scale[:, None]
        # the equations are singular along Lam = J, M = -J, which changes nothing
        idle = np.concatenate([S.T @ J.ravel(), -S.T @ J.ravel()]) / scale
        second += np.outer(idle, idle) / (idle @ idle)
        second[np.diag_indices(len(g))] += len(g) * UNIT
        move = -scale * np.linalg.solve(second, scale * g)
        Lam, M = (S @ move.reshape(2, -1).T).T.reshape(2, n, n)
        return (Lam, M), float(-g @ move)


def _pseudoinverses(M: Matrix) -> Matrix:
    """Return the pseudoinverses of M (B, k, n); the inverses where that is clearly regular."""
    found = np.empty(M.swapaxes(1, 2).shape)
    regular = np.zeros(len(M), dtype=bool)
    if M.shape[1] == M.shape[2]:
        found = inverses(M)
        regular = norms(found) * norms(M) < REGULAR
    if not regular.all():
        found[~regular] = np.linalg.pinv(M[~regular])
    return found


def defects(X: Matrix, signs: Matrix) -> tuple[Matrix, Matrix]:
    """Return X^T J X - J and X J X^T - J (..., n, n), accurate even for a large ||X||^2."""
    s, J = signs[:, None], np.diag(signs)
    pivot = 3 * SPLIT * np.abs(X).max((-2, -1), keepdims=True).clip(1.0)
    high = (X + pivot) - pivot
    low = X - high

    def defect(high: Matrix, low: Matrix) -> Matrix:
        left = high.swapaxes(-2, -1)
        mixed, small = left @ (s * low), low.swapaxes(-2, -1) @ (s * low)
        found: Matrix = (left @ (s * high) - J) + (mixed + mixed.swapaxes(-2, -1) + small)
        return found

    return defect(high, low), defect(high.swapaxes(-2, -1), low.swapaxes(-2, -1))


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


def _factor(H: Matrix) -> Matrix | None:
    """Return the Cholesky factor of H, or None if H is not positive definite."""
    factor, info = dpotrf(H, lower=1)
    return None if info or not np.isfinite(factor).all() else factor


def _inverse(factor: Matrix) -> Matrix:
    """Return H^-1 by the factor of H: positive definite, as that of an LU factorisation is not."""
    found = dpotri(factor, lower=1)[0]
    inverse: Matrix = np.tril(found) + np.tril(found, -1).T
    return inverse
