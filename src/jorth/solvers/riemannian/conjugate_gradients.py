"""Riemannian conjugate gradients."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from jorth.solvers.riemannian.base import RiemannianMethod, RiemannianState
from jorth.solvers.riemannian.line_search import Line, Trial, inner


@dataclass
class LastStep:
    """The last direction, the change of the gradient along it, the decrease of f and the length."""

    direction: Tensor
    change: Tensor
    decrease: float
    t: float


@dataclass
class ConjugateState(RiemannianState):
    """The state of `RiemannianCG`."""

    memory: LastStep | None = None


@dataclass(frozen=True, kw_only=True)
class RiemannianCG(RiemannianMethod):
    """Nonlinear conjugate gradients on O(p, q) by Hestenes and Stiefel, with restarts.

    d = -P^-1 g + beta d', beta = max(0, <P^-1 g, y> / <d', y>), with d' the last direction and y
    the change of the gradient. The line search asks for the strong Wolfe condition.

    >>> sig = jorth.Signature(2, 1)
    >>> f, x0 = jorth.Quadratic(np.diag([1.0, 2.0, 3.0])), jorth.random_point(sig)
    >>> jorth.minimize(f, x0, signature=sig, method=jorth.RiemannianCG()).success
    True
    """

    name = "riemannian-cg"
    state_type = ConjugateState
    flatten = 0.3  # conjugacy needs a nearly exact line search

    def direction(self, state: ConjugateState, g: Tensor) -> Tensor:
        downhill = -self.precondition(state, g)
        last = state.memory
        if last is None:
            return downhill
        bend = inner(last.direction, last.change)
        beta = max(0.0, -inner(downhill, last.change) / bend) if bend > 0 else 0.0
        return downhill + beta * last.direction

    def first_step(self, state: ConjugateState, line: Line) -> float:
        """The step that would repeat the last decrease."""
        last = state.memory
        repeat = 0.0 if last is None else min(2 * last.decrease / -line.slope, 10 * last.t)
        return repeat if repeat > 0 else super().first_step(state, line)

    def remember(self, state: ConjugateState, line: Line, trial: Trial) -> LastStep:
        decrease = max(0.0, state.value - trial.value)
        return LastStep(line.direction, trial.g - line.g, decrease, trial.t)
