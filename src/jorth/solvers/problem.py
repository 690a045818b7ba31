"""What a solver works on: the problem, the state it keeps and the step it takes.

A run computes with f divided by a power of two near the size of the problem, its unit. So f times
2^k is the same run to the last bit, f times any c is the same run up to rounding, and no square or
product inside a solver overflows. Users only see the units of f.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from jorth import _inputs
from jorth._inputs import describe, frobenius
from jorth.objectives import AbstractObjective, AutogradObjective, QuadraticForm
from jorth.objectives.base import Product
from jorth.plane.problem import RELATIVE_THETA
from jorth.signature import Signature

if TYPE_CHECKING:
    from jorth.solvers.loop import Interrupt

NOT_SAVED = {"saved": False}
"""Metadata of a field that no checkpoint holds, as it can be computed from the problem."""
LARGEST_VALUE = 500
"""|f| at the start is at most two to this power in the unit, however small the gradient is."""


class Status(Enum):
    """Why `minimize` stopped; the value of a status is its message.

    >>> f, sig = jorth.HyperbolicEigenvalue(np.eye(2), sense="max"), jorth.Signature(1, 1)
    >>> jorth.minimize(f, jorth.random_point(sig), signature=sig).status is jorth.Status.UNBOUNDED
    True
    """

    CONVERGED = "a stopping criterion was met"
    MAX_ITERATIONS = "the limit on iterations was reached"
    MAX_TIME = "the limit on time was reached"
    MAX_EVALUATIONS = "the limit on evaluations was reached"
    STALLED = "the method makes no further progress"
    NOT_ATTAINED = "the infimum is not attained: f levels off as ||X|| grows without bound"
    UNBOUNDED = "the objective is unbounded below on the feasible set"
    NON_FINITE = "the objective returned NaN or infinity; x is the last good point"
    INTERRUPTED = "interrupted; x is the last complete point"


class StopRun(Exception):
    """Raised inside a step to end the run at once; the state is valid."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.value)
        self.status = status


@dataclass
class Clock:
    """Count seconds spent solving. The clock is paused while the loop records, reports or saves."""

    now: ClassVar[Callable[[], float]] = time.perf_counter
    """The function that all clocks read; a benchmark may set it to processor time."""

    spent: float = 0.0
    since: float | None = None
    """When the clock was started; None while it is paused."""

    def start(self) -> None:
        self.since = Clock.now()

    def pause(self) -> None:
        self.spent, self.since = self.seconds, None

    @property
    def seconds(self) -> float:
        return self.spent + (0.0 if self.since is None else Clock.now() - self.since)


@dataclass(kw_only=True)
class Limits:
    """How long a run may take; None means no limit. Its clock and Ctrl-C belong to one run."""

    max_iterations: int | None = None
    max_time: float | None = None
    max_evaluations: int | None = None
    interrupt: Interrupt | None = None
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        for name in ("max_iterations", "max_evaluations"):
            if getattr(self, name) is not None:
                _inputs.whole_number(getattr(self, name), name, 0)
        if self.max_time is not None:
            _inputs.check_number(self.max_time, "max_time", 0)

    def reached(self) -> Status | None:
        """Return why no more time may be spent, or None."""
        if self.interrupt is not None and self.interrupt.signalled:
            return Status.INTERRUPTED
        late = self.max_time is not None and self.clock.seconds > self.max_time
        return Status.MAX_TIME if late else None


@dataclass
class Evaluations:
    """How often f, its gradient and gradients of samples were evaluated, and pairs updated.

    ``hessian`` counts exact products f''(X)[V]; one that is a difference of gradients counts as
    gradients. The products of compiled code with the matrices of a quadratic are not counted.
    """

    value: int = 0
    gradient: int = 0
    sample_gradient: int = 0
    pair_updates: int = 0
    hessian: int = 0


