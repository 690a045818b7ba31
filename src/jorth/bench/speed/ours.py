"""Runs and whole calls of our methods."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from jorth.bench.core.cells import GAPS
from jorth.bench.core.chain import minimize_in_turn
from jorth.bench.core.interrupts import uninterrupted
from jorth.bench.speed.cells import SpeedCell
from jorth.bench.speed.methods import AUTO, CHAIN, DATA_START, OURS, SOLVERS
from jorth.bench.speed.peers import Timed
from jorth.bench.speed.problems import SpeedProblem
from jorth.clock import Clock
from jorth.objectives import Procrustes
from jorth.solvers import data_start, procrustes
from jorth.stopping import ValueBelow

CHAIN_SWEEPS = 1
"""The number of sweeps of GS-JOBCD before L-BFGS, tuned on seeds that are not reported."""
WARM_UP_STEPS = 4
_WARM: set[tuple[str, str, int, int]] = set()
TARGET_GAP = 0.9 * min(GAPS)  # a run ends at this gap


def solver_of(method: str) -> Any:
    """What `minimize` takes for a method of the tables."""
    name = method.removesuffix(DATA_START)
    if name == CHAIN:
        return [("gs-jobcd", {"max_iterations": CHAIN_SWEEPS}), ("riemannian-lbfgs", {})]
    return SOLVERS[name]


def warm_up(cell: SpeedCell, problem: SpeedProblem) -> None:
    """Take a few steps of a method at a new size, so that no clock includes compilation."""
    seen = cell.task, cell.method, cell.n, cell.threads
    if cell.method in OURS and seen not in _WARM:
        options = dict(method=solver_of(cell.method), max_iterations=WARM_UP_STEPS)
        minimize_in_turn(problem.scale.objective, signature=problem.signature, **options)
        _WARM.add(seen)


def start_of(cell: SpeedCell, problem: SpeedProblem) -> Tensor | None:
    """The start from the data, or None for the identity."""
    if not cell.method.endswith(DATA_START):
        return None
    assert isinstance(problem.scale.objective, Procrustes)
    return data_start(problem.scale.objective, problem.signature)


def run_ours(cell: SpeedCell, problem: SpeedProblem) -> Timed:
    """The records and the time of a run, and the method that ran."""
    began = Clock.now()
    start = start_of(cell, problem)
    before = 0.0 if start is None else Clock.now() - began
    result = minimize_in_turn(
        problem.scale.objective,
        start,
        signature=problem.signature,
        method=solver_of(cell.method),
        **_options(cell, problem, TARGET_GAP),
    )
    uninterrupted(result)
    times = (before + result.history["time"]).tolist()
    records = list(zip(times, result.history["value"].tolist(), strict=True))
    return Timed(records, before + result.time, result.method)


def call_ours(cell: SpeedCell, problem: SpeedProblem, gap: float) -> float | None:
    """What a user writes, from the data on; the value, or None if it is not within the gap."""
    options = _options(cell, problem, gap)
    if cell.method != AUTO + DATA_START:  # that one is the default of `procrustes`
        options["method"] = solver_of(cell.method)
    if cell.method == CHAIN + DATA_START:
        objective, start = problem.build(), start_of(cell, problem)
        result = minimize_in_turn(objective, start, signature=problem.signature, **options)
    elif cell.method.endswith(DATA_START):
        assert problem.clouds is not None
        del options["gradient_tolerance"]  # the default ends runs in components that are worse
        result = procrustes(*problem.clouds, problem.signature, **options)
    else:
        result = minimize_in_turn(problem.build(), signature=problem.signature, **options)
    uninterrupted(result)
    return result.value if result.value <= problem.scale.value_at(gap) else None


def _options(cell: SpeedCell, problem: SpeedProblem, gap: float) -> dict[str, Any]:
    return dict(
        gradient_tolerance=0.0,
        max_time=cell.max_time,
        stop=ValueBelow(problem.scale.value_at(gap)),
        seed=cell.seed,
    )
