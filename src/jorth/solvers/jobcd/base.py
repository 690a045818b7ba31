"""What GS-JOBCD and J-JOBCD share: their options, and which steps a problem gets."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from torch import Tensor

from jorth._inputs import check_choice, check_flag, check_theta
from jorth.plane.rounds import Majoriser
from jorth.solvers.jobcd.anderson import Acceleration, framed_step
from jorth.solvers.jobcd.sweeps import (
    Pairs,
    StepRule,
    SweepForm,
    Trace,
    compile_kernels,
    diagonalise,
    trace_to_diagonalise,
)
from jorth.solvers.problem import NOT_SAVED, AbstractSolver, Problem, State


@dataclass
class PairState(State):
    """The state of a method whose steps on a quadratic f may run in a frame, or on a trace."""

    secants: int = 0
    """How often the curvature along a step has been measured."""
    acceleration: Acceleration = field(default_factory=Acceleration)
    path: Literal["trace", "framed", "plain"] | None = field(default=None, metadata=NOT_SAVED)
    trace: Trace | None = field(default=None, metadata=NOT_SAVED)


@dataclass(frozen=True, kw_only=True)
class PairMethod(AbstractSolver):
    """A method of steps on pairs: a trace is diagonalised, a square X may be swept in a frame."""

    components: Literal["start", "all"] = "start"
    theta: float | None = None
    majoriser: Literal["rows", "scalar"] = "rows"
    accelerate: bool = False
    state_type = PairState

    def __post_init__(self) -> None:
        check_choice(self.components, "components", ("start", "all"))
        check_theta(self.theta)
        check_choice(self.majoriser, "majoriser", ("rows", "scalar"))
        check_flag(self.accelerate, "accelerate")

    def prepare_for(self, problem: Problem, X: Tensor) -> None:
        compile_kernels()

    def restart(self, state: PairState) -> None:
        state.acceleration.restart()

    def step(self, problem: Problem, state: Any) -> None:
        """Take an iteration on a trace, in a frame, or as the method has it."""
        n = problem.signature.n
        if state.path is None:
            self.choose_path(problem, state)
        if state.trace is not None:
            diagonalise(problem, state, state.trace, self.sweep_pairs(n, problem.rng))
        elif state.path == "framed":
            framed_step(problem, state, self.sweep_pairs(n, None), self.rule(problem))
        else:
            self.plain_step(problem, state)

    def choose_path(self, problem: Problem, state: Any) -> None:
        """Find out which steps the problem gets."""
        n, k = state.X.shape
        form = problem.objective.quadratic()
        right = getattr(self, "side", "left") == "right" and self.majoriser == "rows"
        if right or self.accelerate:
            state.trace = trace_to_diagonalise(problem, state.X, self.theta)
        framed = self.accelerate and n == k > 1 and form is not None
        if framed and form and not problem.stop_unbounded:  # on a concave f the run would never end
            framed = not SweepForm.of(form, "left", k).concave()
        state.path = "trace" if state.trace is not None else "framed" if framed else "plain"

    @abstractmethod
    def sweep_pairs(self, n: int, rng: np.random.Generator | None) -> Pairs:
        """Return all pairs (t, 2) of a sweep; without ``rng`` always in the same order."""

    @abstractmethod
    def plain_step(self, problem: Problem, state: Any) -> None:
        """Take an iteration in the given coordinates."""

    def rule(self, problem: Problem, *, concave: bool = False) -> StepRule:
        """Return how exact steps are taken."""
        weight, everywhere = problem.weight(self.theta), self.components == "all"
        return StepRule(weight, everywhere, problem.ends_unbounded, concave=concave)

    def majorise(self, problem: Problem) -> Majoriser:
        """Return how f is majorised where it is not quadratic."""
        weight, everywhere = problem.weight(self.theta), self.components == "all"
        return Majoriser(problem.signature, everywhere, weight, scalar=self.majoriser == "scalar")
