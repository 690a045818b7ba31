"""The hyperbolic eigenvalue problem: well-posed it is diagonalisation;
with the paper's sign it runs away."""

from itertools import pairwise

import mpmath as mp
import numpy as np
import pytest
import scipy.linalg

import jorth
from jorth import GaussSeidel, HyperbolicEigenvalue, Jacobi, Signature, Status
from jorth.solvers.jobcd import _sweeps_numba as trace
from jorth.solvers.problem import Clock
from jorth.stopping import NormAbove

UNIT = 2.0**-53


def pencil(n, p, cond=1e3, seed=0):
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    A = (Q * np.geomspace(1.0, cond, n)) @ Q.T
    signs = rng.permutation([1] * p + [-1] * (n - p))
    sig = Signature.of(signs)
    A = (A + A.T) / 2
    return A, sig, np.sort(1 / scipy.linalg.eigh(np.diag(signs), A, eigvals_only=True))


def off_diagonal(W):
    """max |w_ij| / sqrt(w_ii w_jj): the angles that are left."""
    lengths = np.sqrt(np.diag(W))
    return np.abs(W / np.outer(lengths, lengths) - np.eye(len(W))).max()


@pytest.mark.parametrize("method", [GaussSeidel(side="right"), Jacobi(side="right")])
@pytest.mark.parametrize(("n", "p"), [(20, 10), (31, 27), (60, 30)])
def test_right_steps_converge_quadratically(method, n, p):
    cond = 1e3
    A, sig, eigenvalues = pencil(n, p, cond)
    off = []
    result = jorth.minimize(
        HyperbolicEigenvalue(A), signature=sig, method=method, gradient_tolerance=0.0,
        max_iterations=12, callback=lambda X, row: off.append(off_diagonal(X.T @ A @ X)),
    )  # fmt: skip
    # a backward error of n u ||A|| moves lambda_i by n u ||A|| ||x_i||^2 <= n u cond(A) |lambda_i|,
    # here and in scipy
    rounding = 2 * n * UNIT * cond
    assert result.value == pytest.approx(np.abs(eigenvalues).sum(), rel=rounding)
    assert result.residual <= 10 * n * UNIT
    W = result.x.T @ A @ result.x
    np.testing.assert_allclose(np.sort(np.diag(W) * sig.signs), eigenvalues, rtol=rounding)
    # each sweep squares the angles, over the relative gap of the eigenvalues;
    # measured: 0.3 off^2 / gap
    gap = (np.diff(eigenvalues) / (np.abs(eigenvalues[1:]) + np.abs(eigenvalues[:-1]))).min()
    squared = [(before, 3 * before**2 / gap, after) for before, after in pairwise(off)]
    assert all(after <= max(bound, rounding) for _, bound, after in squared), off
    said = [bound < before / 10 for before, bound, _ in squared if before > rounding]
    assert any(said), off  # it says something
    assert off[-1] <= rounding


@pytest.mark.parametrize("method", [GaussSeidel(side="right"), Jacobi(side="right")])
def test_a_limit_within_a_sweep_leaves_the_value_of_x(method, monkeypatch):
    """Time is up when X has moved already: the value must be that of the new X."""
    A, sig, _ = pencil(12, 6)
    seconds, sweep = [0.0], trace.sweep_trace

    def slow(*arguments):
        seconds[0] += 10.0
        return sweep(*arguments)

    monkeypatch.setattr(trace, "sweep_trace", slow)
    monkeypatch.setattr(Clock, "now", lambda: seconds[0])
    result = jorth.minimize(HyperbolicEigenvalue(A), signature=sig, method=method, max_time=5.0)
    assert result.status is Status.MAX_TIME
    assert result.value < np.trace(A) * 0.99
    assert result.value == pytest.approx(np.trace(result.x.T @ A @ result.x), rel=1e-13)
    assert result.value == result.history["value"][-1]


def test_both_sides_and_a_proximal_weight_agree():
    A, sig, eigenvalues = pencil(8, 5, cond=10.0)
    optimum = np.abs(eigenvalues).sum()
    weighted = dict(side="right", theta=1e-3)
    for method in (GaussSeidel(), GaussSeidel(**weighted), Jacobi(**weighted)):
        result = jorth.minimize(
            HyperbolicEigenvalue(A), signature=sig, method=method, gradient_tolerance=1e-8
        )
        assert result.value == pytest.approx(optimum, rel=1e-10)


@pytest.mark.parametrize("c", [1e-20, 1e-9, -1e-5, 1e-2, 0.4])
@pytest.mark.parametrize("a", [1.0, 3.7, 1e8])
def test_small_boosts_are_relatively_accurate(a, c):
    """tanh 2 mu = -2 c / (a + b) in 50 digits.

    a + b + 2 c less a + b - 2 c is zero where c is below their rounding, and 4 c is not."""
    with mp.workdps(50):
        expected = float(mp.sinh(mp.atanh(-2 * mp.mpf(c) / (mp.mpf(a) + 1)) / 2))
    half, rows = np.array([[a**0.5, 0.0], [c / a**0.5, (1 - c * c / a) ** 0.5]]), np.eye(2)
    signs, pair = np.array([1, -1], np.int8), np.array([[0, 1]])
    trace.sweep_trace(half, rows, signs, pair, 0.0)
    # a + b +- 2 c is rounded thrice and loses a factor (a + b) / (a + b - 2 |c|) <= 2 / 1.2;
    # some ten roundings follow
    assert rows[1, 0] == pytest.approx(expected, rel=32 * UNIT, abs=0.0)
    assert rows[0, 1] == rows[1, 0]


def race(theta, method="gs-jobcd", max_iterations=100_000, **options):
    A, sig, _ = pencil(8, 4, cond=10.0)
    return jorth.minimize(
        HyperbolicEigenvalue(A, sense="max"), signature=sig, method=method, theta=theta,
        on_unbounded="continue", gradient_tolerance=0.0, stop=NormAbove(1e6),
        max_iterations=max_iterations, **options,
    )  # fmt: skip


@pytest.mark.parametrize("side", ["left", "right"])
def test_theta_alone_decides_how_fast_the_race_goes(side):
    """A concave f is majorised by its linear part; the smaller theta, the longer the steps."""
    slow, fast, default = (race(theta, side=side) for theta in (1e4, 100.0, None))
    for result in (slow, fast, default):
        assert result.status is Status.UNBOUNDED
        assert (np.diff(result.history["value"]) <= 0).all()
        assert result.residual <= 100 * 8 * UNIT
    assert fast.iterations < slow.iterations / 10
    # steps lengthen as X grows, doubly exponentially: those beyond u^(-1/2) are skipped,
    # and the run ends where most boosts are
    wild = race(1.0, side=side, max_iterations=200)
    assert wild.status in (Status.UNBOUNDED, Status.MAX_ITERATIONS)
    assert np.linalg.norm(wild.x, 2) < 8**0.5 * UNIT**-0.5


def test_jacobi_races_on_the_right_and_with_a_scalar_majoriser():
    right = race(None, method="j-jobcd", side="right")
    assert right.status is Status.UNBOUNDED
    assert right.value < 1e6 * right.history["value"][0]
    scalar = dict(majoriser="scalar", rounds_per_gradient=1, curvature=1e-9)
    printed = race(10.0, method="j-jobcd", **scalar)
    assert printed.status is Status.UNBOUNDED
    # a matching of equal signs only leaves f as it is
    assert (np.diff(printed.history["value"]) <= 0).all()
