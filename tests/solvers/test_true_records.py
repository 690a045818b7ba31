"""What random runs say of themselves, against independent code: value, gradient norm,
residual, status, counts."""

from collections import Counter

import numpy as np
import pytest
import torch

import jorth
from jorth import Status
from tests.solvers import recomputed
from tests.solvers.random_runs import random_run
from tests.solvers.recomputed import WIDE, wide

RUNS = 500
QUICK = 150
PART = 50
"""Of the 500 runs the first 150 belong to the ordinary suite."""
UNITS = {np.float64: 2.0**-53, np.float32: 2.0**-24}
MONOTONE = ("gs-jobcd", "riemannian-sd", "riemannian-cg", "riemannian-lbfgs")
LEAVES = ("umcm", "admm")


class Faults(list):
    """What was found wrong, as (kind, detail)."""

    def expect(self, truth, kind, detail=""):
        if not truth:
            self.append((kind, str(detail)))


def numpy_of(X):
    return X.detach().numpy() if isinstance(X, torch.Tensor) else X


def has_no_digits(run, X):
    """Whether X is so large that J-orthogonality says nothing of it in its precision."""
    return recomputed.norm2(numpy_of(X)) >= UNITS[run.dtype] ** -0.5


def faults_of(number):
    """All that is untrue in the record of that run."""
    run, faults = random_run(number), Faults()
    sig = jorth.Signature.of(run.signs)
    start = np.eye(sig.n, dtype=run.dtype) if run.x0 is None else numpy_of(run.x0).copy()
    data = [part.copy() for part in run.data]
    result = jorth.minimize(
        run.objective, run.x0, signature=sig, method=run.method, **run.arguments
    )
    X = wide(numpy_of(result.x))
    check_kind(run, result, start, data, faults)
    check_figures(run, result, X, start, faults)
    check_history(run, result, start, faults)
    check_counts(run, result, faults)
    check_status(run, result, faults)
    check_limits(run, result, faults)
    return faults, run, result


def check_kind(run, result, start, data, faults):
    """What was given is as it was; what is returned is of its kind."""
    if run.x0 is not None:
        faults.expect(np.array_equal(numpy_of(run.x0), start), "x0 was changed")
        faults.expect(type(result.x) is type(run.x0), "the kind of x", type(result.x))
    same = all(np.array_equal(part, kept) for part, kept in zip(run.data, data, strict=True))
    faults.expect(same, "the data were changed")
    faults.expect(numpy_of(result.x).dtype == run.dtype, "dtype", numpy_of(result.x).dtype)
    faults.expect(numpy_of(result.x).shape == start.shape, "shape", numpy_of(result.x).shape)
    faults.expect(np.isfinite(numpy_of(result.x)).all(), "x is not finite")
    if run.keeps_component and not has_no_digits(run, result.x):
        there, here = (
            recomputed.component(part, run.signs) for part in (start, numpy_of(result.x))
        )
        faults.expect(there == here, "the component has changed", (there, here))


def check_figures(run, result, X, start, faults):
    """Value, gradient norm and residual at x."""
    unit, f, signs = UNITS[run.dtype], run.function, wide(run.signs)
    with np.errstate(all="ignore"):
        value = f.value(X)
        if not np.isfinite(value):
            faults.expect(not np.isfinite(result.value), "value", (result.value, float(value)))
            return
        apart, allowed = abs(float(value - WIDE(result.value))), f.value_error(X, unit)
        faults.expect(apart <= allowed, "value", (result.value, float(value), allowed))
        slope = recomputed.gradient_norm(f, X, signs)
        allowed = recomputed.gradient_norm_error(f, X, signs, unit)
    agree = slope == result.gradient_norm or abs(slope - result.gradient_norm) <= allowed
    faults.expect(agree, "gradient norm", (result.gradient_norm, slope, allowed))
    first, scale = wide(start), max(WIDE(1), WIDE(recomputed.norm2(X)) ** 2)
    thin = X.shape[1] < X.shape[0]
    wanted = recomputed.gram(first, signs) if thin else np.diag(signs)
    residual = float(abs(recomputed.gram(X, signs) - wanted).max()) / scale
    # n + 2 operations an entry, each at most ||X||^2; of a thin start as well
    allowed = (len(X) + 10) * unit * (1 + (recomputed.norm2(first) ** 2 / scale if thin else 0.0))
    allowed += 0.03 * residual  # it is relative to ||X||_2^2, which is known to one per cent
    apart = abs(residual - result.residual)
    faults.expect(apart <= allowed, "residual", (result.residual, residual, allowed))
    said = result.residual <= 1e3 * len(X) * unit or "polish x" in result.message
    faults.expect(said, "a large residual goes unsaid", result.residual)


def check_history(run, result, start, faults):
    history = result.history
    lengths = {len(column) for column in history.values()}
    faults.expect(len(lengths) == 1 and lengths != {0}, "lengths of the history", lengths)
    counts = [name for name in history if name.endswith("evaluations")]
    for name in ("time", "iteration", "pair_updates", *counts):
        faults.expect((np.diff(history[name]) >= 0).all(), f"history: {name} falls", history[name])
    last = {name: column[-1] for name, column in history.items()}
    scored = "x is that of iteration" not in result.message
    if scored:
        ends = [last["value"], last["gradient_norm"]], [result.value, result.gradient_norm]
        same = np.array_equal(*ends, equal_nan=True)
        faults.expect(same, "the last row is not the result", ends)
    stated = vars(result.evaluations)
    recorded = {name.removesuffix("_evaluations"): last[name] for name in ("pair_updates", *counts)}
    # inside a step more may have been spent
    cut_short = {Status.MAX_EVALUATIONS, Status.MAX_TIME, Status.NON_FINITE}
    agree = all(n <= stated[name] for name, n in recorded.items())
    agree = agree and (result.status in cut_short or recorded == stated)
    faults.expect(agree, "counts of the last row", (recorded, stated))
    same = last["iteration"] == result.iterations
    faults.expect(same, "iteration of the last row", (last, result.iterations))
    if scored and run.name not in LEAVES:
        norm = recomputed.norm2(numpy_of(result.x))
        faults.expect(abs(last["norm"] - norm) <= 0.01 * norm, "norm", (last["norm"], norm))
    check_descent(run, result, start, faults)


