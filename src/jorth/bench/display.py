"""A benchmark on the terminal: a line a run, and a bar with the time left."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jorth.bench.cells import Cell
from jorth.bench.graphs.cells import GraphCell
from jorth.bench.graphs.runner import run_graphs
from jorth.bench.loop import Outcome
from jorth.bench.records import NAME, Row, cell_of, is_graph, is_speed, remaining
from jorth.bench.runner import run_cells
from jorth.bench.speed.cells import SpeedCell
from jorth.bench.speed.runner import run_speed
from jorth.terminal import visible


def run_shown(
    cells: Sequence[Cell] | Sequence[GraphCell] | Sequence[SpeedCell],
    folder: Path,
    *,
    data_dir: Path | None = None,
    retry_failed: bool = False,
) -> Outcome:
    """`run_cells`, `run_graphs` or `run_speed` with its progress on the terminal.

    The time left is judged from the runs of this call.
    """
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
    timed = any(
        isinstance(cell, SpeedCell) for cell in cells
    )  # nothing may run beside a run whose time is the result
    with Progress(
        *columns,
        console=console,
        speed_estimate_period=3600,
        transient=True,
        auto_refresh=not timed,
    ) as progress:
        bar = progress.add_task("warm-up", total=None)

        def started(cell: Any) -> None:
            progress.update(
                bar,
                description=escape(f"{cell.size} {cell.problem} {cell.method}"),
                total=len(left),
            )
            progress.refresh()

        def finished(row: Row) -> None:
            if row["outcome"] != "missing":
                progress.console.print(escape(visible(line(row))), highlight=False)
            elif row["error"] not in said:
                progress.console.print(escape(visible(row["error"])), highlight=False)
                said.add(row["error"])
            progress.advance(bar)

        said: set[str] = set()

        every: Any = cells
        runners: dict[type, Any] = {GraphCell: run_graphs, SpeedCell: run_speed}
        run = runners.get(type(cells[0]), run_cells) if cells else run_cells
        left = remaining(every, folder / NAME, retry_failed=retry_failed)
        outcome: Outcome = run(
            every,
            folder,
            data_dir=data_dir,
            retry_failed=retry_failed,
            on_row=finished,
            on_start=started,
        )
        return outcome


def line(row: Row) -> str:
    """A row in one line."""
    if is_graph(row):
        return _graph_line(row)
    if is_speed(row):
        return _speed_line(row)
    cell = cell_of(row)
    theta = "" if cell.theta is None else f" theta {cell.theta:g}"
    head = f"{cell.size:<26} {cell.problem:<10} {cell.method + theta:<26}"
    if row["outcome"] != "done":
        return f"{head} {row['outcome']}: {row['error']}"
    gap = "" if row["gap"] is None else f" gap {row['gap']:.1e}"
    value = "not finite" if row["value"] is None else f"{row['value']:.3e}"
    return f"{head} {value}{gap}  {row['status']}  {row['time']:.2f} s"


def _graph_line(row: Row) -> str:
    cell = GraphCell.from_json(row["cell"])
    head = f"{cell.size:<22} {cell.stage:<5} {cell.method:<10} seed {cell.seed}, {cell.setting}:"
    if row["outcome"] != "done":
        return f"{head} {row['outcome']}: {row['error']}"
    part = "test" if cell.stage == "test" else "valid"
    return f"{head} loss {row['loss']:.4g}, {part} MRR {row[part]['mrr']:.3f}  {row['time']:.1f} s"


def _speed_line(row: Row) -> str:
    cell = SpeedCell.from_json(row["cell"])
    method = cell.method if cell.beta is None else f"{cell.method} beta {cell.beta:g}"
    head = f"{cell.size}, seed {cell.seed}, {method}:"
    if row["outcome"] != "done":
        return f"{head} {row['outcome']}: {row['error']}"
    times = ", ".join(f"{gap} in {seconds:.3g} s" for gap, seconds in row["reached"].items())
    return f"{head} {times or 'no gap reached'}; {row['status']} at {row['gap']:.0e} after {row['time']:.3g} s"
