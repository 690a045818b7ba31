"""The row of a run: scored through the objective, never by the solver's word."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from jorth.bench.problems import BenchProblem
from jorth.group import residual
from jorth.solvers import Result

POINTS = 300
"""The most points that are kept of a curve."""
GAPS = (1e-2, 1e-4, 1e-8)
"""The relative gaps whose times are kept."""
AGREES = 1e-6
"""A solver's own value may differ from the objective's by this share of it: a stale value, not a wrong one."""


def score(problem: BenchProblem, result: Result) -> dict[str, Any]:
    """Everything a table needs of one result; value, violation, residual and norm are computed here from x alone."""
    X = np.asarray(result.x, dtype=np.float64)
    value = float(problem.objective.value(torch.from_numpy(X)))
    signs = problem.signature.signs.astype(np.float64)
    return {
        "status": result.status.name,
        "message": result.message,
        "value": value,
        "claimed": result.value,
        "claim_holds": bool(
            abs(value - result.value) <= AGREES * max(abs(value), abs(problem.first) * AGREES)
        ),
        "violation": float(np.abs(X.T @ (signs[:, None] * X) - np.diag(signs)).sum()),
        "residual": float(residual(X, problem.signature)),
        "residual_before_polishing": result.violation,
        "norm": float(np.linalg.norm(X, 2)),
        "gap": relative_gap(value, problem),
        "iterations": result.iterations,
        "counts": result.evaluations.as_dict(),
        "time": result.time,
        "stages": [{"value": stage.value, "time": stage.time} for stage in result.stages],
        "reached": reached(problem, result),
        "history": curve(problem, result),
    }


def relative_gap(value: Any, problem: BenchProblem) -> Any:
    """(f - optimum) / (f(X0) - optimum), or None where there is no optimum."""
    if problem.optimum is None:
        return None
    return (value - problem.optimum) / (problem.first - problem.optimum)


def epochs(problem: BenchProblem, history: dict[str, NDArray[np.float64]]) -> NDArray[np.float64]:
    """Full gradients; of a finite sum its sample gradients in units of them; values alone at what they cost."""
    samples, gradients = problem.objective.samples, history["gradient_evaluations"]
    alone = history["value_evaluations"] - gradients
    full = history["sample_gradient_evaluations"] / samples if samples else gradients
    return full + problem.value_cost * alone


def reached(problem: BenchProblem, result: Result) -> dict[str, dict[str, float]]:
    """Seconds and gradients at which the gaps of GAPS were first reached, from the history before it is thinned."""
    if problem.optimum is None:
        return {}
    gaps = relative_gap(result.history["value"], problem)
    gradients = epochs(problem, result.history)
    found = {}
    for gap in GAPS:
        below = np.flatnonzero(gaps <= gap)
        if len(below):
            first = int(below[0])
            found[f"{gap:g}"] = {
                "time": float(result.history["time"][first]),
                "gradients": float(gradients[first]),
            }
    return found


def curve(problem: BenchProblem, result: Result) -> dict[str, list[float]]:
    """Time, gradients, value, norm, residual, gap, sample gradients at POINTS places at most, with seven digits."""
    columns = dict(result.history, gradients=epochs(problem, result.history))
    names = ["time", "gradients", "value", "norm", "residual"]
    if problem.optimum is not None:
        columns["gap"] = relative_gap(result.history["value"], problem)
        names.append("gap")
    if problem.objective.samples:
        columns["samples"] = result.history["sample_gradient_evaluations"]
        names.append("samples")
    keep = thinned(len(columns["time"]))
    return {name: [_digits(number) for number in columns[name][keep]] for name in names}


def thinned(length: int, points: int = POINTS) -> NDArray[np.int64]:
    """At most ``points`` of the indices 0 ... length - 1: the ends, half spread evenly and half by logarithms."""
    if length <= points:
        return np.arange(length)
    half = points // 2
    even, rising = np.linspace(0, length - 1, half), np.geomspace(1, length - 1, half)
    return np.unique(np.rint(np.concatenate([even, rising])).astype(np.int64))


def _digits(number: float) -> float:
    return float(f"{number:.7g}") if math.isfinite(number) else math.nan
