"""True counts of what a run evaluated, and limits that hold inside a step as well."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass

import torch
from torch import Tensor

from jorth.clock import Clock
from jorth.objectives import AbstractObjective, QuadraticForm
from jorth.solvers.loop.status import Status, StopRun


@dataclass
class Evaluations:
    """How often f, its gradient, and the gradient of one sample were evaluated, and how many pairs were updated."""

    value: int = 0
    gradient: int = 0
    sample_gradient: int = 0
    pair_updates: int = 0

    def as_dict(self) -> dict[str, int]:
        """The counts by name."""
        return asdict(self)

    def columns(self) -> dict[str, float]:
        """The counts under the names they have in a history."""
        return {
            f"{name}_evaluations" if name != "pair_updates" else name: float(n)
            for name, n in asdict(self).items()
        }


_UNKNOWN = object()


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
        self.count = Evaluations()
        self.clock = clock
        self._max_time = max_time
        self._max_evaluations = max_evaluations
        self._interrupted = interrupted
        self._agreed: tuple[bool, bool] | None = None if objective.ranks is None else (False, False)
        self._form: object = _UNKNOWN
        self._curvature: object = _UNKNOWN

    @property
    def samples(self) -> int:
        """The number of terms of a finite sum."""
        return self.objective.samples

    def quadratic(self) -> QuadraticForm | None:
        """The quadratic form, if there is one."""
        if self._form is _UNKNOWN:
            self._form = self.objective.quadratic()
        return self._form  # type: ignore[return-value]

    def curvature(self) -> float | None:
        """The Lipschitz constant, if one is known."""
        if self._curvature is _UNKNOWN:
            self._curvature = self.objective.curvature()
        return self._curvature  # type: ignore[return-value]

    def agree(self, asked: bool) -> bool:
        """Whether this process or another asks to stop. Clocks are set to the latest; one's Ctrl-C is everyone's.

        Each process has a clock and a Ctrl-C of its own. They hold what is said here until they agree again: all end in
        the same place.
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
        """End the run if time, evaluations or the user's patience are used up."""
        if self.interrupted():
            raise StopRun(Status.INTERRUPTED)
        if self._late() if self._agreed is None else self._agreed[1]:
            raise StopRun(Status.MAX_TIME)
        if self._max_evaluations is not None and self.spent >= self._max_evaluations:
            raise StopRun(Status.MAX_EVALUATIONS)

    @property
    def spent(self) -> int:
        """What `max_evaluations` limits: gradients, or their equivalent in sample gradients."""
        samples = self.samples
        return self.count.sample_gradient // samples if samples else self.count.gradient

    def value_and_gradient(self, X: Tensor) -> tuple[float, Tensor]:
        """f(X) and its gradient."""
        self.check_limits()
        return self.value_and_gradient_for_the_record(X)

    def value_and_gradient_for_the_record(self, X: Tensor) -> tuple[float, Tensor]:
        """The same where a limit is reached already: the last point of a run is scored whatever it costs."""
        value, gradient = self.objective.value_and_gradient(X)
        self.count.value += 1
        self.count.gradient += 1
        self.count.sample_gradient += self.samples
        # one memory layout, whatever the user's function returns: a resumed run must round as this one does
        return value.item(), gradient.detach().contiguous()

    def value(self, X: Tensor) -> float:
        """f(X)."""
        self.check_limits()
        self.count.value += 1
        return self.objective.value(X).item()

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