def check_descent(run, result, start, faults):
    """Methods that promise it bring f down."""
    if run.name not in MONOTONE:
        return
    with np.errstate(all="ignore"):
        unit, first = UNITS[run.dtype], wide(start)
        value = float(run.function.value(first))
        slack = 2 * run.function.value_error(first, unit)
        slack += 2 * run.function.value_error(wide(numpy_of(result.x)), unit)
    if np.isfinite(value):
        faults.expect(result.value <= value + slack, "f has risen", (value, result.value, slack))


def check_counts(run, result, faults):
    seen, stated = run.calls, result.evaluations
    # compiled Newton steps evaluate the quadratic form themselves, and count it
    compiled = "riemannian-newton" in result.method
    missed = stated.gradient - seen.gradient
    as_called = 0 <= missed == stated.value - seen.value if compiled else missed == 0
    faults.expect(as_called, "count of gradients", (stated, seen))
    faults.expect(compiled or stated.value == seen.value, "count of values", (stated, seen))
    if run.samples and not compiled:
        same = stated.sample_gradient == seen.sample_gradient
        faults.expect(same, "count of sample gradients", (stated, seen))


def check_limits(run, result, faults):
    """None is passed, but for the evaluation at the point that is returned."""
    limits, done = run.arguments, result.iterations
    faults.expect(done <= limits["max_iterations"], "max_iterations", done)
    if "max_evaluations" in limits:
        spent, most = spent_by(run, result), limits["max_evaluations"]
        faults.expect(spent <= most + (2 if run.samples else 1), "max_evaluations", (spent, most))


def spent_by(run, result):
    """What `max_evaluations` limits: gradients and products with the Hessian."""
    count = result.evaluations
    gradients = count.sample_gradient / run.samples if run.samples else count.gradient
    return gradients + count.hessian


def check_status(run, result, faults):
    arguments, known, status = run.arguments, run.known, result.status
    X, signs, unit = wide(numpy_of(result.x)), wide(run.signs), UNITS[run.dtype]
    detail = (result.message, result.gradient_norm, result.gradient_scale)
    truth, values = True, result.history["value"]
    if status is Status.CONVERGED:
        truth = result.gradient_norm <= arguments["gradient_tolerance"] * result.gradient_scale
        if "target" in known:
            truth = truth or result.value <= known["target"]
        if "decrease" in known and len(values) > 2:
            before, now = values[[-3, -1]]
            truth = truth or abs(before - now) <= known["decrease"] * max(abs(before), abs(now))
    elif status is Status.MAX_ITERATIONS:
        truth = result.iterations == arguments["max_iterations"]
    elif status is Status.MAX_EVALUATIONS:
        truth = spent_by(run, result) >= arguments.get("max_evaluations", np.inf)
    elif status is Status.MAX_TIME:
        truth = "max_time" in arguments
    elif status is Status.INTERRUPTED:
        truth = "callback" in known and result.history["iteration"][-1] >= known["callback"]
    elif status is Status.NON_FINITE:
        truth = run.calls.not_finite
    elif status is Status.UNBOUNDED:
        check_unbounded(run, result, X, signs, faults)
    elif "no step lowers f" in result.message and not has_no_digits(run, X):  # STALLED
        gain = recomputed.lowered(run.function, X, signs)
        truth = gain <= 10 * run.function.value_error(X, unit)
        detail = (gain, *detail)
    faults.expect(truth, f"{status.name} is not true", detail)


def check_unbounded(run, result, X, signs, faults):
    """A boost along which f falls for ever, or X beyond u^(-1/2) and f below where it was;
    never of a bounded f."""
    norm = recomputed.norm2(X)
    if "norm" in run.known and "is at least 20" in result.message:
        faults.expect(norm >= 0.99 * 20, "NormAbove", norm)
        return
    faults.expect(not run.bounded, "UNBOUNDED of a bounded f", result.message)
    far = has_no_digits(run, X) and result.value < np.nanmin(result.history["value"][:-1])
    falls = recomputed.falls_for_ever(run.function, X, signs, run.sides)
    faults.expect(far or falls, "UNBOUNDED is not true", (result.message, norm, result.value))


PARTS = [
    pytest.param(first, marks=pytest.mark.slow if first >= QUICK else ())
    for first in range(0, RUNS, PART)
]


@pytest.mark.parametrize("first", PARTS)
def test_random_runs_say_what_is_true(first):
    found = {}
    for number in range(first, first + PART):
        faults, run, _ = faults_of(number)
        if faults:
            found[number] = [f"{kind}: {detail} [{run.name}]" for kind, detail in faults]
    table = Counter(line.split(":")[0] for lines in found.values() for line in lines)
    assert not found, "\n".join(
        [f"{count} x {kind}" for kind, count in table.most_common()] + [f"{found}"]
    )
