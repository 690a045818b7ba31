"""What the Riemannian methods share: the gradient in S, a descent direction and a line search."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

from torch import Tensor

from jorth._inputs import frobenius
from jorth.group.gradient import skew_gradient
from jorth.solvers.problem import NOT_SAVED, AbstractSolver, Problem, State
from jorth.solvers.riemannian.line_search import Line, Trial, search
from jorth.solvers.riemannian.preconditioner import Preconditioner


@dataclass
class RiemannianState(State):
    """The state of a Riemannian method; a subclass gives the memory a type."""

    memory: Any = None
    """What the method remembers of its last steps; empty or None at first and after a restart."""
    size: float = 0.0
    """The scale of the gradient in the unit of the run, which stands for an unknown curvature."""
    preconditioner: Preconditioner = field(default_factory=Preconditioner)
    g: Tensor | None = field(default=None, metadata=NOT_SAVED)
    """The gradient in S at X, if the last line search has computed it."""

    def forget(self) -> None:
        self.memory = None


@dataclass(frozen=True, kw_only=True)
class RiemannianMethod(AbstractSolver):
    """Steps X <- R(J S) X with the Cayley retraction R, within the component of the start.

    The gradient in S is g = skew(J G X^T), and vectors S are the same at every point: this is the
    right-invariant metric <J S X, J T X> = <S, T>, whose translations are isometries. On a convex
    quadratic the inverse curvature is the preconditioner.
    """

    flatten: ClassVar[float | None] = None
    """The fraction to which a line search must reduce the slope; None only asks for a decrease."""
    metric_matters: ClassVar[bool] = True
    """Whether the memory is useless after the preconditioner has changed."""

    def step(self, problem: Problem, state: Any) -> None:
        """Take one step along a descent direction, without the memory if there is none with it."""
        g = skew_gradient(state.X, state.gradient, problem.signs) if state.g is None else state.g
        state.g = None
        state.size = state.size or problem.objective.gradient_scale
        form = problem.objective.quadratic()
        renewed = form is not None and state.preconditioner.renew(form, problem.signs, state.X)
        if renewed and self.metric_matters:
            state.forget()
        line = Line(g, self.direction(state, g))
        if not line.slope < 0 and state.memory:
            state.forget()
            line = Line(g, self.direction(state, g))
        if not line.slope < 0:
            state.stalled = True
            return
        trial = self.search(problem, state, line)
        if trial is None:
            state.stalled = not state.memory
            state.forget()
            return
        state.memory = self.remember(state, line, trial)
        state.move_to(trial.X, trial.value, trial.gradient)
        state.g = trial.g

    def search(self, problem: Problem, state: Any, line: Line) -> Trial | None:
        first = self.first_step(state, line)
        reference = self.reference(state)
        return search(problem, state, line, first=first, reference=reference, flatten=self.flatten)

    def first_step(self, state: Any, line: Line) -> float:
        """1 if the preconditioner gives the direction its scale, else a step of norm at most 1."""
        scaled = state.preconditioner.basis is not None
        return 1.0 if scaled else 1 / max(state.size, frobenius(line.g))

    def reference(self, state: Any) -> float | None:
        """The value that a step must reach; None stands for f at X."""
        return None

    def precondition(self, state: Any, r: Tensor) -> Tensor:
        """The preconditioner times r."""
        return r.clone() if state.preconditioner.basis is None else state.preconditioner.apply(r)

    @abstractmethod
    def direction(self, state: Any, g: Tensor) -> Tensor:
        """The direction S of the step, from the gradient and the memory."""

    @abstractmethod
    def remember(self, state: Any, line: Line, trial: Trial) -> Any:
        """The memory after the step to the trial."""
