"""Riemannian steepest descent with Barzilai-Borwein steps."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from jorth.solvers.loop.problem import Problem
from jorth.solvers.loop.state import State
from jorth.solvers.riemannian.base import RiemannianMethod
from jorth.solvers.riemannian.line_search import Trial, inner, search

AVERAGING = 0.85
"""How much of the past the reference value of the non-monotone line search keeps."""


@dataclass(frozen=True, kw_only=True)
class RiemannianSD(RiemannianMethod):
    """Steepest descent on O(p, q): the step length of Barzilai and Borwein, a non-monotone line search.

    With the preconditioner P the direction is d = -P^-1 g and the step <s, P s> / <s, y> = t <-d, g> / <d, y>, y the
    change of the gradient. Values may rise for a while; the reference that they must stay below is the running mean of
    Zhang and Hager (SIAM J. Optim. 14, 2004).
    """

    name = "riemannian-sd"

    def direction(self, state: State, g: Tensor) -> Tensor:
        """Minus the gradient in the first metric."""
        return -self.scaled(state, g)

    def search(
        self, problem: Problem, state: State, g: Tensor, direction: Tensor, slope: float
    ) -> Trial | None:
        """From the Barzilai-Borwein step, below the running mean."""
        first = state.numbers.get("step") or self.first_step(state, g)
        reference = state.numbers.get("reference")
        return search(problem, state, g, direction, slope, first=first, reference=reference)

    def remember(
        self, state: State, g: Tensor, direction: Tensor, slope: float, trial: Trial
    ) -> None:
        """The next step length and the running mean."""
        numbers = state.numbers
        bend = inner(direction, trial.g) - slope
        numbers["step"] = trial.t * -slope / bend if bend > 0 else 2 * trial.t
        weight = numbers.get("weight", 1.0)
        reference = numbers.get("reference", state.value)
        numbers["weight"] = AVERAGING * weight + 1
        numbers["reference"] = (AVERAGING * weight * reference + trial.value) / numbers["weight"]

    def renewed(self, state: State) -> None:
        """Lengths and means outlive the metric."""

    def remembers(self, state: State) -> bool:
        """Whether a step length or a mean is kept."""
        return "step" in state.numbers

    def forget(self, state: State) -> None:
        """Start from a unit step and a monotone search."""
        for name in ("step", "reference", "weight"):
            state.numbers.pop(name, None)
