"""`jorth bench`: cross data, sizes, methods and seeds; one row a run."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from jorth.cli.bench_options import (
    DATA,
    GRAPHS,
    HEVP,
    PAPER_TIME_LIMIT,
    PLANTED,
    PROBE,
    QUICK_EVALUATIONS,
    QUICK_TIME_LIMIT,
    RUN,
    SHARED,
    SPEED,
    TIME_LIMIT,
    with_options,
)
from jorth.cli.errors import one_line_errors
from jorth.terminal import visible

if TYPE_CHECKING:
    from jorth.bench import Cell
    from jorth.bench.graphs.cells import GraphCell
    from jorth.bench.grids import Crossing
    from jorth.bench.paper import Size
    from jorth.bench.speed.cells import SpeedCell

SMALL = {
    "hevp": {"randn": (100, 100), "digits": (1797, 61)},
    "probe": {"randn": (500, 50), "digits": (1797, 61)},
}
"""(m, n) of the data that every installation has, where --size does not say."""
PROBE_SHARE = 0.9
"""p / n of a probe where --p-share does not say; the paper's are from 0.85 to 0.92."""


@click.group()
def bench() -> None:
    """Run methods on equal budgets: hevp, probe, kge, procrustes, speed. `jorth report` makes a page of it."""


@bench.command()
@with_options(DATA, HEVP, SHARED)
def hevp(
    names: tuple[str, ...],
    sizes: tuple[tuple[int, int], ...],
    protocol: str | None,
    data_dir: Path | None,
    problem: str,
    thetas: tuple[float, ...],
    ridge: float | None,
    appendix: bool,
    shares: tuple[float, ...],
    **shared: Any,
) -> None:
    """The hyperbolic eigenvalue problem: as the paper prints it, and well-posed."""
    from jorth.bench.grids import RIDGE, hevp_cells, paper_sizes, quick_cells

    if appendix and protocol is None:
        raise click.UsageError("--appendix needs --protocol paper")
    chosen = _chosen(names, protocol, sizes, shares)
    crossing = _crossing(shared, thetas=thetas, paper=protocol is not None)
    problems = ("race", "trace") if problem == "both" else (problem,)
    if shared["quick"]:
        cells = [cell for cell in quick_cells("hevp", crossing) if cell.problem in problems]
    else:
        papers = paper_sizes(appendix=appendix, only=chosen)
        grid = papers if protocol else _grid("hevp", chosen, sizes, shares or (0.5,))
        cells = hevp_cells(grid, crossing, problems=problems, ridge=ridge or RIDGE)  # type: ignore[arg-type]
    _run(cells, shared, "hevp", data_dir)


@bench.command()
@with_options(DATA, PROBE, SHARED)
def probe(
    names: tuple[str, ...],
    sizes: tuple[tuple[int, int], ...],
    protocol: str | None,
    data_dir: Path | None,
    alpha: float,
    scale: float | Literal["fit"],
    ridge: float,
    shares: tuple[float, ...],
    **shared: Any,
) -> None:
    """The structural probe: distances of the rows matched on the pseudo-hyperboloid, transform then lift."""
    from dataclasses import replace

    from jorth.bench.grids import probe_cells, probe_sizes, quick_cells

    chosen = _chosen(names, protocol, sizes, shares)
    crossing = _crossing(shared, paper=protocol is not None)
    if shared["quick"]:
        cells = [
            replace(c, alpha=alpha, scale=scale, ridge=ridge)
            for c in quick_cells("probe", crossing)
        ]
    else:
        grid = (
            probe_sizes(chosen)
            if protocol
            else _grid("probe", chosen, sizes, shares or (PROBE_SHARE,))
        )
        cells = probe_cells(grid, crossing, alpha=alpha, scale=scale, ridge=ridge)
    _run(cells, shared, "probe", data_dir)


@bench.command()
@with_options(GRAPHS, RUN)
def kge(
    data_dir: Path | None, graphs: tuple[str, ...], solvers: tuple[str, ...], **options: Any
) -> None:
    """Knowledge graphs: UltraE by three methods, each tuned on held-out triples, then tested on several seeds."""
    from dataclasses import replace

    from jorth.bench.graphs.cells import QUICK, Plan
    from jorth.bench.records import naming, read_rows

    wanted = {name: options[name] for name in ("seeds", "epochs", "trials") if options[name]}
    wanted |= {"graphs": graphs} if graphs else {}
    wanted |= {"methods": solvers} if solvers else {}
    plan = replace(QUICK if options["quick"] else Plan(), **wanted)
    path = _run(plan.trial_cells(), options, "kge", data_dir, last=False)
    with one_line_errors(), naming(path):
        tests = plan.test_cells(read_rows(path))
    _run(tests, options, "kge", data_dir)


