"""Newton's method ends superlinearly, on every kind of objective, and leaves saddles.

The order is the slope of log g_(k+1) over log g_k in runs from points at many distances from the
optimum: one run has two or three steps between the region of quadratic convergence and rounding,
too few for a ratio of logarithms that several directions with several constants have a part in.
"""

import math

import numpy as np
import pytest
import scipy.linalg
import torch

import jorth
from jorth import Quadratic, RiemannianNewton, Signature
from jorth.datasets import planted_procrustes
from jorth.solvers.problem import as_objective
from jorth.solvers.riemannian.line_search import Line, Trial
from jorth.solvers.riemannian.newton import GROW, SHRINK, Step, truncated_step

EPS = np.finfo(float).eps


def procrustes(n, seed):
    sig = Signature(n - n // 2, n // 2)
    source, target, _ = planted_procrustes(3 * n, sig, source_condition=3.0, noise=0.1, seed=seed)
    return sig, source, target


def problem(kind, n, seed):
    """An objective with its signature, twice: as it is, and as a plain torch function."""
    sig, source, target = procrustes(n, seed)
    S, T = torch.from_numpy(source), torch.from_numpy(target)
    if kind == "procrustes":
        return sig, jorth.Procrustes(source, target)
    if kind == "procrustes by autograd":
        return sig, lambda X: (S @ X - T).square().sum() / (2 * len(S))
    if kind == "finite sum":
        return sig, jorth.FiniteSum(
            lambda X, rows: (1 + (rows[0] @ X - rows[1]).square()).sqrt().sum(1).mean(), (S, T)
        )
    if kind == "pseudo-Huber":
        return sig, lambda X: (1 + (S @ X - T).square()).sqrt().sum() / len(S)
    M = np.random.default_rng(seed).standard_normal((n, n))
    A = M @ M.T / n + 0.5 * np.eye(n)
    if kind == "trace":
        return sig, jorth.HyperbolicEigenvalue(A)
    assert kind == "trace by autograd"
    matrix = torch.from_numpy(A)
    return sig, lambda X: (X * (matrix @ X)).sum()


def near(X, sig, distance, seed):
    """X moved by a random element of the group at a distance from the identity."""
    M = np.random.default_rng(seed).standard_normal((sig.n, sig.n))
    K = sig.signs[:, None] * (M - M.T)
    return jorth.polish(X @ scipy.linalg.expm(distance * K / np.linalg.norm(K)), sig)


def falls(objective, sig, x0):
    """log g_k and log g_(k+1) of a run, from 3% of the scale down to 1000 times rounding."""
    result = jorth.minimize(
        objective, x0, signature=sig, method="riemannian-newton", gradient_tolerance=0.0,
        max_iterations=6,
    )  # fmt: skip
    x = torch.from_numpy(result.x)
    G = as_objective(objective).value_and_gradient(x)[1]
    rounding = EPS * float(G.norm() * x.norm()) * math.sqrt(sig.n)
    g = result.history["gradient_norm"]
    used = (g[:-1] < 0.03 * result.gradient_scale) & (g[1:] > 1e3 * rounding)
    return np.log(g[:-1][used]), np.log(g[1:][used])


def optimum(objective, sig):
    best = jorth.minimize(
        objective, signature=sig, method="riemannian-newton", gradient_tolerance=1e-13,
        max_iterations=200,
    )  # fmt: skip
    return np.asarray(best.x)


KINDS = [
    "procrustes", "procrustes by autograd", "finite sum", "pseudo-Huber", "trace",
    "trace by autograd",
]  # fmt: skip


@pytest.mark.parametrize("n", [5, 14])
@pytest.mark.parametrize("kind", KINDS)
def test_the_end_is_superlinear(kind, n):
    """The order is 2 for compiled steps (3 on a trace), and 1.5 for those of a trust region."""
    sig, objective = problem(kind, n, seed=n)
    x = optimum(objective, sig)
    distances = np.logspace(-1.5, -5, 15)
    runs = [falls(objective, sig, near(x, sig, t, k)) for k, t in enumerate(distances)]
    before, after = (np.concatenate(part) for part in zip(*runs, strict=True))
    assert len(before) >= 6
    assert np.ptp(before) >= np.log(20)
    least = 1.8 if kind in ("procrustes", "trace") else 1.35  # found over seeds: 1.95, 1.48
    assert np.polyfit(before, after, 1)[0] > least


def test_exact_products_need_no_gradients():
    """One gradient for each trial and two for the check of autograd; the rest are products."""
    sig, objective = problem("pseudo-Huber", 6, seed=1)
    run = jorth.minimize(objective, signature=sig, method="riemannian-newton")
    assert run.success
    counted = run.evaluations
    assert counted.hessian >= run.iterations
    assert counted.gradient <= 3 * run.iterations + 3
    assert run.history["hessian_evaluations"][-1] == counted.hessian


def test_products_are_counted_and_limited():
    sig, source, target = procrustes(6, 2)
    m = len(source)
    calls = {"value": 0, "gradient": 0, "hessian": 0}

    def value(X):
        calls["value"] += 1
        return 0.5 * np.linalg.norm(source @ X - target) ** 2 / m

    def gradient(X):
        calls["gradient"] += 1
        return source.T @ (source @ X - target) / m

    def hessian(X, V):
        calls["hessian"] += 1
        return source.T @ (source @ V) / m

    options = dict(signature=sig, method="riemannian-newton")
    run = jorth.minimize(jorth.Objective(value, gradient, hessian), **options)
    assert run.success
    assert calls == {name: getattr(run.evaluations, name) for name in calls}
    plain = jorth.minimize(jorth.Objective(value, gradient), **options)
    assert plain.success
    assert plain.evaluations.hessian == 0
    assert plain.evaluations.gradient > run.evaluations.gradient
    assert plain.value == pytest.approx(run.value, rel=1e-9)
    short = jorth.minimize(jorth.Objective(value, gradient, hessian), max_evaluations=7, **options)
    assert short.status is jorth.Status.MAX_EVALUATIONS
    assert short.evaluations.gradient + short.evaluations.hessian <= 8


class OnceOnly(torch.autograd.Function):
    """1/4 sum X^4 with a slope that torch takes for a constant."""

    @staticmethod
    def forward(ctx, X):
        ctx.save_for_backward(X)
        return X.pow(4).sum() / 4

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient):
        (X,) = ctx.saved_tensors
        return gradient * X.pow(3)


