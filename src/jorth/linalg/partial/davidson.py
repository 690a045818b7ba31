"""Extreme eigenpairs of J x = theta S x for a positive definite S: block Davidson with restarts.

The basis V is orthonormal in the product x^T S y, so the Ritz values are the eigenvalues of the
symmetric matrix V^T J V. With T = S^-1 the new directions T (J x - theta S x) span a block Krylov
space of S^-1 J, and this is the block Lanczos method with thick restarts. With any other T it is
the generalised Davidson method. A restart keeps the Ritz vectors of the step before, so that it is
at least as good as LOBPCG, which is the case of the smallest memory.

Vectors are rows here: (b, n). Products with a few long rows are fastest that way.

References: A. Stathopoulos, Y. Saad, Restarting techniques for the (Jacobi-)Davidson symmetric
eigenvalue methods, ETNA 7 (1998); D. Kressner, M. M. Pandur, M. Shao, An indefinite variant of
LOBPCG for definite matrix pencils, Numer. Algorithms 66 (2014).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import zip_longest
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from jorth.linalg.batch import Floats

Map: TypeAlias = Callable[[Floats], Floats]
"""A linear map of rows (b, n)."""

ROUNDING = 16
"""No residual is asked to be smaller than so many units of rounding of ||S|| ||x||."""
FEW_ROWS = 8
"""So many inner products with a matrix are faster one after the other than as a product."""
TINY = np.finfo(np.float64).tiny


class NotPositiveDefinite(ValueError):
    """A vector z with z^T S z < 0 was found."""


@dataclass(frozen=True)
class Sizes:
    """How many pairs are wanted at each end, and how many vectors are added, kept and stored.

    Attributes:
        positive: The largest theta.
        negative: The smallest theta.
        block: Residuals that give new directions at a time.
        chain: How often T J is applied to new directions before the next Ritz values: more than
            once is of use if T = S^-1.
        extra: Ritz vectors at each end that a restart keeps beyond the wanted ones.
        stored: The most vectors in memory.
    """

    positive: int
    negative: int
    block: int
    chain: int
    extra: int
    stored: int

    def ends(self, m: int, extra: int = 0) -> NDArray[np.intp]:
        """The positions of the wanted among m ascending values, taken from both ends in turn."""
        top = [m - 1 - i for i in range(self.positive + extra * bool(self.positive))]
        bottom = range(self.negative + extra * bool(self.negative))
        both = [place for pair in zip_longest(top, bottom) for place in pair if place is not None]
        return np.array([place for place in dict.fromkeys(both) if 0 <= place < m], dtype=np.intp)


@dataclass(frozen=True)
class Found:
    """Ritz values (k,), vectors (k, n) with x^T S x = 1, and residuals over the tolerated ones."""

    theta: Floats
    X: Floats
    residuals: Floats

    @property
    def converged(self) -> bool:
        return bool((self.residuals <= 1).all())


class Basis:
    """Rows V with V S V^T = I, V S, and H = V J V^T, in memory for ``stored`` rows."""

    def __init__(self, apply: Map, signs: Floats, stored: int, unit: float) -> None:
        self.apply = apply
        self.signs = signs
        self.rounding = ROUNDING * unit
        self.dependent = 10 * math.sqrt(unit)
        """The part of a direction outside the basis, relatively, below which it is left out."""
        self.m = 0
        self.norm = 0.0
        """The largest ||S w|| / ||w|| seen, a lower bound of ||S||."""
        self._V = np.empty((stored, len(signs)))
        self._SV = np.empty((stored, len(signs)))
        self._H = np.zeros((stored, stored))

    @property
    def V(self) -> Floats:
        return self._V[: self.m]

    @property
    def SV(self) -> Floats:
        return self._SV[: self.m]

    @property
    def H(self) -> Floats:
        return self._H[: self.m, : self.m]

    def add(self, W: Floats) -> Floats:
        """Orthonormalise directions W (b, n) against V and each other; the rows that were added."""
        W = W / np.maximum(np.linalg.norm(W, axis=1, keepdims=True), TINY)
        inside = _products(W, self.SV)
        W -= inside @ self.V
        W -= _products(W, self.SV) @ self.V
        SW = self.apply(W)
        lengths = np.linalg.norm(W, axis=1)
        self.norm = max(self.norm, float(np.max(np.linalg.norm(SW, axis=1) / (lengths + TINY))))
        C = self._orthonormalising(SW @ W.T, np.sum(inside**2, axis=1), float(lengths @ lengths))
        a, b = self.m, self.m + len(C)
        new = self._V[a:b]
        np.matmul(C, W, out=new)
        np.matmul(C, SW, out=self._SV[a:b])
        self.m = b
        self._H[a:b, :b] = _products(new * self.signs, self.V)
        self._H[:b, a:b] = self._H[a:b, :b].T
        return new

    def restart(self, Y: Floats) -> None:
        """Replace V by Y^T V, where Y (m, kept) has orthonormal columns."""
        V, SV, H = Y.T @ self.V, Y.T @ self.SV, Y.T @ self.H @ Y
        self.m = Y.shape[1]
        self._V[: self.m] = V
        self._SV[: self.m] = SV
        self._H[: self.m, : self.m] = 0.5 * (H + H.T)

    def _orthonormalising(self, gram: Floats, inside: Floats, size: float) -> Floats:
        """C with C gram C^T = I, without directions inside the span of V and of each other."""
        gram = 0.5 * (gram + gram.T)
        if np.linalg.eigvalsh(gram)[0] < -len(self.signs) * self.rounding * self.norm * size:
            raise NotPositiveDefinite
        scale = 1 / np.sqrt(np.maximum(inside + np.diagonal(gram), TINY))
        values, Q = np.linalg.eigh(scale[:, None] * gram * scale)
        outside = values > self.dependent**2
        C: Floats = (scale[:, None] * Q[:, outside] / np.sqrt(values[outside])).T
        return C


class Davidson:
    """The iteration on a basis; it may be run again after `add`."""

    def __init__(self, basis: Basis, precondition: Map, sizes: Sizes, tolerance: float) -> None:
        self.basis = basis
        self.precondition = precondition
        self.sizes = sizes
        self.tolerance = tolerance
        self.steps = 0
        self.is_stalled = False
        """Whether the last step had no direction to add: the residuals are at rounding."""
        self._previous = np.empty((0, 0))

    def run(self, max_steps: int) -> Found:
        """The wanted pairs, converged or as they are after ``max_steps`` in all."""
        passed = 0
        while True:
            theta, Y = np.linalg.eigh(self.basis.H)
            wanted = self.sizes.ends(len(theta))
            window = wanted[passed : passed + self.sizes.block]
            failing, R = self._failing(theta[window], Y[:, window])
            complete = not failing.any() and passed + len(window) >= len(wanted)
            ended = self.steps >= max_steps or self.is_stalled
            if ended or complete:
                found = self._found(theta[wanted], Y[:, wanted])
                if ended or found.converged:
                    return found
                passed = 0
            elif failing.any():
                passed += int(np.argmax(failing))
                self._step(R[failing], Y[:, wanted])
            else:
                passed += len(window)

    def add(self, W: Floats) -> None:
        """Add directions to the basis, after a restart if there is no memory for them."""
        self._make_room(len(W))
        self.basis.add(W)

    def explore(self, W: Floats) -> None:
        """Fill the memory with W, T J W, (T J)^2 W ...: there may be pairs as yet unseen."""
        self._make_room(self.sizes.stored)
        self._chain(W, self.sizes.stored)

    def _step(self, R: Floats, current: Floats) -> None:
        """Add T R and, in a chain, T J of what was added; ``current`` (m, k) are Ritz vectors."""
        self.steps += 1
        W = self.precondition(R)
        if self._make_room(len(W)):
            theta, Y = np.linalg.eigh(self.basis.H)
            current = Y[:, self.sizes.ends(len(theta))]
        self._previous = current
        self._chain(W, self.sizes.chain)

    def _chain(self, W: Floats, length: int) -> None:
        """Add W, T J times what that has added, and so on, as far as there is memory."""
        new = self.basis.add(W)
        self.is_stalled = not len(new)
        for _ in range(length - 1):
            if not len(new) or self.basis.m + len(new) > self.sizes.stored:
                break
            new = self.basis.add(self.precondition(new * self.basis.signs))

    def _make_room(self, count: int) -> bool:
        """Restart if there is no memory for ``count`` more vectors, and say whether it was done."""
        if self.basis.m + count <= self.sizes.stored:
            return False
        Y = np.linalg.eigh(self.basis.H)[1]
        kept = Y[:, self.sizes.ends(len(Y), self.sizes.extra)]
        self.basis.restart(np.hstack([kept, self._outside(kept)]))
        return True

    def _outside(self, kept: Floats) -> Floats:
        """An orthonormal basis of what the Ritz vectors of the step before add to those kept."""
        previous = np.zeros((self.basis.m, self._previous.shape[1]))
        previous[: len(self._previous)] = self._previous
        previous -= kept @ (kept.T @ previous)
        U, values, _ = np.linalg.svd(previous, full_matrices=False)
        Q = U[:, values > self.basis.dependent]
        Q -= kept @ (kept.T @ Q)
        return np.linalg.qr(Q)[0]

    def _found(self, theta: Floats, Y: Floats) -> Found:
        return Found(theta, Y.T @ self.basis.V, self._residuals(theta, Y)[0])

    def _failing(self, theta: Floats, Y: Floats) -> tuple[NDArray[np.bool_], Floats]:
        residuals, R = self._residuals(theta, Y)
        return residuals > 1, R

    def _residuals(self, theta: Floats, Y: Floats) -> tuple[Floats, Floats]:
        """The norms of R = J x - theta S x over what is tolerated, and R.

        The residual of S x = lambda J x, lambda = 1 / theta, is lambda R.
        """
        X, SX = Y.T @ self.basis.V, Y.T @ self.basis.SV
        R = X * self.basis.signs - theta[:, None] * SX
        tolerated = np.maximum(
            self.tolerance, self.basis.rounding * self.basis.norm * np.abs(theta)
        )
        return np.linalg.norm(R, axis=1) / (tolerated * np.linalg.norm(X, axis=1)), R


def _products(W: Floats, V: Floats) -> Floats:
    """W V^T (b, m) for few long rows W (b, n)."""
    if not 0 < len(W) <= FEW_ROWS:
        return W @ V.T
    return np.stack([V @ w for w in W])
