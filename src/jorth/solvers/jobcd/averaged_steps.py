"""Steps for a rough f, whose curvature along a step says nothing: averaged slopes and one angle.

A structural probe with q > 1 has a narrow peak for every pair of rows that passes |g| = 1. Its
gradient at a point is that of the nearest peaks, a curvature found there only allows steps of their
width, and a rule that wants f to fall at each step stops at the first of them. What leads on is the
part of the slopes that many points share. The slopes S = skew(J G X^T) belong to the same planes
wherever X is, so they are averaged as they stand, divided by the root of their mean square, and
each plane turns by about the same angle. f may rise for a while; the best point is kept, and after
some points without a better one the run goes back there and halves the angle.

Around a start f is flat but for its peaks, and often a little higher further out, before it falls:
steps that are called back soon, and shortened, never get there. So as long as f stays within a
quarter of what it was at the start, they have several times the patience, and when that runs out
the angle is doubled instead, twice at most.

Angles go with 1 / sqrt(n): a step that turns every plane by a, this way or that, has a norm of
about 2 a sqrt(n).
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from jorth.kernels import SlopeAverages
from jorth.solvers.loop.solver import State

FLAT = 0.25
"""f is still near the start within this part of its |f|: peaks are, the first fall is not."""
LONGER = 4
"""By how much the patience is multiplied near the start."""
WIDENED = 2
"""How often the angle is doubled there."""


@dataclass(frozen=True)
class AveragingRule:
    """How averaged steps are taken.

    Attributes:
        angle: The angle (or rapidity) by which a plane turns, at first, when its slope has been the
            same for long.
        momentum: The decay of the mean slopes.
        decay: The decay of the mean squares.
        patience: Scored points without a better one before the run goes back, once f has fallen.
    """

    angle: float
    momentum: float
    decay: float
    patience: int


@dataclass
class AveragedSteps:
    """What averaged steps remember."""

    angle: float
    start: float
    """f at the start."""
    best: float
    best_point: Tensor
    best_gradient: Tensor
    worse: int = 0
    """Scored points since the best one."""
    returns: int = 0
    """How often the run went back."""
    left: SlopeAverages | None = None
    right: SlopeAverages | None = None

    @classmethod
    def begin(cls, state: State, angle: float) -> AveragedSteps:
        """At the start, which is the best point so far."""
        return cls(angle, state.value, state.value, state.X.clone(), state.gradient.clone())

    def direction(self, S: Tensor, side: str, rule: AveragingRule) -> Tensor:
        """Mean slopes of a side over the roots of their mean squares, after slopes S (1, n, n)."""
        averages = (self.left if side == "left" else self.right) or SlopeAverages.zeros(S)
        if side == "left":
            self.left = averages
        else:
            self.right = averages
        return averages.direction(S, momentum=rule.momentum, decay=rule.decay)[0]

    def keep_best(self, state: State, rule: AveragingRule) -> None:
        """Remember the best scored point so far; go back there after some that are not better."""
        if state.value < self.best:
            self.best = state.value
            self.best_point = state.X.clone()
            self.best_gradient = state.gradient.clone()
            self.worse = 0
            return
        self.worse += 1
        flat = max(state.value, self.start) - self.best < FLAT * abs(self.start)
        if self.worse < rule.patience * (LONGER if flat else 1):
            return
        self.returns += 1
        self.angle *= 2 if flat and self.returns <= WIDENED else 0.5
        self.worse = 0
        self.left = self.right = None
        state.X.copy_(self.best_point)
        state.value = self.best
        state.gradient = self.best_gradient.clone()

    def best_of(self, last: State) -> State:
        """The best point, where the last one is not."""
        if not self.best < last.value:
            return last
        return State(self.best_point, self.best, self.best_gradient)
