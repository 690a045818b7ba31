"""`jorth bench`: methods on equal budgets; each of its commands is loaded when it is used."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jorth.cli import F, LazyGroup, folder
from jorth.cli.errors import INTERRUPTED, one_line_errors
from jorth.cli.options import examples
from jorth.terminal import visible

if TYPE_CHECKING:
    from jorth.bench.core.cells import Cell
    from jorth.bench.core.runs import RunSummary

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


@click.group(
    cls=LazyGroup,
    lazy=BENCHMARKS,
    epilog=examples(
        "jorth bench hevp --quick --report", "jorth bench procrustes --data rows.csv --report"
    ),
)
def bench() -> None:
    """Compare methods on equal budgets.

    Every run becomes a row in a file, and the same command continues after Ctrl-C. `jorth report`
    turns the rows into a page.
    """


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


OUTPUT_HELP = "Folder of the rows; runs that it has are skipped. Default: out/bench/NAME."
RUN_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.option("--output", "-o", type=folder, help=OUTPUT_HELP),
    click.option("--quick", is_flag=True, help="Run a small grid in a few seconds."),
    click.option("--retry-failed", is_flag=True, help="Repeat the runs that failed."),
    click.option("--report", is_flag=True, help="Then write the page, as `jorth report` does."),
)


def run_and_report(
    cells: Sequence[Cell],
    name: str,
    shared: dict[str, Any],
    data_dir: Path | None = None,
    *,
    last: bool = True,
) -> Path:
    """Run the cells, say where the rows are, and write the page if it is asked for.

    Ctrl-C ends with the command that continues, and a benchmark without any result with an error.
    """
    from jorth.bench.core.terminal import run_shown
    from jorth.bench.kinds import kind_of, write_report

    if not cells:
        raise click.UsageError("there is nothing to run: no --solver given is for this problem")
    place = shared["output"] or Path("out") / "bench" / name
    with one_line_errors():
        kind = kind_of(cells[0].problem)
        summary = run_shown(kind, cells, place, data_dir, shared["retry_failed"])
    _say_how_it_ended(summary)
    if last and shared["report"]:
        with one_line_errors():
            click.echo(f"Report: {write_report(place, place / 'report')}")
    elif last:
        click.echo(f"To make a page: jorth report {shlex.quote(str(place))}")
    return summary.path


def _say_how_it_ended(summary: RunSummary) -> None:
    from jorth.bench.core.records import error_of

    click.echo(f"{summary.succeeded} of {summary.total} runs are in {summary.path}")
    if summary.interrupted:
        command = shlex.join(["jorth", *sys.argv[1:]])
        click.echo(f"Stopped. Finished runs are saved; the same command continues:\n    {command}")
        raise SystemExit(INTERRUPTED)
    if not summary.without_result:
        return
    failed = len(summary.without_result)
    first = visible(error_of(summary.without_result[0]))
    if not summary.succeeded:
        raise click.ClickException(f"none of the {failed} runs has a result: {first}")
    click.echo(f"{failed} of {summary.total} runs have no result; the first: {first}", err=True)
