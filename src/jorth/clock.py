"""A clock that can be paused."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import ClassVar


class Clock:
    """Seconds spent solving. The clock is paused while the loop records, reports or saves."""

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
