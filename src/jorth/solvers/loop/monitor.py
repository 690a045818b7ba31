"""What is recorded of an iteration, and the two conditions that end a run without being asked: stalled, unbounded."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

PATIENCE = 50
"""Recorded iterations without a better value or gradient norm before a run counts as stalled."""


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
