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
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg.lapack import dgesv
from torch import Tensor

from jorth.group.norms import spectral_norm
from jorth.signature import Signature

Matrix: TypeAlias = Any
"""A NumPy array, whose operations have the least overhead, or a tensor; both have the operators
that are used here."""
DAMPING = 1e-12
"""The weight of ||gamma||^2, where all differences have norm 1: the Gram matrix may be singular."""
SMALL = 64
"""The most rows for which compiled loops are faster than NumPy."""
LONGEST = 1.4
"""The bound on the norm of the boost part of a step; the Cayley transform has its pole at 2."""


def is_small(K: Matrix) -> bool:
    """Whether K is an array for compiled loops."""
    return len(K) <= SMALL and not isinstance(K, Tensor)


def relative_move(Y: Matrix, X: Matrix, signs: Matrix) -> Matrix:
    """K = (T - J T^T J) / 2 for T = Y X^-1 = Y J X^T J, for J-orthogonal X and Y."""
    if is_small(Y):
        from jorth.solvers.jobcd import compiled_anderson

        return compiled_anderson.relative_move(Y, X, signs)
    T = (Y * signs) @ X.T * signs
    return (T - signs[:, None] * T.T * signs) / 2


def moved_by(K: Matrix, X: Matrix) -> Matrix:
    """cay(K) X = (I - K/2)^-1 (I + K/2) X = 2 (I - K/2)^-1 X - X."""
    if is_small(K):
        from jorth.solvers.jobcd import compiled_anderson

        return compiled_anderson.moved_by(K, X)
    if isinstance(K, Tensor):
        return 2 * torch.linalg.solve(identity_like(K) - K / 2, X) - X
    matrix = np.asfortranarray(identity_like(K) - K / 2)
    # in this layout LAPACK takes them as they are, which makes it twice as fast as np.linalg.solve
    Y = dgesv(matrix, np.array(X, order="F"), overwrite_a=True, overwrite_b=True)[2]
    return np.ascontiguousarray(2 * Y - X)


def identity_like(K: Matrix) -> Matrix:
    """I with the size and the kind of K."""
    return torch.eye(len(K)).to(K) if isinstance(K, Tensor) else np.eye(len(K))


def length(K: Matrix) -> float:
    """||K||_F."""
    flat = K.reshape(-1)
    return math.sqrt(float(flat @ flat))


def before_the_pole(K: Matrix, signature: Signature) -> bool:
    """Whether the Cayley transform of K stays in the component of the identity, with a margin."""
    if length(K) <= LONGEST:
        return True
    if not signature.p or not signature.q:
        return True
    tensor = torch.as_tensor(K)
    plus, minus = signature.positions(tensor.device)
    return spectral_norm(tensor[plus[:, None], minus]) <= LONGEST


@dataclass
class Anderson:
    """What is remembered of the last sweeps; matrices are rows of (memory, n^2) arrays."""

    changes: Matrix | None = None
    """The differences k_{i+1} - k_i."""
    sums: Matrix | None = None
    """s_i + k_{i+1} - k_i."""
    gram: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0)))
    """The inner products of the differences."""
    used: int = 0
    """The number of differences known."""
    turn: int = 0
    """The number of differences added; the oldest one is replaced."""
    move: Matrix | None = None
    """The move of the last sweep."""
    step: Matrix | None = None
    """The step taken after it."""

    def propose(self, K: Matrix, memory: int, signature: Signature) -> Matrix | None:
        """The accelerated step after a sweep that moved by K; None if there is none.

        It is J-skew like K, and before the pole of the Cayley transform.
        """
        if self.move is not None and self.step is not None and memory:
            self._add(K, memory)
        self.move = K
        step = self._extrapolate(K)
        return step if step is not None and before_the_pole(step, signature) else None

    def settle(self, step: Matrix | None) -> float:
        """Remember the step taken; without one it is the move itself, and the past is forgotten.

        Returns its norm.
        """
        if step is None:
            self.used = self.turn = 0
        self.step = self.move if step is None else step
        return length(self.step)

    def clear(self) -> None:
        """Forget everything, since the map has changed."""
        self.used = self.turn = 0
        self.move = self.step = None

    def _extrapolate(self, K: Matrix) -> Matrix | None:
        if not self.used:
            return None
        assert self.changes is not None
        assert self.sums is not None
        if is_small(K):
            from jorth.solvers.jobcd.compiled_anderson import extrapolate

            rows = (self.changes, self.sums, self.gram)
            found, solved = extrapolate(rows, self.used, K, DAMPING)
            return found if solved else None
        gram = self.gram[: self.used, : self.used]
        scale = np.sqrt(gram.diagonal())
        if not scale.min() > 0:
            return None
        slopes = _numbers(self.changes[: self.used] @ K.reshape(-1)) / scale
        scaled = gram / scale / scale[:, None]
        scaled.flat[:: self.used + 1] += DAMPING
        gamma = np.linalg.solve(scaled, slopes) / scale
        if not math.isfinite(gamma.sum()):
            return None
        weights = torch.from_numpy(gamma).to(K) if isinstance(K, Tensor) else gamma
        return K - (weights @ self.sums[: self.used]).reshape(K.shape)

    def _add(self, K: Matrix, memory: int) -> None:
        assert self.step is not None
        assert self.move is not None
        if self.changes is None or self.sums is None:
            shape = (memory, len(K) ** 2)
            empty = K.new_zeros if isinstance(K, Tensor) else np.zeros
            self.changes, self.sums = empty(shape), empty(shape)
            self.gram = np.zeros((memory, memory))
        slot = self.turn % memory
        self.turn += 1
        self.used = min(self.used + 1, memory)
        if is_small(K):
            from jorth.solvers.jobcd.compiled_anderson import remember

            rows = (self.changes, self.sums, self.gram)
            remember(rows, slot, self.used, K, self.move, self.step)
            return
        change = (K - self.move).reshape(-1)
        self.changes[slot] = change
        self.sums[slot] = self.step.reshape(-1) + change
        products = _numbers(self.changes[: self.used] @ change)
        self.gram[slot, : self.used] = products
        self.gram[: self.used, slot] = products


def _numbers(values: Matrix) -> NDArray[np.float64]:
    """A short vector as a NumPy array."""
    found: NDArray[np.float64] = (
        values.double().cpu().numpy() if isinstance(values, Tensor) else values
    )
    return found