@bench.command()
@with_options(PLANTED, SHARED)
def procrustes(
    sizes: tuple[int, ...], conditions: tuple[float, ...], shares: tuple[float, ...], **shared: Any
) -> None:
    """Planted noisy Procrustes problems by every method."""
    _run(_planted_cells(sizes, conditions, shares, shared), shared, "procrustes")


@bench.command()
@with_options(SPEED, RUN)
def speed(**options: Any) -> None:
    """Times to gaps of 1e-2, 1e-4 and 1e-8 on planted Procrustes, beside pymanopt and cdopt, threads equal."""
    from dataclasses import replace

    from jorth.bench.records import is_speed, naming, read_rows
    from jorth.bench.report.speed_figure import picture
    from jorth.bench.speed.cells import QUICK, Plan
    from jorth.bench.speed.table import entries, markdown

    names = ("sizes", "shares", "conditions", "threads", "seeds", "methods", "max_time")
    wanted = {name: options[name] for name in names if options[name]}
    cells = replace(QUICK if options["quick"] else Plan(), **wanted).cells()
    path = _run(cells, options, "speed")
    keys = {cell.key for cell in cells}
    with one_line_errors(), naming(path):
        found = entries([row for row in read_rows(path) if is_speed(row) and row["key"] in keys])
        table = markdown(found)
        drawing = picture(found)
        _replace(path.with_name("speed.md"), "\n".join([*table, ""]).encode())
        if drawing is not None:
            _replace(path.with_name("speed.png"), drawing)
    click.echo("\n".join(map(visible, table)))


def _replace(path: Path, content: bytes) -> None:
    from jorth.storage.atomic import replacing

    with replacing(path) as stream:
        stream.write(content)


def _planted_cells(
    sizes: tuple[int, ...],
    conditions: tuple[float, ...],
    shares: tuple[float, ...],
    shared: dict[str, Any],
) -> list[Cell]:
    from jorth.bench.grids import procrustes_cells, quick_cells

    crossing = _crossing(shared)
    if shared["quick"]:
        return quick_cells("procrustes", crossing)
    return procrustes_cells(sizes or (50, 100), shares or (0.5,), conditions or (10.0,), crossing)


def _crossing(
    shared: dict[str, Any], *, thetas: tuple[float, ...] = (1.0,), paper: bool = False
) -> Crossing:
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
    return Crossing(
        solvers=solvers,
        seeds=shared["seeds"],
        thetas=thetas,
        max_time=limit,
        max_evaluations=evaluations,
    )


def _chosen(
    names: tuple[str, ...],
    protocol: str | None,
    sizes: tuple[tuple[int, int], ...],
    shares: tuple[float, ...],
) -> list[str]:
    """The names of the data in lower case; a UsageError where they are not known or the protocol leaves no choice."""
    if protocol and (sizes or shares):
        raise click.UsageError("--protocol paper fixes --size and --p-share")
    _check_names(names)
    return [name.lower() for name in names]


def _grid(
    problem: str, names: list[str], sizes: tuple[tuple[int, int], ...], shares: tuple[float, ...]
) -> list[Size]:
    """(data, m, n, p) crossed; a data set without a size takes the paper's."""
    from jorth.bench.grids import shares_to_sizes
    from jorth.datasets import REGISTRY

    papers = {
        name: entry.hevp if problem == "hevp" else entry.hspp for name, entry in REGISTRY.items()
    }
    usual = SMALL[problem] | {name: size for name, size in papers.items() if size}
    grid: list[Size] = []
    for name in names or ["randn", "digits"]:
        if not sizes and name not in usual:
            what = "eigenvalue problem" if problem == "hevp" else "structural probe"
            raise click.UsageError(f"--size is needed for {name}: the paper has no {what} with it")
        grid += shares_to_sizes([name], sizes or [usual[name]], shares)
    return grid


def _check_names(names: tuple[str, ...]) -> None:
    from jorth.datasets import REGISTRY

    known = ("randn", "digits", *REGISTRY)
    for name in names:
        if name.lower() not in known:
            raise click.UsageError(f"--data must be one of {', '.join(known)}; got {name!r}")


def _run(
    cells: list[Cell] | list[GraphCell] | list[SpeedCell],
    shared: dict[str, Any],
    name: str,
    data_dir: Path | None = None,
    *,
    last: bool = True,
) -> Path:
    """Run the cells and say where the rows are, and how to go on after Ctrl-C."""
    from jorth.bench.display import run_shown

    folder = shared["output"] or Path("out") / "bench" / name
    with one_line_errors():
        outcome = run_shown(cells, folder, data_dir=data_dir, retry_failed=shared["retry_failed"])
    click.echo(f"{outcome.finished} of {outcome.total} runs are in {outcome.path}")
    if outcome.interrupted:
        command = shlex.join(["jorth", *sys.argv[1:]])
        click.echo(f"Stopped. What is done is kept; the same command goes on:\n    {command}")
        raise SystemExit(130)
    if last:
        click.echo(f"A page of it: jorth report {shlex.quote(str(folder))}")
    return outcome.path
