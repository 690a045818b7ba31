"""Riemannian Newton: its Hessian is that of f, its end is quadratic, and it falls everywhere."""

import os
import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest
import scipy.linalg
import torch

import jorth
from jorth import RiemannianNewton, Signature, Status
from jorth.datasets import planted_procrustes
from jorth.solvers.problem import CountedObjective, Problem, as_objective
from jorth.solvers.riemannian.newton import NewtonState, hessian

UNIT = 2.0**-53


def symmetric(rng, n):
    M = rng.standard_normal((n, n))
    return M + M.T


def skew_basis(n):
    """E_ij - E_ji for i < j."""
    basis = []
    for i in range(n):
        for j in range(i + 1, n):
            E = np.zeros((n, n))
            E[i, j], E[j, i] = 1.0, -1.0
            basis.append(E)
    return basis


class Form(NamedTuple):
    A: np.ndarray
    C: np.ndarray
    D: np.ndarray
    signs: np.ndarray


def at_a_point(n, with_d, seed=0):
    """A form with signs in no order, and a point."""
    rng = np.random.default_rng(seed)
    sig = Signature.of([1, -1] * (n // 2) + [-1] * (n % 2))
    A, C = symmetric(rng, n), rng.standard_normal((n, n))
    D = symmetric(rng, n) if with_d else np.eye(n)
    return Form(A, C, D, sig.signs.astype(float)), jorth.random_point(sig, cond=4.0, seed=seed + 1)


def second_derivative(form, X, Z):
    """d^2/dt^2 f(X exp(t J Z)) at 0, which is that along the Cayley transform, by its formula."""
    K = form.signs[:, None] * Z
    G = form.A @ X @ form.D + form.C
    V = X @ K
    return float((V * (form.A @ V @ form.D)).sum() + (G * (X @ K @ K)).sum())


@pytest.mark.parametrize("with_d", [False, True])
@pytest.mark.parametrize("n", [2, 5, 8, 13])
def test_a_step_near_the_minimum_solves_newtons_equations(n, with_d):
    """Z from X cay(J Z), against H^-1 g with H by polarisation: q(Z) = <Z, H Z>.

    Conjugate gradients stop once the residual is below that part of g which g is of B.
    """
    rng = np.random.default_rng(n)
    sig = Signature.of([1, -1] * (n // 2) + [-1] * (n % 2))
    A, D = (M @ M.T / n + np.eye(n) for M in rng.standard_normal((2, n, n)))
    C = rng.standard_normal((n, n))
    objective = jorth.Quadratic(A, C, D if with_d else None)
    options = dict(signature=sig, method="riemannian-newton")
    best = jorth.minimize(objective, gradient_tolerance=0.0, max_iterations=100, **options).x
    X = best @ jorth.cayley(1e-5 * sig.signs[:, None] * skew(rng.standard_normal((n, n))), sig)
    form = Form(A, C, D if with_d else np.eye(n), sig.signs.astype(float))
    found = jorth.minimize(objective, X, max_iterations=1, gradient_tolerance=0.0, **options).x
    Z = step_between(X, found, sig.signs)
    basis = skew_basis(n)

    def q(Z):
        return second_derivative(form, X, Z)

    H = np.array([[(q(V + W) - q(V - W)) / 4 for W in basis] for V in basis])
    G = form.A @ X @ form.D + form.C
    slope = np.array([(sig.signs[:, None] * (X.T @ G) * V).sum() for V in basis])
    wanted = sum(c * V for c, V in zip(np.linalg.solve(H, -slope), basis, strict=True))
    assert np.abs(Z - wanted).max() < 1e-3 * np.abs(wanted).max()


def skew(M):
    return M - M.T


def step_between(X, Y, signs):
    """Z with Y = X cay(J Z)."""
    I, turn = np.eye(len(X)), np.linalg.solve(X, Y)  # noqa: E741
    return 2 * signs[:, None] * np.linalg.solve((turn + I).T, (turn - I).T).T


@pytest.mark.parametrize("condition", [3.0, 30.0])
@pytest.mark.parametrize(("n", "p"), [(2, 1), (4, 3), (5, 5), (9, 4), (16, 8), (33, 32)])
def test_few_iterations_to_the_rounding_of_the_gradient(n, p, condition):
    sig = Signature(p, n - p)
    source, target, _ = planted_procrustes(
        2 * n + 1, sig, source_condition=condition, noise=0.1, seed=n
    )
    objective = jorth.Procrustes(source, target)
    result = jorth.minimize(
        objective, signature=sig, method="riemannian-newton", gradient_tolerance=0.0
    )
    # found: at most 30 with the steps that only see rounding
    assert result.iterations <= 90
    form, x = objective.quadratic(), np.asarray(result.x)
    scale = np.linalg.norm(form.A.numpy() @ x @ x.T) + np.linalg.norm(form.C.numpy() @ x.T)
    assert result.gradient_norm <= 10 * n * UNIT * scale
    norms = result.history["gradient_norm"] / scale
    small = np.flatnonzero(norms < 1e-3)[0]  # from here on digits double
    assert (norms[small:] < 1e-12).any()
    assert np.flatnonzero(norms < 1e-12)[0] <= small + 5
    assert jorth.component(x, sig)[0] == 1
    assert result.residual <= 100 * n * UNIT
    lbfgs = jorth.minimize(
        objective, x, signature=sig, method="riemannian-lbfgs", gradient_tolerance=0.0
    )
    assert result.value == pytest.approx(lbfgs.value, rel=1e-12)


def test_trace_problems_where_whole_orbits_are_critical():
    """The Hessian is singular at the optimum, and still the end is quadratic."""
    for n, p in ((6, 3), (20, 12)):
        sig = Signature(p, n - p)
        M = np.random.default_rng(n).standard_normal((n, n))
        A = M @ M.T / n + 0.1 * np.eye(n)
        J = np.diag(sig.signs.astype(float))
        optimum = np.abs(1 / scipy.linalg.eigh(J, A, eigvals_only=True)).sum()
        result = jorth.minimize(
            jorth.Quadratic(2 * A), signature=sig, method="riemannian-newton",
            gradient_tolerance=0.0,
        )  # fmt: skip
        assert result.value == pytest.approx(optimum, rel=1e-12)
        assert result.gradient_norm <= 100 * n * UNIT * np.linalg.norm(A) * n


def test_unbounded_and_bounded_with_one_sign():
    A = np.diag([1.0, -3.0, 2.0, 1.0])
    unbounded = jorth.minimize(
        jorth.Quadratic(A, np.ones((4, 4))), signature=Signature(2, 2), method="riemannian-newton"
    )
    assert unbounded.status is Status.UNBOUNDED
    rng = np.random.default_rng(3)
    compact = jorth.minimize(
        jorth.Quadratic(A, rng.standard_normal((4, 4))), signature=Signature(4, 0),
        method="riemannian-newton", gradient_tolerance=1e-10,
    )  # fmt: skip
    assert compact.success


@pytest.mark.parametrize("scale", [1e-120, 1e120])
def test_the_scale_of_f_changes_nothing(scale):
    """By powers of two, so that not even rounding differs."""
    factor = 2.0 ** round(np.log2(scale))
    rng = np.random.default_rng(6)
    sig = Signature(3, 3)
    M = rng.standard_normal((6, 6))
    A, C = M @ M.T, rng.standard_normal((6, 6))
    x0 = jorth.random_point(sig, cond=3.0, seed=2)
    options = dict(signature=sig, method="riemannian-newton", gradient_tolerance=0.0)
    runs = [
        jorth.minimize(jorth.Quadratic(c * A, c * C), x0, max_iterations=6, **options)
        for c in (1.0, factor)
    ]
    np.testing.assert_array_equal(runs[0].x, runs[1].x)


@pytest.mark.parametrize("exact", ["quadratic", "autograd", ""])
def test_the_hessian_outside_compiled_code_is_the_second_derivative(exact):
    """<S, H S> = <K X, f''(X)[K X]> + <G, K^2 X> with K = J S; differences have half the digits."""
    n = 6
    form, X = at_a_point(n, with_d=True, seed=3)
    A, C, D = (torch.from_numpy(part) for part in (form.A, form.C, form.D))
    f = jorth.Quadratic(A, C, D)
    by_autograd = as_objective(lambda X: (X * (A @ X @ D)).sum() / 2 + (C * X).sum())
    objective = CountedObjective(f if exact == "quadratic" else by_autograd)
    sig, point = Signature.of(form.signs.astype(int)), torch.from_numpy(X)
    state = NewtonState(point, *objective.value_and_gradient(point))
    problem = Problem(objective, sig, sig.vector(point), np.random.default_rng(0))
    product, _ = hessian(problem, state, exact=bool(exact))
    rng = np.random.default_rng(4)
    for _ in range(3):
        S = symmetric(rng, n)
        S = np.triu(S) - np.triu(S).T
        K = form.signs[:, None] * S
        V, G = K @ X, form.A @ X @ form.D + form.C
        wanted = (V * (form.A @ V @ form.D)).sum() + (G * (K @ V)).sum()
        size = np.linalg.norm(form.A) * np.linalg.norm(form.D) * np.linalg.norm(V) ** 2
        found = float((torch.from_numpy(S) * product(torch.from_numpy(S))).sum())
        assert abs(objective.unit * found - wanted) <= (1e-12 if exact else 1e-5) * size


def test_functions_by_differences_of_gradients():
    """The end is superlinear for a function of which only gradients are known."""
    sig = Signature(4, 2)
    T = torch.from_numpy(jorth.random_point(sig, cond=3.0, seed=4))

    def f(X):
        return torch.log1p((X - 1.1 * T).square()).sum()

    result = jorth.minimize(
        f, T + 0.0, signature=sig, method=RiemannianNewton(), gradient_tolerance=1e-9
    )
    assert result.success
    assert result.iterations <= 30
    assert (np.diff(result.history["value"]) <= 1e-12).all()


def test_newton_runs_where_numba_compiles_nothing():
    """NUMBA_DISABLE_JIT=1 is how people debug; a division by zero is an exception there."""
    script = """if True:
        import jorth
        for n in (4, 20):  # the system is solved by loops, and by LAPACK
            sig = jorth.Signature(n // 2, n // 2)
            source, target, _ = jorth.datasets.planted_procrustes(3 * n, sig, noise=0.1, seed=0)
            fit = jorth.procrustes(source, target, sig)
            print(fit.status.name, fit.gap < 1e-6)
    """
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["CONVERGED", "True"] * 2
