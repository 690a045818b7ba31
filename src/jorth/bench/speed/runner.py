"""Time a cell: our methods by `minimize`, peers by their own optimisers, with equal threads."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from jorth.bench.core.cells import GAPS
from jorth.bench.core.machine import package_versions
from jorth.bench.core.records import Row, reason
from jorth.bench.core.runs import Kind, NoResult
from jorth.bench.speed.batches import timed_batch
from jorth.bench.speed.cells import SMALL, SpeedCell, left_out
from jorth.bench.speed.methods import DATA_START, OURS
from jorth.bench.speed.ours import call_ours, run_ours, warm_up
from jorth.bench.speed.peers import Timed
from jorth.bench.speed.problems import SpeedProblem, problem_of
from jorth.bench.speed.theirs import call_peer, run_peer
from jorth.clock import Clock

REPEATS = 3  # a short run is made this many times, and the one with the median time counts
SHORT_SECONDS = 1.0  # runs below this are short
CALLS = 5  # how often a whole call is timed
CURVE_POINTS = 100  # of a row, for the picture


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
            row |= timed_batch(cell) if cell.task == "batch" else _timed(cell)
    except ImportError as error:
        raise NoResult("missing", str(error)) from error


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


def _timed(cell: SpeedCell) -> Row:
    problem = problem_of(cell)
    scale = problem.scale
    run = run_ours if cell.method in OURS else run_peer
    warm_up(cell, problem)
    found = _median_run(lambda: run(cell, problem))
    times, values = zip(*found.records, strict=True)
    first = scale.first_within(values)
    if f"{min(GAPS):g}" in first:
        status = "reached"
    else:
        status = "budget" if found.seconds >= cell.max_time else "stopped"
    return {
        "status": status,
        "reached": {gap: times[at] for gap, at in first.items()},
        "calls": _whole_calls(cell, problem, first) if cell.n <= SMALL else {},
        "gap": float(np.nanmin(scale.gap(np.array(values)))),
        "time": found.seconds,
        "clock": "processor" if Clock.now is time.process_time else "wall",
        "steps": len(times) - 1,
        "ran": found.method,
        "curve": _curve(times, scale.gap(np.array(values))),
        "notes": {
            "reference_gradient_norm": scale.notes["reference_gradient_norm"],
            "start_value": scale.first,
            "optimum": scale.optimum,
        },
    }


def _median_run(run: Callable[[], Timed]) -> Timed:
    """A run; a short one is repeated, and the one with the median time taken."""
    runs = [run()]
    while runs[0].seconds < SHORT_SECONDS and len(runs) < REPEATS:
        runs.append(run())
    return sorted(runs, key=lambda timed: timed.seconds)[len(runs) // 2]


def _whole_calls(cell: SpeedCell, problem: SpeedProblem, first: dict[str, int]) -> dict[str, float]:
    """Seconds from the data to a result within each gap: building the problem and the whole call.

    The median of CALLS calls. Ours stop by their value and record as ever; peers, which have no
    such criterion, stop after as many gradients as they needed before, so nothing is added.
    `procrustes` may get there where the run from one start did not: it tries all components.
    """
    found = {}
    elsewhere = cell.method in OURS and cell.method.endswith(DATA_START)
    for gap in map("{:g}".format, GAPS) if elsewhere else first:
        times = []
        for _ in range(CALLS):
            began = Clock.now()
            if cell.method in OURS:
                value = call_ours(cell, problem, float(gap))
            else:
                value = call_peer(cell, problem, first[gap])
            times.append(Clock.now() - began)
            if value is None:
                break
        else:
            found[gap] = float(np.median(times))
    return found


def _curve(times: Sequence[float], gaps: Any) -> dict[str, list[float]]:
    """The best gap so far at CURVE_POINTS times at most."""
    best = np.fmin.accumulate(gaps)
    kept = np.unique(np.linspace(0, len(times) - 1, CURVE_POINTS).astype(int))
    return {"time": np.array(times)[kept].tolist(), "gap": best[kept].tolist()}


def describe(row: Row) -> str:
    """A row in one line."""
    cell = SpeedCell.from_json(row["cell"])
    method = cell.method if cell.beta is None else f"{cell.method} beta {cell.beta:g}"
    head = f"{cell.size}, seed {cell.seed}, {method}:"
    if row["outcome"] != "done":
        return f"{head} {reason(row)}"
    times = ", ".join(f"{gap} in {seconds:.3g} s" for gap, seconds in row["reached"].items())
    if cell.task == "batch":
        times += f", {1 / row['time']:.0f} problems per second"
    ended = f"{row['status']} at {row['gap']:.0e} after {row['time']:.3g} s"
    return f"{head} {times or 'no gap reached'}; {ended}"


KIND = Kind("speed", SpeedCell, measure, tiny, describe, timed=True)
