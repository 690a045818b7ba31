"""What a run may spend: counts of evaluations, and limits that also apply inside a step.

Ctrl-C is such a limit: the run ends at its next evaluation and returns what it has. A second Ctrl-C
breaks the step off at once. While the result is put together and saved, Ctrl-C is ignored for
`INTERRUPT_PATIENCE` seconds; after that, one more gives up.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, astuple, dataclass
from functools import cache
from types import FrameType
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from jorth._inputs import check_number, small_as_numpy, whole_number
from jorth.objectives import AbstractObjective, QuadraticForm
from jorth.objectives.base import Product
from jorth.solvers.loop.scale import Scale
from jorth.solvers.loop.status import Status, StopRun

INTERRUPT_PATIENCE = 5.0
"""Seconds after an ignored Ctrl-C from which the next one is obeyed."""


class Clock:
    """Count seconds spent solving. The clock is paused while the loop records, reports or saves."""

    now: ClassVar[Callable[[], float]] = time.perf_counter
    """The function that all clocks read; a benchmark may set it to processor time."""

    def __init__(self, spent: float = 0.0) -> None:
        self._spent = spent
        self._since: float | None = None

    def start(self) -> None:
        self._since = Clock.now()

    def pause(self) -> None:
        self._spent = self.seconds
        self._since = None

    @property
    def seconds(self) -> float:
        running = 0.0 if self._since is None else Clock.now() - self._since
        return self._spent + running


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How long a run or a stage of a chain may take; None means no limit."""

    max_iterations: int | None = None
    max_time: float | None = None
    max_evaluations: int | None = None

    def __post_init__(self) -> None:
        if self.max_iterations is not None:
            whole_number(self.max_iterations, "max_iterations", 0)
        if self.max_evaluations is not None:
            whole_number(self.max_evaluations, "max_evaluations", 0)
        if self.max_time is not None:
            check_number(self.max_time, "max_time", 0)


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

    def __add__(self, other: Evaluations) -> Evaluations:
        counts = zip(astuple(self), astuple(other), strict=True)
        return Evaluations(*(ours + theirs for ours, theirs in counts))

    def as_dict(self) -> dict[str, int]:
        return asdict(self)

    def columns(self) -> dict[str, float]:
        """The counts under the names that they have in a history."""
        return {
            "value_evaluations": float(self.value),
            "gradient_evaluations": float(self.gradient),
            "sample_gradient_evaluations": float(self.sample_gradient),
            "pair_updates": float(self.pair_updates),
            "hessian_evaluations": float(self.hessian),
        }

    def full_gradients(self, samples: int) -> int:
        """The count that `max_evaluations` limits: gradients and products f''(X)[V].

        N sample gradients make one full gradient.
        """
        gradients = self.sample_gradient // samples if samples else self.gradient
        return gradients + self.hessian


