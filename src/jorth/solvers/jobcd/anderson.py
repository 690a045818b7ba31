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

from dataclasses import dataclass, field

import torch
from torch import Tensor

from jorth.group.norms import spectral_norm
from jorth.signature import Signature

DAMPING = 1e-12
"""The weight of ||gamma||^2, where all differences have norm 1: the Gram matrix may be singular."""
LONGEST = 1.4
"""The bound on the norm of the boost part of a step; the Cayley transform has its pole at 2."""


def relative_move(Y: Tensor, X: Tensor, signs: Tensor) -> Tensor:
    """K = (T - J T^T J) / 2 for T = Y X^-1 = Y J X^T J, for J-orthogonal X and Y."""
    T = (Y * signs) @ X.mT * signs
    return (T - signs[:, None] * T.mT * signs) / 2


def before_the_pole(K: Tensor, signature: Signature) -> bool:
    """Whether the Cayley transform of K stays in the component of the identity, with a margin."""
    plus, minus = signature.positions(K.device)
    if not len(plus) or not len(minus):
        return True
    if float(K.norm()) <= LONGEST:
        return True
    return spectral_norm(K[plus[:, None], minus]) <= LONGEST


@dataclass
class Anderson:
    """What is remembered of the last sweeps; matrices are rows of (memory, n^2) tensors."""

    changes: Tensor | None = None
    """The differences k_{i+1} - k_i."""
    sums: Tensor | None = None
    """s_i + k_{i+1} - k_i."""
    gram: Tensor = field(default_factory=lambda: torch.zeros((0, 0), dtype=torch.float64))
    """The inner products of the differences."""
    used: int = 0
    """The number of differences known."""
    turn: int = 0
    """The number of differences ever added; the oldest one is replaced."""
    move: Tensor | None = None
    """The move of the last sweep."""
    step: Tensor | None = None
    """The step taken after it."""

    def propose(self, K: Tensor, memory: int, signature: Signature) -> Tensor | None:
        """The accelerated step after a sweep that moved by K; None if there is none.

        It is J-skew like K, and before the pole of the Cayley transform.
        """
        if self.move is not None and self.step is not None and memory:
            self._add(K, memory)
        self.move = K
        step = self._extrapolate(K)
        return step if step is not None and before_the_pole(step, signature) else None

    def settle(self, step: Tensor | None) -> Tensor:
        """The step taken after the last move; without one, the move itself, and a new memory."""
        assert self.move is not None
        if step is None:
            self.used = self.turn = 0
        self.step = self.move if step is None else step
        return self.step

    def clear(self) -> None:
        """Forget everything, since the map has changed."""
        self.used = self.turn = 0
        self.move = self.step = None

    def _extrapolate(self, K: Tensor) -> Tensor | None:
        if not self.used:
            return None
        assert self.changes is not None
        assert self.sums is not None
        gram = self.gram[: self.used, : self.used]
        scale = gram.diagonal().sqrt()
        if not bool((scale > 0).all()):
            return None
        slopes = (self.changes[: self.used] @ K.flatten()).double().cpu() / scale
        scaled = gram / scale / scale[:, None]
        scaled.diagonal().add_(DAMPING)
        gamma, info = torch.linalg.solve_ex(scaled, slopes)
        if int(info) or not bool(torch.isfinite(gamma).all()):
            return None
        correction: Tensor = (gamma / scale).to(K) @ self.sums[: self.used]
        return K - correction.reshape(K.shape)

    def _add(self, K: Tensor, memory: int) -> None:
        assert self.move is not None
        assert self.step is not None
        if self.changes is None or self.sums is None:
            self.changes = K.new_zeros((memory, K.numel()))
            self.sums = torch.zeros_like(self.changes)
            self.gram = torch.zeros((memory, memory), dtype=torch.float64)
        slot = self.turn % memory
        self.turn += 1
        self.used = min(self.used + 1, memory)
        change = (K - self.move).flatten()
        self.changes[slot] = change
        self.sums[slot] = self.step.flatten() + change
        products = (self.changes[: self.used] @ change).double().cpu()
        self.gram[slot, : self.used] = products
        self.gram[: self.used, slot] = products
