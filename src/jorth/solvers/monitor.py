"""What is recorded of an iteration, and the two conditions that end a run without being asked: stalled, unbounded."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from jorth.arrays import frobenius
from jorth.solvers.criticality import skew_gradient

PATIENCE = 50
"""Recorded iterations without a better value or gradient norm before a run counts as stalled."""


def gradient_norm(X: Tensor, gradient: Tensor, signs: Tensor) -> float:
    """||skew(J G X^T)||_F, whatever the scale of f: no product with G overflows or underflows before the norm does."""
    size = float(gradient.abs().max())
    if not 0 < size < math.inf:
        return size
    return size * frobenius(skew_gradient(X, gradient / size, signs))


def scaled_violation(X: Tensor, signs: Tensor, gram: Tensor, norm: float) -> float:
    """Max |X^T J X - gram| / max(1, norm^2), also where the square of the norm overflows."""
    if norm > math.sqrt(torch.finfo(X.dtype).max) / 1e3:
        return scaled_violation(X / norm, signs, gram / norm / norm, 1.0)
    violation = (X.mT @ (signs[:, None] * X) - gram).abs().max().item()
    return violation / max(1.0, norm * norm)


@dataclass
class Progress:
    """The best value and gradient norm so far, and for how long there was none better."""

    best_value: float = float("inf")
    best_gradient: float = float("inf")
    idle: int = 0

    def stalled(self, value: float, gradient_norm: float, eps: float) -> bool:
        """Whether neither has improved, beyond rounding, for a while."""
        better_value = value < self.best_value - 2 * eps * abs(self.best_value)
        better_gradient = gradient_norm < 0.99 * self.best_gradient
        self.idle = 0 if better_value or better_gradient else self.idle + 1
        self.best_value = min(self.best_value, value)
        self.best_gradient = min(self.best_gradient, gradient_norm)
        return self.idle >= PATIENCE


def escaped(X: Tensor) -> bool:
    """Whether ||X||_2 is beyond u^(-1/2): feasibility has no digits left."""
    limit = (torch.finfo(X.dtype).eps / 2) ** -0.5
    return bool(X.norm() > limit) and bool(torch.linalg.matrix_norm(X, ord=2) > limit)
