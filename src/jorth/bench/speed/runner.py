"""Run the cells: ours by `minimize`, the peers by their own optimisers, on the same problem and threads; a row each."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from jorth.bench.loop import Outcome, failure, new_row, run_unfinished
from jorth.bench.problems import prepare
from jorth.bench.records import NAME, Row, is_speed, read_rows
from jorth.bench.scoring import GAPS
from jorth.bench.speed.cdopt_peer import run_cdopt
from jorth.bench.speed.cells import CDOPT, CHAIN, DATA, OURS, SpeedCell
from jorth.bench.speed.choice import left_out
from jorth.bench.speed.dense import DenseProcrustes
from jorth.bench.speed.pymanopt_peer import run_pymanopt
from jorth.bench.speed.trace import Goal, Trace, least_gap, reached
from jorth.clock import Clock
from jorth.objectives import Procrustes
from jorth.signature import Signature
from jorth.solvers import Stage, Status, minimize
from jorth.solvers.procrustes import data_start
from jorth.stopping import ValueBelow

SWEEPS = 1
"""Sweeps of GS-JOBCD before L-BFGS in the chain; chosen on other seeds than those that are reported."""
REPEATS = 3
"""So often a short run is made; the one with the median time counts."""
SHORT = 1.0
"""Seconds."""
Rows = list[tuple[float, float]]
SOLVERS: dict[str, Any] = {
    "GS-JOBCD": "gs-jobcd",
    "J-JOBCD": "j-jobcd",
    CHAIN: [Stage("gs-jobcd", max_iterations=SWEEPS), "riemannian-lbfgs"],
    "Riemannian L-BFGS": "riemannian-lbfgs",
    "UMCM": "umcm",
}


def run_speed(
    cells: Sequence[SpeedCell],
    folder: Path,
    *,
    data_dir: Path | None = None,
    retry_failed: bool = False,
    on_row: Callable[[Row], object] = lambda row: None,
    on_start: Callable[[SpeedCell], object] = lambda cell: None,
) -> Outcome:
    """Run what is not finished yet and append a row for each to ``folder``/runs.jsonl, as `run_cells` does.

    Args:
        cells: The runs, sizes rising.
        folder: Of the rows.
        data_dir: Not used: the problems are generated.
        retry_failed: Run the cells that failed again.
        on_row: Told every new row.
        on_start: Told every cell before it runs.
    """
    path = folder / NAME
    rows = [row for row in read_rows(path) if is_speed(row)] if path.exists() else []

    def keep(row: Row) -> None:
        rows.append(row)
        on_row(row)

    return run_unfinished(
        cells,
        folder,
        lambda cell: run_cell(cell, rows),
        warm_up=warm_up,
        retry_failed=retry_failed,
        on_row=keep,
        on_start=on_start,
    )


def warm_up(cells: Sequence[SpeedCell]) -> None:
    """Run every method once on a tiny problem: compilation and first imports are on no clock."""
    tiny = {
        cell.method: replace(cell, n=6, p=3, condition=2.0, seed=0, max_time=0.1) for cell in cells
    }
    for cell in tiny.values():
        run_cell(cell, [])


def run_cell(cell: SpeedCell, rows: Sequence[Row]) -> Row:
    """The row of a cell, whatever happens; only Ctrl-C passes through. ``rows`` are those before it."""
    row = new_row(cell.key, asdict(cell))
    reason = left_out(cell, rows)
    if reason is not None:
        return row | {"outcome": "left out", "error": reason}
    began = time.perf_counter()
    try:
        with equal_threads(cell.threads), clock_for(cell.threads):
            row["versions"] = row["versions"] | peer_versions()
            row |= {"hardware": row["hardware"] | {"threads": cell.threads}} | _measure(cell)
    except ImportError as error:
        row |= {
            "outcome": "missing",
            "error": f"{error.name} is not installed: pip install 'jorth[bench]'",
        }
    except Exception as error:
        row |= failure(error)
    return row | {"wall": time.perf_counter() - began}


@contextmanager
def equal_threads(count: int) -> Iterator[None]:
    """So many threads for torch and for every BLAS that is loaded, those of NumPy and SciPy too."""
    from threadpoolctl import threadpool_limits

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        with threadpool_limits(limits=count):
            yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def clock_for(threads: int) -> Iterator[None]:
    """Of one thread processor seconds, which others on the machine do not lengthen; of several those on the wall."""
    before = Clock.now
    Clock.now = time.process_time if threads == 1 else time.perf_counter
    try:
        yield
    finally:
        Clock.now = before


def peer_versions() -> dict[str, str]:
    """Of the libraries from outside."""
    found = {}
    for name in ("pymanopt", "cdopt"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


@dataclass(frozen=True)
class _Planted:
    """What the runs of one problem share."""

    objective: Procrustes
    signature: Signature
    first: float
    optimum: float
    gradient_norm: float


@lru_cache(maxsize=1)
def _planted(n: int, p: int, condition: float, seed: int) -> _Planted:
    from jorth.bench.cells import Cell

    problem = prepare(
        Cell(
            problem="procrustes",
            data="planted",
            m=2 * n,
            n=n,
            p=p,
            method="",
            seed=seed,
            condition=condition,
        )
    )
    assert isinstance(problem.objective, Procrustes)
    assert problem.optimum is not None
    norm = problem.notes["reference_gradient_norm"]
    assert isinstance(norm, float)
    return _Planted(problem.objective, problem.signature, problem.first, problem.optimum, norm)


def _measure(cell: SpeedCell) -> Row:
    planted = _planted(cell.n, cell.p, cell.condition, cell.seed)
    goal = Goal(planted.first, planted.optimum, cell.max_time)
    run = _ours if cell.method in OURS else _peer
    found, spent = _median_run(lambda: run(cell, planted, goal))
    times = reached(found, goal)
    if f"{min(GAPS):g}" in times:
        status = "reached"
    else:
        status = "budget" if spent >= cell.max_time else "stopped"
    return {
        "status": status,
        "reached": times,
        "gap": least_gap(found, goal),
        "time": spent,
        "clock": "processor" if Clock.now is time.process_time else "wall",
        "steps": len(found) - 1,
        "notes": {
            "reference_gradient_norm": planted.gradient_norm,
            "start_value": goal.first,
            "optimum": goal.optimum,
        },
    }


def _median_run(run: Callable[[], tuple[Rows, float]]) -> tuple[Rows, float]:
    """The rows and the time of a run, of a short one the median of several."""
    runs = [run()]
    while runs[0][1] < SHORT and len(runs) < REPEATS:
        runs.append(run())
    return sorted(runs, key=lambda pair: pair[1])[len(runs) // 2]


def _ours(cell: SpeedCell, planted: _Planted, goal: Goal) -> tuple[Rows, float]:
    began = Clock.now()
    start = data_start(planted.objective, planted.signature) if cell.method.endswith(DATA) else None
    before = 0.0 if start is None else Clock.now() - began
    result = minimize(
        planted.objective,
        start,
        signature=planted.signature,
        method=SOLVERS[cell.method.removesuffix(DATA)],
        gradient_tolerance=0.0,
        max_time=goal.max_time,
        stop=ValueBelow(goal.target),
        seed=cell.seed,
    )
    if result.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    times = (before + result.history["time"]).tolist()
    return list(zip(times, result.history["value"].tolist(), strict=True)), before + result.time


def _peer(cell: SpeedCell, planted: _Planted, goal: Goal) -> tuple[Rows, float]:
    def value(X: Any) -> float:
        return math.nan if X is None else planted.objective.value(torch.from_numpy(X)).item()

    dense = DenseProcrustes(planted.objective)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # overflow on long trial steps; deprecations inside the libraries
        trace = Trace(goal, value)
        if cell.method == CDOPT:
            assert cell.beta is not None
            run_cdopt(dense, planted.signature, trace, cell.beta)
        else:
            start = (
                data_start(planted.objective, planted.signature).numpy()
                if cell.method.endswith(DATA)
                else None
            )
            run_pymanopt(dense, planted.signature, trace, cell.method.removesuffix(DATA), start)
    return trace.rows, trace.rows[-1][0]
