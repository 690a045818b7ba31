"""What the methods that leave the constraint share: they remember the best feasible point."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor

from jorth._inputs import unit_roundoff
from jorth.group.gradient import gradient_norm
from jorth.solvers.problem import ScoredPoint, State
from jorth.solvers.stopping import Improvement

LOST_PATIENCE = 15
"""X is lost after so many steps without a better value or gradient norm at the polished point."""


@dataclass
class InfeasibleState(State):
    """A state that remembers the polished point with the lowest value so far."""

    best: ScoredPoint | None = None
    improvement: Improvement = field(default_factory=Improvement)

    def is_lost(self, signs: Tensor) -> bool:
        """Whether X cannot be polished or gets no better; to be called once per step."""
        point = self.scored
        if point is None:
            return self.best is not None
        if point.value < self.improvement.best_value:
            self.best = point
        norm = gradient_norm(point.X, point.gradient, signs)
        idle = self.improvement.update(point.value, norm, 2 * unit_roundoff(point.X))
        return idle >= LOST_PATIENCE

    def go_to_best(self) -> None:
        """Go back to the best point, with new patience."""
        assert self.best is not None
        self.improvement.idle = 0
        self.move_to(self.best.X, self.best.value, self.best.gradient)
