"""When to stop: criteria that combine with | (either) and & (both)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from jorth.arrays import check_number, whole_number
from jorth.solvers.loop.budget import Evaluations
from jorth.solvers.loop.result import History
from jorth.solvers.loop.status import Status


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

    @property
    def status(self) -> Status:
        """How a run ends that this criterion stops."""
        return Status.CONVERGED

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
        return AnyOf(self, other) if isinstance(other, Criterion) else NotImplemented

    def __and__(self, other: Criterion) -> Criterion:
        return AllOf(self, other) if isinstance(other, Criterion) else NotImplemented


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

    @property
    def status(self) -> Status:
        """Converged where one of them says so; two limits are still a limit."""
        return Status.CONVERGED if self.second.status is Status.CONVERGED else self.first.status

    def met(self, report: Report) -> bool:
        """Whether both are met."""
        return self.fired(report) is not None

    def fired(self, report: Report) -> Criterion | None:
        """What is met of the one and of the other."""
        first = self.first.fired(report)
        second = None if first is None else self.second.fired(report)
        return None if first is None or second is None else AllOf(first, second)

    def reason(self) -> str:
        """Both in words."""
        return f"{self.first.reason()} and {self.second.reason()}"


@dataclass(frozen=True)
class GradientNorm(Criterion):
    """||skew(J G X^T)||_F at most ``tolerance``."""

    tolerance: float

    def __post_init__(self) -> None:
        check_number(self.tolerance, "tolerance", 0)

    def met(self, report: Report) -> bool:
        """Whether the gradient is small."""
        return report.gradient_norm <= self.tolerance

    def reason(self) -> str:
        """In words."""
        return f"the gradient norm is at most {self.tolerance:g}"


@dataclass(frozen=True)
class RelativeDecrease(Criterion):
    """The value fell by at most ``tolerance`` times its size over the last ``window`` recorded iterations.

    A value that has risen has not fallen: then it does not hold.
    """

    tolerance: float
    window: int = 1

    def __post_init__(self) -> None:
        check_number(self.tolerance, "tolerance", 0)
        whole_number(self.window, "window", 1)

    def met(self, report: Report) -> bool:
        """Whether the decrease is small."""
        if len(report.history) <= self.window:
            return False
        before = report.history.last("value", int(self.window) + 1)
        size = max(abs(before), abs(report.value))
        return 0 <= before - report.value <= self.tolerance * size

    def reason(self) -> str:
        """In words."""
        return f"the relative decrease over {self.window} iterations is at most {self.tolerance:g}"


@dataclass(frozen=True)
class BlockStationary(Criterion):
    """`block_stationarity` at most ``tolerance``, every ``every`` iterations, on ``pairs`` sampled pairs or all."""

    tolerance: float
    every: int = 10
    pairs: int | None = None

    def __post_init__(self) -> None:
        check_number(self.tolerance, "tolerance", 0)
        whole_number(self.every, "every", 1)
        if self.pairs is not None:
            whole_number(self.pairs, "pairs", 1)

    def met(self, report: Report) -> bool:
        """Whether no plane step moves far."""
        return (
            report.iteration % self.every == 0
            and report.block_stationarity(self.pairs) <= self.tolerance
        )

    def reason(self) -> str:
        """In words."""
        return f"block stationarity is at most {self.tolerance:g}"


@dataclass(frozen=True)
class ValueBelow(Criterion):
    """The value is at most ``target``: a known optimum, or good enough."""

    target: float

    def __post_init__(self) -> None:
        check_number(self.target, "target", -math.inf)

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

    def __post_init__(self) -> None:
        check_number(self.limit, "limit", 0)

    def met(self, report: Report) -> bool:
        """Whether X is that large, to one per cent."""
        return report.history.last("norm") >= self.limit

    def reason(self) -> str:
        """In words."""
        return f"||X|| is at least {self.limit:g}"


@dataclass(frozen=True)
class MaxIterations(Criterion):
    """A number of iterations."""

    limit: int
    status = Status.MAX_ITERATIONS

    def __post_init__(self) -> None:
        whole_number(self.limit, "limit", 0)

    def met(self, report: Report) -> bool:
        """Whether they are done."""
        return report.iteration >= self.limit

    def reason(self) -> str:
        """In words."""
        return f"{self.limit} iterations are done"
