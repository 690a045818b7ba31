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
    faults.expect(
        abs(slope - result.gradient_norm) <= allowed,
        "gradient norm",
        (result.gradient_norm, slope, allowed),
    )
    first, scale = wide(start), max(1.0, recomputed.norm2(X) ** 2)
    thin = X.shape[1] < X.shape[0]
    wanted = recomputed.gram(first, signs) if thin else np.diag(signs)
    residual = float(abs(recomputed.gram(X, signs) - wanted).max()) / scale
    # n + 2 operations an entry, each at most ||X||^2; of a thin start as well
    allowed = (len(X) + 10) * unit * (1 + (recomputed.norm2(first) ** 2 / scale if thin else 0.0))
    allowed += 0.03 * residual  # it is relative to ||X||_2^2, which is known to one per cent
    faults.expect(
        abs(residual - result.residual) <= allowed, "residual", (result.residual, residual, allowed)
    )
    small = result.residual <= 1e3 * len(X) * unit
    faults.expect(
        small or "polish x" in result.message, "a large residual goes unsaid", result.residual
    )


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
        same = np.array_equal(
            [last["value"], last["gradient_norm"]],
            [result.value, result.gradient_norm],
            equal_nan=True,
        )
        faults.expect(
            same, "the last row is not the result", (last, result.value, result.gradient_norm)
        )
    stated = vars(result.evaluations)
    recorded = {name.removesuffix("_evaluations"): last[name] for name in ("pair_updates", *counts)}
    cut_short = result.status in (
        Status.MAX_EVALUATIONS,
        Status.MAX_TIME,
        Status.NON_FINITE,
    )  # inside a step
    agree = all(
        n <= stated[name] if cut_short else n == stated[name] for name, n in recorded.items()
    )
    faults.expect(agree, "counts of the last row", (recorded, stated))
    faults.expect(
        last["iteration"] == result.iterations,
        "iteration of the last row",
        (last, result.iterations),
    )
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
        faults.expect(
            stated.sample_gradient == seen.sample_gradient,
            "count of sample gradients",
            (stated, seen),
        )


def check_limits(run, result, faults):
    """None is passed, but for the evaluation at the point that is returned."""
    arguments = run.arguments
    faults.expect(
        result.iterations <= arguments["max_iterations"], "max_iterations", result.iterations
    )
    if "max_evaluations" in arguments:
        spent = spent_by(run, result)
        allowed = arguments["max_evaluations"] + (2 if run.samples else 1)
        faults.expect(spent <= allowed, "max_evaluations", (spent, arguments["max_evaluations"]))


def spent_by(run, result):
    """What `max_evaluations` limits: gradients and products with the Hessian."""
    count = result.evaluations
    gradients = count.sample_gradient / run.samples if run.samples else count.gradient
    return gradients + count.hessian


def check_status(run, stage, faults):
    arguments, known = run.arguments, run.known
    X, signs, unit = wide(numpy_of(stage.x)), wide(run.signs), UNITS[run.dtype]
    kind = f"{stage.status.name} is not true"
    detail = (stage.message, stage.gradient_norm, stage.gradient_scale)
    reached = stage.gradient_norm <= arguments["gradient_tolerance"] * stage.gradient_scale
    if stage.status is Status.CONVERGED:
        if "target" in known:
            reached = reached or stage.value <= known["target"]
        if "decrease" in known and len(stage.history["value"]) > 2:
            before, now = stage.history["value"][[-3, -1]]
            reached = reached or abs(before - now) <= known["decrease"] * max(abs(before), abs(now))
        if "block" in known:  # steps of 1e-6 at most: nothing to gain but in the sixth digit
            gain = recomputed.lowered(run.function, X, signs)
            reached = reached or gain <= 1e-4 * (1 + abs(stage.value))
        faults.expect(reached, kind, detail)
    elif stage.status is Status.MAX_ITERATIONS:
        faults.expect(stage.iterations == arguments["max_iterations"], kind, stage.iterations)
    elif stage.status is Status.MAX_EVALUATIONS:
        spent = spent_by(run, stage)
        limit = arguments.get("max_evaluations", np.inf)
        faults.expect(spent >= limit, kind, (spent, limit))
    elif stage.status is Status.MAX_TIME:
        faults.expect("max_time" in arguments, kind, detail)
    elif stage.status is Status.INTERRUPTED:
        faults.expect(
            "callback" in known and stage.history["iteration"][-1] >= known["callback"],
            kind,
            detail,
        )
    elif stage.status is Status.NON_FINITE:
        faults.expect(run.calls.not_finite, kind, detail)
    elif stage.status is Status.UNBOUNDED:
        check_unbounded(run, stage, X, signs, faults)
    elif (
        stage.status is Status.STALLED
        and "no step lowers f" in stage.message
        and not has_no_digits(run, X)
    ):
        gain = recomputed.lowered(run.function, X, signs)
        faults.expect(
            gain <= 10 * run.function.value_error(X, unit),
            kind,
            (gain, run.function.value_error(X, unit), detail),
        )


def check_unbounded(run, stage, X, signs, faults):
    """A boost along which f falls for ever, or X beyond u^(-1/2) and f below where it was;
    never of a bounded f."""
    norm = recomputed.norm2(X)
    if "norm" in run.known and "is at least 20" in stage.message:
        faults.expect(norm >= 0.99 * 20, "NormAbove", norm)
        return
    faults.expect(not run.bounded, "UNBOUNDED of a bounded f", stage.message)
    far = has_no_digits(run, X) and stage.value < np.nanmin(stage.history["value"][:-1])
    falls = recomputed.falls_for_ever(run.function, X, signs, run.sides)
    faults.expect(far or falls, "UNBOUNDED is not true", (stage.message, norm, stage.value))


@pytest.mark.parametrize(
    "first",
    [
        *range(0, QUICK, PART),
        *(pytest.param(k, marks=pytest.mark.slow) for k in range(QUICK, RUNS, PART)),
    ],
)
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
