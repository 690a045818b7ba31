"""Riemannian conjugate gradients."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from jorth.solvers.riemannian.base import RiemannianMethod, RiemannianState
from jorth.solvers.riemannian.line_search import Line, Trial, inner


@dataclass
class ConjugateState(RiemannianState):
    """The last direction and the change of the gradient along it; None after a restart."""

    direction: Tensor | None = None
    change: Tensor | None = None
    decrease: float = 0.0
    step: float = 1.0


@dataclass(frozen=True, kw_only=True)
class RiemannianCG(RiemannianMethod):
    """Non-linear conjugate gradients on O(p, q), Hestenes-Stiefel with restarts.

    d = -P^-1 g + beta d', beta = max(0, <P^-1 g, y> / <d', y>), with d' the last direction and y
    the change of the gradient; the line search asks for the strong Wolfe condition.
    """

    name = "riemannian-cg"
    state_type = ConjugateState
    flatten = 0.3  # conjugacy needs a good minimum along the line

    def direction(self, state: ConjugateState, g: Tensor) -> Tensor:
        downhill = -self.precondition(state, g)
        if state.direction is None or state.change is None:
            return downhill
        bend = inner(state.direction, state.change)
        beta = max(0.0, -inner(downhill, state.change) / bend) if bend > 0 else 0.0
        return downhill + beta * state.direction

    def first_step(self, state: ConjugateState, line: Line) -> float:
        """The step that would repeat the last decrease."""
        repeat = min(2 * state.decrease / -line.slope, 10 * state.step)
        return repeat if repeat > 0 else super().first_step(state, line)

    def remember(self, state: ConjugateState, line: Line, trial: Trial) -> None:
        state.direction = line.direction
        state.change = trial.g - line.g
        state.decrease = max(0.0, state.value - trial.value)
        state.step = trial.t

    def remembers(self, state: ConjugateState) -> bool:
        return state.direction is not None

    def forget(self, state: ConjugateState) -> None:
        state.direction = None
        state.change = None
        state.decrease = 0.0
