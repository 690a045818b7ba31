"""Methods in turn, each from the point where the last one ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from jorth.solvers import Result, Status, minimize

ENDED = (Status.MAX_ITERATIONS, Status.MAX_TIME, Status.MAX_EVALUATIONS, Status.STALLED)
"""After these the next method runs."""


def minimize_in_turn(
    objective: Any,
    x0: Any = None,
    *,
    method: Any,
    max_time: float | None = None,
    max_evaluations: int | None = None,
    **options: Any,
) -> Result:
    """Run `minimize` once for every (method, options) of a list, or for a method alone.

    Each run may use an equal share of what is left of the limits.
    """
    methods = method if isinstance(method, list) else [(method, {})]
    runs: list[Result] = []
    for left, (chosen, own) in zip(range(len(methods), 0, -1), methods, strict=True):
        limits: dict[str, Any] = {}
        if max_time is not None:
            limits["max_time"] = max(max_time - sum(run.time for run in runs), 0.0) / left
        if max_evaluations is not None:
            used = sum(run.evaluations.full_gradients(objective.samples) for run in runs)
            limits["max_evaluations"] = -(-max(max_evaluations - used, 0) // left)
        start = runs[-1].x if runs else x0
        runs.append(minimize(objective, start, method=chosen, **(options | limits | own)))
        if runs[-1].status not in ENDED:
            break
    return runs[0] if len(runs) == 1 else _joined(runs)


def _joined(runs: Sequence[Result]) -> Result:
    """The last run, with the counts and the histories of all of them."""
    history = {name: list(column) for name, column in runs[0].history.items()}
    count, time, iterations = runs[0].evaluations, runs[0].time, runs[0].iterations
    for run in runs[1:]:
        before = {"time": time, "iteration": iterations, **count.columns()}
        for name, column in run.history.items():
            history[name] += (column + before.get(name, 0.0)).tolist()
        count += run.evaluations
        time += run.time
        iterations += run.iterations
    return replace(
        runs[-1],
        history={name: np.array(column) for name, column in history.items()},
        evaluations=count,
        time=time,
        iterations=iterations,
        stages=tuple(runs),
        method=" + ".join(run.method for run in runs),
    )
