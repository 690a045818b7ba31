"""`minimize(..., saddles="leave")`: from critical points that are known to the optimum."""

import signal
from dataclasses import replace

import numpy as np
import pytest
import torch

import jorth
from jorth import Objective, Quadratic, Signature, Status, hessian_check, minimize
from jorth.solvers.loop.budget import Limits
from jorth.solvers.loop.run import Settings
from jorth.solvers.second_order import saddles

ROTATIONS = Signature(4, 0)
TURNED = np.diag([-1.0, -1.0, 1.0, 1.0])
"""A critical point of f = -<C, X> with C = diag(1, 2, 3, 4), where f = -4; the minimum is -10."""


def linear():
    return Quadratic(np.zeros((4, 4)), -np.diag([1.0, 2.0, 3.0, 4.0]))


def weighted_trace(sig, seed):
    """A trace problem with weights, a saddle or minimum of it in a random order, and the minimum.

    In the J-eigenframe W of A, f(W P) = sum |lambda_i| d_p(i) / 2 is critical for every
    permutation P of equal signs, and the least one pairs large |lambda| with small d.
    """
    rng = np.random.default_rng(seed)
    n = sig.n
    G = rng.standard_normal((2 * n, n))
    A = G.T @ G / n + 0.1 * np.eye(n)
    d = 1.0 + rng.permutation(n)
    values, W = jorth.eigh(A, sig)
    sizes = abs(values)
    order = np.arange(n)
    least = 0.0
    for sign in (1, -1):
        place = np.flatnonzero(sig.signs == sign)
        order[place] = rng.permutation(place)
        least += np.sort(sizes[place]) @ np.sort(d[place])[::-1] / 2
    return Quadratic(A, D=np.diag(d)), W[:, order], least


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("p", "q"), [(2, 0), (1, 1), (2, 1), (2, 2), (4, 1), (3, 3)])
def test_from_any_critical_point_to_the_minimum(p, q, seed):
    sig = Signature(p, q)
    objective, X, least = weighted_trace(sig, 10 * seed + p)
    stayed = minimize(objective, X, signature=sig)
    result = minimize(objective, X, signature=sig, saddles="leave", gradient_tolerance=1e-10)
    assert stayed.iterations == 0
    assert "jorth.hessian_check" in stayed.message
    assert result.success
    assert result.value <= stayed.value + 1e-12 * abs(stayed.value)
    assert result.value == pytest.approx(least, rel=1e-10)
    assert hessian_check(objective, result.x, sig).kind == "minimum"
    assert "a minimum" in result.message
    assert result.hessian.kind == "minimum"
    assert all(stage.hessian.kind == "saddle" for stage in result.stages[:-1])
    assert np.array_equal(jorth.component(result.x, sig), jorth.component(X, sig))


def test_functions_and_thin_points():
    sig = Signature(3, 2)
    objective, X, _ = weighted_trace(sig, 5)
    A, D = objective.A, objective.D

    def f(X):
        return (X * (A @ X @ D[: X.shape[1], : X.shape[1]])).sum() / 2

    for start in (X, X[:, [0, 3]]):
        by_form = Quadratic(A, D=D[: start.shape[1], : start.shape[1]])
        expected = minimize(by_form, start, signature=sig, saddles="leave")
        result = minimize(f, torch.from_numpy(start.copy()), signature=sig, saddles="leave")
        assert isinstance(result.x, torch.Tensor)
        assert result.success
        assert result.value == pytest.approx(expected.value, rel=1e-9)


@pytest.mark.parametrize(
    "method", ["gs-jobcd", "j-jobcd", "umcm", "exponential", ["riemannian-sd", "riemannian-cg"]]
)
def test_methods(method):
    options = dict(signature=ROTATIONS, method=method, max_iterations=400)
    assert minimize(linear(), TURNED, **options).value == -4
    result = minimize(linear(), TURNED, saddles="leave", **options)
    assert result.success
    assert result.value == pytest.approx(-10, abs=1e-8)
    assert "left 1 saddle; the smallest Hessian eigenvalue is 1.5, a minimum" in result.message
    assert [stage.value for stage in result.stages] == [-4, result.value]
    assert result.method == result.stages[-1].method