class CountedObjective:
    """An objective that counts its evaluations and ends the run when a limit is reached.

    All that a solver gets from here is f divided by the unit of the run, which the first evaluation
    fixes; a number in the units of f, such as an option, is converted by `in_unit`.

    Attributes:
        unit: A power of two, in the units of f.
        scale: The scale of the gradient in the units of f: that of the quadratic form, or else the
            largest ||G X^T||_F / max(1, ||X||_2^2) seen so far; 0 if it is not known.
    """

    def __init__(self, objective: AbstractObjective, limits: Limits | None = None) -> None:
        self.objective = objective
        self.samples = objective.samples
        self.limits = limits or Limits()
        self.clock = self.limits.clock
        self.count = Evaluations()
        self.unit, self.scale = 1.0, 0.0
        self.scale_is_known = self.evaluated = False
        self._agreed: Status | None = None
        self._form: tuple[float, QuadraticForm | None] = (0.0, None)
        """A unit, and the form divided by it."""
        self.keeps_products = False
        """Whether evaluations also keep the product f''(X)[V] of autograd, which is then free."""
        self._product_at: tuple[Tensor, Product | None] | None = None

    @cached_property
    def _known_form(self) -> QuadraticForm | None:
        return self.objective.quadratic()

    @cached_property
    def _known_curvature(self) -> float | None:
        return self.objective.curvature()

    # -- limits

    def agree(self, asked: bool) -> bool:
        """Return whether any process asks to stop; a Ctrl-C and the latest clock count for all."""
        ranks, limits = self.objective.ranks, self.limits
        assert ranks is not None
        pressed = limits.reached() is Status.INTERRUPTED
        anyone, interrupted, self.clock.spent = ranks.largest([asked, pressed, self.clock.seconds])
        late = limits.max_time is not None and self.clock.spent > limits.max_time
        self._agreed = Status.INTERRUPTED if interrupted else Status.MAX_TIME if late else None
        return bool(anyone)

    def limit_reached(self, evaluations: int = 1) -> Status | None:
        """Return why f may not be evaluated so often again, or None."""
        limits, count = self.limits, self.count
        status = limits.reached() if self.objective.ranks is None else self._agreed
        if status is not None or limits.max_evaluations is None:
            return status
        # N sample gradients make one full gradient
        spent = count.sample_gradient // self.samples if self.samples else count.gradient
        exhausted = limits.max_evaluations - spent - count.hessian < evaluations
        return Status.MAX_EVALUATIONS if exhausted else None

    def check_limits(self) -> None:
        """End the run if the time or the evaluations are used up, or Ctrl-C was pressed."""
        status = self.limit_reached()
        if status is not None:
            raise StopRun(status)

    # -- evaluations

    def value_and_gradient(self, X: Tensor, *, limited: bool = True) -> tuple[float, Tensor]:
        """Return f and its gradient at X in the unit of the run; ``limited`` runs may end here."""
        if limited:
            self.check_limits()
        self.count_gradients(1)
        if self.keeps_products:
            found, slope, exact = self.objective.second_order(X)
            self._product_at = X.clone(), exact
        else:
            found, slope = self.objective.value_and_gradient(X)
        # always the same memory layout, so that a resumed run rounds as this one does
        value, gradient = found.item(), slope.detach().contiguous()
        if not self.evaluated:
            self.evaluated = True
            self._fix_unit(X, value, gradient)
        return value / self.unit, gradient if self.unit == 1 else gradient / self.unit

    def _fix_unit(self, X: Tensor, value: float, gradient: Tensor) -> None:
        """Take the power of two just above the scale, in the range of the dtype, near |f|."""
        form = self._known_form
        if form is None:
            size = 0.0
        else:
            size = frobenius(form.A)
            if form.D is not None:
                size *= frobenius(form.D) / math.sqrt(len(form.D))
            if form.C is not None:
                size += frobenius(form.C)
        self.scale_is_known = 0 < size < math.inf
        if not self.scale_is_known:
            size = gradient_size(X, gradient, frobenius(X))  # raised at the first record
        if not 0 < size < math.inf:
            return
        self.scale = size
        exponent = math.frexp(size)[1]
        if math.isfinite(value):
            exponent = max(exponent, math.frexp(value)[1] - LARGEST_VALUE)
        most = math.frexp(torch.finfo(X.dtype).max)[1] - 8
        self.unit = math.ldexp(1.0, max(-most, min(exponent, most)))

    @property
    def gradient_scale(self) -> float:
        """Return the scale of the gradient in the unit of the run; 1 if it is unknown."""
        return self.scale / self.unit or 1.0

    def in_unit(self, number: float) -> float:
        """Return a number in the units of f in the unit of the run; positive ones stay positive."""
        return max(number / self.unit, math.ulp(0.0)) if number > 0 else number / self.unit

    def count_gradients(self, times: int) -> None:
        """Count evaluations of f and its gradient."""
        self.count.value += times
        self.count.gradient += times
        self.count.sample_gradient += times * self.samples

    def sample_gradient(self, X: Tensor, index: Tensor) -> Tensor:
        self.check_limits()
        self.count.sample_gradient += len(index)
        return self.objective.sample_gradient(X, index).detach().contiguous() / self.unit

    def sample_difference(self, X: Tensor, Y: Tensor, index: Tensor) -> Tensor:
        """Return the mean over some samples of the gradient at X minus that at Y."""
        self.check_limits()
        self.count.sample_gradient += 2 * len(index)
        return self.objective.sample_difference(X, Y, index).detach().contiguous() / self.unit

    # -- what is known of f

    def quadratic(self) -> QuadraticForm | None:
        """Return f as a quadratic form, if it is one."""
        if self._form[0] != self.unit:
            form = self._known_form
            if form is not None and (self.unit != 1 or form.D is not None):
                # D gets a size near one; both divisors are powers of two
                inner, C, D = 1.0, form.C, form.D
                if D is not None:
                    inner = math.ldexp(1.0, math.frexp(frobenius(D) / len(D) ** 0.5)[1])
                form = QuadraticForm(
                    form.A / (self.unit / inner),
                    None if C is None else C / self.unit,
                    None if D is None else D / inner,
                    form.constant / self.unit,
                )
            self._form = self.unit, form
        return self._form[1]

    def curvature(self) -> float | None:
        """Return a Lipschitz constant of the gradient, if one is known."""
        known = self._known_curvature
        return None if known is None else self.in_unit(known)

    def hessian(self, X: Tensor) -> Product | None:
        """Return V -> f''(X)[V], exact and counted, or None; see `AbstractObjective.hessian`."""
        if self._product_at is None or not torch.equal(self._product_at[0], X):
            # a resumed run only makes the product again that an evaluation has kept
            if self.objective.twice_by_autograd and not self.keeps_products:
                self.check_limits()
                self.count_gradients(1)
            self._product_at = X.clone(), self.objective.hessian(X)
        exact = self._product_at[1]

        def product(V: Tensor) -> Tensor:
            assert exact is not None
            self.check_limits()
            self.count.hessian += 1
            return exact(V).detach().contiguous() / self.unit

        return None if exact is None else product


