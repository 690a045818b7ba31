"""Anderson acceleration of a map on O(p, q), in the Lie algebra.

A sweep takes X to Y = S(X). Its move is K = (T - T^-1) / 2 with T = Y X^-1, which is in the Lie
algebra and agrees with log T up to third order; no system is solved for it, and it has no pole. Let
k_i be the moves of sweeps and s_i the steps taken, X_{i+1} = cay(s_i) X_i. The next step is

    K - sum_i gamma_i (s_i + k_{i+1} - k_i),   gamma = argmin ||K - sum_i gamma_i (k_{i+1} - k_i)||,

which is where the move would vanish if it were affine in X. It is taken only where f is lower than
at Y, so that every iteration decreases f by at least as much as a sweep does.

References: D. G. Anderson, Iterative procedures for nonlinear integral equations, J. ACM 12 (1965);
H. F. Walker, P. Ni, Anderson acceleration for fixed-point iterations, SIAM J. Numer. Anal. 49
(2011).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from jorth.signature import Signature

Matrix: TypeAlias = NDArray[np.float64]
DAMPING = 1e-12
"""The weight of ||gamma||^2, where all differences have norm 1: the Gram matrix may be singular."""
LONGEST = 1.4
"""The bound on the norm of the boost part of a step; the Cayley transform has its pole at 2."""


def relative_move(Y: Matrix, X: Matrix, signs: Matrix) -> Matrix:
    """Return K = (T - J T^T J) / 2 for T = Y X^-1 = Y J X^T J, for J-orthogonal X and Y."""
    T = (Y * signs) @ X.T * signs
    K: Matrix = (T - signs[:, None] * T.T * signs) / 2
    return K


def moved_by(K: Matrix, X: Matrix) -> Matrix:
    """Return cay(K) X = (I - K/2)^-1 (I + K/2) X = 2 (I - K/2)^-1 X - X."""
    Y: Matrix = 2 * np.linalg.solve(np.eye(len(K)) - K / 2, X) - X
    return Y


def before_the_pole(K: Matrix, signature: Signature) -> bool:
    """Check that the Cayley transform of K stays in the component of I, with a margin."""
    if np.linalg.norm(K) <= LONGEST:
        return True
    boost = K[np.ix_(signature.signs > 0, signature.signs < 0)]
    return bool(boost.size == 0 or np.linalg.norm(boost, 2) <= LONGEST)


@dataclass
class Anderson:
    """What is remembered of the last sweeps; matrices are rows of (memory, n^2) arrays."""

    changes: Matrix = field(default_factory=lambda: np.zeros((0, 0)))
    """The differences k_{i+1} - k_i."""
    sums: Matrix = field(default_factory=lambda: np.zeros((0, 0)))
    """s_i + k_{i+1} - k_i."""
    used: int = 0
    """The number of differences known."""
    turn: int = 0
    """The number of differences added; the oldest one is replaced."""
    move: Matrix | None = None
    """The move of the last sweep."""
    step: Matrix | None = None
    """The step taken after it."""

    def propose(self, K: Matrix, memory: int, signature: Signature) -> Matrix | None:
        """Return the accelerated step after a sweep that moved by K; None if there is none.

        It is J-skew like K, and before the pole of the Cayley transform.
        """
        if self.move is not None and self.step is not None and memory:
            if not len(self.changes):
                self.changes, self.sums = np.zeros((2, memory, K.size))
            slot = self.turn % memory
            self.changes[slot] = (K - self.move).reshape(-1)
            self.sums[slot] = self.step.reshape(-1) + self.changes[slot]
            self.turn += 1
            self.used = min(self.used + 1, memory)
        self.move = K
        step = self._extrapolate(K)
        return step if step is not None and before_the_pole(step, signature) else None

    def settle(self, step: Matrix | None) -> float:
        """Remember the step taken; without one it is the move itself, and the past is forgotten.

        Returns its norm.
        """
        assert self.move is not None
        if step is None:
            self.used = self.turn = 0
        self.step = self.move if step is None else step
        return float(np.linalg.norm(self.step))

    def clear(self) -> None:
        """Forget everything, since the map has changed."""
        self.used = self.turn = 0
        self.move = self.step = None

    def _extrapolate(self, K: Matrix) -> Matrix | None:
        changes = self.changes[: self.used]
        gram = changes @ changes.T
        scale = np.sqrt(gram.diagonal())
        if not self.used or not scale.min() > 0:
            return None
        slopes = changes @ K.reshape(-1) / scale
        scaled = gram / scale / scale[:, None] + DAMPING * np.eye(self.used)
        gamma = np.linalg.solve(scaled, slopes) / scale
        if not math.isfinite(gamma.sum()):
            return None
        step: Matrix = K - (gamma @ self.sums[: self.used]).reshape(K.shape)
        return step
