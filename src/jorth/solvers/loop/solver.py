"""The contract of a solver: the problem it gets, the state it keeps and the step it takes."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from jorth._checkpoint import NOT_SAVED
from jorth._inputs import describe
from jorth.objectives import AbstractObjective, AutogradObjective
from jorth.plane.problem import RELATIVE_THETA
from jorth.signature import Signature
from jorth.solvers.loop.budget import CountedObjective, all_finite
from jorth.solvers.loop.status import Status, StopRun


@dataclass
class Problem:
    """What a solver works on."""

    objective: CountedObjective
    signature: Signature
    signs: Tensor
    """(n,) in the dtype and on the device of X."""
    rng: np.random.Generator
    stop_unbounded: bool = True
    """Whether the user wants a run to end where f is found to be unbounded below."""
    bounded: bool = False
    """Whether f is known to be bounded below. Then a plane without a minimiser, or growth of ||X||
    without limit, only shows that the infimum is not attained or cannot be reached."""

    @property
    def compact(self) -> bool:
        """Whether X cannot run away, because all signs are equal."""
        return self.signature.p == 0 or self.signature.q == 0

    @property
    def ends_unbounded(self) -> bool:
        """Whether a plane without a minimiser ends the run."""
        return self.stop_unbounded and not self.bounded

    def weight(self, theta: float | None) -> float:
        """The proximal weight for the kernels: negative is relative to the curvature of a pair."""
        return -RELATIVE_THETA if theta is None else self.objective.in_unit(float(theta))


def as_objective(objective: Any) -> AbstractObjective:
    """The objective itself; a function X -> scalar tensor becomes one through autograd."""
    if isinstance(objective, AbstractObjective):
        if objective.batch:
            raise ValueError(f"objective must be one problem, got {objective.batch} of them")
        return objective
    if isinstance(objective, type) and issubclass(objective, AbstractObjective):
        name = objective.__name__
        raise TypeError(f"objective must be a {name}(...) with its data, got the class {name}")
    if callable(objective):
        return AutogradObjective(objective)
    raise TypeError(f"objective must be a jorth objective or a function, got {describe(objective)}")


@dataclass
class Scored:
    """A feasible point with f and its gradient there, and its violation before polishing."""

    X: Tensor
    value: float
    gradient: Tensor
    violation: float


@dataclass
class Burst:
    """Several iterations in one step, which a compiled solver may take if nobody looks at each.

    Attributes:
        most: The most iterations that the next step may take.
        target: The gradient norm, in the unit of the run, that need not be undercut.
        fall: The decrease of f, in the unit of the run, that is enough.
        rows: What the record needs of the iterations of the last step, (t, 4): the decrease of f,
            in the unit of the run, and then the gradient norm, the violation and ||X||_2.
    """

    most: int = 1
    target: float = 0.0
    fall: float = math.inf
    rows: NDArray[np.float64] | None = None


@dataclass
class State:
    """Where a run stands. A solver that remembers more adds typed fields in a subclass.

    X changes in place and is always feasible, unless the solver is not ``feasible``. ``value`` and
    ``gradient`` are those of f at X if ``exact``; otherwise they are estimates. A checkpoint holds
    all fields except those marked `NOT_SAVED`.
    """

    X: Tensor
    value: float
    gradient: Tensor
    exact: bool = True
    unbounded: bool = False
    stalled: bool = False
    reason: str = "no step lowers f in this precision"
    """Why the run stalled, if it did."""
    curvature: float | None = None
    """An estimate of the Lipschitz constant of the gradient, if the solver has one."""
    scored: Scored | None = field(default=None, metadata=NOT_SAVED)
    """The polished X and f there, for a method that leaves the constraint; else None."""
    burst: Burst = field(default_factory=Burst, metadata=NOT_SAVED)
    """How many iterations a step may take; most solvers take one."""
    complete: bool = field(default=True, metadata=NOT_SAVED)
    """False during an iteration; such a state is not saved."""

    def move_to(self, X: Tensor, value: float, gradient: Tensor) -> None:
        self.X.copy_(X)
        self.value = value
        self.gradient = gradient


class AbstractSolver(ABC):
    """A method. Its options are its fields, and everything it remembers is in the state."""

    name: str
    state_type: ClassVar[type[Any]] = State
    feasible: bool = True
    """False for a method that leaves the constraint; the loop polishes its points to score them."""
    thin: bool = True
    """Whether x0 may have fewer columns than rows."""

    def prepare(self) -> None:  # noqa: B027
        """Load and compile what the steps need, before the clock starts."""

    def prepare_for(self, problem: Problem, X: Tensor) -> None:
        """`prepare` for this problem and points like X: what other problems need can wait."""
        self.prepare()

    def check_start(self, samples: int, X: Tensor) -> None:
        """Raise a ValueError if the method cannot start at X, or on a sum of that many terms.

        ``samples`` is 0 for a function that is not a sum.
        """
        square = X.shape[0] == X.shape[1]
        side = getattr(self, "side", "left")
        if side in ("right", "both") and not square:
            raise ValueError(f'side must be "left" for a thin x0 {tuple(X.shape)}, got "{side}"')
        if not self.thin and not square:
            raise ValueError(f"x0 must be square for {self.name}, got {tuple(X.shape)}")

    def init(self, problem: Problem, X: Tensor) -> Any:
        """The state at the start; value and gradient there must be finite."""
        self.check_start(problem.objective.samples, X)
        value, gradient = problem.objective.value_and_gradient(X)
        if not all_finite(value, gradient):
            raise StopRun(Status.NON_FINITE)
        state: Any = self.state_type(X, value, gradient)
        return state

    @abstractmethod
    def step(self, problem: Problem, state: Any) -> None:
        """One iteration, in place."""

    def restart(self, state: Any) -> None:  # noqa: B027
        """Forget what belongs to the path to X, which has been moved by a step in a plane."""

    def choose_result(self, state: Any, last: State) -> State:
        """The point that a run returns: the last one, unless the solver remembers a better one."""
        return last
