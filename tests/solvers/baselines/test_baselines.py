"""UMCM, ADMM, CSDM, the exponential form and the Riemannian methods:
as strong as the comparison needs them to be."""

import numpy as np
import pytest
import scipy.linalg
import torch

import jorth
from jorth import CSDM, UMCM, Exponential, Signature, Status
from jorth.datasets import planted_procrustes
from tests.planted import near_procrustes

UNIT = 2.0**-53
METHODS = [
    "umcm", "admm", "csdm", "exponential", "riemannian-sd", "riemannian-cg", "riemannian-lbfgs",
    "riemannian-newton",
]  # fmt: skip
INFEASIBLE = ["umcm", "admm"]


def procrustes(n, p, seed=0):
    sig = Signature(p, n - p)
    source, target, _ = near_procrustes(
        2 * n, sig, source_condition=10.0, point_condition=10.0, seed=seed
    )
    return jorth.Procrustes(source, target), sig


def trace(n, p, seed=0):
    sig = Signature(p, n - p)
    M = np.random.default_rng(seed).standard_normal((n, n))
    A = M @ M.T / n + 0.05 * np.eye(n)
    eigenvalues = 1 / scipy.linalg.eigh(np.diag(sig.signs.astype(float)), A, eigvals_only=True)
    return jorth.Quadratic(2 * A), sig, float(np.abs(eigenvalues).sum())


@pytest.mark.parametrize("method", INFEASIBLE)
def test_infeasible_methods_record_their_violation_before_polishing(method):
    objective, sig = procrustes(20, 10)
    result = jorth.minimize(
        objective, signature=sig, method=method, max_iterations=30, gradient_tolerance=0.0
    )
    assert result.violation == result.history["residual"][-1] > 1e-6
    assert result.residual <= 10 * sig.n * UNIT
    assert jorth.residual(result.x, sig) == pytest.approx(result.residual)
    # the values are those of polished points: never below the optimum, the last one that of x
    assert result.history["value"][-1] == result.value
    assert result.value == pytest.approx(
        objective.value(torch.from_numpy(result.x)).item(), rel=1e-12
    )
    assert (result.history["value"] >= 0).all()
    feasible = jorth.minimize(objective, signature=sig, method="gs-jobcd", max_iterations=3)
    assert feasible.violation == feasible.residual


def test_umcm_repairs_a_penalty_that_is_too_low():
    """A tenth of the curvature would let X run off to infinity; the tube does not."""
    objective, sig, optimum = trace(20, 10)

    class Low(UMCM):
        def init(self, problem, X):
            state = super().init(problem, X)
            state.beta *= 0.1
            return state

    result = jorth.minimize(
        objective, signature=sig, method=Low(), max_iterations=300, gradient_tolerance=0.0
    )
    assert np.isfinite(result.value)
    assert result.history["residual"].max() * result.history["norm"].max() ** 2 <= 0.91
    raised = jorth.minimize(objective, signature=sig, method=Low(), gradient_tolerance=1e-8)
    assert raised.value == pytest.approx(optimum, rel=1e-9)
    assert raised.violation < 1e-7


@pytest.mark.parametrize(
    "method", ["umcm", "admm", "csdm", "exponential", "riemannian-sd", "riemannian-cg"]
)
def test_a_function_without_known_curvature(method):
    """Neither a Lipschitz constant nor a quadratic form:
    penalties and steps come from what is seen."""
    sig = Signature(4, 3)
    K = np.random.default_rng(3).standard_normal((7, 7))
    K = sig.signs[:, None] * (K - K.T)
    # near the identity: farther away there are other minima
    T = torch.from_numpy(jorth.exp(0.5 * K / np.linalg.norm(K), sig))
    result = jorth.minimize(
        lambda X: torch.cosh(2 * (X - T)).sum(), signature=sig, method=method,
        gradient_tolerance=1e-5, max_iterations=20_000,
    )  # fmt: skip
    assert result.status is Status.CONVERGED, result.message
    assert result.value == pytest.approx(49, abs=1e-6)


def test_umcm_moves_from_a_far_start():
    """The tube is a hair's breadth there: the first step is cut until it stays inside."""
    objective, sig = procrustes(8, 5)
    for cond in (1e4, 1e8):
        x0 = jorth.random_point(sig, cond=cond, seed=3)
        result = jorth.minimize(objective, x0, signature=sig, method="umcm", max_iterations=200)
        assert result.value < 0.2 * result.history["value"][0]


@pytest.mark.parametrize("method", METHODS)
def test_not_a_number_beyond_the_start_is_not_called_stalled(method):
    objective, sig = procrustes(6, 4)
    x0 = torch.eye(6, dtype=torch.float64)

    def poisoned(X):
        return (X * objective.value_and_gradient(x0)[1]).sum() * (
            1.0 if torch.equal(X.detach(), x0) else torch.nan
        )

    result = jorth.minimize(poisoned, x0, signature=sig, method=method, gradient_tolerance=0.0)
    assert result.status is Status.NON_FINITE
    assert torch.equal(result.x, x0)


