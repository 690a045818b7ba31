"""`jorth bench hevp`, `probe` and `procrustes`."""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import click

from jorth.bench.core.cells import plus_signs
from jorth.bench.matrices import cells as grids
from jorth.bench.matrices.paper import Size
from jorth.cli import folder, with_options
from jorth.cli.bench import RUN_OPTIONS, many, one, positive, run_and_report, seed, share
from jorth.cli.bench_files import FILE_OPTIONS, MOST, files_of, is_file, with_files
from jorth.cli.errors import suggestion
from jorth.cli.options import examples
from jorth.storage.matrices import READABLE

FILE = click.Path(dir_okay=False, path_type=Path)
TIME_LIMIT = 10.0
PAPER_TIME_LIMIT = 90.0
QUICK_EVALUATIONS = 30
QUICK_TIME_LIMIT = 0.5
DATA = ("randn", "digits")  # the data that need no files; the default
SMALL_SIZES = {
    "hevp": {"randn": (100, 100), "digits": (1797, 61)},
    "probe": {"randn": (500, 50), "digits": (1797, 61)},
}
"""(m, n) of this data unless --size is given."""
SHARES = {"hevp": 0.5, "probe": 0.9, "procrustes": 0.5}
"""p / n unless --p-share is given; the paper's probes have between 0.85 and 0.92."""
PLANTED_SIZES = (50, 100)
PLANTED_CONDITIONS = (10.0,)
LIMIT_HELP = (
    f"Seconds per run. Default: {TIME_LIMIT:g}, or {PAPER_TIME_LIMIT:g} for the paper's protocol; "
    "no limit if --max-evaluations is given."
)


def rows_x_columns(value: str) -> tuple[int, int]:
    """The type of --size."""
    match = re.fullmatch(r"0*([1-9][0-9]*)x0*([1-9][0-9]*)", value.lower())
    if match is None:
        raise click.BadParameter(f"must be rows x columns, as 1000x780; got {value!r}")
    return int(match[1]), int(match[2])


def number_or_fit(value: str) -> float | Literal["fit"]:
    """The type of --scale."""
    if value.lower() == "fit":
        return "fit"
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise click.BadParameter(f"must be a positive number or fit; got {value!r}")
    return number


SOLVER_HELP = (
    "Name of a method, or module:Class for a solver of yours. Repeatable. Default: all methods."
)
METHOD_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    many("--solver", "solvers", str, SOLVER_HELP),
    many("--seed", "seeds", seed, "Seed of everything random. Repeatable.", grids.Crossing.seeds),
    one("--time-limit", positive, LIMIT_HELP),
    one("--max-evaluations", click.IntRange(1), "Gradients that a run may use."),
    *RUN_OPTIONS,
)
DATA_DIR_HELP = "Folder of the data sets. Default: $JORTH_DATA, or the cache of jorth."
DATA_HELP = (
    "A file of yours (.npy, .npz, .mat, .csv, .tsv, .txt), randn, digits, or a name from "
    "`jorth data list`. Repeatable."
)
SIZE_HELP = (
    "Rows and columns to draw at random, as in 1000x780. Repeatable. Default: the size in the "
    "paper, or a whole file up to {} rows and {} columns (probe: {} and {})."
).format(*MOST["hevp"], *MOST["probe"])
DATA_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    many("--data", "names", str, DATA_HELP, DATA),
    many("--size", "sizes", rows_x_columns, SIZE_HELP),
    many(
        "--p-share",
        "shares",
        share,
        f"Share p / n of plus signs. Default: {SHARES['hevp']}, or {SHARES['probe']} for probe.",
    ),
    one("--protocol", click.Choice(["paper"]), "The paper's data, sizes and time limit."),
    one("--data-dir", folder, DATA_DIR_HELP),
    *FILE_OPTIONS,
    *METHOD_OPTIONS,
)
PROCRUSTES_HELP = "File of rows to align (.npy, .npz, .mat, .csv, .tsv, .txt). Repeatable."
PROBLEM_HELP = "race is unbounded, as printed in the paper; trace is well-posed."
THETA_HELP = (
    "Proximal weight of the JOBCD methods in the race, in units of the curvature. Repeatable."
)
RIDGE_HELP = "Ridge of the trace problem, relative to the mean eigenvalue of D^T D."
APPENDIX_HELP = "With --protocol paper, add the larger p of the paper's appendix."


