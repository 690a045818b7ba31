"""Newton's method with L-BFGS to fall back on: what "auto" takes for functions."""

from __future__ import annotations

from dataclasses import dataclass, field

from jorth.objectives.base import NotTwiceDifferentiable
from jorth.solvers.problem import Problem
from jorth.solvers.riemannian.lbfgs import Pair, RiemannianLBFGS
from jorth.solvers.riemannian.line_search import Line, Trial
from jorth.solvers.riemannian.newton import NewtonState, RiemannianNewton

SHORT_STEPS = 20
"""Newton steps after which the number of products per step is looked at."""
LEAST_PRODUCTS = 5.0
"""Products per step below which the model is cut short all the time, as it is at kinks."""
LBFGS = RiemannianLBFGS()


@dataclass
class AdaptiveState(NewtonState):
    """The state of `Adaptive`."""

    memory: list[Pair] = field(default_factory=list)
    """That of L-BFGS."""
    steps: int = 0
    """Newton steps so far."""
    switched: str = ""
    """Why L-BFGS has taken over, if it has."""

    def forget(self) -> None:
        self.memory = []


@dataclass(frozen=True, kw_only=True)
class Adaptive(RiemannianNewton):
    """Newton's method, and L-BFGS from where Newton's method does not pay, once and for all.

    That is at the start if f has no second derivatives, where Newton's method stalls,
    and after `SHORT_STEPS` steps that took fewer than `LEAST_PRODUCTS` products each: then the
    second-order model holds along short steps only, as it does near kinks.
    """

    state_type = AdaptiveState

    def step(self, problem: Problem, state: AdaptiveState) -> None:
        if not state.switched:
            self.check_products(problem, state)
            if state.twice is False or problem.objective.hessian(state.X) is None:
                self._switch(problem, state, "f has no second derivatives")
        if state.switched:
            LBFGS.step(problem, state)
            return
        try:
            super().step(problem, state)
        except NotTwiceDifferentiable:  # here, but not where the products were checked
            self._switch(problem, state, "f has no second derivatives there")
            return
        state.steps += 1
        products = problem.objective.count.hessian
        if state.stalled:
            self._switch(problem, state, "Newton's method got no further")
        elif state.steps >= SHORT_STEPS and products < LEAST_PRODUCTS * state.steps:
            self._switch(problem, state, "second derivatives held along short steps only")

    def _switch(self, problem: Problem, state: AdaptiveState, reason: str) -> None:
        after = f"after {state.steps} iterations" if state.steps else "from the start"
        state.switched = f"{LBFGS.name} {after}, as {reason}"
        state.stalled = problem.objective.keeps_products = False
        state.forget()

    def taken(self, state: AdaptiveState) -> tuple[str, str]:
        return (LBFGS.name if state.switched else self.name), state.switched

    def remember(self, state: NewtonState, line: Line, trial: Trial) -> list[Pair]:
        return []
