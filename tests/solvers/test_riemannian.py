"""Riemannian methods: few iterations where it is preconditioned, whatever the conditioning; the pole is not passed."""

import numpy as np
import pytest
import scipy.linalg
import torch

import jorth
from jorth import Signature, Status
from jorth.datasets import planted_procrustes
from jorth.solvers.base import State
from jorth.solvers.counting import Clock, CountedObjective
from jorth.solvers.problem import Problem
from jorth.solvers.riemannian import RiemannianCG, RiemannianLBFGS, RiemannianSD
from jorth.solvers.riemannian.line_search import Trial
from jorth.solvers.riemannian.preconditioner import precondition, renew


def test_preconditioner_inverts_the_curvature():
    """The metric applied to (J A J S Y + Y S J A J) / 2, Y = X X^T, gives S back."""
    sig = Signature(4, 3)
    rng = np.random.default_rng(0)
    M = rng.standard_normal((7, 7))
    A = M @ M.T + 0.1 * np.eye(7)
    X = jorth.random_point(sig, cond=20.0, seed=1)
    S = rng.standard_normal((7, 7))
    S = S - S.T
    J, Y = np.diag(sig.signs.astype(float)), X @ X.T
    image = (J @ A @ J @ S @ Y + Y @ S @ J @ A @ J) / 2
    objective = CountedObjective(jorth.Quadratic(A), Clock())
    point = torch.from_numpy(X)
    problem = Problem(objective, sig, sig.vector(point), np.random.default_rng(0))
    state = State(point, 0.0, point)
    assert renew(problem, state)
    assert not renew(problem, state)
    found = precondition(state, torch.from_numpy(image))
    np.testing.assert_allclose(found.numpy(), S, atol=1e-10)


@pytest.mark.parametrize("source_condition", [3.0, 30.0, 300.0])
@pytest.mark.parametrize("point_condition", [10.0, 100.0])
def test_few_iterations_at_any_conditioning(source_condition, point_condition):
    sig = Signature(12, 8)
    source, target, X = planted_procrustes(
        60, sig, source_condition=source_condition, point_condition=point_condition, seed=1
    )
    result = jorth.minimize(
        jorth.Procrustes(source, target), signature=sig, method="riemannian-lbfgs", gradient_tolerance=1e-10
    )
    assert result.status is Status.CONVERGED
    assert result.iterations <= 120  # found: 12 to 90, the most at 300 and 100; without the preconditioner thousands
    assert np.abs(result.x - X).max() <= 1e-10 * source_condition**2 * point_condition
    assert jorth.component(result.x, sig) == (1, 1)


@pytest.mark.parametrize("p", [25, 45])
def test_trace_minimisation(p):
    n, sig = 50, Signature(p, 50 - p)
    M = np.random.default_rng(2).standard_normal((n, n))
    A = M @ M.T / n + 0.05 * np.eye(n)
    optimum = np.abs(1 / scipy.linalg.eigh(np.diag(sig.signs.astype(float)), A, eigvals_only=True)).sum()
    result = jorth.minimize(jorth.Quadratic(2 * A), signature=sig, method="riemannian-lbfgs", gradient_tolerance=1e-7)
    assert result.value == pytest.approx(optimum, rel=1e-8)
    assert result.residual <= 100 * n * 2.0**-53


def dense_inverse_hessian(pairs, first, size):
    """BFGS from its definition: H <- (I - rho s y^T) H (I - rho y s^T) + rho s s^T, oldest pair first."""
    H, identity = first * np.eye(size), np.eye(size)
    for s, y in pairs:
        rho = 1 / (s @ y)
        H = (identity - rho * np.outer(s, y)) @ H @ (identity - rho * np.outer(y, s)) + rho * np.outer(s, s)
    return H


def test_two_loop_recursion_is_bfgs():
    rng = np.random.default_rng(4)
    solver = RiemannianLBFGS(memory=3, preconditioner="none")
    point = torch.eye(4, dtype=torch.float64)
    state = State(point, 0.0, point)
    pairs = []
    for _ in range(5):  # more than it keeps
        M = rng.standard_normal((4, 4))
        s = M - M.T
        y = s + 0.1 * (lambda K: K - K.T)(rng.standard_normal((4, 4)))
        zero, step, change = torch.zeros(4, 4, dtype=torch.float64), torch.from_numpy(s), torch.from_numpy(y)
        solver.remember(state, zero, step, 0.0, Trial(1.0, step, point, 0.0, point, change))
        pairs.append((s.ravel(), y.ravel()))
    s, y = pairs[-1]
    H = dense_inverse_hessian(pairs[-3:], (s @ y) / (y @ y), 16)
    g = rng.standard_normal((4, 4))
    found = solver.direction(state, torch.from_numpy(g))
    np.testing.assert_allclose(found.numpy().ravel(), -H @ g.ravel(), rtol=1e-10)


@pytest.mark.parametrize("method", [RiemannianSD, RiemannianCG, RiemannianLBFGS])
@pytest.mark.parametrize(("preconditioner", "condition"), [("auto", 1e4), ("none", 100.0)])
def test_values_fall_and_the_pole_is_not_passed(method, preconditioner, condition):
    """A far target: the first directions reach beyond the pole of the Cayley transform, and none may cross it."""
    sig = Signature(4, 4)
    source, target, _ = planted_procrustes(40, sig, source_condition=2.0, point_condition=condition, noise=0.1, seed=5)
    objective = jorth.Procrustes(source, target)
    result = jorth.minimize(
        objective,
        signature=sig,
        method=method(preconditioner=preconditioner),
        gradient_tolerance=0.0,
        max_iterations=3000,
        callback=lambda X, row: jorth.component(X, sig) != (1, 1),
    )
    assert result.message != "the callback asked to stop"
    if method is RiemannianSD:  # Barzilai-Borwein steps: slow far out, and not monotone
        assert result.value < 0.2 * result.history["value"][0]
        return
    assert result.gradient_norm < 1e-8 * result.history["gradient_norm"][0]  # on to rounding, though f is not zero
    value, x = result.history["value"], torch.from_numpy(result.x)
    # f is known to u ||G|| ||X||; steps that are lost in it may raise f by as much
    noise = 20 * 2.0**-53 * float(objective.value_and_gradient(x)[1].norm() * x.norm())
    assert (np.diff(value) <= 1e-14 * np.abs(value[:-1]) + noise).all()


def test_thin_start_and_indefinite_quadratic_go_without_the_preconditioner():
    sig = Signature(6, 4)
    M = np.random.default_rng(3).standard_normal((10, 10))
    x0 = jorth.random_point(sig, cond=2.0, columns=(2, 1), seed=1)
    thin = jorth.minimize(
        jorth.Quadratic(M @ M.T + np.eye(10)), x0, signature=sig, method="riemannian-lbfgs", gradient_tolerance=1e-8
    )
    assert thin.status is Status.CONVERGED
    assert thin.residual <= 100 * 10 * 2.0**-53
    saddle = jorth.Quadratic(np.diag(np.linspace(-1.0, 5.0, 10)))
    assert jorth.minimize(saddle, signature=sig, method="riemannian-lbfgs", max_iterations=2000).status in (
        Status.UNBOUNDED,
        Status.CONVERGED,
        Status.STALLED,
    )
