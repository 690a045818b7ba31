"""What a checkpoint holds of a run, when it is saved, and how a run goes on from it."""

from __future__ import annotations

import hashlib
import json
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from jorth._checkpoint import Content, Folder, mismatch, pack, restoring, unpack
from jorth._inputs import frobenius, unit_roundoff
from jorth.objectives.base import hash_tensors
from jorth.solvers.problem import Clock, Evaluations, ScoredPoint
from jorth.solvers.result import COLUMNS

if TYPE_CHECKING:
    from jorth.solvers.loop import Run


class Checkpoint:
    """The folder in which a run saves its state, at most once per ``interval`` seconds."""

    def __init__(self, folder: Folder, interval: float) -> None:
        self._folder = folder
        self._interval = interval
        self._saved_at = time.monotonic()
        self._last_complete: Content | None = None

    def remember(self, run: Run) -> None:
        """Keep the run as it is before a step, which may be cut short."""
        self._last_complete = _content(run)

    def save_when_due(self, run: Run) -> None:
        if time.monotonic() - self._saved_at >= self._interval:
            self._save(run, _content(run))
            self._saved_at = time.monotonic()

    def save_at_the_end(self, run: Run) -> None:
        """Save the last complete iteration."""
        if run.state is not None:
            content = _content(run) if run.state.complete else self._last_complete
            if content is not None:
                self._save(run, content)

    def _save(self, run: Run, content: Content) -> None:
        tensors, numbers = content
        rows = np.array(run.history.rows[: numbers["rows"]]).reshape(-1, len(COLUMNS))
        self._folder.save(tensors | {"history": torch.from_numpy(rows)}, numbers)


def identity(run: Run, seed: object) -> dict[str, str]:
    """Return what must be the same for a run to continue from a checkpoint."""
    X = run.start
    if isinstance(seed, np.random.Generator):  # its kind and a hash of its state
        state = seed.bit_generator.state
        text = json.dumps(state, sort_keys=True, default=lambda part: np.asarray(part).tolist())
        seed = f"{state['bit_generator']} {hashlib.sha256(text.encode()).hexdigest()[:16]}"
    return {
        "objective": run.problem.objective.objective.fingerprint(),
        "start": f"{tuple(X.shape)} {X.dtype} {hash_tensors('start', X)}",
        "signature": repr(run.problem.signature),
        "method": repr(run.solver),
        "seed": str(seed),
        "on_unbounded": "stop" if run.problem.stop_unbounded else "continue",
    }


def _content(run: Run) -> Content:
    """Return the run as it is between two steps; the history is added when it is saved."""
    objective, history, state = run.problem.objective, run.history, run.state
    assert state is not None
    tensors: dict[str, torch.Tensor] = {}
    derived = state.exact and run.solver.feasible  # the scored point is the state's own
    numbers = {
        "state": pack(state, "state", tensors),
        "iteration": run.history.iteration,
        "rows": len(history.rows),
        "counted_at": history.counted_at,
        "scored_at": history.scored_at,
        "point": None if derived else pack(history.point, "point", tensors),
        "count": objective.count.as_dict(),
        "unit": objective.unit,
        "scale": objective.scale,
        "scale_is_stated": objective.scale_is_stated,
        "seconds": objective.clock.seconds,
        "rng": run.problem.rng.bit_generator.state,
    }
    return tensors, numbers


def resume(run: Run, content: Content, folder: Path) -> None:
    """Restore the run as it was saved, if the objective has not changed since."""
    tensors, numbers = content
    objective, history = run.problem.objective, run.history
    with restoring(folder):
        run.state = unpack(numbers["state"], run.solver.state_type, tensors)
        run.history.iteration = numbers["iteration"]
        history.counted_at = numbers["counted_at"]
        if numbers["point"] is not None:
            history.point = unpack(numbers["point"], ScoredPoint, tensors)
            history.scored_at = numbers["scored_at"]
        history.rows = tensors["history"].tolist()
        if history.rows and history.last("iteration") == run.history.iteration:
            history.rows.pop()  # the loop records it again
        for row in history.rows:
            run.improvement.update(row[2], row[3], 2 * unit_roundoff(run.start))
        objective.count = Evaluations(**numbers["count"])
        objective.unit, objective.scale = numbers["unit"], numbers["scale"]
        objective.scale_is_stated = numbers["scale_is_stated"]
        objective.clock = Clock(numbers["seconds"])
        run.problem.rng.bit_generator.state = numbers["rng"]
    _check_objective(run, folder)


def _check_objective(run: Run, folder: Path) -> None:
    """Raise a CheckpointMismatch unless f is as saved at the saved point.

    The fingerprint may agree for different functions. The saved point is
    the last one at which f was known. Up to the layout of memory the same function gives the same
    bits there; half of the digits must agree.
    """
    state, objective = run.state, run.problem.objective
    assert state is not None
    point = state if state.exact else run.history.point
    if math.isnan(point.value):  # the run ended before anything was recorded
        return
    digits = math.sqrt(unit_roundoff(point.X))
    start, slope = objective.value_and_gradient(run.start, limited=False, counted=False)
    value, gradient = objective.value_and_gradient(point.X, limited=False, counted=False)
    size = max(frobenius(point.gradient), frobenius(slope))
    scale = max(abs(point.value), abs(start)) + size * frobenius(point.X)
    unit = objective.unit
    if not abs(value - point.value) <= digits * scale:
        raise mismatch(folder, "f at the saved point", point.value * unit, value * unit)
    if not frobenius(gradient - point.gradient) <= digits * size:
        norms = (frobenius(part) * unit for part in (point.gradient, gradient))
        raise mismatch(
            folder, "the gradient at the saved point", *(f"of norm {n:g}" for n in norms)
        )
