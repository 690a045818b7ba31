"""When to stop: criteria that combine with | (either) and & (both)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from jorth.solvers.counting import Evaluations
from jorth.solvers.result import History
from jorth.solvers.status import Status


@dataclass(frozen=True)
class Report:
    """What a criterion may look at after an iteration at which value and gradient are known."""

    iteration: int
    value: float
    gradient_norm: float
    time: float
    evaluations: Evaluations
    history: History
    block_stationarity: Callable[[int | None], float]


class Criterion(ABC):
    """A condition on the run. ``met`` says whether it holds; ``status`` how the run then ends."""

    status = Status.CONVERGED

    @abstractmethod
    def met(self, report: Report) -> bool:
        """Whether to stop."""

    def reason(self) -> str:
        """The criterion in words."""
        return str(self)

    def fired(self, report: Report) -> Criterion | None:
        """The criterion to name when the run stops here: itself or a part of it."""
        return self if self.met(report) else None

    def __or__(self, other: Criterion) -> Criterion:
        return AnyOf(self, other)

    def __and__(self, other: Criterion) -> Criterion:
        return AllOf(self, other)


@dataclass(frozen=True)
class AnyOf(Criterion):
    """Either criterion."""

    first: Criterion
    second: Criterion

    def met(self, report: Report) -> bool:
        """Whether one of the two is met."""
        return self.fired(report) is not None

    def fired(self, report: Report) -> Criterion | None:
        """The one that is met."""
        return self.first.fired(report) or self.second.fired(report)


@dataclass(frozen=True)
class AllOf(Criterion):
    """Both criteria."""

    first: Criterion
    second: Criterion

    def met(self, report: Report) -> bool:
        """Whether both are met."""
        return self.first.met(report) and self.second.met(report)

    def reason(self) -> str:
        """Both in words."""
        return f"{self.first.reason()} and {self.second.reason()}"


@dataclass(frozen=True)
class GradientNorm(Criterion):
    """||skew(J G X^T)||_F at most ``tolerance``."""

    tolerance: float

    def met(self, report: Report) -> bool:
        """Whether the gradient is small."""
        return report.gradient_norm <= self.tolerance

    def reason(self) -> str:
        """In words."""
        return f"the gradient norm is at most {self.tolerance:g}"


@dataclass(frozen=True)
class RelativeDecrease(Criterion):
    """The value fell by at most ``tolerance`` times its size over the last ``window`` recorded iterations."""

    tolerance: float
    window: int = 1

    def met(self, report: Report) -> bool:
        """Whether the decrease is small."""
        if len(report.history) <= self.window:
            return False
        before = report.history.last("value", self.window + 1)
        return before - report.value <= self.tolerance * max(abs(before), abs(report.value))

    def reason(self) -> str:
        """In words."""
        return f"the relative decrease over {self.window} iterations is at most {self.tolerance:g}"


@dataclass(frozen=True)
class BlockStationary(Criterion):
    """`block_stationarity` at most ``tolerance``, every ``every`` iterations, on ``pairs`` sampled pairs or all."""

    tolerance: float
    every: int = 10
    pairs: int | None = None

    def met(self, report: Report) -> bool:
        """Whether no plane step moves far."""
        return report.iteration % self.every == 0 and report.block_stationarity(self.pairs) <= self.tolerance

    def reason(self) -> str:
        """In words."""
        return f"block stationarity is at most {self.tolerance:g}"


@dataclass(frozen=True)
class ValueBelow(Criterion):
    """The value is at most ``target``: a known optimum, or good enough."""

    target: float

    def met(self, report: Report) -> bool:
        """Whether the target is reached."""
        return report.value <= self.target

    def reason(self) -> str:
        """In words."""
        return f"the value is at most {self.target:g}"


@dataclass(frozen=True)
class NormAbove(Criterion):
    """||X||_2 is at least ``limit``: the run has left for infinity, or for where feasibility has no digits left."""

    limit: float
    status = Status.UNBOUNDED

    def met(self, report: Report) -> bool:
        """Whether X is that large, to about one per cent."""
        return report.history.last("norm") >= self.limit

    def reason(self) -> str:
        """In words."""
        return f"||X|| is at least {self.limit:g}"


@dataclass(frozen=True)
class MaxIterations(Criterion):
    """A number of iterations."""

    limit: int
    status = Status.MAX_ITERATIONS

    def met(self, report: Report) -> bool:
        """Whether they are done."""
        return report.iteration >= self.limit

    def reason(self) -> str:
        """In words."""
        return f"{self.limit} iterations are done"


@dataclass(frozen=True)
class MaxTime(Criterion):
    """Seconds of solving."""

    limit: float
    status = Status.MAX_TIME

    def met(self, report: Report) -> bool:
        """Whether they have passed."""
        return report.time >= self.limit

    def reason(self) -> str:
        """In words."""
        return f"{self.limit:g} seconds have passed"
