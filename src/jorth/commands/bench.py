"""`jorth bench`: cross data, sizes, methods and seeds; one row a run."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from jorth.bench import Cell
    from jorth.bench.grids import Crossing

TIME_LIMIT = 10.0
PAPER_TIME_LIMIT = 90.0
QUICK_EVALUATIONS = 30
QUICK_TIME_LIMIT = 0.5


def parse_sizes(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[tuple[int, int], ...]:
    """Rows x columns, as 1000x780."""
    sizes = []
    for value in values:
        parts = value.lower().split("x")
        if len(parts) != 2 or not all(part.isdecimal() and int(part) >= 1 for part in parts):
            raise click.BadParameter(f"must be rows x columns, as 1000x780; got {value!r}")
        sizes.append((int(parts[0]), int(parts[1])))
    return tuple(sizes)


LIMIT_HELP = (
    f"Seconds a run. Default {TIME_LIMIT:g}, or {PAPER_TIME_LIMIT:g} for the paper's protocol; none beside "
    "--max-evaluations."
)
share = click.FloatRange(0, 1, min_open=True, max_open=True)
positive = click.FloatRange(0, min_open=True)
folder = click.Path(file_okay=False, path_type=Path)
Options = tuple[Callable[[Any], Any], ...]
SHARED: Options = (
    click.option("--p-share", "shares", multiple=True, type=share, help="p / n. Default 0.5."),
    click.option("--solver", "solvers", multiple=True, help="A method, by its name in the tables. Default: all."),
    click.option("--seed", "seeds", multiple=True, type=click.IntRange(0), default=(0,), show_default=True),
    click.option("--time-limit", type=positive, help=LIMIT_HELP),
    click.option("--max-evaluations", type=click.IntRange(1), help="Gradients a run."),
    click.option("--output", "-o", type=folder, help="Folder; a second call goes on. Default: out/bench/NAME."),
    click.option("--quick", is_flag=True, help="A small grid in a few seconds."),
    click.option("--retry-failed", is_flag=True, help="Run the cells that failed again."),
)
PLANTED: Options = (
    click.option("--n", "sizes", multiple=True, type=click.IntRange(2), help="Size of X. Default: 50 and 100."),
    click.option("--condition", "conditions", multiple=True, type=click.FloatRange(1), help="Of S. Default: 10."),
)
HEVP: Options = (
    click.option(
        "--data", "names", multiple=True,
        help="randn, digits, or a data set of `jorth data list`. Default: randn and digits.",
    ),
    click.option(
        "--size", "sizes", multiple=True, metavar="MxN", callback=parse_sizes, help="Default: the size in the paper."
    ),
    click.option(
        "--problem", type=click.Choice(["race", "trace", "both"]), default="both", show_default=True,
        help="race: as printed in the paper, unbounded. trace: well-posed.",
    ),
    click.option(
        "--theta", "thetas", multiple=True, type=positive, default=(1.0,), show_default=True,
        help="Of the JOBCD methods in the race, in units of the curvature.",
    ),
    click.option("--ridge", type=positive, help="Of the trace problem, in mean eigenvalues of D^T D. Default: 0.01."),
    click.option("--protocol", type=click.Choice(["paper"]), help="paper: the grid of the paper's Table 1."),
    click.option("--appendix", is_flag=True, help="With --protocol paper: also the larger p of its appendix."),
    click.option("--data-dir", type=folder, help="Folder of the data. Default: $JORTH_DATA, else a cache of jorth."),
)  # fmt: skip


def with_options(*groups: Options) -> Callable[[Any], Any]:
    """All options of some groups on a command; those that take a list are repeated."""

    def decorate(command: Any) -> Any:
        for option in reversed([option for group in groups for option in group]):
            command = option(command)
        return command

    return decorate


@click.group()
def bench() -> None:
    """Run methods on equal budgets: hevp, procrustes, speed. `jorth report` makes a page of it."""


@bench.command()
@with_options(HEVP, SHARED)
def hevp(
    names: tuple[str, ...],
    sizes: tuple[tuple[int, int], ...],
    problem: str,
    thetas: tuple[float, ...],
    ridge: float | None,
    protocol: str | None,
    appendix: bool,
    data_dir: Path | None,
    shares: tuple[float, ...],
    **shared: Any,
) -> None:
    """The hyperbolic eigenvalue problem: as the paper prints it, and well-posed."""
    from jorth.bench.grids import RIDGE, hevp_cells, paper_sizes, quick_cells

    if appendix and protocol is None:
        raise click.UsageError("--appendix needs --protocol paper")
    if protocol and (sizes or shares):
        raise click.UsageError("--protocol paper fixes --size and --p-share")
    crossing = _crossing(shared, thetas=thetas, paper=protocol is not None)
    problems = ("race", "trace") if problem == "both" else (problem,)
    _check_names(names)
    if shared["quick"]:
        cells = [cell for cell in quick_cells("hevp", crossing) if cell.problem in problems]
    else:
        chosen = [name.lower() for name in names]
        grid = paper_sizes(appendix=appendix, only=chosen) if protocol else _grid(chosen, sizes, shares or (0.5,))
        cells = hevp_cells(grid, crossing, problems=problems, ridge=ridge or RIDGE)  # type: ignore[arg-type]
    _run(cells, shared, "hevp", data_dir)


@bench.command()
@with_options(PLANTED, SHARED)
def procrustes(sizes: tuple[int, ...], conditions: tuple[float, ...], shares: tuple[float, ...], **shared: Any) -> None:
    """Planted noisy Procrustes problems by every method."""
    _run(_planted_cells(sizes, conditions, shares, shared), shared, "procrustes")


@bench.command()
@with_options(PLANTED, SHARED)
def speed(sizes: tuple[int, ...], conditions: tuple[float, ...], shares: tuple[float, ...], **shared: Any) -> None:
    """Times to gaps of 1e-2, 1e-4 and 1e-8 on planted Procrustes, as ratios to the fastest."""
    from jorth.bench.records import read_rows
    from jorth.bench.report.speed import ratio_lines

    cells = _planted_cells(sizes, conditions, shares, shared)
    path = _run(cells, shared, "speed")
    wanted = {cell.key for cell in cells}
    for line in ratio_lines([row for row in read_rows(path) if row["key"] in wanted]):
        click.echo(line)


def _planted_cells(
    sizes: tuple[int, ...], conditions: tuple[float, ...], shares: tuple[float, ...], shared: dict[str, Any]
) -> list[Cell]:
    from jorth.bench.grids import procrustes_cells, quick_cells

    crossing = _crossing(shared)
    if shared["quick"]:
        return quick_cells("procrustes", crossing)
    return procrustes_cells(sizes or (50, 100), shares or (0.5,), conditions or (10.0,), crossing)


def _crossing(shared: dict[str, Any], *, thetas: tuple[float, ...] = (1.0,), paper: bool = False) -> Crossing:
    from jorth.bench.grids import Crossing
    from jorth.bench.methods import full_name

    limit, evaluations = shared["time_limit"], shared["max_evaluations"]
    if shared["quick"]:
        limit, evaluations = limit or QUICK_TIME_LIMIT, evaluations or QUICK_EVALUATIONS
    elif limit is None and evaluations is None:
        limit = PAPER_TIME_LIMIT if paper else TIME_LIMIT
    try:
        solvers = [full_name(name) for name in shared["solvers"]]
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    return Crossing(solvers=solvers, seeds=shared["seeds"], thetas=thetas, max_time=limit, max_evaluations=evaluations)


def _grid(
    names: list[str], sizes: tuple[tuple[int, int], ...], shares: tuple[float, ...]
) -> list[tuple[str, int, int, int]]:
    """(data, m, n, p) crossed; a data set without a size takes the paper's."""
    from jorth.bench.grids import shares_to_sizes
    from jorth.datasets import REGISTRY

    usual = {"randn": (100, 100), "digits": (1797, 61)} | {n: e.hevp for n, e in REGISTRY.items() if e.hevp}
    grid = []
    for name in names or ["randn", "digits"]:
        if not sizes and name not in usual:
            raise click.UsageError(f"--size is needed for {name}: the paper has no eigenvalue problem with it")
        grid += shares_to_sizes([name], sizes or [usual[name]], shares)
    return grid


def _check_names(names: tuple[str, ...]) -> None:
    from jorth.datasets import REGISTRY

    known = ("randn", "digits", *REGISTRY)
    for name in names:
        if name.lower() not in known:
            raise click.UsageError(f"--data must be one of {', '.join(known)}; got {name!r}")


def _run(cells: list[Cell], shared: dict[str, Any], name: str, data_dir: Path | None = None) -> Path:
    """Run the cells and say where the rows are, and how to go on after Ctrl-C."""
    from jorth.bench.display import run_shown

    folder = shared["output"] or Path("out") / "bench" / name
    try:
        outcome = run_shown(cells, folder, data_dir=data_dir, retry_failed=shared["retry_failed"])
    except (OSError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"{outcome.finished} of {outcome.total} runs are in {outcome.path}")
    if outcome.interrupted:
        command = shlex.join(["jorth", *sys.argv[1:]])
        click.echo(f"Stopped. What is done is kept; the same command goes on:\n    {command}")
        raise SystemExit(130)
    click.echo(f"A page of it: jorth report {shlex.quote(str(folder))}")
    return outcome.path
