"""Runs and whole calls of the peers."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import torch

from jorth.bench.speed.cells import SpeedCell
from jorth.bench.speed.dense import Dense
from jorth.bench.speed.methods import CDOPT, DATA_START
from jorth.bench.speed.ours import TARGET_GAP, start_of
from jorth.bench.speed.peers import Countdown, Timed, Trace, run_cdopt, run_pymanopt
from jorth.bench.speed.problems import SpeedProblem


def run_peer(cell: SpeedCell, problem: SpeedProblem) -> Timed:
    """The records and the time of a run; the problem is built before the clock starts."""
    scale = problem.scale

    def value(X: Any) -> float:
        return math.nan if X is None else scale.objective.value(torch.from_numpy(X)).item()

    dense = problem.build_dense()
    trace = Trace(value, scale.value_at(TARGET_GAP), cell.max_time)
    solve(cell, problem, dense, trace)
    return Timed(trace.records, trace.records[-1][0])


def call_peer(cell: SpeedCell, problem: SpeedProblem, steps: int) -> int:
    """Build the problem and run up to its gradient number ``steps``."""
    solve(cell, problem, problem.build_dense(), Countdown(steps))
    return steps


def solve(cell: SpeedCell, problem: SpeedProblem, dense: Dense, trace: Trace | Countdown) -> None:
    """Run the peer of a cell until the trace ends it."""
    with warnings.catch_warnings():
        # about overflow in long trial steps, and deprecations inside the libraries
        warnings.simplefilter("ignore")
        if cell.method == CDOPT:
            assert cell.beta is not None
            run_cdopt(dense, problem.signature, trace, cell.beta)
            return
        start = start_of(cell, problem)
        point = np.eye(cell.n) if start is None else np.asarray(start)
        run_pymanopt(dense, problem.signature, trace, cell.method.removesuffix(DATA_START), point)