def test_a_function_without_second_derivatives_is_solved_by_differences():
    """With torch's answer, a Hessian of zero, the method would be one of steepest descent."""
    sig = Signature(3, 2)
    x0 = jorth.random_point(sig, cond=4.0, seed=1)
    runs = [
        jorth.minimize(f, x0, signature=sig, method="riemannian-newton", gradient_tolerance=1e-9)
        for f in (OnceOnly.apply, lambda X: X.pow(4).sum() / 4)
    ]
    once, twice = runs
    assert once.success
    assert twice.success
    assert once.evaluations.hessian == 1  # the one that was checked
    assert twice.evaluations.hessian > 1
    assert once.value == pytest.approx(twice.value, rel=1e-9)
    assert once.iterations <= twice.iterations + 3


@pytest.mark.parametrize("n", [6, 16])
@pytest.mark.parametrize("by_autograd", [False, True])
def test_saddles_are_left_along_negative_curvature(n, by_autograd):
    """<C, X> on O(n) from a point at 1e-6 of a saddle with two wrong signs.

    Steepest descent with any step that suits the curvature gains a factor of 2 or so per step:
    twenty of them to the distance of one.
    """
    rng = np.random.default_rng(n)
    sig = Signature(n, 0)
    U, V = (scipy.linalg.qr(rng.standard_normal((n, n)))[0] for _ in range(2))
    if np.linalg.det(U @ V) < 0:
        U[:, 0] *= -1
    sizes = np.linspace(1.0, 2.0, n)
    C = U * sizes @ V.T
    signs = np.where(np.arange(n) < 2, 1.0, -1.0)
    x0 = near(U * signs @ V.T, sig, 1e-6, 2)
    matrix = torch.from_numpy(C)
    objective = (lambda X: (matrix * X).sum()) if by_autograd else Quadratic(np.zeros((n, n)), C)
    run = jorth.minimize(
        objective, x0, signature=sig, method="riemannian-newton", gradient_tolerance=1e-10
    )
    optimum = -sizes.sum() if (-1) ** n > 0 else math.nan
    assert run.value == pytest.approx(optimum, rel=1e-9)
    assert run.iterations <= 40


def step_of(H, g, radius, **options):
    """The step of a model on matrices (n, 1) in place of skew ones, and its entries."""
    H, g = torch.as_tensor(H), torch.as_tensor(g)[:, None]
    options = {"relative": 1e-8, "noise": 0.0} | options
    step = truncated_step(g, lambda V: H @ V, torch.clone, radius, **options)
    return step, step.S.numpy()[:, 0]


