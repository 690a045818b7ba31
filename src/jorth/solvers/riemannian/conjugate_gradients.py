"""Riemannian conjugate gradients."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from jorth.solvers.loop.problem import Problem
from jorth.solvers.loop.state import State
from jorth.solvers.riemannian.base import RiemannianMethod
from jorth.solvers.riemannian.line_search import Trial, inner, search

FLATTEN = 0.3
"""The fraction to which the line search brings the slope: conjugacy needs a good minimum along the line."""


@dataclass(frozen=True, kw_only=True)
class RiemannianCG(RiemannianMethod):
    """Non-linear conjugate gradients on O(p, q), Hestenes-Stiefel with restarts.

    d = -P^-1 g + beta d', beta = max(0, <P^-1 g, y> / <d', y>), with d' the last direction and y the change of the
    gradient; the line search asks for the strong Wolfe condition.
    """

    name = "riemannian-cg"

    def direction(self, state: State, g: Tensor) -> Tensor:
        """The conjugate direction; steepest descent without a memory."""
        downhill = -self.scaled(state, g)
        if not self.remembers(state):
            return downhill
        last, change = state.tensors["direction"], state.tensors["change"]
        bend = inner(last, change)
        beta = max(0.0, -inner(downhill, change) / bend) if bend > 0 else 0.0
        return downhill + beta * last

    def search(
        self, problem: Problem, state: State, g: Tensor, direction: Tensor, slope: float
    ) -> Trial | None:
        """From the step that would repeat the last decrease."""
        decrease = state.numbers.get("decrease", 0.0)
        repeat = min(2 * decrease / -slope, 10 * state.numbers.get("step", 1.0))
        first = repeat if repeat > 0 else self.first_step(state, g)
        return search(problem, state, g, direction, slope, first=first, flatten=FLATTEN)

    def remember(
        self, state: State, g: Tensor, direction: Tensor, slope: float, trial: Trial
    ) -> None:
        """The direction, the change of the gradient along it, and the decrease."""
        state.tensors["direction"], state.tensors["change"] = direction, trial.g - g
        state.numbers["decrease"] = max(0.0, state.value - trial.value)
        state.numbers["step"] = trial.t
        state.numbers["conjugate"] = 1.0

    def remembers(self, state: State) -> bool:
        """Whether the last direction counts."""
        return bool(state.numbers.get("conjugate"))

    def forget(self, state: State) -> None:
        """Restart from steepest descent."""
        state.numbers.update(conjugate=0.0, decrease=0.0)
