"""One run after another, one row per run; runs that already have a row are skipped."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib import import_module
from pathlib import Path
from typing import Any

from jorth.bench.core import machine
from jorth.bench.core.cells import Cell
from jorth.bench.core.records import NAME, Row, append_row, read_rows, remaining
from jorth.storage.atomic import make_folder


@dataclass(frozen=True)
class Kind:
    """What the core needs to know about one kind of benchmark.

    Its package in `jorth.bench` also has a module ``section`` for the page. ``measure`` adds the
    result of a cell to its row, given the folder of the data and all earlier rows; what it raises
    becomes part of the row. ``tiny`` makes a cell small, for the warm-up of its method.
    ``describe`` turns a row that has a result or failed into one line of text. ``at_hand`` says
    whether the data of a cell are there, so that nothing is compiled for those that are not.
    """

    name: str  # of its package
    cell: type[Cell]
    measure: Callable[[Any, Row, Path | None, Sequence[Row]], None]
    tiny: Callable[[Any], Cell]
    describe: Callable[[Row], str]
    at_hand: Callable[[Any, Path | None], bool] = lambda cell, data_dir: True
    timed: bool = False  # time is the result, so nothing else may run meanwhile

    def cell_of(self, row: Row) -> Cell:
        return self.cell.from_json(row["cell"])

    def sections(self, rows: list[Row], place: Path) -> Any:
        """The sections of the page; figures are written into the folder ``place``."""
        return import_module(f"jorth.bench.{self.name}.section").sections(rows, place)


@dataclass(frozen=True)
class RunSummary:
    """How a benchmark ended.

    Attributes:
        path: The file of the rows.
        total: The number of cells requested.
        finished: How many of them have a row.
        interrupted: Whether Ctrl-C ended the runs.
        without_result: The rows of requested cells that failed or whose data are missing.
    """

    path: Path
    total: int
    finished: int
    interrupted: bool
    without_result: tuple[Row, ...] = ()

    @property
    def succeeded(self) -> int:
        return self.finished - len(self.without_result)


def run_unfinished(
    kind: Kind,
    cells: Sequence[Any],
    folder: Path,
    *,
    data_dir: Path | None = None,
    retry_failed: bool = False,
    on_row: Callable[[Row], object] = lambda row: None,
    on_start: Callable[[Any], object] = lambda cell: None,
) -> RunSummary:
    """Append a row to ``folder``/runs.jsonl for every cell that has none.

    A run that raises becomes a row with its error, and a cell whose data are missing becomes a row
    that says so; the next call tries the latter again. Ctrl-C stops after the current step; the
    interrupted cell gets no row, so the next call runs it again.

    Args:
        kind: The kind of the cells.
        cells: The runs; those of one problem should be adjacent, so that it is prepared once.
        folder: Folder of runs.jsonl.
        data_dir: Folder of the data; None takes JORTH_DATA or the cache.
        retry_failed: Run failed cells again.
        on_row: Called with every new row.
        on_start: Called with every cell before it runs.
    """
    path = folder / NAME
    make_folder(folder)
    todo = remaining(cells, path, retry_failed=retry_failed)
    rows = read_rows(path) if path.exists() else []
    total = len(set(cells))
    interrupted = False
    try:
        warm_up(kind, [cell for cell in todo if kind.at_hand(cell, data_dir)])
        for cell in todo:
            on_start(cell)
            row = run_cell(kind, cell, data_dir, rows)
            append_row(path, row)
            rows.append(row)
            on_row(row)
    except KeyboardInterrupt:
        interrupted = True
    last = {row["key"]: row for row in rows}
    found = [last[cell.key] for cell in dict.fromkeys(cells) if cell.key in last]
    without = tuple(row for row in found if row["outcome"] in ("failed", "missing"))
    return RunSummary(path, total, len(found), interrupted, without)


def warm_up(kind: Kind, cells: Sequence[Cell]) -> None:
    """Run every method once on a tiny problem, so that no clock includes compilation."""
    for cell in {(cell.problem, cell.method): cell for cell in cells}.values():
        run_cell(kind, kind.tiny(cell))


class NoResult(Exception):
    """A run has no result but did not fail; its outcome is "missing" or "left out"."""

    def __init__(self, outcome: str, reason: str) -> None:
        super().__init__(reason)
        self.outcome = outcome


def run_cell(kind: Kind, cell: Cell, data_dir: Path | None = None, rows: Sequence[Row] = ()) -> Row:
    """Run a cell and return its row; errors become part of the row."""
    row: Row = {
        "key": cell.key,
        "cell": cell.record(),
        "outcome": "done",
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "versions": machine.versions(),
        "hardware": machine.hardware(),
        "commit": machine.commit(),
    }
    began = time.perf_counter()
    try:
        kind.measure(cell, row, data_dir, rows)
    except NoResult as error:
        return row | {"outcome": error.outcome, "error": str(error)}
    except Exception as error:
        row["outcome"] = "failed"
        row["error"] = f"{type(error).__name__}: {error}"
        row["traceback"] = traceback.format_exc(limit=-5)
    return row | {"wall": time.perf_counter() - began - row.get("prepared_in", 0.0)}
