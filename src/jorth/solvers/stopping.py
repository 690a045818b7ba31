"""When to stop: criteria, which combine with |, and when a run has stalled.

Every tolerance of a run lives here, and every criterion has no units but those it names.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from torch import Tensor

from jorth._inputs import check_number, describe, unit_roundoff, whole_number
from jorth.solvers.problem import Status

if TYPE_CHECKING:
    from jorth.solvers.result import History

DEFAULT_TOLERANCE = 1e-7
"""The default of `gradient_tolerance`. Procrustes problems whose source has condition 3 or 30 end
within 1e-10 or 1e-9 of the least value. In single precision it is u^(2/3), 1.5e-5, because rounding
leaves more than 1e-7."""
STALL_PATIENCE = 50
"""A run has stalled after so many recorded iterations without a better value or gradient norm."""


def default_tolerance(X: Tensor) -> float:
    """Return the default of `gradient_tolerance` for points like X."""
    return max(DEFAULT_TOLERANCE, math.pow(unit_roundoff(X), 2 / 3))


@dataclass
class Improvement:
    """The best value and gradient norm so far, and for how many points neither got better."""

    best_value: float = math.inf
    best_gradient: float = math.inf
    idle: int = 0

    def update(self, value: float, gradient_norm: float, eps: float) -> int:
        """Take a point into account; return how many in a row were no better."""
        better_value = value < self.best_value - 2 * eps * abs(self.best_value)
        better_gradient = gradient_norm < 0.99 * self.best_gradient
        self.idle = 0 if better_value or better_gradient else self.idle + 1
        self.best_value = min(self.best_value, value)
        self.best_gradient = min(self.best_gradient, gradient_norm)
        return self.idle


class Criterion(ABC):
    """A condition that ends the run.

    It sees the history: ``iteration``, ``value`` and ``gradient_norm`` of the last point, which are
    NaN where f is not known, ``time``, and ``last("norm")`` for the columns of the table.

    >>> class Seconds(jorth.stopping.Criterion):
    ...     def met(self, history):
    ...         return history.time > 10
    """

    status: Status = Status.CONVERGED
    """The status of a run that this criterion ends."""
    sentence: ClassVar[str] = ""
    """The criterion as a sentence, with its fields in braces."""

    @property
    def parts(self) -> tuple[Criterion, ...]:
        """The criteria of which one must be met."""
        return (self,)

    @abstractmethod
    def met(self, history: History) -> bool:
        """Return whether the run should end."""

    def explain(self, history: History) -> str:
        """Return the criterion as a sentence, with figures where they help."""
        return self.sentence.format(**vars(self)) if self.sentence else str(self)

    def __or__(self, other: Criterion) -> Criterion:
        if not isinstance(other, Criterion):
            found = describe(other)  # type: ignore[unreachable]
            raise TypeError(f"stop must have a criterion on both sides of |, got {found}")
        return AnyOf((*self.parts, *other.parts))


@dataclass(frozen=True)
class AnyOf(Criterion):
    """One of several criteria."""

    criteria: tuple[Criterion, ...]

    @property
    def parts(self) -> tuple[Criterion, ...]:
        return self.criteria

    def met(self, history: History) -> bool:
        return any(part.met(history) for part in self.criteria)


@dataclass(frozen=True)
class GradientNorm(Criterion):
    """||skew(J G X^T)||_F is at most ``tolerance``, a number in the units of f.

    >>> sig = jorth.Signature(2, 1)
    >>> stop = jorth.stopping.GradientNorm(1e-3) | jorth.stopping.ValueBelow(3.1)
    >>> f, x0 = jorth.Quadratic(np.diag([1.0, 2.0, 3.0])), jorth.random_point(sig)
    >>> result = jorth.minimize(f, x0, signature=sig, stop=stop)
    """

    tolerance: float
    sentence = "the gradient norm is at most {tolerance:g}"

    def __post_init__(self) -> None:
        check_number(self.tolerance, "tolerance", 0)

    def met(self, history: History) -> bool:
        return history.gradient_norm <= self.tolerance


@dataclass(frozen=True)
class RelativeGradient(Criterion):
    """||skew(J G X^T)||_F is at most ``tolerance`` times the scale of the gradient.

    This is `gradient_tolerance` of `jorth.minimize`, and has no units: f and c f end after the same
    iteration. The scale is the size of the terms of which the gradient is the sum, if they are
    known: ||A||_F ||D||_F / sqrt(k) + ||C||_F for 1/2 tr(X^T A X D) + <C, X>. Otherwise it is the
    largest ||G X^T||_F / max(1, ||X||_2^2) seen so far.

    >>> sig = jorth.Signature(1, 1)
    >>> jorth.minimize(jorth.Quadratic(np.eye(2)), signature=sig, gradient_tolerance=1e-4).success
    True
    """

    tolerance: float

    def __post_init__(self) -> None:
        check_number(self.tolerance, "tolerance", 0)

    def met(self, history: History) -> bool:
        return history.gradient_norm <= self.tolerance * history.gradient_scale

    def explain(self, history: History) -> str:
        at_most = f"{self.tolerance:.3g} of its scale {history.gradient_scale:.3g}"
        return f"the gradient norm {history.gradient_norm:.2g} is at most {at_most}"


@dataclass(frozen=True)
class RelativeDecrease(Criterion):
    """The value fell by at most ``tolerance`` times its size over ``window`` recorded iterations.

    A value that has risen does not meet it.

    >>> sig = jorth.Signature(2, 1)
    >>> stop = jorth.stopping.RelativeDecrease(1e-6, window=5)
    >>> f, x0 = jorth.Quadratic(np.diag([1.0, 2.0, 3.0])), jorth.random_point(sig)
    >>> jorth.minimize(f, x0, signature=sig, stop=stop).success
    True
    """

    tolerance: float
    window: int = 1
    sentence = "the relative decrease over {window} iterations is at most {tolerance:g}"

    def __post_init__(self) -> None:
        check_number(self.tolerance, "tolerance", 0)
        whole_number(self.window, "window", 1)

    def met(self, history: History) -> bool:
        if len(history.rows) <= self.window:
            return False
        before = history.last("value", int(self.window) + 1)
        size = max(abs(before), abs(history.value))
        return 0 <= before - history.value <= self.tolerance * size


@dataclass(frozen=True)
class ValueBelow(Criterion):
    """The value is at most ``target``, such as a known optimum.

    >>> sig = jorth.Signature(2, 1)
    >>> f, x0 = jorth.Quadratic(np.diag([1.0, 2.0, 3.0])), jorth.random_point(sig)
    >>> stop = jorth.stopping.ValueBelow(3.1)
    >>> jorth.minimize(f, x0, signature=sig, stop=stop).value <= 3.1
    True
    """

    target: float
    sentence = "the value is at most {target:g}"

    def __post_init__(self) -> None:
        check_number(self.target, "target", -math.inf)

    def met(self, history: History) -> bool:
        return history.value <= self.target


@dataclass(frozen=True)
class NormAbove(Criterion):
    """||X||_2, known to 0.1 per cent, is at least ``limit``: X diverges or loses its digits.

    The run ends as UNBOUNDED or NOT_ATTAINED if it can tell which of them it is, by a proof or by
    the values of f on the way there, and otherwise as STALLED: a large ||X|| alone shows neither.

    >>> sig, stop = jorth.Signature(1, 1), jorth.stopping.NormAbove(1e3)
    >>> f = jorth.HyperbolicEigenvalue(np.eye(2), sense="max")
    >>> jorth.minimize(f, jorth.random_point(sig), signature=sig, stop=stop).status.name
    'UNBOUNDED'
    """

    limit: float
    status = Status.STALLED
    sentence = "||X|| is at least {limit:g}"

    def __post_init__(self) -> None:
        check_number(self.limit, "limit", 0)

    def met(self, history: History) -> bool:
        return history.last("norm") >= self.limit
