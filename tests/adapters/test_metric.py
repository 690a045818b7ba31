"""Geodesics against the variation of their energy, and what the bounded exponential promises."""

import numpy as np
import pytest
import scipy.linalg
import torch

from jorth import Signature, component, exp, random_point, residual
from jorth.adapters import metric
from tests.adapters.problems import INDEFINITE

UNIT = 2.0**-53


def algebra_element(signature, seed, size=1.0):
    M = np.random.default_rng(seed).standard_normal((signature.n, signature.n))
    return size * signature.signs[:, None] * (M - M.T) / np.linalg.norm(M - M.T)


def geodesic_step(K, signature):
    return metric.geodesic_step(torch.from_numpy(K), signature).numpy()


def bounded_exp(K, signature):
    return metric.bounded_exp(torch.from_numpy(K), signature).numpy()


def energy_slope(curve, signature, variation):
    """d/de of the energy of t -> exp(e sin(pi t) W) curve(t) on [0, 1] at e = 0.

    It is zero for all W on a geodesic. Only the metric itself is used: the speed of a curve c is
    ||c' c^-1||_F.
    """
    J = np.diag(signature.signs.astype(float))
    h = 1e-4

    def energy(e):
        def moved(t):
            return scipy.linalg.expm(e * np.sin(np.pi * t) * variation) @ curve(t)

        nodes, weights = np.polynomial.legendre.leggauss(16)
        times = (nodes + 1) / 2
        speeds = [(moved(t + h) - moved(t - h)) / (2 * h) @ (J @ moved(t).T @ J) for t in times]
        return np.dot(weights / 2, [np.sum(speed**2) for speed in speeds])

    return (energy(1e-3) - energy(-1e-3)) / 2e-3


@pytest.mark.parametrize("signature", INDEFINITE[2::2], ids=str)
def test_geodesics_are_stationary_for_the_energy(signature):
    K, W = algebra_element(signature, 0, 2.0), algebra_element(signature, 1)
    X = random_point(signature, seed=2)
    # 1e-6: the errors of the differences, h^2 = 1e-8 of the energy in each
    assert abs(energy_slope(lambda t: geodesic_step(t * K, signature) @ X, signature, W)) < 1e-5
    assert abs(energy_slope(lambda t: scipy.linalg.expm(t * K) @ X, signature, W)) > 1e-2


@pytest.mark.parametrize("signature", INDEFINITE, ids=str)
@pytest.mark.parametrize("size", [1e-3, 1.0, 10.0, 1e3, 1e150, 1e300])
def test_a_bounded_step_of_any_size_is_feasible(signature, size):
    K = algebra_element(signature, 4, size)
    X = bounded_exp(K, signature)
    assert residual(X, signature) <= 500 * signature.n * UNIT  # 50 measured over four seeds
    assert component(X, signature) == (1, 1)
    assert np.linalg.norm(X, 2) ** 2 <= 1.01 / UNIT


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_a_bounded_step_is_the_exponential_where_it_is_short(dtype):
    signature = Signature(3, 2)
    K = torch.stack(
        [torch.from_numpy(algebra_element(signature, seed, 0.3)) for seed in range(4)]
    ).to(dtype)
    K = (K - signature.vector(K)[:, None] * K.mT * signature.vector(K)) / 2
    X = metric.bounded_exp(K, signature)
    assert X.dtype == dtype
    limit = -np.log(torch.finfo(dtype).eps / 2) / 2
    assert 0 < (X - exp(K, signature)).abs().max() < 0.3**3 / limit**2
    for k in range(4):
        torch.testing.assert_close(X[k], metric.bounded_exp(K[k], signature))


@pytest.mark.parametrize("size", [0.5, 20.0])
def test_the_step_back_is_the_inverse(size):
    signature = Signature(2, 2)
    K = algebra_element(signature, 5, size)
    X = bounded_exp(K, signature)
    error = np.abs(bounded_exp(-K, signature) @ X - np.eye(4)).max()
    assert error <= 30 * 4 * UNIT * np.linalg.norm(X, 2) ** 2
