"""A benchmark on the terminal: one line per run, and a progress bar with the time left."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from textwrap import fill
from typing import Any

from rich import progress as bars
from rich.console import Console
from rich.markup import escape

from jorth.bench.core.cells import Cell
from jorth.bench.core.records import NAME, Row, remaining
from jorth.bench.core.runs import Kind, RunSummary, run_unfinished
from jorth.terminal import visible

HANGING: dict[str, Any] = dict(
    subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
)


def run_shown(
    kind: Kind, cells: Sequence[Cell], folder: Path, data_dir: Path | None, retry_failed: bool
) -> RunSummary:
    """Run the cells and show the progress on the terminal.

    The time left is estimated from the runs of this call. Missing data are reported once.
    """
    total = len(remaining(cells, folder / NAME, retry_failed=retry_failed))
    reported: set[str] = set()
    console = Console()
    progress = bars.Progress(
        bars.TextColumn("{task.description}"),
        bars.BarColumn(),
        bars.MofNCompleteColumn(),
        bars.TimeElapsedColumn(),
        bars.TextColumn("left"),
        bars.TimeRemainingColumn(),
        console=console,
        speed_estimate_period=3600,
        transient=True,
        auto_refresh=not kind.timed,
    )
    with progress if console.is_terminal else nullcontext():
        bar = progress.add_task("warm-up", total=None)

        def started(cell: Cell) -> None:
            text = escape(f"{cell.size} {cell.problem} {cell.method}")
            progress.update(bar, description=text, total=total)
            progress.refresh()

        def finished(row: Row) -> None:
            missing = row["outcome"] == "missing"
            text = row["error"] if missing else kind.describe(row)
            if not missing or text not in reported:
                line = fill(visible(text), console.width, **HANGING)
                console.print(line, markup=False, highlight=False, soft_wrap=True)
                reported.add(text)
            progress.advance(bar)

        return run_unfinished(
            kind, cells, folder, data_dir=data_dir, retry_failed=retry_failed, on_row=finished,
            on_start=started,
        )  # fmt: skip
