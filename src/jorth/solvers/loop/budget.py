"""What a run may spend: true counts of evaluations, and limits that hold inside a step as well.

Ctrl-C is such a limit. The run finishes its step and returns what it has; a second one breaks the
step off. While the result is put together and saved, more of them are ignored for
`INTERRUPT_PATIENCE` seconds; after that one more gives up.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from types import FrameType
from typing import Any

import torch
from torch import Tensor

from jorth.clock import Clock
from jorth.objectives import AbstractObjective, QuadraticForm
from jorth.solvers.loop.status import Status, StopRun

INTERRUPT_PATIENCE = 5.0
"""Seconds from the first Ctrl-C that is ignored to one that is not."""
_UNKNOWN: Any = object()


@dataclass
class Evaluations:
    """Evaluations of f, of its gradient and of the gradient of one sample; updates of pairs."""

    value: int = 0
    gradient: int = 0
    sample_gradient: int = 0
    pair_updates: int = 0

    def __add__(self, other: Evaluations) -> Evaluations:
        theirs = asdict(other)
        return Evaluations(**{name: n + theirs[name] for name, n in asdict(self).items()})

    def as_dict(self) -> dict[str, int]:
        """The counts by name."""
        return asdict(self)

    def columns(self) -> dict[str, float]:
        """The counts under the names that they have in a history."""
        return {
            "value_evaluations": float(self.value),
            "gradient_evaluations": float(self.gradient),
            "sample_gradient_evaluations": float(self.sample_gradient),
            "pair_updates": float(self.pair_updates),
        }

    def full_gradients(self, samples: int) -> int:
        """What `max_evaluations` limits: gradients, or their equivalent in sample gradients."""
        return self.sample_gradient // samples if samples else self.gradient


class CountedObjective:
    """An objective that counts its evaluations and ends the run when a limit is passed.

    Full gradients of a finite sum of N terms count as N sample gradients too.
    """

    def __init__(
        self,
        objective: AbstractObjective,
        clock: Clock,
        *,
        max_time: float | None = None,
        max_evaluations: int | None = None,
        interrupted: Callable[[], bool] = lambda: False,
    ) -> None:
        self.objective = objective
        self.samples = objective.samples
        self.count = Evaluations()
        self.clock = clock
        self._max_time = max_time
        self._max_evaluations = max_evaluations
        self._interrupted = interrupted
        self._agreed: tuple[bool, bool] | None = None if objective.ranks is None else (False, False)
        self._form: QuadraticForm | None = _UNKNOWN
        self._curvature: float | None = _UNKNOWN

    def quadratic(self) -> QuadraticForm | None:
        """The quadratic form, if there is one."""
        if self._form is _UNKNOWN:
            self._form = self.objective.quadratic()
        return self._form

    def curvature(self) -> float | None:
        """The Lipschitz constant, if one is known."""
        if self._curvature is _UNKNOWN:
            self._curvature = self.objective.curvature()
        return self._curvature

    def agree(self, asked: bool) -> bool:
        """Whether this process or another asks to stop.

        Each process has a clock and a Ctrl-C of its own. Here all clocks are set to the latest, and
        one's Ctrl-C becomes everyone's. That holds until they agree again: all end in the same
        place.
        """
        if self.objective.ranks is None:
            return asked
        own = [asked, self._interrupted(), self.clock.seconds]
        anyone, interrupted, seconds = self.objective.ranks.largest(own)
        self.clock = Clock(seconds)
        self._agreed = bool(interrupted), self._late()
        return bool(anyone)

    def interrupted(self) -> bool:
        """Whether Ctrl-C was pressed."""
        return self._interrupted() if self._agreed is None else self._agreed[0]

    def _late(self) -> bool:
        return self._max_time is not None and self.clock.seconds > self._max_time

    def check_limits(self) -> None:
        """End the run if the time or the evaluations are used up, or Ctrl-C was pressed."""
        if self.interrupted():
            raise StopRun(Status.INTERRUPTED)
        if self._late() if self._agreed is None else self._agreed[1]:
            raise StopRun(Status.MAX_TIME)
        limit = self._max_evaluations
        if limit is not None and self.count.full_gradients(self.samples) >= limit:
            raise StopRun(Status.MAX_EVALUATIONS)

    def value_and_gradient(self, X: Tensor) -> tuple[float, Tensor]:
        """f(X) and its gradient."""
        self.check_limits()
        return self.value_and_gradient_for_the_record(X)

    def value_and_gradient_for_the_record(self, X: Tensor) -> tuple[float, Tensor]:
        """The same beyond the limits: the last point of a run is scored whatever it costs."""
        value, gradient = self.objective.value_and_gradient(X)
        self.count.value += 1
        self.count.gradient += 1
        self.count.sample_gradient += self.samples
        # one memory layout, whatever f returns: a resumed run must round as this one does
        return value.item(), gradient.detach().contiguous()

    def sample_gradient(self, X: Tensor, index: Tensor) -> Tensor:
        """The mean gradient of some samples."""
        self.check_limits()
        self.count.sample_gradient += len(index)
        return self.objective.sample_gradient(X, index).detach().contiguous()

    def sample_difference(self, X: Tensor, Y: Tensor, index: Tensor) -> Tensor:
        """The mean difference of the gradients of some samples at two points."""
        self.check_limits()
        self.count.sample_gradient += 2 * len(index)
        return self.objective.sample_difference(X, Y, index).detach().contiguous()


def all_finite(value: float, gradient: Tensor) -> bool:
    """Whether a value and a gradient can be used."""
    return bool(torch.isfinite(gradient).all()) and value == value and abs(value) != float("inf")


class Interrupt:
    """While active in the main thread, the first SIGINT sets a flag; the next raises.

    Args:
        of_job: The process is one of several. Then SIGTERM is a request too, and repeated signals
            count as one: torchrun passes on what its processes have already got from the terminal,
            and has a time limit of its own.
    """

    def __init__(self, *, of_job: bool = False) -> None:
        self._asked = False
        self._held = False
        self._ignored_at: float | None = None
        self._of_job = of_job
        self._before: dict[signal.Signals, Any] = {}

    def requested(self) -> bool:
        """Whether Ctrl-C was pressed."""
        return self._asked

    def hold(self) -> None:
        """From now on only take note of it: there are results that must not be lost."""
        self._held = True

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
            if not first:
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
    """The interrupt around this one: that of a chain around its runs."""
    owner = getattr(handler, "__self__", None)
    return owner if isinstance(owner, Interrupt) else None