@click.command(
    epilog=examples(
        "jorth bench hevp --quick --report",
        "jorth bench hevp --data rows.csv --problem trace --report",
        "jorth bench hevp --data digits --size 500x40 --solver J-JOBCD --solver CSDM",
        "jorth bench hevp --protocol paper --data mnist --time-limit 20 -o runs/paper",
    )
)
@one("--problem", click.Choice(["race", "trace", "both"]), PROBLEM_HELP, default="both")
@many("--theta", "thetas", positive, THETA_HELP, grids.Crossing.thetas)
@one("--ridge", positive, RIDGE_HELP, default=grids.RIDGE)
@click.option("--appendix", is_flag=True, help=APPENDIX_HELP)
@with_options(*DATA_OPTIONS)
def hevp(problem: str, ridge: float, appendix: bool, **shared: Any) -> None:
    """The hyperbolic eigenvalue problem.

    It is run as the paper prints it, where it is unbounded (race), and in a well-posed form whose
    optimum is known (trace).
    """
    if appendix and not shared["protocol"]:
        raise click.UsageError("--appendix needs --protocol paper")
    names = _data_names(shared)
    crossing = _crossing(shared)
    problems: Any = ("race", "trace") if problem == "both" else (problem,)
    files = files_of("hevp", shared, SHARES["hevp"])
    if shared["quick"] and not shared["names"]:
        cells = [cell for cell in grids.quick_cells("hevp", crossing) if cell.problem in problems]
    else:
        papers = grids.paper_sizes(appendix=appendix, only=names)
        sizes = papers if shared["protocol"] else [*files, *_sizes("hevp", names, shared)]
        every = grids.hevp_cells(sizes, crossing, problems=problems, ridge=ridge)
        cells = with_files(every, files)
    run_and_report(cells, "hevp", shared, shared["data_dir"])


@click.command(
    epilog=examples(
        "jorth bench probe --quick --report",
        "jorth bench probe --data rows.csv --size 500x30 --report",
        "jorth bench probe --protocol paper --data w1a --seed 0 --seed 1",
    )
)
@one("--alpha", positive, "Radius of the pseudo-hyperboloid.", default=1.0)
@one("--scale", number_or_fit, "Factor on the distances, or fit for the best factor.", default="1")
@one("--ridge", click.FloatRange(0), "Weight of the term ||X||^2 / 2 that is added.", default=0.0)
@with_options(*DATA_OPTIONS)
def probe(alpha: float, scale: float | Literal["fit"], ridge: float, **shared: Any) -> None:
    """The structural probe.

    Distances of the rows are matched by distances on the pseudo-hyperboloid: rows are transformed
    and then lifted onto it.
    """
    names = _data_names(shared)
    crossing = _crossing(shared)
    options: dict[str, Any] = dict(alpha=alpha, scale=scale, ridge=ridge)
    files = files_of("probe", shared, SHARES["probe"])
    if shared["quick"] and not shared["names"]:
        cells = [replace(cell, **options) for cell in grids.quick_cells("probe", crossing)]
    else:
        papers = grids.probe_sizes(names)
        sizes = papers if shared["protocol"] else [*files, *_sizes("probe", names, shared)]
        cells = with_files(grids.probe_cells(sizes, crossing, **options), files)
    run_and_report(cells, "probe", shared, shared["data_dir"])


