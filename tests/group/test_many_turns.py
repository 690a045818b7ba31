"""Rotations by so many turns that their angle has no digits: an error,
never an infeasible matrix in silence."""

import numpy as np
import pytest
import torch
from scipy.linalg import expm

import jorth
from jorth import Exponential, Signature, Status

SIG = Signature(3, 2)


def turn(angle, dtype=np.float64):
    K = np.zeros((5, 5), dtype)
    K[0, 1], K[1, 0] = -angle, angle
    return K


@pytest.mark.parametrize("angle", [1e12, 1e16, 1e18, 1e100])
@pytest.mark.parametrize("make", [np.asarray, torch.tensor, lambda K: np.stack([0 * K, K])])
def test_too_many_turns(angle, make):
    with pytest.raises(ValueError, match=r"K must be small enough for exp\(K\) to .*, got"):
        jorth.exp(make(turn(angle)), SIG)


def test_too_many_turns_in_single_precision():
    with pytest.raises(ValueError, match="K must be small enough"):
        jorth.exp(turn(1e6, np.float32), SIG)


@pytest.mark.parametrize("angle", [1e-9, 1.0, 1e3, 1e6])
def test_what_is_returned_has_its_digits(angle):
    X = jorth.exp(turn(angle), SIG)
    assert jorth.residual(X, SIG) <= 2.0**-26.5
    exact = np.eye(5)
    exact[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    assert np.abs(X - exact).max() <= 64 * 2.0**-53 * max(1.0, angle)


def test_boosts_are_not_refused():
    K = np.zeros((5, 5))
    K[0, 4] = K[4, 0] = 15.0
    X = jorth.exp(K, SIG)
    assert np.abs(X - expm(K)).max() <= 1e-11 * np.abs(X).max()
    assert jorth.exp(np.zeros((0, 5, 5)), SIG).shape == (0, 5, 5)


@pytest.mark.parametrize("optimizer", ["adam", "lbfgs"])
@pytest.mark.parametrize("rate", [1e9, 1e150])
@pytest.mark.parametrize("method", [Exponential, jorth.CSDM])
def test_no_run_ends_at_an_infeasible_point(optimizer, rate, method):
    rng = np.random.default_rng(0)
    M, C = rng.standard_normal((2, 5, 5))
    objective = jorth.Quadratic(M @ M.T, C)
    for sig in (SIG, Signature(5, 0)):
        x0 = jorth.random_point(sig, seed=2)
        solver = method(optimizer=optimizer, learning_rate=rate)
        result = jorth.minimize(
            objective, x0, signature=sig, method=solver, max_iterations=10, max_time=5
        )
        assert jorth.residual(result.x, sig) <= 2.0**-26.5
        if optimizer == "lbfgs":  # Adam may rise
            # if no step is taken, the form gives x0 back up to rounding, and f with it
            size = np.linalg.norm(x0)
            terms = np.linalg.norm(M) ** 2 * size**2 + np.linalg.norm(C) * size
            assert result.value <= result.history["value"][0] + 10 * 5 * 2.0**-53 * terms
        if result.status is Status.CONVERGED:
            assert result.gradient_norm <= 1e-6
