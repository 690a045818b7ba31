"""A line on the terminal that shows how a run is doing."""

from __future__ import annotations

import time
from typing import Any

REFRESH = 0.1
"""Seconds between two updates of the line."""


class ProgressLine:
    """One line with iteration, value and gradient norm, rewritten as the run proceeds."""

    def __init__(self, name: str) -> None:
        from rich.console import Console

        self._name = name
        self._status: Any = Console(stderr=True).status(name)
        self._shown = 0.0

    def __enter__(self) -> ProgressLine:
        self._status.start()
        return self

    def show(self, row: dict[str, float]) -> None:
        """Rewrite the line, at most ten times per second."""
        now = time.monotonic()
        if now - self._shown < REFRESH:
            return
        self._shown = now
        self._status.update(
            f"{self._name}  iteration {row['iteration']:.0f}  f = {row['value']:.6e}  "
            f"gradient {row['gradient_norm']:.1e}  {row['time']:.1f} s"
        )

    def __exit__(self, *error: object) -> None:
        self._status.stop()