def test_the_record_continues_over_the_rounds():
    rows = []
    result = minimize(
        linear(), TURNED, signature=ROTATIONS, method="riemannian-cg", saddles="leave",
        callback=lambda X, row: rows.append(row),
    )  # fmt: skip
    history = result.history
    assert (np.diff(history["iteration"]) == 1).all()
    assert (np.diff(history["value"]) < 0).all()
    assert (np.diff(history["time"]) >= 0).all()
    assert (np.diff(history["gradient_evaluations"]) >= 1).all()
    for name, column in history.items():
        assert [row[name] for row in rows] == column.tolist()
    assert result.iterations == history["iteration"][-1]


def counted():
    """f = -<C, X> in NumPy, and the number of its gradients."""
    C = np.diag([1.0, 2.0, 3.0, 4.0])
    calls = []

    def gradient(X):
        calls.append(X)
        return -C

    return Objective(lambda X: -(C * X).sum(), gradient), calls


def test_evaluations_are_all_counted():
    objective, calls = counted()
    result = minimize(objective, TURNED, signature=ROTATIONS, saddles="leave")
    assert result.value == pytest.approx(-10)
    assert result.evaluations.gradient == len(calls)


@pytest.mark.parametrize("limit", [0, 1, 3, 8, 30, 45, 50])
def test_limits_are_for_all_rounds(limit):
    objective, calls = counted()
    options = dict(signature=ROTATIONS, method="riemannian-sd", saddles="leave")
    result = minimize(objective, TURNED, max_evaluations=limit, **options)
    # each round scores its last point beyond the limit
    assert result.evaluations.gradient == len(calls) <= limit + 1
    assert result.status is Status.MAX_EVALUATIONS
    assert result.value <= -4
    result = minimize(linear(), TURNED, max_iterations=limit % 5, **options)
    assert result.iterations == limit % 5
    assert result.status is Status.MAX_ITERATIONS
    late = minimize(linear(), TURNED, max_time=0.0, **options)
    assert late.status is Status.MAX_TIME
    assert late.value == -4


def test_a_run_is_resumed_in_its_round(tmp_path):
    options = dict(signature=ROTATIONS, method="riemannian-sd", saddles="leave")
    whole = minimize(linear(), TURNED, **options)
    kept = dict(options, checkpoint=tmp_path, checkpoint_interval=0.0)
    for iterations in (1, 3, None):
        part = minimize(linear(), TURNED, **kept, max_iterations=iterations)
    again = minimize(linear(), TURNED, **kept)
    assert part.evaluations.hessian == whole.evaluations.hessian
    for result in (part, again):
        assert np.array_equal(result.x, whole.x)
        assert result.iterations == whole.iterations
        assert result.history["value"].tolist() == whole.history["value"].tolist()


def test_where_f_is_unbounded_the_run_says_so():
    sig = Signature(3, 2)
    objective = Quadratic(-np.eye(5))
    stayed = minimize(objective, signature=sig)
    assert stayed.success
    assert "the start is a critical point" in stayed.message
    result = minimize(objective, signature=sig, saddles="leave")
    assert result.status is Status.UNBOUNDED
    assert "left 1 saddle" in result.message


def test_no_doubt_about_a_point_where_a_convex_f_is_flat():
    sig = Signature(3, 2)
    source, target, X = jorth.datasets.planted_procrustes(20, sig, seed=1)
    result = minimize(jorth.Procrustes(source, target), X, signature=sig)
    assert result.iterations == 0
    assert "hessian_check" not in result.message


