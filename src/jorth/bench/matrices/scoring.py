"""The result part of a row, computed through the objective and never taken from the solver."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from jorth.bench.matrices.problems import BenchProblem
from jorth.group import residual
from jorth.solvers import Result

CURVE_POINTS = 300  # the largest number of points stored for a curve
CLAIM_TOLERANCE = 1e-6
"""The relative difference that is allowed between a solver's own value and the objective's."""


def score(problem: BenchProblem, result: Result) -> dict[str, Any]:
    """What the tables need; value, violation, residual and norm are computed here from x alone."""
    X = np.asarray(result.x, dtype=np.float64)
    value = float(problem.objective.value(torch.from_numpy(X)))
    signs = problem.signature.signs.astype(np.float64)
    tolerance = CLAIM_TOLERANCE * max(abs(value), abs(problem.first) * CLAIM_TOLERANCE)
    return {
        "status": result.status.name,
        "message": result.message,
        "value": value,
        "claimed": result.value,
        "claim_holds": bool(abs(value - result.value) <= tolerance),
        "violation": float(np.abs(X.T @ (signs[:, None] * X) - np.diag(signs)).sum()),
        "residual": float(residual(X, problem.signature)),
        "residual_before_polishing": result.violation,
        "norm": float(np.linalg.norm(X, 2)),
        "gap": problem.gap(value),
        "iterations": result.iterations,
        "counts": result.evaluations.as_dict(),
        "time": result.time,
        "stages": [{"value": stage.value, "time": stage.time} for stage in result.stages],
        "reached": reached(problem, result),
        "history": curve(problem, result),
    }


def epochs(problem: BenchProblem, history: dict[str, NDArray[np.float64]]) -> NDArray[np.float64]:
    """The cost in full gradients: m sample gradients count as one, values alone by their cost."""
    samples = problem.objective.samples
    gradients = history["gradient_evaluations"]
    values_alone = history["value_evaluations"] - gradients
    full = history["sample_gradient_evaluations"] / samples if samples else gradients
    return full + problem.value_cost * values_alone


def reached(problem: BenchProblem, result: Result) -> dict[str, dict[str, float]]:
    """The seconds and gradients at which each of GAPS was first reached."""
    gradients = epochs(problem, result.history)
    times = result.history["time"]
    return {
        gap: {"time": float(times[first]), "gradients": float(gradients[first])}
        for gap, first in problem.first_within(result.history["value"]).items()
    }


def curve(problem: BenchProblem, result: Result) -> dict[str, list[float]]:
    """The columns of the history that are drawn: up to CURVE_POINTS points, seven digits."""
    columns = {name: result.history[name] for name in ("time", "value", "norm", "residual")}
    columns["gradients"] = epochs(problem, result.history)
    if problem.optimum is not None:
        columns["gap"] = problem.gap(result.history["value"])
    if problem.objective.samples:
        columns["samples"] = result.history["sample_gradient_evaluations"]
    keep = thinned(len(columns["time"]))
    return {name: [float(f"{x:.7g}") for x in column[keep]] for name, column in columns.items()}


def thinned(length: int) -> NDArray[np.int64]:
    """At most CURVE_POINTS of the indices 0 ... length - 1, spaced evenly and logarithmically."""
    if length <= CURVE_POINTS:
        return np.arange(length)
    even = np.linspace(0, length - 1, CURVE_POINTS // 2)
    logarithmic = np.geomspace(1, length - 1, CURVE_POINTS // 2)
    return np.unique(np.rint(np.concatenate([even, logarithmic])).astype(np.int64))
