"""One run after the other, a row each, whatever is run; what is done already is skipped."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from jorth.bench import machine
from jorth.bench.records import AnyCell, Row, append_row


@dataclass(frozen=True)
class Outcome:
    """How a benchmark ended: cells asked for, those with a row now, and whether Ctrl-C ended it."""

    path: Path
    total: int
    finished: int
    interrupted: bool


def run_each(
    todo: Iterable[AnyCell],
    path: Path,
    run: Callable[[AnyCell], Row],
    *,
    on_row: Callable[[Row], object],
    on_start: Callable[[AnyCell], object],
) -> tuple[int, bool]:
    """Append the row of every cell to the file: how many there are, and whether Ctrl-C ended it."""
    count = 0
    try:
        for cell in todo:
            on_start(cell)
            row = run(cell)
            append_row(path, row)
            count += 1
            on_row(row)
    except KeyboardInterrupt:
        return count, True
    return count, False


def new_row(key: str, cell: dict[str, Any]) -> Row:
    """What every row begins with: the cell, when and where it was run."""
    return {
        "key": key,
        "cell": cell,
        "outcome": "done",
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "versions": machine.versions(),
        "hardware": machine.hardware(),
        "commit": machine.commit(),
    }


def failure(error: Exception) -> Row:
    """What the row of a run that raised has in place of a result."""
    return {
        "outcome": "failed",
        "error": f"{type(error).__name__}: {error}",
        "traceback": traceback.format_exc(limit=-5),
    }
