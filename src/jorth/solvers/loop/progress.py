"""A line on the terminal while a run goes on."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any

REFRESH = 0.1


class ProgressLine:
    """Iteration, value and gradient norm in one line that is rewritten; nothing at all when not asked for."""

    def __init__(self, active: bool, name: str) -> None:
        self._active = active
        self._name = name
        self._status: Any = None
        self._shown = 0.0

    def __enter__(self) -> ProgressLine:
        if self._active:
            from rich.console import Console

            self._status = Console(stderr=True).status(self._name)
            self._status.start()
        return self

    def show(self, iteration: int, row: dict[str, float]) -> None:
        """Rewrite the line, at most ten times a second."""
        now = time.monotonic()
        if self._status is None or now - self._shown < REFRESH:
            return
        self._shown = now
        self._status.update(
            f"{self._name}  iteration {iteration}  f = {row['value']:.6e}  gradient {row['gradient_norm']:.2e}  "
            f"residual {row['residual']:.1e}  {row['time']:.1f} s"
        )

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._status is not None:
            self._status.stop()
