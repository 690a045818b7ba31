"""Ctrl-C as a request: the run finishes its step and returns what it has. A second one is a KeyboardInterrupt."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any


class Interrupt:
    """While active in the main thread, the first SIGINT sets a flag.

    Args:
        of_job: The process is one of several. Then SIGTERM is a request too, and repeated signals are no more than one:
            torchrun passes on what its processes have already got from the terminal, and has a time limit of its own.
    """

    def __init__(self, *, of_job: bool = False) -> None:
        self._asked = False
        self._of_job = of_job
        self._before: dict[signal.Signals, Any] = {}

    def requested(self) -> bool:
        """Whether Ctrl-C was pressed."""
        return self._asked

    def __enter__(self) -> Interrupt:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM) if self._of_job else (signal.SIGINT,):
                self._before[number] = signal.signal(number, self._handle)
        return self

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._asked and not self._of_job:
            raise KeyboardInterrupt
        self._asked = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for known, handler in self._before.items():
            signal.signal(known, handler)
