"""`jorth bench`: methods on equal budgets; each of its commands is loaded when it is used."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jorth.cli import F, LazyGroup, folder
from jorth.cli.errors import one_line_errors

if TYPE_CHECKING:
    from jorth.bench.core.cells import Cell

# name: module and the click command in it
BENCHMARKS = {
    "hevp": "jorth.cli.bench_matrices:hevp",
    "kge": "jorth.cli.bench_graphs:kge",
    "probe": "jorth.cli.bench_matrices:probe",
    "procrustes": "jorth.cli.bench_matrices:procrustes",
    "speed": "jorth.cli.bench_speed:speed",
}
share = click.FloatRange(0, 1, min_open=True, max_open=True)
positive = click.FloatRange(0, min_open=True)
seed = click.IntRange(0)


@click.group(cls=LazyGroup, lazy=BENCHMARKS)
def bench() -> None:
    """Run methods on equal budgets. `jorth report` turns the results into a page."""


def one(name: str, kind: Any, text: str, *, default: Any = None) -> Callable[[F], F]:
    """An option whose help shows its default."""
    return click.option(name, type=kind, default=default, show_default=True, help=text)


def many(
    name: str, field: str, kind: Any, text: str = "", default: Sequence[Any] = ()
) -> Callable[[F], F]:
    """An option that may be given several times."""
    values = [f"{value:g}" if isinstance(value, float) else str(value) for value in default]
    if values:
        listed = " and ".join(filter(None, [", ".join(values[:-1]), values[-1]]))
        text = f"{text} Default: {listed}."
    return click.option(name, field, multiple=True, type=kind, help=text.strip())


OUTPUT_HELP = "Folder of the rows, where an earlier run is resumed. Default: out/bench/NAME."
RUN_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.option("--output", "-o", type=folder, help=OUTPUT_HELP),
    click.option("--quick", is_flag=True, help="Run a small grid in a few seconds."),
    click.option("--retry-failed", is_flag=True, help="Run failed cells again."),
)


def run_and_report(
    cells: Sequence[Cell],
    name: str,
    shared: dict[str, Any],
    data_dir: Path | None = None,
    *,
    last: bool = True,
) -> Path:
    """Run the cells, and print where the rows are and how to resume after Ctrl-C."""
    from jorth.bench.core.terminal import run_shown
    from jorth.bench.kinds import kind_of

    place = shared["output"] or Path("out") / "bench" / name
    kind = kind_of(cells[0].problem if cells else None)
    with one_line_errors():
        summary = run_shown(kind, cells, place, data_dir, shared["retry_failed"])
    click.echo(f"{summary.finished} of {summary.total} runs are in {summary.path}")
    if summary.interrupted:
        command = shlex.join(["jorth", *sys.argv[1:]])
        click.echo(f"Stopped. Finished runs are saved; the same command continues:\n    {command}")
        raise SystemExit(130)
    if last:
        click.echo(f"To make a page: jorth report {shlex.quote(str(place))}")
    return summary.path
