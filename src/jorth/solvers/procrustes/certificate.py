"""A lower bound on f in `procrustes`: the proof that no X is better.

The bounds are those of `jorth.solvers.procrustes.dual`, the cheapest first:

1. At a critical X, with G = J X Lam, the pair (Lam, 0) has no gap at all; it is a bound if A - l J
   is positive definite for the least and the largest eigenvalue l of Lam.
2. For n <= LARGEST the best pair (Lam, M), by Newton's method.
3. Otherwise Lam with its eigenvalues clipped to the interval where A - l J is positive definite.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth import arrays
from jorth.group.norms import power_of_two
from jorth.objectives import Procrustes
from jorth.signature import Signature
from jorth.solvers.procrustes.dual import UNIT, Dual, JointDual, defects, rounding, with_error

Matrix = NDArray[np.float64]
CLOSED = 1e-6
"""A gap of at most this size is closed, that is, X is the best one."""
CLOSED_SENTENCE = "certified: no X is better"
LARGEST = 16
"""The most columns for which the joint dual is solved."""
RELIABLE = 1e-4
"""The largest n u cond(A) with which an inverse of A is used."""
SHARES = (0.5, 0.9, 0.99, 0.999)
"""How much of the interval of definiteness clipped multipliers may fill."""


class Certificate(NamedTuple):
    """What is known about the least f.

    Attributes:
        bound: No J-orthogonal matrix has a lower f.
        gap: (value - bound) / max(value, u f(0)), at least 0.
        closed: Whether the gap is at most CLOSED, or hidden by the rounding of f.
        nearest: The minimiser of the Lagrangian (n, n), which is near the answer if the bound is
            good; None where it is not known.
    """

    bound: float
    gap: float
    closed: bool
    nearest: Tensor | None

    def sentence(self) -> str:
        """For the message of a result."""
        if self.closed:
            return CLOSED_SENTENCE
        return f"not certified: a gap of {self.gap:.2g} is left"


def certificate_of(
    objective: Procrustes, signature: Signature, X: Tensor, known: float = 0.0
) -> Certificate:
    """A lower bound on f over all J-orthogonal matrices, seen from X (n, n).

    Args:
        objective: The problem.
        signature: The signs of J.
        X: (n, n), the best point that was found.
        known: Another lower bound, up to the rounding of f.
    """
    problem = _Problem(objective, signature, X)
    value, doubt = problem.value, problem.rounding
    size = max(value, problem.floor)
    dual = problem.dual(0.1 * max(CLOSED * size, doubt))
    loss = np.inf if dual is None else dual.gap + problem.correction(dual)
    bound = max(value - loss, known / problem.unit) - doubt
    bound = min(max(bound, 0.0), value)
    gap = (value - bound) / size if size > 0 else 0.0
    closed = gap <= CLOSED or value - bound <= 2 * doubt
    nearest = None if dual is None or not np.isfinite(dual.Z).all() else torch.from_numpy(dual.Z)
    return Certificate(bound * problem.unit, gap, closed, nearest)


class _Problem:
    """f in the neighbourhood of X in float64, in units in which the data are about one."""

    def __init__(self, objective: Procrustes, signature: Signature, X: Tensor) -> None:
        R, T = (part.double().cpu().numpy() for part in (objective.R, objective.T1))
        m = objective.samples
        largest = torch.tensor(max(np.abs(R).max(), np.abs(T).max()), dtype=torch.float64)
        scale = power_of_two(largest).item()
        self.unit = scale**2
        R, T = R / scale, T / scale
        self.signs = signature.signs.astype(np.float64)
        self.X = X.detach().double().cpu().numpy()
        residual = R @ self.X - T
        rest = objective.floor / self.unit
        u = float(arrays.unit_roundoff(objective.R))
        self.A = R.T @ R / m
        self.G = R.T @ residual / m
        self.value = (float((residual**2).sum()) + rest) / (2 * m)
        self.floor = u * (float((T**2).sum()) + rest) / (2 * m)
        size = float(np.linalg.norm(R) * np.linalg.norm(self.X))
        reach = size + float(np.linalg.norm(T))
        # R, T and the rest come from a QR factorisation of all rows, with errors of its own
        error = 4 * len(R) * u * (size + float(np.sqrt((T**2).sum() + rest)))
        self.error = 2 * len(R) * UNIT * float(np.linalg.norm(R)) * reach / m
        self.rounding = float(error * (np.sqrt(2 * m * self.value) + error)) / m
        Lam = self.signs[:, None] * (self.X.T @ self.G)
        self.Lam = 0.5 * (Lam + Lam.T)

    def dual(self, enough: float) -> Dual | None:
        """Multipliers with a gap of at most ``enough``, or the best that are found."""
        simple = self._own_multiplier()
        if simple is not None and simple.gap <= enough:
            return simple
        if len(self.A) <= LARGEST:
            joint = JointDual(self.A, self.signs, self.error).best(self.X, self.G, enough)
        else:
            joint = self._clipped()
        found = [dual for dual in (simple, joint) if dual is not None]
        return min(found, key=lambda dual: dual.gap, default=None)

    def correction(self, dual: Dual) -> float:
        """What the bound loses because X is J-orthogonal only to rounding."""
        if not (dual.Lam.any() or dual.M.any()):
            return 0.0
        pairs = zip((dual.Lam, dual.M), defects(self.X, self.signs), strict=True)
        return 0.5 * float(sum((part * defect).sum() for part, defect in pairs))

    def _own_multiplier(self) -> Dual | None:
        """(Lam, 0) with the Lam of X, if A - l J is positive definite for all its eigenvalues l."""
        n, J = len(self.A), np.diag(self.signs)
        ends = np.linalg.eigvalsh(self.Lam)[[0, -1]]
        values = np.linalg.eigvalsh(self.A - ends[:, None, None] * J)
        least = float(values[:, 0].min()) - 8 * n * UNIT * float(np.abs(values).max())
        if not least > 0:
            return None
        r = self.G - self.signs[:, None] * (self.X @ self.Lam)
        found = Dual(self.Lam, np.zeros_like(self.Lam), 0.0, self.X)
        error = self.error + rounding(self.X, found)
        return found._replace(gap=with_error(float((r * r).sum()) / least, error, least))

    def _clipped(self) -> Dual | None:
        """(Lam, 0) with Lam clipped to the interval in which A - l J is positive definite.

        With V^T A V = I and V^T J V = diag(mu), A - l J has the inverse V diag(1 / (1 - l mu)) V^T.
        """
        from scipy.linalg import LinAlgError, eigh

        try:
            mu, V = eigh(np.diag(self.signs), self.A)
        except LinAlgError:
            return None
        if len(V) * UNIT * np.linalg.norm(self.A) * np.linalg.norm(V) ** 2 > RELIABLE:
            return None
        ends = 1 / mu[0] if mu[0] < 0 else -np.inf, 1 / mu[-1] if mu[-1] > 0 else np.inf
        values, U = np.linalg.eigh(self.Lam)
        best: Dual | None = None
        for share in SHARES:
            kept = np.clip(values, share * ends[0], share * ends[1])
            Lam = (U * kept) @ U.T
            r = self.G - self.signs[:, None] * (self.X @ Lam)
            seen = (V.T @ r @ U) / (1 - np.outer(mu, kept))
            Q = V @ seen @ U.T
            found = Dual(Lam, np.zeros_like(Lam), 0.0, self.X - Q)
            least = (1 - share) / float(np.linalg.norm(V)) ** 2
            error = self.error + rounding(self.X, found)
            gap = with_error(float((r * Q).sum()) * (1 + RELIABLE), error, least)
            if best is None or gap < best.gap:
                best = found._replace(gap=gap)
        return best
