"""What the Riemannian methods share: the gradient in S, a direction of descent, a line search, a memory to drop."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from jorth.arrays import check_choice, frobenius
from jorth.group.slopes import skew_gradient
from jorth.solvers.loop.problem import Problem
from jorth.solvers.loop.solver import AbstractSolver
from jorth.solvers.loop.state import State
from jorth.solvers.riemannian.line_search import Trial, inner, search
from jorth.solvers.riemannian.preconditioner import precondition, renew


@dataclass(frozen=True, kw_only=True)
class RiemannianMethod(AbstractSolver):
    """Points move by X <- R(J S) X with the Cayley retraction R; they stay in the component of the start.

    The gradient in S is g = skew(J G X^T), and vectors are carried from point to point unchanged: this is the
    right-invariant metric <J S X, J T X> = <S, T>, whose translations are isometries.

    Args:
        preconditioner: "auto" uses the inverse curvature of a convex quadratic where the objective is one; "none" does
            not.
    """

    preconditioner: Literal["auto", "none"] = "auto"

    def __post_init__(self) -> None:
        check_choice(self.preconditioner, "preconditioner", ("auto", "none"))

    def step(self, problem: Problem, state: State) -> None:
        """One step along a direction of descent; without one, or without a decrease along it, the memory is dropped."""
        g = state.cache.pop("g", None)
        if g is None:
            g = skew_gradient(state.X, state.gradient, problem.signs)
        if self.preconditioner == "auto" and renew(problem, state):
            self.renewed(state)
        direction = self.direction(state, g)
        slope = inner(g, direction)
        if not slope < 0 and self.remembers(state):
            self.forget(state)
            direction = self.direction(state, g)
            slope = inner(g, direction)
        if not slope < 0:
            state.stalled = True
            return
        trial = self.search(problem, state, g, direction, slope)
        if trial is None:
            state.stalled = not self.remembers(state)
            self.forget(state)  # next time along the first metric
            return
        self.remember(state, g, direction, slope, trial)
        state.X.copy_(trial.X)
        state.value, state.gradient = trial.value, trial.gradient
        state.cache["g"] = trial.g

    def search(
        self, problem: Problem, state: State, g: Tensor, direction: Tensor, slope: float
    ) -> Trial | None:
        """A step that decreases f enough, or None."""
        return search(problem, state, g, direction, slope, first=self.first_step(state, g))

    def first_step(self, state: State, g: Tensor) -> float:
        """The first length to try: 1 where the direction is scaled, else a step of length one at most."""
        return 1.0 if state.cache.get("basis") is not None else 1 / max(1.0, frobenius(g))

    def scaled(self, state: State, r: Tensor) -> Tensor:
        """The first metric's inverse times r: the preconditioner where there is one."""
        preconditioned = precondition(state, r)
        return r.clone() if preconditioned is None else preconditioned

    def renewed(self, state: State) -> None:
        """Called when the first metric has changed: a memory of directions is of no use then."""
        self.forget(state)

    @abstractmethod
    def direction(self, state: State, g: Tensor) -> Tensor:
        """The direction S of the step, from the gradient and the memory."""

    @abstractmethod
    def remember(
        self, state: State, g: Tensor, direction: Tensor, slope: float, trial: Trial
    ) -> None:
        """Keep what the next direction needs of a step that was taken."""

    @abstractmethod
    def remembers(self, state: State) -> bool:
        """Whether there is a memory."""

    @abstractmethod
    def forget(self, state: State) -> None:
        """Drop the memory."""
