"""Ctrl-C as a request: the run finishes its step and returns what it has.

A second one breaks the step off. While the result is put together and saved, more of them are
ignored for `PATIENCE` seconds; after that one more gives up.
"""

from __future__ import annotations

import signal
import threading
import time
from types import FrameType, TracebackType
from typing import Any

PATIENCE = 5.0
"""Seconds from the first Ctrl-C that is ignored to one that is not."""


class Interrupt:
    """While active in the main thread, the first SIGINT sets a flag; the next raises.

    Args:
        of_job: The process is one of several. Then SIGTERM is a request too, and repeated signals are no more than one:
            torchrun passes on what its processes have already got from the terminal, and has a time limit of its own.
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
        """From now on it is only noted: there is something to bring home."""
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
        if self._held:
            self._give_up_in_time()
        elif not first:
            raise KeyboardInterrupt

    def _give_up_in_time(self) -> None:
        now = time.monotonic()
        if self._ignored_at is None:
            self._ignored_at = now
        elif now - self._ignored_at > PATIENCE:
            raise KeyboardInterrupt

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for known, handler in self._before.items():
            signal.signal(known, handler)
            outer = _owner(handler)
            if outer is not None:
                outer._asked |= self._asked


def _owner(handler: Any) -> Interrupt | None:
    """The interrupt around this one: that of a chain around its runs."""
    owner = getattr(handler, "__self__", None)
    return owner if isinstance(owner, Interrupt) else None
