"""Run a cell: prepare its problem, solve it, and make its row."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from jorth.bench.core.chain import minimize_in_turn
from jorth.bench.core.interrupts import uninterrupted
from jorth.bench.core.records import Row, reason
from jorth.bench.core.runs import Kind, NoResult
from jorth.bench.matrices.cells import DIVERGED_NORM, MatrixCell
from jorth.bench.matrices.methods import method_of
from jorth.bench.matrices.problems import BenchProblem, prepare
from jorth.bench.matrices.scoring import score
from jorth.datasets.files import VARIABLE, data_folder, find
from jorth.datasets.registry import REGISTRY
from jorth.solvers import Result
from jorth.stopping import Criterion, NormAbove, ValueBelow

SOLVED_GAP = 1e-12  # the relative gap at which a run with a known optimum ends


class LastProblem:
    """Prepares problems and holds the last one for further cells that share it."""

    def __init__(self) -> None:
        self._last: tuple[MatrixCell, Path | None, BenchProblem] | None = None

    def of(self, cell: MatrixCell, data_dir: Path | None) -> BenchProblem:
        shared = cell.shared_problem
        if self._last is None or self._last[:2] != (shared, data_dir):
            self._last = None  # frees the memory of the old problem first
            self._last = shared, data_dir, prepare(cell, data_dir)
        return self._last[2]


_last_problem = LastProblem()


def tiny(cell: MatrixCell) -> MatrixCell:
    """The same method on a tiny problem."""
    data = "planted" if cell.problem == "procrustes" else "randn"
    cell = replace(cell, max_time=None, max_evaluations=3, own=None)
    return replace(cell, data=data, m=12, n=6, p=3, seed=0, condition=cell.condition or 10.0)


def at_hand(cell: MatrixCell, data_dir: Path | None) -> bool:
    """Whether the data of a cell need no file, or have one."""
    entry = None if cell.own is not None else REGISTRY.get(cell.data)
    if entry is None:
        return True
    try:
        return find(entry, data_folder(data_dir)) is not None
    except ImportError:  # no cache without pooch
        return False


def measure(cell: MatrixCell, row: Row, data_dir: Path | None, rows: Sequence[Row]) -> None:
    """Add the problem and the scored result to the row."""
    began = time.perf_counter()
    try:
        problem = _last_problem.of(cell, data_dir)
    except (FileNotFoundError, ImportError) as error:
        if cell.data in REGISTRY:
            # without the folder that was searched, as rows are published
            how = f"{REGISTRY[cell.data].how_to_get}; or name a folder that has it"
            message = f"data set {cell.data} is not at hand: {how} by --data-dir or {VARIABLE}"
            raise NoResult("missing", message) from error
        if isinstance(error, ImportError):
            raise NoResult("missing", str(error)) from error
        raise
    row |= {
        "start_value": problem.first,
        "optimum": problem.optimum,
        "fingerprint": problem.objective.fingerprint(),
        "notes": problem.notes,
        "prepared_in": time.perf_counter() - began,
    }
    method, result = _solve(cell, problem)
    row |= {"options": repr(method)} | score(problem, result)


def _solve(cell: MatrixCell, problem: BenchProblem) -> tuple[Any, Result]:
    race = cell.problem == "race"
    curvature = problem.objective.curvature() if race else None
    method = method_of(cell.method, cell.problem, cell.theta, curvature or 1.0)
    stop: Criterion
    if problem.optimum is None:
        stop = NormAbove(DIVERGED_NORM[cell.problem])
    else:
        stop = ValueBelow(problem.value_at(SOLVED_GAP))
    result = minimize_in_turn(
        problem.objective,
        problem.x0,
        signature=problem.signature,
        method=method,
        max_time=cell.max_time,
        max_evaluations=cell.max_evaluations,
        gradient_tolerance=0.0,
        stop=stop,
        seed=cell.seed,
        on_unbounded="continue" if race else "stop",
    )
    return method, uninterrupted(result)


def describe(row: Row) -> str:
    """A row in one line."""
    cell = MatrixCell.from_json(row["cell"])
    theta = "" if cell.theta is None else f" theta {cell.theta:g}"
    head = f"{f'{cell.size} {cell.problem}':<24} {cell.method + theta:<21}"
    if row["outcome"] != "done":
        return f"{head} {reason(row)}"
    if row["value"] is None:
        found = "not finite"
    else:
        found = f"f {row['value']:.2e}" if row["gap"] is None else f"gap {row['gap']:.0e}"
    ended = row["status"].lower().replace("_", " ")
    return f"{head} {found:<11} {row['time']:5.2f} s, {ended}"


KIND = Kind("matrices", MatrixCell, measure, tiny, describe, at_hand)
