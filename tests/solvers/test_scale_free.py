"""f times c and data times c: the same iterations to the same status, for every solver."""

from dataclasses import fields, replace
from functools import cache

import numpy as np
import pytest
import torch

import jorth
from jorth import Signature, Status
from jorth.datasets import planted_procrustes
from jorth.objectives import AbstractObjective, QuadraticForm
from jorth.solvers.problem import as_objective
from jorth.stopping import GradientNorm, ValueBelow
from tests.solvers.registry import SOLVERS

SIG = Signature(3, 2)
EXACT = [2.0**-300, 2.0**300]
"""Powers of two: not a bit changes."""
ROUNDED = [1e-100, 1e100]
"""Other factors round f, and end after the same number of iterations up to one in ten."""
UNITS = {"theta", "curvature", "beta"}
"""Options in the units of f."""


class Times(AbstractObjective):
    """c f, with all that f states."""

    def __init__(self, f, c):
        self.f, self.c = f, c
        self.samples, self.twice_by_autograd = f.samples, f.twice_by_autograd

    def value_and_gradient(self, X):
        value, gradient = self.f.value_and_gradient(X)
        return self.c * value, self.c * gradient

    def hessian(self, X):
        product = self.f.hessian(X)
        return None if product is None else lambda V: self.c * product(V)

    def sample_gradient(self, X, index):
        return self.c * self.f.sample_gradient(X, index)

    def quadratic(self):
        form = self.f.quadratic()
        if form is None:
            return None
        C = None if form.C is None else self.c * form.C
        return QuadraticForm(self.c * form.A, C, form.D, self.c * form.constant)

    def curvature(self):
        known = self.f.curvature()
        return None if known is None else self.c * known

    def bounded_below(self):
        return self.f.bounded_below()

    def data(self):
        return self.f.data()

    def shape(self):
        return self.f.shape()


@cache
def data():
    conditions = dict(source_condition=3.0, point_condition=4.0)
    return planted_procrustes(20, SIG, noise=0.1, seed=11, **conditions)


def robust_mean(X, batch):
    source, target = batch
    return torch.sqrt(1 + (source @ X - target) ** 2).sum() / len(source)


def problems():
    source, target, _ = data()
    rows = torch.from_numpy(source), torch.from_numpy(target)
    A = source.T @ source / 20
    return {
        "procrustes": jorth.Procrustes(source, target),
        "quadratic": jorth.Quadratic(A, source[:5] / 4, np.diag([1.0, 2.0, 1.0, 3.0, 1.0])),
        "trace": jorth.HyperbolicEigenvalue(A),
        "function": as_objective(lambda X: robust_mean(X, rows)),
        "sum": jorth.FiniteSum(robust_mean, rows),
    }


def in_units(solver, c):
    """The solver with its options in the units of c f."""
    own = {field.name: getattr(solver, field.name) for field in fields(solver)}
    numbers = {name: x for name, x in own.items() if name in UNITS and isinstance(x, float)}
    return replace(solver, **{name: c * x for name, x in numbers.items()})


SOLVED = SOLVERS | {
    "j theta": jorth.Jacobi(theta=1e-3),
    "j fixed": jorth.Jacobi(curvature=2.0),
    "gs fixed": jorth.GaussSeidel(curvature=2.0, theta=1e-2),
    "accelerated gs theta": jorth.GaussSeidel(theta=1e-2, accelerate=True),
    "accelerated j theta": jorth.Jacobi(theta=1e-2, accelerate=True),
    "vr batches": jorth.VarianceReduced(batch=10, probability=0.9),
}


@pytest.mark.parametrize("name", SOLVED)
@pytest.mark.parametrize("problem", ["procrustes", "quadratic", "trace", "sum"])
def test_powers_of_two_do_not_change_a_bit(name, problem):
    f = problems()[problem]
    if name.startswith("vr") and not f.samples:
        pytest.skip("not a sum")
    options = dict(signature=SIG, max_iterations=6, seed=1)
    methods = {c: in_units(SOLVED[name], c) for c in (1.0, *EXACT)}
    runs = [jorth.minimize(Times(f, c), method=way, **options) for c, way in methods.items()]
    for c, run in zip(EXACT, runs[1:], strict=True):
        assert (run.status, run.iterations) == (runs[0].status, runs[0].iterations)
        np.testing.assert_array_equal(run.x, runs[0].x)
        for column in ("value", "gradient_norm"):
            np.testing.assert_array_equal(run.history[column], c * runs[0].history[column])
        assert run.value == c * runs[0].value
        assert run.gradient_scale == c * runs[0].gradient_scale


