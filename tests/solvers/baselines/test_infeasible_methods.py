"""UMCM and ADMM where they lose their way: what they say is true, and they find back."""

import numpy as np
import pytest
import torch

import jorth
from jorth import ADMM, Signature, Status
from jorth.solvers.problem import CountedObjective, Problem, ScoredPoint

METHODS = ["umcm", "admm"]


def symmetric(rng, n):
    M = rng.standard_normal((n, n))
    return M + M.T


def on_the_compact_group(seed):
    """An indefinite quadratic on O(n), n from 1 to 4, without and with D."""
    rng = np.random.default_rng([seed, 14])
    n = 1 + seed % 4
    D = symmetric(rng, n) if seed % 3 == 0 else None
    sig = Signature(n, 0) if seed % 2 else Signature(0, n)
    return jorth.Quadratic(symmetric(rng, n), rng.standard_normal((n, n)), D), sig


@pytest.mark.parametrize("method", METHODS)
def test_compact_groups(method):
    """A continuous f is bounded and finite there."""
    left = []
    for seed in range(8):
        objective, sig = on_the_compact_group(seed)
        result = jorth.minimize(objective, signature=sig, method=method, max_iterations=400)
        assert result.status in (Status.CONVERGED, Status.MAX_ITERATIONS, Status.STALLED), (
            result.message
        )
        left.append(result.gradient_norm / max(result.history["gradient_norm"][0], 1e-6))
    assert np.median(left) < 0.05


def convex(seed):
    rng = np.random.default_rng([seed, 15])
    n = 2 + seed % 3
    p = 1 + seed % (n - 1)
    M = rng.standard_normal((n, n))
    return jorth.Quadratic(M @ M.T + 0.1 * np.eye(n), rng.standard_normal((n, n))), Signature(
        p, n - p
    )


@pytest.mark.parametrize("method", METHODS)
def test_small_convex_quadratics(method):
    """They converge, or nearly."""
    left = []
    for seed in range(8):
        objective, sig = convex(seed)
        result = jorth.minimize(objective, signature=sig, method=method, max_iterations=400)
        left.append(result.gradient_norm)
    assert np.median(left) < 1e-4


def test_umcm_does_not_leap_into_the_tube_around_another_component():
    sig = Signature(1, 1)
    objective = jorth.Quadratic(
        np.array([[0.15, -0.53], [-0.53, 5.66]]), np.array([[-2.13, 0.91], [0.61, 0.83]])
    )
    parts = []
    result = jorth.minimize(
        objective, signature=sig, method="umcm",
        callback=lambda X, _: parts.append(jorth.component(X, sig)),
    )  # fmt: skip
    assert result.status is Status.CONVERGED
    assert set(parts) == {(1, 1)}
    along = np.linspace(-6, 6, 100001)  # all of the component: boosts of the plane
    A, C = objective.quadratic().A.numpy(), objective.quadratic().C.numpy()
    X = np.cosh(along)[:, None, None] * np.eye(2) + np.sinh(along)[:, None, None] * np.eye(2)[::-1]
    values = 0.5 * np.einsum("kia,ij,kja->k", X, A, X) + np.einsum("ij,kij->k", C, X)
    assert result.value == pytest.approx(values.min(), abs=1e-6)


def begun(objective, sig):
    X = torch.eye(sig.n, dtype=torch.float64)
    problem = Problem(CountedObjective(objective), sig, sig.vector(X), np.random.default_rng(0))
    return problem, ADMM().init(problem, X)


def test_a_failed_factorisation_is_not_the_objectives_word():
    objective, sig = convex(1)
    problem, state = begun(objective, sig)
    start = state.X.clone()
    state.scored = ScoredPoint(start, state.value, state.gradient, 0.0)
    ADMM().step(problem, state)
    assert not torch.equal(state.X, start)
    state.Y = torch.full_like(start, 1e200)  # its square overflows
    ADMM().step(problem, state)
    assert torch.equal(state.X, start)
    assert state.penalty == 4.0
    assert not state.stalled
    state.Y = torch.full_like(start, 1e200)  # and again, at once
    ADMM().step(problem, state)
    assert state.stalled
    assert "singular in this precision" in state.reason


def test_the_multipliers_of_a_stationary_point_keep_it():
    """ADMM from an optimum, with the multipliers of `_go_back`, stays there."""
    objective, sig = convex(2)
    best = jorth.minimize(
        objective, signature=sig, method="riemannian-lbfgs", gradient_tolerance=1e-12
    )
    problem, state = begun(objective, sig)
    X = torch.from_numpy(best.x)
    state.scored = ScoredPoint(X, *problem.objective.value_and_gradient(X), 0.0)
    assert not state.is_lost(problem.signs)
    ADMM()._go_back(problem, state)
    for _ in range(5):
        ADMM().step(problem, state)
    np.testing.assert_allclose(state.X, X, atol=1e-9)