def test_the_truncated_step_inside_is_newtons():
    rng = np.random.default_rng(0)
    M = rng.standard_normal((6, 6))
    H, g = M @ M.T + np.eye(6), rng.standard_normal(6)
    step, S = step_of(H, g, 100.0, relative=1e-12)
    exact = -np.linalg.solve(H, g)
    assert not step.at_boundary
    np.testing.assert_allclose(S, exact, rtol=1e-8)
    assert step.curvature == pytest.approx(exact @ H @ exact, rel=1e-8)


@pytest.mark.parametrize("smallest", [-0.5, 0.01])
def test_the_truncated_step_ends_at_the_boundary(smallest):
    """Along negative curvature, or where the minimiser is outside; the model falls either way."""
    H = np.diag([smallest, 1.0, 2.0, 3.0])
    g = np.array([0.1, 1.0, -1.0, 0.5])
    step, S = step_of(H, g, 0.9)
    assert step.at_boundary
    assert np.linalg.norm(S) == pytest.approx(0.9, rel=1e-12)
    assert step.curvature == pytest.approx(S @ H @ S, rel=1e-8)  # damped by 3e-10
    along_gradient = -g * min(0.9 / np.linalg.norm(g), g @ g / (g @ H @ g))
    cauchy = g @ along_gradient + along_gradient @ H @ along_gradient / 2
    assert g @ S + S @ H @ S / 2 <= cauchy + 1e-12  # Steihaug is never worse than the Cauchy point


def test_directions_without_curvature_are_left_alone():
    """A slope of rounding over a curvature of rounding says nothing; damping makes it harmless."""
    _, S = step_of(np.diag([1.0, 2.0, 1e-17]), np.array([1e-8, 1e-8, 1e-16]), 10.0, noise=1e-7)
    np.testing.assert_allclose(S[:2], [-1e-8, -0.5e-8], rtol=1e-6)
    assert abs(S[2]) <= 1e-8


def test_the_region_grows_and_shrinks():
    step = Step(torch.full((4, 1), 0.5), curvature=-1.0, at_boundary=True)  # of length 1
    line = Line(torch.full((4, 1), -0.5), step.S)  # of slope -1: a decrease of 1.5 is expected

    def after(t, decrease):
        empty = torch.zeros(0)
        trial = Trial(t, empty, empty, 5.0 - decrease, empty, empty)
        return step.next_radius(2.0, line, 5.0, trial)

    assert after(1.0, 1.4) == 2.0 * GROW
    assert after(1.0, 0.7) == 2.0
    assert after(1.0, 0.1) == SHRINK
    assert after(0.125, 0.5) == 0.125


def test_newton_on_thin_and_single_precision_matrices():
    rng = np.random.default_rng(4)
    sig = Signature(5, 4)
    M = rng.standard_normal((9, 9))
    A, C = M @ M.T / 9 + 0.5 * np.eye(9), rng.standard_normal((9, 3))
    x0 = np.eye(9)[:, [0, 1, 6]]
    run = jorth.minimize(
        Quadratic(A, C), x0, signature=sig, method=RiemannianNewton(), gradient_tolerance=1e-12
    )
    assert run.success
    assert run.iterations <= 60
    assert run.evaluations.hessian > 0
    other = jorth.minimize(
        Quadratic(A, C), x0, signature=sig, method="riemannian-lbfgs", gradient_tolerance=1e-9
    )
    assert run.value <= other.value + 1e-9 * abs(other.value)
    single = jorth.minimize(
        Quadratic(A.astype(np.float32), C.astype(np.float32)), x0.astype(np.float32), signature=sig,
        method="riemannian-newton", gradient_tolerance=1e-5,
    )  # fmt: skip
    assert single.success
    assert single.x.dtype == np.float32
    assert single.value == pytest.approx(run.value, rel=1e-4)


def test_newton_ends_at_a_kink():
    """The region shrinks to nothing, and steps that lower f by rounding are no progress."""
    sig = Signature(3, 2)
    T = torch.tensor(jorth.random_point(sig, seed=1))
    x0 = jorth.random_point(sig, cond=3.0, seed=2)
    run = jorth.minimize(
        lambda X: (X - T).abs().sum(), x0, signature=sig, method="riemannian-newton",
        max_iterations=5000,
    )  # fmt: skip
    assert run.status is jorth.Status.STALLED, run.message
