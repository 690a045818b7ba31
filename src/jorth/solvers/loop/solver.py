"""The contract of a solver: make a state, then step. The loop does everything else."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from torch import Tensor

from jorth.solvers.loop.budget import all_finite
from jorth.solvers.loop.problem import Problem
from jorth.solvers.loop.status import Status, StopRun


class Scored(NamedTuple):
    """A feasible point with its value and gradient, and the violation that it had before polishing."""

    X: Tensor
    value: float
    gradient: Tensor
    violation: float


@dataclass
class State:
    """Where a run stands. A checkpoint holds all of it but the cache.

    X changes in place; it is feasible at any moment unless the solver says that it is not. ``value`` and ``gradient``
    are those of f at X when ``exact``; a stochastic solver has estimates in between.
    """

    X: Tensor
    value: float
    gradient: Tensor
    exact: bool = True
    unbounded: bool = False
    stalled: bool = False
    reason: str = "no step lowers f in this precision"
    """Why, where ``stalled``."""
    scored: Scored | None = None
    """The polished X, by the objective's word, where the method leaves the constraint; None where there is none."""
    whole: bool = True
    """False inside an iteration: such a state is not saved."""
    numbers: dict[str, float] = field(default_factory=dict)
    tensors: dict[str, Tensor] = field(default_factory=dict)
    cache: dict[str, Any] = field(default_factory=dict)
    """What can be made again from the problem: not part of a checkpoint."""


class AbstractSolver(ABC):
    """A method: its options are its fields, all of its memory is in the state."""

    name: str
    feasible: bool = True
    """False for a method whose points leave the constraint: the loop polishes them before it scores them."""
    thin: bool = True
    """Whether x0 may have fewer columns than rows."""

    def prepare(self) -> None:  # noqa: B027 - most solvers need nothing
        """Load and compile what the steps need, before the clock starts."""

    def pack(self, state: State) -> None:  # noqa: B027 - most solvers keep all they need in the state
        """Put what is in the cache, and cannot be made again from the problem, into the state: it is to be saved."""

    def check_start(self, samples: int, X: Tensor) -> None:
        """A ValueError where the method cannot start at X, or not on a sum of so many terms (0: not a sum)."""
        side = getattr(self, "side", "left")
        if side in ("right", "both") and X.shape[0] != X.shape[1]:
            raise ValueError(
                f'side must be "left" for a thin x0: columns have no signs, got "{side}" and {tuple(X.shape)}'
            )
        if not self.thin and X.shape[0] != X.shape[1]:
            raise ValueError(f"x0 must be square for {self.name}, got {tuple(X.shape)}")

    def init(self, problem: Problem, X: Tensor) -> State:
        """The state at the start: value and gradient at X, which must be finite."""
        self.check_start(problem.objective.samples, X)
        value, gradient = problem.objective.value_and_gradient(X)
        if not all_finite(value, gradient):
            raise StopRun(Status.NON_FINITE)
        return State(X, value, gradient)

    @abstractmethod
    def step(self, problem: Problem, state: State) -> None:
        """One iteration, in place."""

    def settle(self, state: State, last: State) -> State:
        """What a run returns: ``last``, the last point, scored; a solver may remember a better one."""
        return last