def gradient_size(X: Tensor, gradient: Tensor, norm: float) -> float:
    """Return ||G X^T||_F / max(1, ||X||^2) without overflow, X may be far out."""
    largest = float(gradient.abs().max())
    if not 0 < largest < math.inf:
        return largest
    size = max(1.0, norm)
    return largest * frobenius((gradient / largest) @ (X / size).mT) / size


def all_finite(value: float, gradient: Tensor) -> bool:
    """Return whether neither of them holds NaN or infinity."""
    finite = math.isfinite(value + float(gradient.sum()))  # nearly always the whole answer
    return finite or (math.isfinite(value) and bool(gradient.isfinite().all()))


def as_objective(objective: Any) -> AbstractObjective:
    """Return the objective itself; a function X -> scalar tensor becomes one through autograd."""
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


def agreed_signature(signature: Signature | None, objective: AbstractObjective) -> Signature:
    """Return the signature that was given, or the objective's; if both exist they must be equal."""
    known, rows = objective.signature, objective.shape()[0]
    if signature is None:
        if known is None:
            wanted = "jorth.Signature(p, q)" + (f" with p + q = {rows}" if rows else "")
            expected = f"given, as the objective has none: signature={wanted}"
            raise ValueError(f"signature must be {expected}; got None")
        signature = known
    _inputs.check_signature(signature)
    if known not in (None, signature):
        raise ValueError(f"signature must be the objective's, {known}, got {signature}")
    if rows not in (None, signature.n):
        wanted = f"{rows} signs (p + q = {rows}) for this {type(objective).__name__}"
        raise ValueError(f"signature must have {wanted}, got {signature} (p + q = {signature.n})")
    return signature


def objective_at(
    objective: Any, X: Any, signature: Signature
) -> tuple[AbstractObjective, Signature, Tensor]:
    """Return an objective or a function as an objective, its signature and X as a tensor."""
    function = as_objective(objective)
    signature = agreed_signature(signature, function)
    return function, signature, point_of(X, "X", function, signature)


