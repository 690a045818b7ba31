"""UNBOUNDED is said only where f falls for ever:
never of an f that is known to be bounded below."""

from functools import partial

import numpy as np
import pytest
import torch
from scipy.linalg import eigh

import jorth
from jorth import GaussSeidel, HyperbolicEigenvalue, Jacobi, Quadratic, Signature, Status
from jorth.objectives.quadratic import is_definite, is_semidefinite, square_root

RIGHT = [GaussSeidel(side="right"), Jacobi(side="right"), GaussSeidel(side="right", theta=1e-9)]
SIDES = [GaussSeidel(), Jacobi(), *RIGHT]


@pytest.mark.parametrize("method", SIDES, ids=repr)
def test_an_infimum_that_is_not_attained(method):
    """tr(X^T D^T D X) = |x_1 - x_2|^2 falls to zero along a boost, and stays above it."""
    objective = HyperbolicEigenvalue(data=np.array([[1.0, -1.0]]))
    result = jorth.minimize(objective, signature=Signature(1, 1), method=method, max_iterations=300)
    assert result.status is not Status.UNBOUNDED
    assert result.value < 1e-3
    assert result.residual <= 1e3 * 2 * 2.0**-53


@pytest.mark.parametrize("method", SIDES, ids=repr)
@pytest.mark.parametrize("rank", [1, 3, 6])
def test_data_of_low_rank(method, rank):
    rng, sig = np.random.default_rng(rank), Signature(5, 4)
    data = rng.standard_normal((30, rank)) @ rng.standard_normal((rank, 9))
    for objective in (HyperbolicEigenvalue(data=data), HyperbolicEigenvalue(data.T @ data)):
        result = jorth.minimize(objective, signature=sig, method=method, max_iterations=100)
        assert result.status is not Status.UNBOUNDED
        assert np.isfinite(result.x).all()
        assert -1e-9 * result.history["value"][0] < result.value < result.history["value"][0]


@pytest.mark.parametrize("rapidity", [5.0, 10.0, 15.0])
@pytest.mark.parametrize("method", RIGHT[:2], ids=repr)
def test_a_far_start_comes_back(method, rapidity):
    """A = I: X^T X does not carry its smaller eigenvalue, e^(-2 mu), beside e^(2 mu);
    the columns of X do."""
    c, s = np.cosh(rapidity), np.sinh(rapidity)
    x0 = np.array([[c, s], [s, c]])
    result = jorth.minimize(
        HyperbolicEigenvalue(np.eye(2)), x0, signature=Signature(1, 1), method=method
    )
    assert result.status is Status.CONVERGED
    # the start itself has a residual of u ||X||^2, and what it leaves of the way back stays
    assert abs(result.value - 2) <= 8 * 2.0**-53 * np.linalg.norm(x0, 2) ** 2


@pytest.mark.parametrize("cond", [1e3, 1e8, 1e12])
def test_the_value_from_a_far_start_is_that_of_the_pencil(cond):
    rng, sig = np.random.default_rng(3), Signature(6, 4)
    M = rng.standard_normal((10, 10))
    A = M @ M.T + np.eye(10)
    optimum = np.abs(1 / eigh(np.diag(sig.signs.astype(float)), A)[0]).sum()
    x0 = jorth.random_point(sig, cond=cond, seed=1)
    result = jorth.minimize(
        HyperbolicEigenvalue(A), x0, signature=sig, method="gs-jobcd", side="right",
        max_iterations=60,
    )  # fmt: skip
    assert result.status is not Status.UNBOUNDED
    assert abs(result.value - optimum) <= 1e3 * 10 * 2.0**-53 * cond * optimum


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_constant_trace_is_not_unbounded(side):
    """A = J, which is indefinite:
    X^T A X = J whatever X, and what else is found in it is rounding."""
    sig = Signature(5, 3)
    x0 = jorth.random_point(sig, cond=1e4, seed=2)
    result = jorth.minimize(
        HyperbolicEigenvalue(np.diag(sig.signs.astype(float))), x0, signature=sig,
        method="gs-jobcd", side=side, gradient_tolerance=0.0, max_iterations=20,
    )  # fmt: skip
    assert result.status is not Status.UNBOUNDED
    assert abs(result.value - 2) <= 64 * 8 * 2.0**-53 * np.linalg.norm(x0, 2) ** 2


