"""`jorth bench`: methods on equal budgets; each of its commands is loaded when it is named."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from jorth.cli import LazyGroup
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
folder = click.Path(file_okay=False, path_type=Path)
seed = click.IntRange(0)
F = TypeVar("F", bound=Callable[..., Any])


@click.group(cls=LazyGroup, lazy=BENCHMARKS)
def bench() -> None:
    """Run methods on equal budgets. `jorth report` makes a page of the results."""


def one(name: str, kind: Any, words: str, *, default: Any = None) -> Callable[[F], F]:
    """An option; a default is shown in its help."""
    return click.option(name, type=kind, default=default, show_default=True, help=words)


def many(
    name: str, field: str, kind: Any, words: str = "", default: Sequence[Any] = ()
) -> Callable[[F], F]:
    """An option that may be given several times."""
    shown = f"{words} Default: {listed(default)}." if default else words
    return click.option(name, field, multiple=True, type=kind, help=shown.strip())


def listed(values: Sequence[Any]) -> str:
    """The values as in "1, 2 and 3"."""
    texts = [f"{value:g}" if isinstance(value, float) else str(value) for value in values]
    return " and ".join(filter(None, [", ".join(texts[:-1]), texts[-1]]))


def with_options(*options: Callable[[Any], Any]) -> Callable[[F], F]:
    """Several options on a command."""

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


RUN_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.option(
        "--output", "-o", type=folder, help="Default: out/bench/NAME. A second call goes on."
    ),
    click.option("--quick", is_flag=True, help="A small grid in a few seconds."),
    click.option("--retry-failed", is_flag=True, help="Run the cells that failed again."),
)


def run_and_tell(
    cells: Sequence[Cell],
    name: str,
    shared: dict[str, Any],
    data_dir: Path | None = None,
    *,
    last: bool = True,
) -> Path:
    """Run the cells and say where the rows are, and how to go on after Ctrl-C."""
    from jorth.bench.core.terminal import run_shown
    from jorth.bench.kinds import kind_of

    place = shared["output"] or Path("out") / "bench" / name
    kind = kind_of(cells[0].problem if cells else None)
    with one_line_errors():
        summary = run_shown(kind, cells, place, data_dir, shared["retry_failed"])
    click.echo(f"{summary.finished} of {summary.total} runs are in {summary.path}")
    if summary.interrupted:
        command = shlex.join(["jorth", *sys.argv[1:]])
        click.echo(f"Stopped. What is done is kept; the same command goes on:\n    {command}")
        raise SystemExit(130)
    if last:
        click.echo(f"A page of it: jorth report {shlex.quote(str(place))}")
    return summary.path
