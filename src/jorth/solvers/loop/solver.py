"""The contract of a solver: make a state, then step. The loop does everything else."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from torch import Tensor

from jorth.solvers.loop.budget import all_finite
from jorth.solvers.loop.problem import Problem
from jorth.solvers.loop.state import State
from jorth.solvers.loop.status import Status, StopRun


class AbstractSolver(ABC):
    """A method: its options are its fields, all of its memory is in the state."""

    name: str
    state_type: ClassVar[type[Any]] = State
    """The class of its states."""
    feasible: bool = True
    """False for a method whose points leave the constraint: the loop polishes them before it scores them."""
    thin: bool = True
    """Whether x0 may have fewer columns than rows."""

    def prepare(self) -> None:  # noqa: B027 - most solvers need nothing
        """Load and compile what the steps need, before the clock starts."""

    def check_start(self, samples: int, X: Tensor) -> None:
        """A ValueError where the method cannot start at X, or not on a sum of so many terms (0: not a sum)."""
        side = getattr(self, "side", "left")
        if side in ("right", "both") and X.shape[0] != X.shape[1]:
            raise ValueError(
                f'side must be "left" for a thin x0: columns have no signs, got "{side}" and {tuple(X.shape)}'
            )
        if not self.thin and X.shape[0] != X.shape[1]:
            raise ValueError(f"x0 must be square for {self.name}, got {tuple(X.shape)}")

    def init(self, problem: Problem, X: Tensor) -> Any:
        """The state at the start: value and gradient at X, which must be finite."""
        self.check_start(problem.objective.samples, X)
        value, gradient = problem.objective.value_and_gradient(X)
        if not all_finite(value, gradient):
            raise StopRun(Status.NON_FINITE)
        state: Any = self.state_type(X, value, gradient)
        return state

    @abstractmethod
    def step(self, problem: Problem, state: Any) -> None:
        """One iteration, in place."""

    def settle(self, state: Any, last: State) -> State:
        """What a run returns: ``last``, the last point, scored; a solver may remember a better one."""
        return last
