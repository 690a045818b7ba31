"""One run after the other, a row each, whatever is run; what is done already is skipped."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from jorth.bench import machine
from jorth.bench.records import NAME, AnyCell, Row, append_row, remaining


@dataclass(frozen=True)
class Outcome:
    """How a benchmark ended: cells asked for, those with a row now, and whether Ctrl-C ended it."""

    path: Path
    total: int
    finished: int
    interrupted: bool


def run_unfinished(
    cells: Sequence[AnyCell],
    folder: Path,
    run: Callable[[AnyCell], Row],
    *,
    warm_up: Callable[[Sequence[AnyCell]], object],
    retry_failed: bool,
    on_row: Callable[[Row], object],
    on_start: Callable[[AnyCell], object],
) -> Outcome:
    """Append a row to ``folder``/runs.jsonl for every cell that has none. Ctrl-C ends it; the cell in hand has no row.

    Args:
        cells: All that are asked for.
        folder: Of the rows.
        run: Gives the row of a cell.
        warm_up: Told the cells that will be run, before the first of them.
        retry_failed: Run the cells that failed again.
        on_row: Told every new row.
        on_start: Told every cell before it runs.
    """
    path = folder / NAME
    todo = remaining(cells, path, retry_failed=retry_failed)
    total = len(set(cells))
    finished = total - len(todo)
    try:
        warm_up(todo)
        for cell in todo:
            on_start(cell)
            row = run(cell)
            append_row(path, row)
            finished += 1
            on_row(row)
    except KeyboardInterrupt:
        return Outcome(path, total, finished, True)
    return Outcome(path, total, finished, False)


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
