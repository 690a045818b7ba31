"""Lower bounds on f in `procrustes`: proofs that no X is better, for one problem or many.

The bounds are those of `jorth.solvers.procrustes.dual`, the cheapest first:

1. At a critical X, with G = J X Lam, the pair (Lam, 0) has no gap at all; it is a bound if A - l J
   is positive definite for the least and the largest eigenvalue l of Lam.
2. With no more rows than columns, M = S^T N S / m where N S X J = S X - T: see `_row_multiplier`.
3. For n <= LARGEST the best pair (Lam, M), by Newton's method.

Each quantity comes with a bound on its rounding error, which enters the bound on f; where the error
hides that H is positive definite, there is no bound.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jorth._inputs import is_sparse
from jorth.objectives import Procrustes
from jorth.objectives.procrustes import BLOCK
from jorth.signature import Signature
from jorth.solvers.procrustes.dual import UNIT, JointDual, defects, half_energy, norms

Matrix = NDArray[np.float64]
CLOSED = 1e-6
"""X is the best one if value - bound is at most this share of the value."""
HIDDEN = 1e-3
"""The largest gap that is closed because the rounding of f hides it."""
CLOSED_SENTENCE = "certified: no X is better"
LARGEST = 16
"""The most columns for which the joint dual is solved."""


class Certificate(NamedTuple):
    """What is known about the least f; numbers for one problem, arrays (B,) for many.

    Attributes:
        bound: No J-orthogonal matrix has a lower f.
        gap: (value - bound) / max(value, u f(0)), at least 0.
        closed: Whether value - bound is at most CLOSED * value; or the gap is at most HIDDEN, and
            value - bound within u f(0) and within twice the bound on the rounding error of f.
        nearest: The minimiser of the Lagrangian (n, n), which is near the answer if the bound is
            good; None where it is not known.
    """

    bound: Any
    gap: Any
    closed: Any
    nearest: Matrix | None = None

    def sentence(self) -> str:
        """Return what the message of a single result says."""
        if self.closed:
            return CLOSED_SENTENCE
        return f"not certified: a gap of {self.gap:.2g} is left"


def certificate_of(
    objective: Procrustes,
    signature: Signature,
    X: Matrix,
    known: float = 0.0,
    *,
    thorough: bool = True,
) -> Certificate:
    """Return a lower bound on f over all J-orthogonal matrices, seen from X (n, n).

    Args:
        objective: The problem, in float64.
        signature: The signs of J.
        X: (n, n), the best point that was found.
        known: Another lower bound.
        thorough: Whether to search for the best multipliers where X's own give no proof.
    """
    rows: Any = objective.R, objective.T1
    rest = objective.floor
    if objective.samples <= signature.n:  # no factor is smaller than the rows themselves
        rows, rest = objective.clouds(), 0.0
    S, T = (part.toarray() if is_sparse(part) else part.cpu().numpy() for part in rows)
    seen = Neighbourhood(S[None], T[None], X[None], signature, rest, objective.samples)
    proof = seen.certificate(known, thorough=thorough)
    return Certificate(proof.bound.item(), proof.gap.item(), proof.closed.item(), proof.nearest)


class Neighbourhood:
    """f seen from points X, for B problems, in units in which the data are about one.

    ``delta`` bounds the rounding error of S X - T, ``doubt`` that of f, ``of_A`` and ``of_G`` those
    of A and of the gradient G, all in the Frobenius norm.

    Args:
        source, target: (B, k, n), the rows of all points or a triangular factor of them.
        X, signature: (B, n, n), and the signs of J.
        rest: The square sum of what a factorisation leaves of the target.
        samples: The number m of rows; k when omitted.
    """

    def __init__(
        self,
        source: Matrix,
        target: Matrix,
        X: Matrix,
        signature: Signature,
        rest: float = 0.0,
        samples: int | None = None,
    ) -> None:
        k, n = source.shape[1:]
        self.m = m = samples or k
        self.signs = signature.signs.astype(np.float64)
        with np.errstate(all="ignore"):
            largest = np.maximum(np.abs(source).max((1, 2)), np.abs(target).max((1, 2)))
            sizes = largest + np.abs(X).max((1, 2)) ** 4
            self.sound = np.isfinite(sizes)
            self.scale = np.ldexp(1.0, np.frexp(np.where(self.sound, largest, 1.0))[1])
            keep, divisor = self.sound[:, None, None], self.scale[:, None, None]
            self.S, self.T = (np.where(keep, part / divisor, 0.0) for part in (source, target))
        self.X = np.where(keep, X, np.eye(n))
        rest = rest / float(self.scale[0]) / float(self.scale[0]) if rest else 0.0
        St = self.S.transpose(0, 2, 1)
        self.D = self.S @ self.X - self.T
        self.A, self.G = St @ self.S / m, St @ self.D / m
        square = (self.D**2).sum((1, 2)) + rest
        self.value = square / (2 * m)
        of_s, of_x = norms(self.S), norms(self.X)
        of_t = np.sqrt((self.T**2).sum((1, 2)) + rest)
        self.floor = UNIT * of_t**2 / (2 * m)
        # products of k or n terms, and the factorisation of the rows in blocks
        self.unit = 4 * (k + n + m / BLOCK) * UNIT
        self.delta = self.unit * (of_s * of_x + of_t)
        self.doubt = self.delta * (np.sqrt(square) + self.delta) / m
        self.of_A = self.unit * of_s**2 / m
        self.of_G = 2 * of_s * self.delta / m

    def certificate(self, known: float = 0.0, *, thorough: bool = False) -> Certificate:
        """Return the bounds: by own multipliers alone, or, for a single problem, by the best."""
        loss = self._own_multiplier()
        if self.S.shape[1] <= len(self.signs):
            loss = np.fmin(loss, self._row_multiplier())
        nearest = None
        size = np.maximum(self.value, self.floor)
        slack = np.maximum(CLOSED * self.value, np.minimum(2 * self.doubt, self.floor))
        if thorough and self.sound[0] and not loss[0] + self.doubt[0] <= slack[0]:
            dual = None
            if len(self.signs) <= LARGEST:
                errors = float(self.of_A[0]), float(self.of_G[0])
                joint = JointDual(self.A[0], self.signs, *errors)
                dual = joint.best(self.X[0], self.G[0], 0.1 * float(slack[0]))
            if dual is not None:
                loss = np.fmin(loss, dual.gap + self._correction(dual.Lam, dual.M))
                nearest = dual.Z if np.isfinite(dual.Z).all() else None
        unit = self.scale**2
        bound = np.fmax(self.value - loss - self.doubt, known / unit)
        bound = np.clip(bound, 0.0, self.value)
        gap = np.divide(self.value - bound, size, out=np.zeros_like(size), where=size > 0)
        closed = self.sound & (self.value - bound <= slack) & (gap <= HIDDEN)
        bound, gap = (np.where(self.sound, part, np.nan) for part in (bound * unit, gap))
        return Certificate(bound, gap, closed, nearest)

    def _correction(self, Lam: Matrix, M: Matrix) -> Matrix:
        """What the bound loses because X is J-orthogonal only to rounding."""
        n = len(self.signs)
        lost = np.zeros(len(self.X))
        for part, defect in zip((Lam, M), defects(self.X, self.signs), strict=True):
            error = 4 * n * UNIT * (norms(defect) + 2.0**-20 * norms(self.X) ** 2)
            lost += (part * defect).sum((-2, -1)) / 2 + norms(part) * error
        return lost

    def _own_multiplier(self) -> Matrix:
        """The losses (B,) by (Lam, 0) with the Lam of X; inf where it gives no bound."""
        n, s = len(self.signs), self.signs[:, None]
        Lam = s * (self.X.transpose(0, 2, 1) @ self.G)
        Lam = (Lam + Lam.transpose(0, 2, 1)) / 2
        ends = np.linalg.eigvalsh(Lam)[:, [0, -1], None, None]
        values = np.linalg.eigvalsh(self.A[:, None] - ends * np.diag(self.signs))
        size = norms(self.A) + norms(Lam)
        least = values[..., 0].min(1) - self.of_A - 8 * n * UNIT * size
        error = self.of_G + 2 * n * UNIT * norms(self.X) * norms(Lam)
        gap = half_energy(self.G - s * (self.X @ Lam), error, least)
        return gap + self._correction(Lam, np.zeros_like(Lam))

    def _row_multiplier(self) -> Matrix:
        """The losses (B,) by (0, S^T N S / m) with N S X J = S X - T; inf where it gives no bound.

        Y = S X has Y J Y^T = S J S^T, and f is |Y - T|^2 / 2m. The Hessian of the Lagrangian in Y
        is I - N on the columns of + and I + N on those of -. No inverse of S is needed, so that S
        may have any rank.
        """
        k = self.S.shape[1]
        Y, s = self.D + self.T, self.signs
        N = self.D @ np.linalg.pinv(Y * s)
        N = (N + N.transpose(0, 2, 1)) / 2
        of_N, of_x = norms(N), norms(self.X)
        least = 1 - np.abs(np.linalg.eigvalsh(N)).max(1) - 8 * k * UNIT * (1 + of_N)
        error = (1 + of_N) * self.delta + 2 * k * UNIT * of_N * norms(Y)
        gap = half_energy(self.D - N @ (Y * s), error, least) / self.m
        defect = defects(self.X, s)[1]
        lost = (N * (self.S @ defect @ self.S.transpose(0, 2, 1))).sum((1, 2)) / 2
        accuracy = self.unit * norms(defect) + 4 * len(s) * UNIT * 2.0**-20 * of_x**2
        loss: Matrix = gap + (lost + of_N * norms(self.S) ** 2 * accuracy) / self.m
        return loss
