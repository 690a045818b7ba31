"""A benchmark on the terminal: a line a run, and a bar with the time left."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jorth.bench.cells import Cell
from jorth.bench.records import Row, cell_of
from jorth.bench.runner import Outcome, run_cells


def run_shown(
    cells: Sequence[Cell], folder: Path, *, data_dir: Path | None = None, retry_failed: bool = False
) -> Outcome:
    """`run_cells` with its progress on the terminal. The time left is judged from the runs of this call."""
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(soft_wrap=True)
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("left"),
        TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=console, speed_estimate_period=3600, transient=True) as progress:
        bar = progress.add_task("warm-up", total=None)

        def started(cell: Cell) -> None:
            progress.update(bar, description=escape(f"{cell.size} {cell.problem} {cell.method}"), total=len(left))

        def finished(row: Row) -> None:
            progress.console.print(escape(line(row)), highlight=False)
            progress.advance(bar)

        left = unfinished(cells, folder, retry_failed)
        return run_cells(cells, folder, data_dir=data_dir, retry_failed=retry_failed, on_row=finished, on_start=started)


def unfinished(cells: Sequence[Cell], folder: Path, retry_failed: bool) -> list[Cell]:
    """The cells that `run_cells` will run."""
    from jorth.bench.records import NAME, read_rows
    from jorth.bench.records import finished as finished_keys

    path = folder / NAME
    over = finished_keys(read_rows(path), retry_failed=retry_failed) if path.exists() else set()
    return [cell for cell in dict.fromkeys(cells) if cell.key not in over]


def line(row: Row) -> str:
    """A row in one line."""
    cell = cell_of(row)
    theta = "" if cell.theta is None else f" theta {cell.theta:g}"
    head = f"{cell.size:<24} {cell.problem:<10} {cell.method + theta:<26}"
    if row["outcome"] != "done":
        return f"{head} {row['outcome']}: {row['error']}"
    gap = "" if row["gap"] is None else f" gap {row['gap']:.1e}"
    value = "not finite" if row["value"] is None else f"{row['value']:.3e}"
    return f"{head} {value}{gap}  {row['status']}  {row['time']:.2f} s"