def point_of(X: Any, name: str, objective: AbstractObjective, signature: Signature) -> Tensor:
    """Return X (n, k) as a tensor that fits the objective and the signature."""
    data, columns, n = objective.data(), objective.shape()[1], signature.n
    point = (
        _inputs.to_tensor(X, name) if data is None else _inputs.tensor_after(X, name, data)
    ).detach()
    fits = point.ndim == 2 and point.shape[0] == n and 1 <= point.shape[1] <= n
    if not fits or columns not in (None, point.shape[1]):
        k = f"k) with k from 1 to {n}" if columns is None else f"{columns})"
        raise ValueError(f"{name} must have shape ({n}, {k} for {signature}, got {describe(X)}")
    if data is not None:
        _inputs.check_alike(point, name, data, "the objective's data")
    _inputs.check_finite(point, name)
    return point


@dataclass
class Problem:
    """What a solver works on."""

    objective: CountedObjective
    signature: Signature
    signs: Tensor
    """(n,) in the dtype and on the device of X."""
    seed: int | np.random.Generator
    stop_unbounded: bool = True
    """Whether the user wants a run to end where f is found to be unbounded below."""
    bounded: bool = False
    """Whether f is known to be bounded below. Then a plane without a minimiser, or growth of ||X||
    without limit, only shows that the infimum is not attained or cannot be reached."""

    @cached_property
    def rng(self) -> np.random.Generator:
        """The source of everything random."""
        return _inputs.generator(self.seed)

    @property
    def compact(self) -> bool:
        """Whether X cannot run away, because all signs are equal."""
        return self.signature.p == 0 or self.signature.q == 0

    @property
    def ends_unbounded(self) -> bool:
        """Whether a plane without a minimiser ends the run."""
        return self.stop_unbounded and not self.bounded

    def weight(self, theta: float | None) -> float:
        """Return the proximal weight of pair steps: negative is relative to their curvature."""
        return -RELATIVE_THETA if theta is None else self.objective.in_unit(float(theta))


@dataclass
class ScoredPoint:
    """A feasible point with f and its gradient there, and its violation before polishing."""

    X: Tensor
    value: float
    gradient: Tensor
    violation: float


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
    scored: ScoredPoint | None = field(default=None, metadata=NOT_SAVED)
    """The polished X and f there, for a method that leaves the constraint; else None."""
    complete: bool = field(default=True, metadata=NOT_SAVED)
    """False during an iteration; such a state is not saved."""

    def move_to(self, X: Tensor, value: float, gradient: Tensor) -> None:
        self.X.copy_(X)
        self.value, self.gradient = value, gradient


class AbstractSolver(ABC):
    """A method. Its options are its fields, and everything it remembers is in the state."""

    name: str
    state_type: ClassVar[type[Any]] = State
    feasible: bool = True
    """False for a method that leaves the constraint; the loop polishes its points to score them."""
    thin: bool = True
    """Whether x0 may have fewer columns than rows."""

    def prepare_for(self, problem: Problem, X: Tensor) -> None:  # noqa: B027
        """Load and compile what the steps from points like X need, before the clock starts."""

    def check_start(self, samples: int, X: Tensor) -> None:
        """Raise a ValueError if the method cannot start at X, or on a sum of ``samples`` terms."""
        square = X.shape[0] == X.shape[1]
        side = getattr(self, "side", "left")
        if side == "right" and not square:
            raise ValueError(f'side must be "left" for a thin x0 {tuple(X.shape)}, got "{side}"')
        if not self.thin and not square:
            raise ValueError(f"x0 must be square for {self.name}, got {tuple(X.shape)}")

    def init(self, problem: Problem, X: Tensor) -> Any:
        """Return the state at the start; value and gradient there must be finite."""
        value, gradient = problem.objective.value_and_gradient(X)
        if not all_finite(value, gradient):
            raise StopRun(Status.NON_FINITE)
        state: Any = self.state_type(X, value, gradient)
        return state

    @abstractmethod
    def step(self, problem: Problem, state: Any) -> None:
        """Take one iteration, in place."""

    def restart(self, state: Any) -> None:  # noqa: B027
        """Forget what belongs to the path to X, which has been moved by a step in a plane."""

    def taken(self, state: Any) -> tuple[str, str]:
        """Return the name of the method that takes the steps now, and why if it took over."""
        return self.name, ""

    def choose_result(self, state: Any, last: State) -> State:
        """Return the point of the result: the last one, unless the solver has a better one."""
        return last
