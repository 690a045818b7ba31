"""What the Riemannian methods share: a gradient in S, a descent direction, a line search."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from torch import Tensor

from jorth.arrays import check_choice, frobenius
from jorth.group.slopes import skew_gradient
from jorth.solvers.loop.solver import AbstractSolver, Problem, State
from jorth.solvers.riemannian.line_search import Line, Trial, search
from jorth.solvers.riemannian.preconditioner import Preconditioner
from jorth.storage.checkpoint import NOT_SAVED


@dataclass
class RiemannianState(State):
    """A subclass gives the memory a type."""

    memory: Any = None
    """What the method remembers of its last steps; None at the start and after a restart."""
    preconditioner: Preconditioner = field(default_factory=Preconditioner)
    g: Tensor | None = field(default=None, metadata=NOT_SAVED)
    """The gradient in S at X, where the last line search has found it."""


@dataclass(frozen=True, kw_only=True)
class RiemannianMethod(AbstractSolver):
    """X moves by X <- R(J S) X, R the Cayley retraction, within the component of the start.

    The gradient in S is g = skew(J G X^T), and vectors are carried from point to point unchanged:
    this is the right-invariant metric <J S X, J T X> = <S, T>, whose translations are isometries.

    Args:
        preconditioner: "auto" uses the inverse curvature of a convex quadratic where the objective
            is one; "none" does not.
    """

    preconditioner: Literal["auto", "none"] = "auto"
    flatten: ClassVar[float | None] = None
    """The fraction to which a line search must bring the slope; None asks for a decrease only."""
    metric_matters: ClassVar[bool] = True
    """Whether the memory is of no use after the first metric has changed."""

    def __post_init__(self) -> None:
        check_choice(self.preconditioner, "preconditioner", ("auto", "none"))

    def step(self, problem: Problem, state: Any) -> None:
        """One step along a descent direction.

        Where there is none, or f does not fall along it, the method tries without its memory.
        """
        g = skew_gradient(state.X, state.gradient, problem.signs) if state.g is None else state.g
        state.g = None
        renewed = self.preconditioner == "auto" and state.preconditioner.renew(problem, state.X)
        if renewed and self.metric_matters:
            state.memory = None
        line = Line(g, self.direction(state, g))
        if not line.slope < 0 and state.memory is not None:
            state.memory = None
            line = Line(g, self.direction(state, g))
        if not line.slope < 0:
            state.stalled = True
            return
        trial = self.search(problem, state, line)
        if trial is None:
            state.stalled = state.memory is None
            state.memory = None
            return
        state.memory = self.remember(state, line, trial)
        state.X.copy_(trial.X)
        state.value = trial.value
        state.gradient = trial.gradient
        state.g = trial.g

    def search(self, problem: Problem, state: Any, line: Line) -> Trial | None:
        """A step that decreases f enough, or None."""
        first = self.first_step(state, line)
        reference = self.reference(state)
        return search(problem, state, line, first=first, reference=reference, flatten=self.flatten)

    def first_step(self, state: Any, line: Line) -> float:
        """1 where the direction has a scale of its own, else a step of length one at most."""
        scaled = state.preconditioner.basis is not None
        return 1.0 if scaled else 1 / max(1.0, frobenius(line.g))

    def reference(self, state: Any) -> float | None:
        """The value that a step must come below; None is f itself."""
        return None

    def precondition(self, state: Any, r: Tensor) -> Tensor:
        """The inverse of the first metric times r."""
        return r.clone() if state.preconditioner.basis is None else state.preconditioner.apply(r)

    @abstractmethod
    def direction(self, state: Any, g: Tensor) -> Tensor:
        """The direction S of the step, from the gradient and the memory."""

    @abstractmethod
    def remember(self, state: Any, line: Line, trial: Trial) -> Any:
        """The memory after a step."""
