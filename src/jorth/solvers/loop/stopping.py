"""When to stop: criteria that combine with | (either) and & (both), and stalled runs."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from jorth.arrays import check_number, whole_number
from jorth.solvers.loop.budget import Evaluations
from jorth.solvers.loop.record import History
from jorth.solvers.loop.status import Status

STALL_PATIENCE = 50
"""Recorded iterations without a better value or gradient norm after which a run has stalled."""


@dataclass
class Improvement:
    """The best value and gradient norm so far, and for how many looks neither got better."""

    best_value: float = math.inf
    best_gradient: float = math.inf
    idle: int = 0

    def update(self, value: float, gradient_norm: float, eps: float) -> int:
        """Take a point into account; how many in a row were no better, beyond rounding."""
        better_value = value < self.best_value - 2 * eps * abs(self.best_value)
        better_gradient = gradient_norm < 0.99 * self.best_gradient
        self.idle = 0 if better_value or better_gradient else self.idle + 1
        self.best_value = min(self.best_value, value)
        self.best_gradient = min(self.best_gradient, gradient_norm)
        return self.idle


@dataclass(frozen=True)
class Report:
    """What a criterion knows after an iteration at which value and gradient are known."""

    iteration: int
    value: float
    gradient_norm: float
    time: float
    evaluations: Evaluations
    history: History
    block_stationarity: Callable[[int | None], float]


class Criterion(ABC):
    """A condition on the run. ``met`` says whether it holds; ``status`` how the run then ends."""

    words: ClassVar[str] = ""
    """The criterion in words, with its fields in braces."""

    @property
    def status(self) -> Status:
        """How a run ends that this criterion stops."""
        return Status.CONVERGED

    @abstractmethod
    def met(self, report: Report) -> bool:
        """Whether to stop."""

    def reason(self) -> str:
        """The criterion in words, for the message of the result."""
        return self.words.format(**vars(self)) if self.words else str(self)

    def fired(self, report: Report) -> Criterion | None:
        """The criterion to name when the run stops here: itself or a part of it."""
        return self if self.met(report) else None

    def __or__(self, other: Criterion) -> Criterion:
        return AnyOf(self, other) if isinstance(other, Criterion) else NotImplemented

    def __and__(self, other: Criterion) -> Criterion:
        return AllOf(self, other) if isinstance(other, Criterion) else NotImplemented


@dataclass(frozen=True)
class AnyOf(Criterion):
    """Either criterion."""

    first: Criterion
    second: Criterion

    def met(self, report: Report) -> bool:
        return self.fired(report) is not None

    def fired(self, report: Report) -> Criterion | None:
        return self.first.fired(report) or self.second.fired(report)


@dataclass(frozen=True)
class AllOf(Criterion):
    """Both criteria."""

    first: Criterion
    second: Criterion

    @property
    def status(self) -> Status:
        """Converged where one of them says so; two limits are still a limit."""
        return Status.CONVERGED if self.second.status is Status.CONVERGED else self.first.status

    def met(self, report: Report) -> bool:
        return self.fired(report) is not None

    def fired(self, report: Report) -> Criterion | None:
        first = self.first.fired(report)
        second = None if first is None else self.second.fired(report)
        return None if first is None or second is None else AllOf(first, second)

    def reason(self) -> str:
        return f"{self.first.reason()} and {self.second.reason()}"


@dataclass(frozen=True)
class GradientNorm(Criterion):
    """||skew(J G X^T)||_F at most ``tolerance``."""

    tolerance: float
    words = "the gradient norm is at most {tolerance:g}"

    def __post_init__(self) -> None:
        check_number(self.tolerance, "tolerance", 0)

    def met(self, report: Report) -> bool:
        return report.gradient_norm <= self.tolerance


@dataclass(frozen=True)
class RelativeDecrease(Criterion):
    """The value fell by at most ``tolerance`` times its size over ``window`` recorded iterations.

    It does not hold where the value has risen.
    """

    tolerance: float
    window: int = 1
    words = "the relative decrease over {window} iterations is at most {tolerance:g}"

    def __post_init__(self) -> None:
        check_number(self.tolerance, "tolerance", 0)
        whole_number(self.window, "window", 1)

    def met(self, report: Report) -> bool:
        if len(report.history) <= self.window:
            return False
        before = report.history.last("value", int(self.window) + 1)
        size = max(abs(before), abs(report.value))
        return 0 <= before - report.value <= self.tolerance * size


@dataclass(frozen=True)
class BlockStationary(Criterion):
    """`block_stationarity` at most ``tolerance``, checked every ``every`` iterations.

    ``pairs`` is the number of sampled pairs; None takes all.
    """

    tolerance: float
    every: int = 10
    pairs: int | None = None
    words = "block stationarity is at most {tolerance:g}"

    def __post_init__(self) -> None:
        check_number(self.tolerance, "tolerance", 0)
        whole_number(self.every, "every", 1)
        if self.pairs is not None:
            whole_number(self.pairs, "pairs", 1)

    def met(self, report: Report) -> bool:
        due = report.iteration % self.every == 0
        return due and report.block_stationarity(self.pairs) <= self.tolerance


@dataclass(frozen=True)
class ValueBelow(Criterion):
    """The value is at most ``target``: a known optimum, or good enough."""

    target: float
    words = "the value is at most {target:g}"

    def __post_init__(self) -> None:
        check_number(self.target, "target", -math.inf)

    def met(self, report: Report) -> bool:
        return report.value <= self.target


@dataclass(frozen=True)
class NormAbove(Criterion):
    """||X||_2 is at least ``limit``, to one per cent.

    The run has left for infinity, or for where feasibility has no digits left.
    """

    limit: float
    status = Status.UNBOUNDED
    words = "||X|| is at least {limit:g}"

    def __post_init__(self) -> None:
        check_number(self.limit, "limit", 0)

    def met(self, report: Report) -> bool:
        return report.history.last("norm") >= self.limit


@dataclass(frozen=True)
class MaxIterations(Criterion):
    """A number of iterations."""

    limit: int
    status = Status.MAX_ITERATIONS
    words = "{limit} iterations are done"

    def __post_init__(self) -> None:
        whole_number(self.limit, "limit", 0)

    def met(self, report: Report) -> bool:
        return report.iteration >= self.limit
