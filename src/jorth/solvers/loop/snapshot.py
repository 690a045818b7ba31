"""What a checkpoint contains of a run, and how the run is restored from it."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from jorth._checkpoint import Content, mismatch, pack, restoring, unpack
from jorth._inputs import frobenius, unit_roundoff
from jorth.group.elements import spectral_norm
from jorth.solvers.loop.budget import Clock, Evaluations
from jorth.solvers.loop.record import COLUMNS, History, drift
from jorth.solvers.loop.scale import Scale
from jorth.solvers.loop.solver import Scored

if TYPE_CHECKING:
    from jorth.solvers.loop.run import Run


def take(run: Run) -> Content:
    """The run as it is between two steps; the time this takes does not grow with the history."""
    objective = run.problem.objective
    record = run.record
    state = run.state
    assert state is not None
    tensors: dict[str, Tensor] = {}
    derived = state.exact and run.solver.feasible  # the scored point is the state's own
    numbers = {
        "state": pack(state, "state", tensors),
        "iteration": run.iteration,
        "counted_at": record.counted_at,
        "scored_at": record.scored_at,
        "scored": None if derived else pack(record.scored, "scored", tensors),
        "count": objective.count.as_dict(),
        "scale": None if objective.scale is None else asdict(objective.scale),
        "seconds": objective.clock.seconds,
        "rng": run.problem.rng.bit_generator.state,
    }
    tensors["history"] = torch.from_numpy(record.history.rows)  # no copy, as rows are only added
    return tensors, numbers


def put_back(run: Run, content: Content, folder: Path) -> None:
    """Restore the run as `take` found it, if the objective has not changed since."""
    with restoring(folder):
        _restore(run, *content)
    _check_objective(run, folder)


def _restore(run: Run, tensors: dict[str, Tensor], numbers: dict[str, Any]) -> None:
    record = run.record
    run.state = unpack(numbers["state"], run.solver.state_type, tensors)
    run.iteration = numbers["iteration"]
    record.counted_at = numbers["counted_at"]
    if numbers["scored"] is not None:
        record.scored = unpack(numbers["scored"], Scored, tensors)
        record.scored_at = numbers["scored_at"]
    _restore_history(run, tensors["history"])
    objective = run.problem.objective
    objective.count = Evaluations(**numbers["count"])
    objective.scale = Scale(**(numbers["scale"] or {}))
    objective.clock = Clock(numbers["seconds"])
    run.problem.rng.bit_generator.state = numbers["rng"]


def _restore_history(run: Run, table: Tensor) -> None:
    """Restore the rows before the present point, which the loop records again."""
    rows = table.cpu().numpy()
    if len(rows) and rows[-1, COLUMNS.index("iteration")] == run.iteration:
        rows = rows[:-1]
    run.record.history = History(rows)
    columns = run.record.history.arrays()
    for value, gradient_norm in zip(columns["value"], columns["gradient_norm"], strict=True):
        run.improvement.update(float(value), float(gradient_norm), 2 * unit_roundoff(run.start))


def _check_objective(run: Run, folder: Path) -> None:
    """Raise a CheckpointMismatch unless f is as saved at the saved point, which is feasible.

    The fingerprint and the value at the start may agree for different functions. The saved point is
    the last one at which f was known. Up to the layout of memory the same function gives the same
    bits there; half of the digits must agree.
    """
    state = run.state
    objective = run.problem.objective
    assert state is not None
    point = state if state.exact else run.record.scored
    X, value, gradient = point.X, point.value, point.gradient
    if math.isnan(value):  # the run ended before anything was recorded
        return
    digits = math.sqrt(unit_roundoff(X))
    value_at_start, gradient_at_start = objective.uncounted(run.start)
    value_here, gradient_here = objective.uncounted(X)
    size = max(frobenius(gradient), frobenius(gradient_at_start))
    scale = max(abs(value), abs(value_at_start)) + size * frobenius(X)
    unit = objective.unit
    if not abs(value_here - value) <= digits * scale:
        raise mismatch(folder, "f at the saved point", value * unit, value_here * unit)
    if not frobenius(gradient_here - gradient) <= digits * size:
        norms = (f"of norm {frobenius(part) * unit:g}" for part in (gradient, gradient_here))
        raise mismatch(folder, "the gradient at the saved point", *norms)
    if run.solver.feasible or not state.exact:
        residual = run.record.violation(X, spectral_norm(X))
        if not residual <= max(digits, drift(X)):
            what = "the residual at the saved point"
            raise mismatch(folder, what, f"{residual:.1g}", "at most rounding")