class CountedObjective:
    """An objective that counts its evaluations and ends the run when a limit is reached.

    A full gradient of a finite sum of N terms also counts as N sample gradients. All that a solver
    gets from here is f divided by the unit of the run, which the first evaluation fixes; a number
    in the units of f, such as an option of a solver, is converted by `in_unit`.
    """

    def __init__(
        self,
        objective: AbstractObjective,
        limits: Limits | None = None,
        interrupted: Callable[[], bool] = lambda: False,
    ) -> None:
        self.objective = objective
        self.samples = objective.samples
        self.count = Evaluations()
        self.clock = Clock()
        self._limits = limits or Limits()
        self._interrupted = interrupted
        self.scale: Scale | None = None
        """The size of the problem, once f has been evaluated at the start."""
        self._form: Callable[[], QuadraticForm | None] = cache(objective.quadratic)
        self._form_in_unit = cache(self._divided_form)
        self._curvature: Callable[[], float | None] = cache(objective.curvature)
        self._agreed: tuple[bool, bool] | None = None if objective.ranks is None else (False, False)
        """Whether Ctrl-C was pressed, and whether the time is up, for all processes alike."""

    def agree(self, asked: bool) -> bool:
        """Whether any process asks to stop.

        Each process has its own clock and its own Ctrl-C. Here all clocks are set to the latest,
        and a Ctrl-C in one process counts for all, so that all of them end in the same place.
        """
        if self.objective.ranks is None:
            return asked
        own = [asked, self._interrupted(), self.clock.seconds]
        anyone, interrupted, seconds = self.objective.ranks.largest(own)
        self.clock = Clock(seconds)
        self._agreed = bool(interrupted), self._late()
        return bool(anyone)

    def interrupted(self) -> bool:
        return self._interrupted() if self._agreed is None else self._agreed[0]

    def _late(self) -> bool:
        limit = self._limits.max_time
        return limit is not None and self.clock.seconds > limit

    def check_limits(self) -> None:
        """End the run if the time or the evaluations are used up, or Ctrl-C was pressed."""
        if self.interrupted():
            raise StopRun(Status.INTERRUPTED)
        if self._out_of_time():
            raise StopRun(Status.MAX_TIME)
        if self._evaluations_left() <= 0:
            raise StopRun(Status.MAX_EVALUATIONS)

    def has_room(self, evaluations: int) -> bool:
        """Whether the limits leave so many evaluations to a look at how f behaves at the end."""
        stopped = self.interrupted() or self._out_of_time()
        return not stopped and self._evaluations_left() >= evaluations

    def _out_of_time(self) -> bool:
        return self._late() if self._agreed is None else self._agreed[1]

    def _evaluations_left(self) -> float:
        limit = self._limits.max_evaluations
        return math.inf if limit is None else limit - self.count.full_gradients(self.samples)

    @property
    def unit(self) -> float:
        """The unit of the run, in the units of f."""
        return 1.0 if self.scale is None else self.scale.unit

    def in_unit(self, number: float) -> float:
        """A number in the units of f, in the unit of the run; a positive one stays positive."""
        return max(number / self.unit, math.ulp(0.0)) if number > 0 else number / self.unit

    def quadratic(self) -> QuadraticForm | None:
        """f as a quadratic form, if it is one."""
        return self._form_in_unit(self.unit)

    def _divided_form(self, unit: float) -> QuadraticForm | None:
        form = self._form()
        return None if form is None else form.divided(unit)

    def curvature(self) -> float | None:
        """A Lipschitz constant of the gradient, if one is known."""
        known = self._curvature()
        return None if known is None else self.in_unit(known)

    def value_and_gradient(self, X: Tensor) -> tuple[float, Tensor]:
        self.check_limits()
        return self.value_and_gradient_beyond_limits(X)

    def value_and_gradient_beyond_limits(self, X: Tensor) -> tuple[float, Tensor]:
        """The last point of a run is scored even if the limits are reached."""
        self.count_gradients(1)
        return self.uncounted(X)

    def hessian(self, X: Tensor) -> Product | None:
        """V -> f''(X)[V], exact and counted, or None; see `AbstractObjective.hessian`.

        Autograd evaluates f and its gradient once for all products at X.
        """
        if self.objective.twice_by_autograd:
            self.check_limits()
            self.count_gradients(1)
        exact = self.objective.hessian(X)
        if exact is None:
            return None
        given = exact

        def product(V: Tensor) -> Tensor:
            self.check_limits()
            self.count.hessian += 1
            return self._divided(given(V).detach().contiguous())

        return product

    def lazy_value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """The same with the value left on its device, for a caller who fetches it later."""
        self.check_limits()
        self.count_gradients(1)
        value, gradient = self.objective.value_and_gradient(X)
        return value.detach() / self.unit, self._divided(gradient.detach().contiguous())

    def count_gradients(self, times: int) -> None:
        """Count evaluations of f and its gradient."""
        self.count.value += times
        self.count.gradient += times
        self.count.sample_gradient += times * self.samples

    def uncounted(self, X: Tensor) -> tuple[float, Tensor]:
        """f and its gradient, in the unit of the run, which is fixed here if it is not yet."""
        found, slope = self.objective.value_and_gradient(X)
        # always the same memory layout, so that a resumed run rounds as this one does
        value, gradient = found.item(), slope.detach().contiguous()
        if self.scale is None:
            self.scale = Scale.of(self._stated_scale(), X, value, gradient)
        return value / self.unit, self._divided(gradient)

    def _stated_scale(self) -> float | None:
        """What the objective states, or the size of its quadratic form."""
        stated = self.objective.gradient_scale()
        form = self._form() if stated is None else None
        return stated if form is None else form.size()

    def _divided(self, gradient: Tensor) -> Tensor:
        return gradient if self.unit == 1 else gradient / self.unit

    def sample_gradient(self, X: Tensor, index: Tensor) -> Tensor:
        self.check_limits()
        self.count.sample_gradient += len(index)
        return self._divided(self.objective.sample_gradient(X, index).detach().contiguous())

    def sample_difference(self, X: Tensor, Y: Tensor, index: Tensor) -> Tensor:
        """The mean over some samples of the gradient at X minus that at Y."""
        self.check_limits()
        self.count.sample_gradient += 2 * len(index)
        return self._divided(self.objective.sample_difference(X, Y, index).detach().contiguous())


def all_finite(value: float, gradient: Tensor) -> bool:
    """Whether neither of them holds NaN or infinity."""
    (entries,) = small_as_numpy(gradient.detach())
    finite = np.isfinite if isinstance(entries, np.ndarray) else torch.isfinite
    return math.isfinite(value) and bool(finite(entries).all())


class Interrupt:
    """While active in the main thread, the first SIGINT sets a flag; the next raises.

    Args:
        of_job: Whether the process is one of several. Then SIGTERM sets the flag too and no signal
            raises, because torchrun passes on signals that its processes have already received
            from the terminal, and ends them itself after a while.
    """

    def __init__(self, *, of_job: bool = False) -> None:
        self._asked = False
        self._held = False
        self._at_once = False
        self._ignored_at: float | None = None
        self._of_job = of_job
        self._before: dict[signal.Signals, Any] = {}

    def requested(self) -> bool:
        return self._asked

    def hold(self) -> None:
        """From now on only set the flag, because there are results that must not be lost."""
        self._held = True

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """While this is active, the first signal raises, because there is nothing to lose."""
        self._at_once = True
        try:
            yield
        finally:
            self._at_once = False

    def __enter__(self) -> Interrupt:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM) if self._of_job else (signal.SIGINT,):
                self._before[number] = signal.signal(number, self._handle)
                outer = _owner(self._before[number])
                self._asked |= outer is not None and outer.requested()
        return self

    def _handle(self, number: int, frame: FrameType | None) -> None:
        first = not self._asked
        self._asked = True
        if self._of_job:
            return
        if not self._held:
            if self._at_once or not first:
                raise KeyboardInterrupt
        elif self._ignored_at is None:
            self._ignored_at = time.monotonic()
        elif time.monotonic() - self._ignored_at > INTERRUPT_PATIENCE:
            raise KeyboardInterrupt

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
            outer = _owner(handler)
            if outer is not None:
                outer._asked |= self._asked


def _owner(handler: Any) -> Interrupt | None:
    """The interrupt whose handler this is, such as that of a chain around its runs."""
    owner = getattr(handler, "__self__", None)
    return owner if isinstance(owner, Interrupt) else None
