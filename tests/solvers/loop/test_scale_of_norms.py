"""Norms of gradients at any scale of f: neither overflow nor underflow may end a run."""

import mpmath as mp
import numpy as np
import pytest
import torch

import jorth
from jorth import HyperbolicEigenvalue, Quadratic, Signature, Status
from jorth._inputs import frobenius
from jorth.group.gradient import gradient_norm
from jorth.solvers.jobcd.sweeps import MajorisedState, secant_curvature

SIG = Signature(3, 2)
SCALES = [1e-300, 1e-170, 1e-20, 1.0, 1e20, 1e170, 1e300]


@pytest.mark.parametrize("scale", SCALES)
def test_the_norm_of_a_tensor(scale):
    entries = np.random.default_rng(0).standard_normal((4, 3)) * scale
    with mp.workdps(40):
        exact = mp.sqrt(sum(mp.mpf(float(x)) ** 2 for x in entries.flat))
        assert abs(frobenius(torch.from_numpy(entries)) / exact - 1) < 16 * 2.0**-53
    assert frobenius(torch.zeros(3)) == 0
    assert frobenius(torch.zeros(0, 2)) == 0
    assert frobenius(torch.tensor([1.0, -np.inf])) == np.inf
    assert np.isnan(frobenius(torch.tensor([1.0, np.nan])))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("cond", [2.0, 1e10])
def test_the_gradient_norm_scales_with_f(scale, cond):
    X = torch.from_numpy(jorth.random_point(SIG, cond=cond, seed=1))
    G = torch.from_numpy(np.random.default_rng(1).standard_normal((5, 5)))
    signs = torch.from_numpy(SIG.signs.astype(float))
    plain = gradient_norm(X, G, signs)
    assert gradient_norm(X, G * scale, signs) == pytest.approx(plain * scale, rel=1e-12)
    M = SIG.signs[:, None] * (G.numpy() @ X.numpy().T)
    assert plain == pytest.approx(np.linalg.norm(M - M.T) / 2, rel=1e-12)


def test_norms_that_are_not_finite_or_zero():
    X, signs = torch.eye(2, dtype=torch.float64), torch.tensor([1.0, -1.0], dtype=torch.float64)
    assert gradient_norm(X, torch.zeros_like(X), signs) == 0
    assert not np.isfinite(gradient_norm(X, torch.full_like(X, np.nan), signs))
    assert not np.isfinite(gradient_norm(X, torch.full_like(X, np.inf), signs))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("method", ["gs-jobcd", "j-jobcd", "riemannian-lbfgs", "riemannian-cg"])
def test_a_run_takes_the_same_way_at_every_scale(scale, method):
    rng = np.random.default_rng(2)
    M = rng.standard_normal((5, 5))
    A, C = M @ M.T + np.eye(5), rng.standard_normal((5, 5))
    options = dict(signature=SIG, method=method, max_iterations=8)
    plain = jorth.minimize(Quadratic(A, C), gradient_tolerance=0.0, **options)
    other = jorth.minimize(Quadratic(A * scale, C * scale), gradient_tolerance=0.0, **options)
    assert other.status is plain.status is Status.MAX_ITERATIONS
    assert other.iterations == plain.iterations
    assert 0 < other.gradient_norm < np.inf
    np.testing.assert_allclose(
        other.history["value"][:5] / scale, plain.history["value"][:5], rtol=1e-6
    )


@pytest.mark.parametrize("scale", SCALES)
def test_underflow_is_not_convergence(scale):
    """Three times the optimum, with a tolerance far below the gradient there."""
    A = np.diag([4.0, 1.0])
    x0 = jorth.random_point(Signature(1, 1), cond=30.0, seed=1)
    result = jorth.minimize(
        HyperbolicEigenvalue(A * scale),
        x0,
        signature=Signature(1, 1),
        gradient_tolerance=0.0,
        stop=jorth.stopping.GradientNorm(1e-9 * scale),
    )
    assert result.status is Status.CONVERGED
    assert result.iterations > 0
    assert result.value / scale == pytest.approx(5.0, rel=1e-9)
    assert 0 <= result.gradient_norm <= 1e-9 * scale


@pytest.mark.parametrize("scale", SCALES)
def test_the_secant_scales_with_f(scale):
    moved, bent = torch.from_numpy(np.random.default_rng(3).standard_normal((2, 4, 4)))
    bent = bent + 4 * moved
    for count in range(3):
        state = MajorisedState(moved, 0.0, moved, secants=count)
        plain = secant_curvature(state, moved, bent, 1.0)
        state.secants = count
        scaled = secant_curvature(state, moved, bent * scale, 1.0)
        assert scaled == pytest.approx(plain * scale, rel=1e-12)
        s, y = moved.numpy().ravel(), bent.numpy().ravel()
        expected = y @ y / (s @ y) if count == 2 else s @ y / (s @ s)
        assert plain == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("scale", [1e170, 1e-170])
@pytest.mark.parametrize("method", ["riemannian-lbfgs", "j-jobcd", "gs-jobcd", "umcm", "admm"])
def test_block_stationarity_is_no_matter_of_units(method, scale):
    """From far off, after three iterations: no error, and no point that only looks stationary."""
    A = torch.tensor([[2.0, 0.3], [0.3, 1.0]], dtype=torch.float64)
    result = jorth.minimize(
        lambda X: scale * ((A @ X) * X).sum(),
        jorth.random_point(Signature(1, 1), cond=5, seed=1),
        signature=Signature(1, 1),
        method=method,
        gradient_tolerance=0.0,
        max_iterations=3,
        stop=jorth.stopping.BlockStationary(1e-9, every=1),
    )
    least = np.sqrt(1 + 4 * 1.91)  # |l1| + |l2| for A x = l J x, by trace and determinant of J A
    assert not result.success or result.value == pytest.approx(scale * least, rel=0.1)


def test_a_checkpoint_of_another_f_is_refused_at_any_scale(tmp_path):
    """Its norms must not overflow, or everything would be equal."""

    def distance(weight):
        target = torch.arange(9, dtype=torch.float64).reshape(3, 3)

        def f(X):
            return 1e170 * (
                (X - target).square().sum() + weight * (X - torch.eye(3).to(X)).square().sum()
            )

        return f

    options = dict(
        signature=Signature(2, 1), method="j-jobcd", gradient_tolerance=0.0, checkpoint=tmp_path
    )
    jorth.minimize(distance(0.0), max_iterations=3, **options)
    with pytest.raises(jorth.CheckpointMismatch):
        jorth.minimize(distance(5.0), max_iterations=6, **options)