@pytest.mark.parametrize("method", SIDES[:4], ids=repr)
def test_what_is_unbounded_is_still_said(method):
    sig = Signature(5, 3)
    x0 = jorth.random_point(sig, cond=10.0, seed=2)
    for A in (-np.eye(8), np.diag(np.r_[np.ones(5), -2 * np.ones(3)])):
        result = jorth.minimize(
            HyperbolicEigenvalue(A), x0, signature=sig, method=method, max_iterations=500
        )
        assert result.status is Status.UNBOUNDED


def test_all_signs_equal_are_compact():
    """O(n): every continuous f has a minimum."""
    A = np.diag([-3.0, -1.0, -2.0])
    for sig in (Signature(3, 0), Signature(0, 3)):
        for method in SIDES[:4]:
            x0 = jorth.random_point(sig, seed=1)
            assert (
                jorth.minimize(Quadratic(A), x0, signature=sig, method=method).status
                is not Status.UNBOUNDED
            )


def test_what_an_objective_says_of_itself():
    rng = np.random.default_rng(0)
    M = rng.standard_normal((6, 3))
    low, full, C = M @ M.T, M @ M.T + np.eye(6), rng.standard_normal((6, 6))
    assert Quadratic(full).bounded_below()
    assert Quadratic(low).bounded_below()
    assert Quadratic(0 * low).bounded_below()
    assert not Quadratic(-full).bounded_below()
    assert not Quadratic(np.diag([1.0, -1e-9])).bounded_below()
    assert Quadratic(full, C).bounded_below()
    assert not Quadratic(low, C).bounded_below()
    assert Quadratic(-low, D=-full).bounded_below()
    assert not Quadratic(low, D=-full).bounded_below()
    assert Quadratic(low.astype(np.float32)).bounded_below()
    assert HyperbolicEigenvalue(data=M.T).bounded_below()
    assert not HyperbolicEigenvalue(data=M.T, sense="max").bounded_below()
    assert jorth.Procrustes(M, M).bounded_below()
    assert not jorth.Objective(lambda X: 0.0, lambda X: 0 * X).bounded_below()


@pytest.mark.parametrize("n", [2, 7, 40])
@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_definiteness_is_that_of_the_eigenvalues(n, scale):
    rng = np.random.default_rng(n)
    Q, _ = np.linalg.qr(rng.standard_normal((n, n)))
    for least, semidefinite, definite in (
        (1e-9, True, True),
        (0.0, True, False),
        (-1e-9, False, False),
    ):
        values = np.r_[np.linspace(1.0, 2.0, n - 1), least]
        A = torch.from_numpy(scale * (Q * values) @ Q.T)
        A = (A + A.mT) / 2
        assert is_semidefinite(A) is semidefinite
        assert is_definite(A) is definite
        if semidefinite:
            F = square_root(A)
            assert (F.mT @ F - A).abs().max() <= 64 * n * 2.0**-53 * scale


def test_rows_that_are_rounding_are_left_alone():
    """Two columns in the null space of A: what is left of F X there must not be boosted about."""
    sig = Signature(4, 4)
    A = np.zeros((8, 8))
    A[:2, :2] = np.eye(2)
    x0 = jorth.random_point(sig, cond=3.0, seed=3)
    run = partial(
        jorth.minimize, HyperbolicEigenvalue(A), x0, signature=sig, method="gs-jobcd",
        side="right", gradient_tolerance=0.0,
    )  # fmt: skip
    short, long = run(max_iterations=20), run(max_iterations=60)
    assert long.status is not Status.UNBOUNDED
    assert np.linalg.norm(long.x, 2) <= 2 * np.linalg.norm(short.x, 2)


@pytest.mark.parametrize(("p", "negative"), [(2, -1e-5), (50, -5e-4)])
def test_a_negative_eigenvalue_in_single_precision_is_one(p, negative):
    """Beyond the rounding of A, however small: f is unbounded below."""
    eigenvalues = np.ones(2 * p, np.float32)
    eigenvalues[0] = 0
    eigenvalues[-1] = negative
    objective = jorth.HyperbolicEigenvalue(A=np.diag(eigenvalues))
    sig = Signature(p, p)
    start = jorth.random_point(sig, cond=3, seed=0, dtype=np.float32)
    assert not objective.bounded_below()
    assert (
        jorth.minimize(objective, start, signature=sig, method="gs-jobcd").status
        is jorth.Status.UNBOUNDED
    )
