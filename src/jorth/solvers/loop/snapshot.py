"""All of a run that a checkpoint holds, and the way back from it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from jorth.arrays import frobenius, unit_roundoff
from jorth.clock import Clock
from jorth.group.elements import scaled_violation
from jorth.group.spectral_norm import spectral_norm
from jorth.solvers.loop.budget import Evaluations
from jorth.solvers.loop.monitor import Progress
from jorth.solvers.loop.problem import FEASIBLE
from jorth.solvers.loop.result import COLUMNS, History
from jorth.solvers.loop.state import Scored
from jorth.storage.checkpoint import Content, mismatch, pack, unpack

if TYPE_CHECKING:
    from jorth.solvers.loop.run import Run


def take(run: Run) -> Content:
    """The run as it stands between two steps: O(size of the state), however long the history."""
    state, objective = run.state, run.problem.objective
    assert state is not None
    tensors: dict[str, Tensor] = {}
    packed = pack(state, "state", tensors)
    if not (state.exact and run.solver.feasible):
        tensors["scored X"] = run.scored.X.clone()
        tensors["scored gradient"] = run.scored.gradient.clone()
    tensors["history"] = torch.from_numpy(run.history.rows)  # no copy: rows are only added
    numbers = {
        "state": packed,
        "iteration": run.iteration,
        "counted_at": run.counted_at,
        "scored": [run.scored.value, run.scored.violation, run.scored_at],
        "count": objective.count.as_dict(),
        "seconds": objective.clock.seconds,
        "rng": run.problem.rng.bit_generator.state,
    }
    return tensors, numbers


def put_back(run: Run, content: Content, folder: Path) -> None:
    """Let the run stand where `take` found it, if the objective has not changed since."""
    tensors, numbers = content
    run.state = unpack(numbers["state"], run.solver.state_type, tensors)
    run.iteration = numbers["iteration"]
    run.counted_at = numbers["counted_at"]
    if "scored X" in tensors:
        value, violation, run.scored_at = numbers["scored"]
        run.scored = Scored(tensors["scored X"], value, tensors["scored gradient"], violation)
    run.history, run.improvement = _history(tensors["history"], run)
    objective = run.problem.objective
    objective.count = Evaluations(**numbers["count"])
    objective.clock = Clock(numbers["seconds"])
    run.problem.rng.bit_generator.state = numbers["rng"]
    _check(run, folder)


def _history(table: Tensor, run: Run) -> tuple[History, Progress]:
    """The rows before the point, which is recorded again at the first look, and their progress."""
    rows = table.cpu().numpy()
    if len(rows) and rows[-1, COLUMNS.index("iteration")] == run.iteration:
        rows = rows[:-1]
    history, progress = History(rows), Progress()
    columns = history.arrays()
    for value, gradient_norm in zip(columns["value"], columns["gradient_norm"], strict=True):
        progress.stalled(float(value), float(gradient_norm), 2 * unit_roundoff(run.start))
    return history, progress


def _check(run: Run, folder: Path) -> None:
    """A CheckpointMismatch unless f at the saved point is what it was, and the point is feasible.

    Fingerprint and value at the start may agree for different functions. The saved point is the
    last one at which f was known: the state's own, or the last that was scored. The same function
    gives the same bits but for the layout of memory; half of the digits must agree.
    """
    state, objective = run.state, run.problem.objective.objective
    assert state is not None
    X, value, gradient = (state.X, state.value, state.gradient) if state.exact else run.scored[:3]
    if math.isnan(value):  # ended before the first look
        return
    digits = math.sqrt(unit_roundoff(X))
    value_at_start, gradient_at_start = objective.value_and_gradient(run.start)
    value_here, gradient_here = objective.value_and_gradient(X)
    size = max(frobenius(gradient), frobenius(gradient_at_start))
    apart = abs(value_here.item() - value)
    if not apart <= digits * (max(abs(value), abs(value_at_start.item())) + size * frobenius(X)):
        raise mismatch(folder, "f at the saved point", value, value_here.item())
    if not frobenius(gradient_here - gradient) <= digits * size:
        norms = (f"of norm {frobenius(part):g}" for part in (gradient, gradient_here))
        raise mismatch(folder, "the gradient at the saved point", *norms)
    if run.solver.feasible or not state.exact:
        residual = scaled_violation(X, run.problem.signs, run.gram, spectral_norm(X)).item()
        if not residual <= max(digits, FEASIBLE * len(X) * unit_roundoff(X)):
            raise mismatch(
                folder, "the residual at the saved point", f"{residual:.1g}", "at most rounding"
            )
