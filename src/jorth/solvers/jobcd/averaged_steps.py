"""Averaged slopes: steps for a rough f, whose curvature along a step is of no use.

A structural probe with q > 1 has a narrow peak for every pair of rows that passes |g| = 1. Its
gradient at a point is that of the nearest peaks, a curvature measured there only allows steps as
short as their width, and a rule that f must fall at each step stops at the first of them. Progress
lies in the part of the slopes that many points share. The slopes S = skew(J G X^T) belong to the
same planes wherever X is, so they are averaged and divided by the root of their mean square, and
each plane turns by about the same angle. f may rise for a while: the best point is remembered, and
after some points without a better one the run goes back to it and halves the angle.

Around a start f is flat except for its peaks, and often a little higher further out before it
falls. Steps that are soon undone and shortened never get there. Therefore, while f is within a
quarter of its size of what it was at the start, the patience is several times longer, and when it
runs out the angle is doubled instead, at most twice.

Angles are proportional to 1 / sqrt(n), since a step that turns every plane by +a or -a has a norm
of about 2 a sqrt(n).
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from jorth.plane.averages import SlopeAverages
from jorth.solvers.problem import State

FLAT_SHARE = 0.25
"""f counts as flat while it is within this share of |f| at the start."""
FLAT_PATIENCE = 4
"""The factor on the patience while f is flat."""
MOST_DOUBLINGS = 2
"""How often the angle may be doubled while f is flat."""


@dataclass(frozen=True)
class AveragingRule:
    """How averaged steps are taken.

    Attributes:
        angle: The first angle (or rapidity) by which a plane turns if its slope stays the same.
        momentum: The decay of the mean slopes.
        decay: The decay of the mean squares.
        patience: Scored points without a better one before the run goes back; see above.
    """

    angle: float
    momentum: float
    decay: float
    patience: int


@dataclass
class AveragedSteps:
    """What averaged steps remember."""

    angle: float
    value_at_start: float
    best: float
    best_point: Tensor
    best_gradient: Tensor
    worse: int = 0
    """Scored points since the best one."""
    returns: int = 0
    """How often the run has gone back."""
    left: SlopeAverages | None = None
    right: SlopeAverages | None = None

    @classmethod
    def begin(cls, state: State, angle: float) -> AveragedSteps:
        """The memory at the start, which is the best point so far."""
        return cls(angle, state.value, state.value, state.X.clone(), state.gradient.clone())

    def direction(self, S: Tensor, side: str, rule: AveragingRule) -> Tensor:
        """Mean slopes of a side divided by the roots of their mean squares, given new slopes S."""
        if side == "left":
            averages = self.left = self.left or SlopeAverages.zeros(S)
        else:
            averages = self.right = self.right or SlopeAverages.zeros(S)
        averages.update(S, momentum=rule.momentum, decay=rule.decay)
        return averages.direction().to(S.dtype)

    def keep_best(self, state: State, rule: AveragingRule) -> None:
        """Remember the best scored point; go back to it when the patience runs out."""
        if state.value < self.best:
            self.best = state.value
            self.best_point = state.X.clone()
            self.best_gradient = state.gradient.clone()
            self.worse = 0
            return
        self.worse += 1
        start = self.value_at_start
        flat = max(state.value, start) - self.best < FLAT_SHARE * abs(start)
        if self.worse < rule.patience * (FLAT_PATIENCE if flat else 1):
            return
        self.returns += 1
        self.angle *= 2 if flat and self.returns <= MOST_DOUBLINGS else 0.5
        self.worse = 0
        self.left = self.right = None
        state.move_to(self.best_point, self.best, self.best_gradient.clone())

    def best_of(self, last: State) -> State:
        """The best point, unless the last one is as good."""
        best = State(self.best_point, self.best, self.best_gradient)
        return best if self.best < last.value else last