@click.command(
    epilog=examples(
        "jorth bench procrustes --quick --report",
        "jorth bench procrustes --data source.csv --target target.csv --report",
        "jorth bench procrustes --n 50 --condition 1000 --solver GS-JOBCD",
    )
)
@many("--data", "names", str, PROCRUSTES_HELP)
@one(
    "--target", FILE, "File of the rows to align them with. Default: made from --data, with noise."
)
@one("--target-key", str, "Variable to read from the file of --target.")
@many(
    "--size", "sizes", rows_x_columns, "Rows and columns of the file to draw at random. Repeatable."
)
@with_options(*FILE_OPTIONS)
@many(
    "--n",
    "planted",
    click.IntRange(2),
    "Size of X in generated problems. Repeatable.",
    PLANTED_SIZES,
)
@many("--p-share", "shares", share, "Share p / n of plus signs.", [SHARES["procrustes"]])
@many(
    "--condition",
    "conditions",
    click.FloatRange(1),
    "Condition number of generated sources. Repeatable.",
    PLANTED_CONDITIONS,
)
@with_options(*METHOD_OPTIONS)
def procrustes(**shared: Any) -> None:
    """Procrustes alignment.

    The problems are generated, with a known answer and noise, or come from files.
    """
    crossing = _crossing(shared)
    for name in shared["names"]:
        if not is_file(name):
            raise click.UsageError(f"--data must end in {', '.join(READABLE)}, got {name!r}")
    share = SHARES["procrustes"]
    files = files_of("procrustes", shared, share)
    shares = shared["shares"] or [share]
    conditions = shared["conditions"] or PLANTED_CONDITIONS
    if files:
        cells = with_files(grids.aligning_cells(files, crossing), files)
    elif shared["quick"]:
        cells = grids.quick_cells("procrustes", crossing)
    else:
        sizes = shared["planted"] or PLANTED_SIZES
        cells = grids.procrustes_cells(sizes, shares, conditions, crossing)
    run_and_report(cells, "procrustes", shared)


def _crossing(shared: dict[str, Any]) -> grids.Crossing:
    from jorth.bench.matrices.methods import METHOD_NAMES, is_own, table_name

    if any(map(is_own, shared["solvers"])) and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    limit = shared["time_limit"]
    evaluations = shared["max_evaluations"]
    if shared["quick"]:
        limit = limit or QUICK_TIME_LIMIT
        evaluations = evaluations or QUICK_EVALUATIONS
    elif limit is None and evaluations is None:
        limit = PAPER_TIME_LIMIT if shared.get("protocol") else TIME_LIMIT
    try:
        solvers = []
        for name in shared["solvers"]:
            solvers.append(table_name(name))
    except ValueError as error:
        near = suggestion(name, METHOD_NAMES)
        raise click.UsageError(f"--{error}.{near}") from error
    given = {name: shared[name] for name in ("seeds", "thetas") if shared.get(name)}
    return grids.Crossing(solvers=solvers, max_time=limit, max_evaluations=evaluations, **given)


def _data_names(shared: dict[str, Any]) -> list[str]:
    """The names of the data in lower case, or a UsageError if one is not known."""
    from jorth.datasets import REGISTRY

    if shared["protocol"] and (shared["sizes"] or shared["shares"]):
        raise click.UsageError("--protocol paper fixes --size and --p-share")
    known = (*DATA, *REGISTRY)
    names = [name for name in shared["names"] if not is_file(name)]
    if shared["protocol"] and len(names) < len(shared["names"]):
        raise click.UsageError("--protocol paper has its own data, so --data must not be a file")
    for name in names:
        if name.lower() not in known:
            near = suggestion(name, known)
            listed = ", ".join(known)
            raise click.UsageError(
                f"--data must be one of {listed}, or a file that ends in {', '.join(READABLE)}; "
                f"got {name!r}.{near}"
            )
    return [name.lower() for name in names]


def _sizes(problem: str, names: list[str], shared: dict[str, Any]) -> list[Size]:
    """(data, m, n, p) for all data, sizes and shares; the default size is the paper's."""
    from jorth.datasets import REGISTRY

    shares = shared["shares"] or [SHARES[problem]]
    sizes: list[Size] = []
    for name in names or (() if shared["names"] else DATA):
        default = SMALL_SIZES[problem].get(name)
        if name in REGISTRY:
            default = REGISTRY[name].hevp if problem == "hevp" else REGISTRY[name].hspp
        if not shared["sizes"] and not default:
            what = "eigenvalue problem" if problem == "hevp" else "structural probe"
            raise click.UsageError(f"--size is needed for {name}: the paper has no {what} with it")
        for m, n in shared["sizes"] or [default]:
            sizes += [(name, m, n, plus_signs(n, share)) for share in shares]
    return sizes
