"""Time a cell: our methods by `minimize`, peers by their own optimisers, with equal threads."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jorth.bench.core.cells import GAPS
from jorth.bench.core.machine import package_versions
from jorth.bench.core.records import Row, reason
from jorth.bench.core.runs import Kind, NoResult
from jorth.bench.matrices.problems import BenchProblem, planted_problem
from jorth.bench.speed.cells import CDOPT, CHAIN, DATA_START, OURS, SpeedCell, left_out
from jorth.bench.speed.peers import DenseProcrustes, Records, Trace, run_cdopt, run_pymanopt
from jorth.clock import Clock
from jorth.objectives import Procrustes
from jorth.signature import Signature
from jorth.solvers import Stage, Status, data_start, minimize
from jorth.stopping import ValueBelow

CHAIN_SWEEPS = 1
"""The number of sweeps of GS-JOBCD before L-BFGS, tuned on seeds that are not reported."""
TARGET_GAP = 0.9 * min(GAPS)  # a run ends at this gap
REPEATS = 3  # a short run is made this many times, and the one with the median time counts
SHORT_SECONDS = 1.0  # runs below this are short
SOLVERS: dict[str, Any] = {
    "GS-JOBCD": "gs-jobcd",
    "J-JOBCD": "j-jobcd",
    CHAIN: [Stage("gs-jobcd", max_iterations=CHAIN_SWEEPS), "riemannian-lbfgs"],
    "Riemannian L-BFGS": "riemannian-lbfgs",
    "UMCM": "umcm",
}


def tiny(cell: SpeedCell) -> SpeedCell:
    """The same method on a tiny problem."""
    return replace(cell, n=6, p=3, condition=2.0, seed=0, max_time=0.1)


def measure(cell: SpeedCell, row: Row, data_dir: Path | None, rows: Sequence[Row]) -> None:
    """Add times and gaps to the row; the problem is generated, so that no data are needed."""
    why = left_out(cell, [row for row in rows if row["cell"].get("problem") == cell.problem])
    if why is not None:
        raise NoResult("left out", why)
    row["versions"] = row["versions"] | package_versions("pymanopt", "cdopt")
    row["hardware"] = row["hardware"] | {"threads": cell.threads}
    try:
        with equal_threads(cell.threads), clock_for(cell.threads):
            row |= _timed(cell)
    except ImportError as error:
        needed = f"{error.name} is not installed: pip install 'jorth[bench]'"
        raise NoResult("missing", needed) from error


@contextmanager
def equal_threads(count: int) -> Iterator[None]:
    """Use ``count`` threads in torch and in every BLAS, also those of NumPy and SciPy."""
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
    """Measure processor time if there is one thread, so that other processes do not matter."""
    before = Clock.now
    Clock.now = time.process_time if threads == 1 else time.perf_counter
    try:
        yield
    finally:
        Clock.now = before


_planted = lru_cache(maxsize=1)(planted_problem)


def _timed(cell: SpeedCell) -> Row:
    problem = _planted(Signature(cell.p, cell.n - cell.p), cell.condition, cell.seed)
    run = _run_ours if cell.method in OURS else _run_peer
    records, spent = _median_run(lambda: run(cell, problem))
    times, values = zip(*records, strict=True)
    reached = {gap: times[first] for gap, first in problem.first_within(values).items()}
    if f"{min(GAPS):g}" in reached:
        status = "reached"
    else:
        status = "budget" if spent >= cell.max_time else "stopped"
    return {
        "status": status,
        "reached": reached,
        "gap": float(np.nanmin(problem.gap(np.array(values)))),
        "time": spent,
        "clock": "processor" if Clock.now is time.process_time else "wall",
        "steps": len(records) - 1,
        "notes": {
            "reference_gradient_norm": problem.notes["reference_gradient_norm"],
            "start_value": problem.first,
            "optimum": problem.optimum,
        },
    }


def _median_run(run: Callable[[], tuple[Records, float]]) -> tuple[Records, float]:
    """The records and the time of a run; a short one is repeated and the median taken."""
    runs = [run()]
    while runs[0][1] < SHORT_SECONDS and len(runs) < REPEATS:
        runs.append(run())
    return sorted(runs, key=lambda pair: pair[1])[len(runs) // 2]


def _start(cell: SpeedCell, problem: BenchProblem) -> Tensor | None:
    """The start from the data, or None for the identity."""
    if not cell.method.endswith(DATA_START):
        return None
    assert isinstance(problem.objective, Procrustes)
    return data_start(problem.objective, problem.signature)


def _run_ours(cell: SpeedCell, problem: BenchProblem) -> tuple[Records, float]:
    began = Clock.now()
    start = _start(cell, problem)
    before = 0.0 if start is None else Clock.now() - began
    result = minimize(
        problem.objective,
        start,
        signature=problem.signature,
        method=SOLVERS[cell.method.removesuffix(DATA_START)],
        gradient_tolerance=0.0,
        max_time=cell.max_time,
        stop=ValueBelow(problem.value_at(TARGET_GAP)),
        seed=cell.seed,
    )
    if result.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    times = (before + result.history["time"]).tolist()
    return list(zip(times, result.history["value"].tolist(), strict=True)), before + result.time


def _run_peer(cell: SpeedCell, problem: BenchProblem) -> tuple[Records, float]:
    def value(X: Any) -> float:
        return math.nan if X is None else problem.objective.value(torch.from_numpy(X)).item()

    assert isinstance(problem.objective, Procrustes)
    dense = DenseProcrustes(problem.objective)
    with warnings.catch_warnings():
        # about overflow in long trial steps, and deprecations inside the libraries
        warnings.simplefilter("ignore")
        trace = Trace(value, problem.value_at(TARGET_GAP), cell.max_time)
        if cell.method == CDOPT:
            assert cell.beta is not None
            run_cdopt(dense, problem.signature, trace, cell.beta)
        else:
            start = _start(cell, problem)
            point = np.eye(cell.n) if start is None else np.asarray(start)
            method = cell.method.removesuffix(DATA_START)
            run_pymanopt(dense, problem.signature, trace, method, point)
    return trace.records, trace.records[-1][0]


def describe(row: Row) -> str:
    """A row in one line."""
    cell = SpeedCell.from_json(row["cell"])
    method = cell.method if cell.beta is None else f"{cell.method} beta {cell.beta:g}"
    head = f"{cell.size}, seed {cell.seed}, {method}:"
    if row["outcome"] != "done":
        return f"{head} {reason(row)}"
    times = ", ".join(f"{gap} in {seconds:.3g} s" for gap, seconds in row["reached"].items())
    ended = f"{row['status']} at {row['gap']:.0e} after {row['time']:.3g} s"
    return f"{head} {times or 'no gap reached'}; {ended}"


KIND = Kind("speed", SpeedCell, measure, tiny, describe, timed=True)