def test_a_degenerate_end_is_not_called_a_minimum():
    sig = Signature(3, 2)
    result = minimize(Quadratic(np.eye(5)), signature=sig, saddles="leave")
    assert result.success
    assert not result.stages
    assert "zero to within the tolerance" in result.message


def test_second_derivatives_that_are_not_finite_are_reported():
    def gradient(X):
        return 0 * X if np.array_equal(X, np.eye(2)) else X * np.nan

    flat = Objective(lambda X: 0.0, gradient)
    result = minimize(flat, np.eye(2), signature=Signature(1, 1), saddles="leave")
    assert result.success
    assert "could not be checked" in result.message


def test_a_callback_ends_all_rounds():
    result = minimize(
        linear(), TURNED, signature=ROTATIONS, method="riemannian-sd", saddles="leave",
        callback=lambda X, row: row["iteration"] >= 2,
    )  # fmt: skip
    assert result.status is Status.INTERRUPTED
    assert result.iterations == 2


def test_ctrl_c_during_the_check_keeps_the_answer():
    C = np.diag([1.0, 2.0, 3.0, 4.0])

    def interrupt(X, V):
        signal.raise_signal(signal.SIGINT)
        return 0 * V

    objective = Objective(lambda X: -(C * X).sum(), lambda X: -C, interrupt)
    result = minimize(objective, TURNED, signature=ROTATIONS, saddles="leave")
    assert result.status is Status.INTERRUPTED
    assert "while the Hessian was checked" in result.message
    assert np.array_equal(result.x, TURNED)


def settings(**given):
    plain = dict(
        limits=Limits(), gradient_tolerance=1e-7, stop=None, seed=0, callback=None,
        progress=False, checkpoint=None, checkpoint_interval=10.0, on_unbounded="stop",
    )  # fmt: skip
    return Settings(**plain | given)


def test_a_method_that_ends_above_the_saddle_returns_it():
    saddle = minimize(linear(), TURNED, signature=ROTATIONS)

    def solve(start, settings):
        return saddle if start is None else replace(saddle, value=-3.0, x=start)

    result = saddles.leave_saddles(solve, None, linear(), ROTATIONS, settings())
    assert result.status is Status.STALLED
    assert result.value == -4
    assert np.array_equal(result.x, TURNED)
    assert len(result.stages) == 2


def test_the_end_of_a_round_that_was_left_does_not_move(tmp_path):
    saddle = minimize(linear(), TURNED, signature=ROTATIONS)
    lowest = minimize(linear(), signature=ROTATIONS)
    seen = []

    def solve(start, settings):
        seen.append(settings.limits.max_iterations)
        return saddle if start is None else lowest

    for _ in range(2):
        checkpoint = settings(checkpoint=tmp_path)
        result = saddles.leave_saddles(solve, None, linear(), ROTATIONS, checkpoint)
        assert result.value == -10
    assert seen == [None, None, 0, None]


def test_the_lower_side_of_a_saddle_is_taken():
    """f = -x^2 + x^3 / 2 of the sine x is lower for negative x."""

    def f(X):
        return -X[1, 0].square() + X[1, 0].pow(3) / 2

    start = torch.eye(2, dtype=torch.float64)
    result = minimize(f, start, signature=Signature(2, 0), saddles="leave")
    assert result.value == pytest.approx(-1.5)
    assert result.x[1, 0] < 0


def test_what_is_refused():
    with pytest.raises(ValueError, match=r'saddles must be .*"leave".*got'):
        minimize(linear(), signature=ROTATIONS, saddles="flee")
    with pytest.raises(ValueError, match="saddles must be omitted for a batch"):
        minimize(Quadratic(np.ones((2, 3, 3))), signature=Signature(2, 1), saddles="leave")
    several = linear()
    several.ranks = object()
    with pytest.raises(ValueError, match="Sharded"):
        hessian_check(several, TURNED, ROTATIONS)
    with pytest.raises(ValueError, match="Sharded"):
        saddles.leave_saddles(lambda *given: None, None, several, ROTATIONS, settings())
