"""Times and values of a run, and when it first came within a gap."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from jorth.bench.scoring import GAPS
from jorth.clock import Clock

PAST = 0.9
"""A run ends when its gap is at most this share of the least of GAPS."""


class Ended(Exception):
    """The target is reached, or the budget is used up."""


@dataclass(frozen=True)
class Goal:
    """Where runs start and how deep they are to come: f at the start, the optimum, seconds."""

    first: float
    optimum: float
    max_time: float

    @property
    def target(self) -> float:
        """The value at which a run ends."""
        return self.optimum + PAST * min(GAPS) * (self.first - self.optimum)

    def gap(self, value: float) -> float:
        """(f - optimum) / (f(X0) - optimum)."""
        return (value - self.optimum) / (self.first - self.optimum)


class Trace:
    """Times and values, by the clock of `minimize`, which stands still while it records.

    Args:
        goal: What ends the run.
        value: f of a feasible point; it is on no clock.
    """

    def __init__(self, goal: Goal, value: Callable[[Any], float]) -> None:
        self.goal, self._value = goal, value
        self.rows: list[tuple[float, float]] = []
        self._clock = Clock()
        self._clock.start()

    def record(self, point: Callable[[], Any] | Any) -> None:
        """Add a row for the point, or for what the function makes of the point at hand; raise Ended where it ends."""
        self._clock.pause()
        value = self._value(point() if callable(point) else point)
        self.rows.append((self._clock.seconds, value))
        if value <= self.goal.target or self._clock.seconds > self.goal.max_time:
            raise Ended
        self._clock.start()


def reached(rows: list[tuple[float, float]], goal: Goal) -> dict[str, float]:
    """Seconds to each of GAPS that the rows come within."""
    found = {}
    for gap in GAPS:
        seconds = next((seconds for seconds, value in rows if goal.gap(value) <= gap), None)
        if seconds is not None:
            found[f"{gap:g}"] = seconds
    return found


def least_gap(rows: list[tuple[float, float]], goal: Goal) -> float:
    """The deepest that the rows come."""
    return float(np.nanmin([goal.gap(value) for _, value in rows]))
