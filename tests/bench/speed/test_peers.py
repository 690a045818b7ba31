"""The tasks in NumPy and in other libraries have the right values, gradients and Hessians."""

import numpy as np
import pytest
import scipy.linalg
import torch

import jorth
from jorth.bench.speed.dense import DenseProcrustes, PullbackHessian
from jorth.bench.speed.methods import TRUST_REGIONS
from jorth.bench.speed.peers import Trace, cdopt_problem, pymanopt_problem, run_pymanopt
from jorth.bench.speed.problems import problem_of
from jorth.solvers.loop.solver import as_objective
from tests.bench.speed.made import cell

SIGNATURE = jorth.Signature.of([1, -1, 1, 1, -1, 1, -1, 1])
TASKS = ("procrustes", "trace", "robust")


def planted(signature=SIGNATURE, seed=3):
    source, target, _ = jorth.datasets.planted_procrustes(
        2 * signature.n, signature, noise=0.1, seed=seed
    )
    return jorth.Procrustes(source, target), DenseProcrustes(source, target)


def skew(seed, n=SIGNATURE.n):
    M = np.random.default_rng(seed).standard_normal((n, n))
    return M - M.T


@pytest.fixture(params=TASKS)
def task(request):
    return problem_of(cell(task=request.param, n=8, p=5))


def test_the_dense_objective_is_procrustes():
    objective, dense = planted()
    X = jorth.random_point(SIGNATURE, seed=1)
    value, gradient = objective.value_and_gradient(torch.from_numpy(X))
    assert dense.value(X) == pytest.approx(value.item(), rel=1e-14)
    np.testing.assert_allclose(dense.gradient(X), gradient.numpy(), rtol=1e-12, atol=1e-13)
    V = np.random.default_rng(0).standard_normal(X.shape)
    along = (dense.gradient(X + V) - dense.gradient(X - V)) / 2
    np.testing.assert_allclose(dense.hessian(X, V), along, atol=1e-12)


def test_the_task_is_the_same_for_ours_and_theirs(task):
    X = jorth.random_point(task.signature, seed=1)
    value, gradient = task.scale.objective.value_and_gradient(torch.from_numpy(X))
    dense = task.build_dense()
    assert dense.value(X) == pytest.approx(value.item(), rel=1e-13)
    np.testing.assert_allclose(dense.gradient(X), gradient.numpy(), rtol=1e-11, atol=1e-12)
    built = as_objective(task.build()).value(torch.from_numpy(X))
    assert built.item() == pytest.approx(value.item(), rel=1e-13)
    V, h = np.random.default_rng(0).standard_normal(X.shape), 1e-5
    along = (dense.gradient(X + h * V) - dense.gradient(X - h * V)) / (2 * h)
    scale = np.abs(along).max()
    np.testing.assert_allclose(dense.hessian(X, V), along, atol=1e-7 * scale)


def test_the_optimum_is_not_above_that_of_trust_regions(task):
    """The reference comes from our own runs; here an optimiser of another library finds it."""
    dense = task.build_dense()
    trace = Trace(dense.value, task.scale.value_at(1e-10), max_time=60.0)
    run_pymanopt(dense, task.signature, trace, TRUST_REGIONS, np.eye(task.signature.n))
    found = min(value for _, value in trace.records)
    assert -1e-11 < task.scale.gap(found) <= 1e-10


def test_the_optimum_of_the_trace_is_that_of_the_pencil():
    task = problem_of(cell(task="trace", n=8, p=5))
    J = np.diag(task.signature.signs.astype(float))
    eigenvalues = scipy.linalg.eigvals(task.build_dense().A / 2, J)
    assert task.scale.optimum == pytest.approx(np.abs(eigenvalues).sum(), rel=1e-12)


def test_pymanopts_gradient_and_hessian_are_those_of_the_pullback(task):
    """against central differences of t -> f(R(t S) X), with errors of order h^2 and u / h^2."""
    problem = pymanopt_problem(task.build_dense(), task.signature)
    X, S, h = jorth.random_point(task.signature, seed=1), skew(5) / 5, 1e-4
    at = [problem.cost(problem.manifold.retraction(X, t * S)) for t in (-h, 0.0, h)]
    slope = problem.manifold.inner_product(X, problem.riemannian_gradient(X), S)
    bend = problem.manifold.inner_product(X, problem.riemannian_hessian(X, S), S)
    assert slope == pytest.approx((at[2] - at[0]) / (2 * h), rel=1e-5)
    assert bend == pytest.approx((at[2] - 2 * at[1] + at[0]) / h**2, rel=1e-5)


def test_the_hessian_is_symmetric_and_follows_the_point(task):
    dense, signature = task.build_dense(), task.signature
    hessian = PullbackHessian(dense, signature)
    S, T = skew(5), skew(6)
    for seed in (1, 2):
        X = jorth.random_point(signature, seed=seed)
        assert np.vdot(hessian(X, S), T) == pytest.approx(np.vdot(S, hessian(X, T)), rel=1e-11)
        np.testing.assert_array_equal(hessian(X, S), PullbackHessian(dense, signature)(X, S))


def test_pymanopts_points_stay_on_the_constraint():
    _, dense = planted()
    manifold = pymanopt_problem(dense, SIGNATURE).manifold
    X = manifold.retraction(jorth.random_point(SIGNATURE, seed=1), skew(5) / 10)
    assert jorth.residual(X, SIGNATURE) < 1e-14


def test_cdopts_gradient_is_that_of_the_dissolved_function():
    pytest.importorskip("cdopt")
    _, dense = planted()
    problem = cdopt_problem(dense, SIGNATURE, beta=3.0)
    X = jorth.random_point(SIGNATURE, seed=1) + 0.05 * np.random.default_rng(2).standard_normal(
        (8, 8)
    )
    V, h = np.random.default_rng(3).standard_normal(64), 1e-5
    values = [problem.cdf_fun_vec_np(X.ravel() + t * V) for t in (-h, h)]
    assert problem.cdf_grad_vec_np(X.ravel()) @ V == pytest.approx(
        (values[1] - values[0]) / (2 * h), rel=1e-7
    )
    on = jorth.random_point(SIGNATURE, seed=1)
    assert problem.cdf_fun_vec_np(on.ravel()) == pytest.approx(
        dense.value(on), rel=1e-12
    )  # A(X) = X, C(X) = 0 there