def alike(run, other):
    assert other.status is run.status
    assert abs(other.iterations - run.iterations) <= 1 + run.iterations // 10


@pytest.mark.parametrize("method", jorth.solvers.METHODS)
@pytest.mark.parametrize("problem", ["procrustes", "sum"])
def test_defaults_end_alike_at_any_scale_of_f(method, problem):
    f = problems()[problem]
    options = dict(signature=SIG, method=method, max_iterations=1000)
    plain = jorth.minimize(f, **options)
    if method == "exponential" and plain.status is Status.MAX_ITERATIONS:
        return  # its chart has valleys in which a run creeps, and rounding then decides the value
    assert plain.status is Status.CONVERGED
    for c in ROUNDED:
        other = jorth.minimize(Times(f, c), **options)
        alike(plain, other)
        assert other.value / c == pytest.approx(plain.value, rel=1e-9)


@pytest.mark.parametrize("c", [*EXACT, *ROUNDED, 1e-4, 1e4])
def test_defaults_end_alike_in_any_unit_of_the_data(c):
    source, target, _ = data()
    pairs = ((source, target), (c * source, c * target))
    aligned = [jorth.procrustes(*pair, SIG, x0=np.eye(5)) for pair in pairs]
    runs = [
        [jorth.minimize(jorth.Procrustes(*pair), signature=SIG, method=way) for pair in pairs]
        for way in ("gs-jobcd", "j-jobcd")
    ]
    for plain, other in (aligned, *runs):
        alike(plain, other)
        assert plain.iterations > 3
        np.testing.assert_allclose(other.x, plain.x, atol=1e-8)


def test_f_is_zero():
    for f in (lambda X: 0 * X.sum(), jorth.Quadratic(np.zeros((5, 5)))):
        result = jorth.minimize(f, signature=SIG)
        assert (result.status, result.iterations) == (Status.CONVERGED, 0)
        assert result.gradient_scale == 0


def test_the_scale_of_an_unknown_f():
    """The largest ||G X^T||_F / max(1, ||X||_2^2), which is that of the start here."""
    T = data().X
    x0 = jorth.random_point(SIG, cond=100.0, seed=3)

    def f(X):
        return (X - torch.from_numpy(T)).square().sum()

    result = jorth.minimize(f, torch.from_numpy(x0), signature=SIG, method="riemannian-lbfgs")
    at_start = np.linalg.norm(2 * (x0 - T) @ x0.T) / np.linalg.norm(x0, 2) ** 2
    assert result.status is Status.CONVERGED
    assert result.gradient_scale >= 0.99 * at_start
    assert result.gradient_scale <= 2 * np.linalg.norm(np.eye(5)) + 2 * np.linalg.norm(T)
    assert f"of its scale {result.gradient_scale:.3g}" in result.message


def test_criteria_and_callbacks_get_the_units_of_f():
    f = problems()["procrustes"]
    rows = []

    def callback(X, row):
        rows.append((X, row["value"]))

    jorth.minimize(Times(f, 1e100), signature=SIG, callback=callback, max_iterations=3)
    for X, value in rows:
        assert value == pytest.approx(1e100 * f.value(torch.as_tensor(X)).item(), rel=1e-12)
    for column, stop in (("value", ValueBelow(1e99)), ("gradient_norm", GradientNorm(1e98))):
        run = jorth.minimize(Times(f, 1e100), signature=SIG, gradient_tolerance=0.0, stop=stop)
        assert run.status is Status.CONVERGED
        (limit,) = vars(stop).values()
        assert run.history[column][-1] <= limit < run.history[column][-2]


@pytest.mark.parametrize("scale", [1e-300, 1e-20, 1e20, 1e300])
def test_underflow_is_not_convergence(scale):
    """Three times the optimum, with a tolerance far below the gradient there."""
    A = np.diag([4.0, 1.0])
    x0 = jorth.random_point(Signature(1, 1), cond=30.0, seed=1)
    objective, stop = jorth.HyperbolicEigenvalue(A * scale), GradientNorm(1e-9 * scale)
    options = dict(signature=Signature(1, 1), gradient_tolerance=0.0, stop=stop)
    result = jorth.minimize(objective, x0, **options)
    assert result.status is Status.CONVERGED
    assert result.iterations > 0
    assert result.value / scale == pytest.approx(5.0, rel=1e-9)
    assert 0 <= result.gradient_norm <= 1e-9 * scale