@pytest.mark.parametrize("method", INFEASIBLE)
def test_a_polished_point_outside_the_domain_is_not_the_answer(method):
    """Infinite with a zero gradient: it would look stationary."""
    sig = Signature.of([1, -1, 1, 1, -1])
    source, target, _ = planted_procrustes(
        20, sig, source_condition=3.0, point_condition=3.0, noise=0.1, seed=1
    )
    S, T = torch.from_numpy(source), torch.from_numpy(target)

    def inside(X):
        return torch.where(X.norm() < 2.4, (S @ X - T).square().sum(), torch.inf)

    result = jorth.minimize(inside, signature=sig, method=method, max_iterations=500)
    assert result.status is Status.NON_FINITE or (
        method == "umcm" and not result.success
    )  # UMCM may shorten its steps
    assert np.isfinite(result.value)
    assert result.gradient_norm > 1.0
    at_start = jorth.minimize(lambda X: X.sum() * torch.nan, signature=sig, method=method)
    assert at_start.status is Status.NON_FINITE
    assert np.isnan([at_start.value, at_start.gradient_norm]).all()


@pytest.mark.parametrize(
    "signs", [[1] * 3 + [-1] * 5, [1, -1, -1, 1, -1], [1, 1, 1, 1, -1], [1, 1, 1], [-1, -1, -1]]
)
def test_csdm_works_for_every_signature(signs):
    sig = Signature.of(signs)
    source, target, X = planted_procrustes(
        40, sig, source_condition=2.0, point_condition=4.0, seed=2
    )
    # when the target is orthogonal it can be anywhere in its component: a start near it
    x0 = jorth.random_point(sig, cond=1.5, seed=1) if sig.p and sig.q else X @ rotation(sig.n, 0.3)
    result = jorth.minimize(
        jorth.Procrustes(source, target), x0, signature=sig, method="csdm",
        gradient_tolerance=1e-6, max_iterations=3000,
    )  # fmt: skip
    assert result.value < 1e-8
    np.testing.assert_allclose(result.x, X, atol=1e-3)
    assert result.residual <= 20 * sig.n * UNIT


def rotation(n, angle):
    K = np.zeros((n, n))
    K[0, 1], K[1, 0] = angle, -angle
    return scipy.linalg.expm(K)


# not ADMM: its iterates are far from the set and may come back to it in another component
@pytest.mark.parametrize(
    "method", ["csdm", "exponential", "umcm", "riemannian-sd", "riemannian-cg"]
)
@pytest.mark.parametrize("component", [(-1, 1), (1, -1), (-1, -1)])
def test_the_component_of_the_start_is_kept(method, component):
    sig = Signature(4, 3)
    source, target, _ = planted_procrustes(
        30, sig, source_condition=2.0, point_condition=3.0, seed=4
    )
    x0 = jorth.random_point(sig, cond=2.0, component=component, seed=5)
    result = jorth.minimize(
        jorth.Procrustes(source, target), x0, signature=sig, method=method, max_iterations=40,
        gradient_tolerance=1e-5,
    )  # fmt: skip
    assert result.value < result.history["value"][0]
    assert jorth.component(result.x, sig) == component


def test_exponential_is_what_one_would_write():
    """The same iterates as a few lines of torch: Adam on S, X = exp(J (S - S^T)) X0, upper
    triangle, with eps relative to the first gradient."""
    objective, sig = procrustes(8, 5)
    x0 = torch.from_numpy(jorth.random_point(sig, cond=2.0, seed=6))
    J = torch.diag(torch.from_numpy(sig.signs.astype(float)))
    W = torch.zeros(8, 8, dtype=torch.float64, requires_grad=True)
    first = objective.value_and_gradient(x0)[1].norm().item()
    adam = torch.optim.Adam([W], lr=0.02, eps=1e-8 * first)
    for _ in range(25):
        adam.zero_grad()
        X = torch.linalg.matrix_exp(J @ (W.triu(1) - W.triu(1).T)) @ x0
        ((objective.R @ X - objective.T1).square().sum() / (2 * objective.samples)).backward()
        adam.step()
    X = torch.linalg.matrix_exp(J @ (W.triu(1) - W.triu(1).T)) @ x0
    method = Exponential(optimizer="adam", learning_rate=0.02)
    result = jorth.minimize(
        objective, x0, signature=sig, method=method, max_iterations=25, gradient_tolerance=0.0
    )
    np.testing.assert_allclose(result.x.numpy(), X.detach().numpy(), rtol=1e-10, atol=1e-12)
    assert result.evaluations.gradient == 26


def test_exponential_takes_a_thin_start_and_the_others_refuse_it():
    sig = Signature(5, 3)
    M = np.random.default_rng(0).standard_normal((8, 8))
    objective = jorth.Quadratic(M @ M.T + np.eye(8))
    x0 = jorth.random_point(sig, cond=2.0, columns=(2, 1), seed=1)
    best = jorth.minimize(
        objective, x0, signature=sig, method="riemannian-lbfgs", gradient_tolerance=1e-9
    )
    thin = jorth.minimize(
        objective, x0, signature=sig, method="exponential", gradient_tolerance=1e-6
    )
    assert thin.value == pytest.approx(best.value, rel=1e-8)
    for method in ("umcm", "admm", "csdm"):
        with pytest.raises(ValueError, match=rf"x0 must be square for {method}, got \(8, 3\)"):
            jorth.minimize(objective, x0, signature=sig, method=method)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: CSDM(optimizer="sgd"), 'optimizer must be one of "adam", "lbfgs", got'),
        (lambda: CSDM(learning_rate=0.0), "learning_rate must be a positive number, got 0.0"),
    ],
)
def test_bad_options(call, message):
    with pytest.raises(ValueError, match=message):
        call()
