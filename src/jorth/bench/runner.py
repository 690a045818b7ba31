"""Run cells one after the other, a row each; what is done already is skipped."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from jorth.bench.cells import Cell
from jorth.bench.loop import Outcome, failure, new_row, run_unfinished
from jorth.bench.methods import method_of
from jorth.bench.problems import BenchProblem, prepare
from jorth.bench.records import Row
from jorth.bench.scoring import score
from jorth.datasets.files import VARIABLE
from jorth.datasets.registry import REGISTRY
from jorth.solvers import Result, Status, minimize
from jorth.stopping import NormAbove, ValueBelow

RUNAWAY = {"race": 1e6, "probe": 1e4}
"""||X||_2 at which a run has left for infinity and ends. Inner products of a probe have some eight digits there."""
SOLVED = 1e-12
"""The relative gap at which a well-posed run ends."""


def run_cells(
    cells: Sequence[Cell],
    folder: Path,
    *,
    data_dir: Path | None = None,
    retry_failed: bool = False,
    on_row: Callable[[Row], object] = lambda row: None,
    on_start: Callable[[Cell], object] = lambda cell: None,
) -> Outcome:
    """Run what is not finished yet and append a row for each to ``folder``/runs.jsonl.

    A run that raises is a row with its error, a cell whose data are not at hand a row that says so; missing cells
    are tried again by the next call. Ctrl-C ends after the step in hand; that cell has no row and will be run again.

    Args:
        cells: Cells of one problem side by side, since the problem is prepared once for them.
        folder: Of the run.
        data_dir: Of the data; None takes JORTH_DATA or the cache.
        retry_failed: Run the cells that failed again.
        on_row: Told every new row.
        on_start: Told every cell before it runs.
    """
    shared = _Shared(data_dir)
    return run_unfinished(
        cells,
        folder,
        lambda cell: run_cell(cell, shared),
        warm_up=warm_up,
        retry_failed=retry_failed,
        on_row=on_row,
        on_start=on_start,
    )


def warm_up(cells: Iterable[Cell]) -> None:
    """Run every method once on a tiny problem: compilation and first calls are not part of any clock."""
    seen: dict[tuple[str, str], Cell] = {}
    for cell in cells:
        data = "planted" if cell.problem == "procrustes" else "randn"
        tiny = replace(cell, data=data, m=12, n=6, p=3, seed=0, max_time=None, max_evaluations=3)
        seen.setdefault((cell.problem, cell.method), tiny)
    shared = _Shared(None)
    for cell in seen.values():
        run_cell(cell, shared)


class _Shared:
    """The problem of the last cell, for the next ones that share it."""

    def __init__(self, data_dir: Path | None) -> None:
        self._data_dir = data_dir
        self._key = ""
        self._problem: BenchProblem | None = None

    def problem(self, cell: Cell) -> BenchProblem:
        if self._problem is None or self._key != cell.problem_key:
            self._problem = None  # the old one need not be held beside the new
            self._problem = prepare(cell, self._data_dir)
            self._key = cell.problem_key
        return self._problem


def run_cell(cell: Cell, shared: _Shared) -> Row:
    """The row of a cell, whatever happens; only Ctrl-C passes through."""
    row = new_row(cell.key, asdict(cell))
    began = time.perf_counter()
    try:
        problem = shared.problem(cell)
    except Exception as error:
        missing = cell.data in REGISTRY and isinstance(error, (FileNotFoundError, ImportError))
        return row | (
            {"outcome": "missing", "error": _how_to_get(cell.data)} if missing else failure(error)
        )
    row |= {
        "start_value": problem.first,
        "optimum": problem.optimum,
        "fingerprint": problem.objective.fingerprint(),
        "notes": problem.notes,
        "prepared_in": time.perf_counter() - began,
    }
    began = time.perf_counter()
    try:
        method, result = _solve(cell, problem)
        row |= {"options": repr(method)} | score(problem, result)
    except Exception as error:
        row |= failure(error)
    return row | {"wall": time.perf_counter() - began}


def _solve(cell: Cell, problem: BenchProblem) -> tuple[Any, Result]:
    curvature = problem.objective.curvature() or 1.0 if cell.problem == "race" else 1.0
    method = method_of(cell.method, cell.problem, cell.theta, curvature)
    if problem.optimum is None:
        stop: Any = NormAbove(RUNAWAY[cell.problem])
    else:
        stop = ValueBelow(problem.optimum + SOLVED * (problem.first - problem.optimum))
    result = minimize(
        problem.objective,
        problem.x0,
        signature=problem.signature,
        method=method,
        max_time=cell.max_time,
        max_evaluations=cell.max_evaluations,
        gradient_tolerance=0.0,
        stop=stop,
        seed=cell.seed,
        on_unbounded="continue" if cell.problem == "race" else "stop",
    )
    if result.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return method, result


def _how_to_get(data: str) -> str:
    """Without the folder that was looked at: rows are published, and it is nobody else's business."""
    how = (
        f"`jorth data fetch {data}` downloads it"
        if REGISTRY[data].url
        else "it has no public address known here"
    )
    return f"data set {data} is not at hand: {how}; or name a folder that has it by --data-dir or {VARIABLE}"
