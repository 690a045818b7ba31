"""exp against mpmath, Cayley against its closed form on a boost, and both against the group."""

import mpmath
import numpy as np
import pytest
import scipy.linalg
import torch
from hypothesis import given
from hypothesis import strategies as st

from jorth import Signature, cayley, component, exp, residual
from jorth.group.exp_log import exp_by_products
from tests.group.strategies import UNIT, signatures


def algebra_element(sig, seed, size):
    M = np.random.default_rng(seed).standard_normal((sig.n, sig.n))
    K = sig.signs[:, None] * (M - M.T)
    return K * (size / max(np.linalg.norm(K, 2), 1e-300))


@given(st.data())
def test_exp_agrees_with_mpmath_and_is_feasible(data):
    sig = data.draw(signatures(max_n=5))
    K = algebra_element(sig, data.draw(st.integers(0, 2**32)), data.draw(st.floats(0, 5)))
    X = exp(K, sig)
    # scipy.linalg.expm is no oracle here: 8e-14 off for a rotation by 4.25
    with mpmath.workdps(40):
        reference = np.array(mpmath.expm(mpmath.matrix(K.tolist())).tolist(), dtype=float)
    assert np.abs(X - reference).max() <= 60 * sig.n * UNIT * np.linalg.norm(reference, 2)
    assert residual(X, sig) <= 120 * sig.n * UNIT  # measured: 12 n u
    assert component(X, sig) == (1, 1)
    found = exp_by_products(torch.from_numpy(K)[None])[0].numpy()
    terms = scipy.linalg.expm(np.abs(K)).max()  # bounds those of the series
    assert (
        np.abs(found - reference).max() <= 20 * sig.n * (1 + np.abs(K).sum(1).max()) * UNIT * terms
    )


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("size", np.geomspace(1e-5, 1.0, 30))
def test_exp_of_short_steps_is_exact(size, dtype):
    """torch's matrix_exp of one matrix is off by 3e-10 at 0.05 in float64 and by 3e-5 at 0.5 in
    float32."""
    K = torch.tensor([[0.0, -size], [size, 0.0]], dtype=dtype)
    angle = K[1, 0].item()
    expected = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    for one in (exp(K, Signature(2, 0)), exp(K[None], Signature(2, 0))[0]):
        assert np.abs(one.double().numpy() - expected).max() <= 20 * torch.finfo(dtype).eps


@pytest.mark.parametrize("size", [1e-5, 0.01, 0.02, 0.3])
def test_the_derivative_of_exp_of_a_short_step_is_exact(size):
    """The derivative is the exponential of a matrix of norm ``size`` plus the weight of the output,
    0.02."""
    angle = torch.tensor(size, dtype=torch.float64, requires_grad=True)
    turn = torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=torch.float64)
    (slope,) = torch.autograd.grad(0.02 * exp(angle * turn, Signature(2, 0))[1, 0], angle)
    np.testing.assert_allclose(slope.item(), 0.02 * np.cos(size), rtol=1e-14)


@given(st.data())
def test_cayley_is_feasible_and_second_order(data):
    sig = data.draw(signatures())
    seed = data.draw(st.integers(0, 2**32))
    X = cayley(algebra_element(sig, seed, 1.5), sig)
    assert residual(X, sig) <= 120 * sig.n * UNIT  # measured: 12 n u
    assert component(X, sig) == (1, 1)
    K = algebra_element(sig, seed, 1e-3)
    assert np.abs(cayley(K, sig) - exp(K, sig)).max() <= 1e-9  # |K|^3 / 12


def test_cayley_of_a_boost_is_known():
    w = 1.2
    u = (1 + w / 2) / (1 - w / 2)
    X = cayley(np.array([[0, w], [w, 0.0]]), Signature(1, 1))
    np.testing.assert_allclose(X[0, 0] + X[0, 1], u, rtol=1e-15)


@pytest.mark.parametrize("w", [2.0, 2.5, 30.0])
def test_cayley_refuses_to_pass_the_pole(w):
    K = np.array([[0, w], [w, 0.0]])
    with pytest.raises(ValueError, match=r"boost part .* below 2 in norm .* got"):
        cayley(K, Signature(1, 1))
    assert component(exp(K, Signature(1, 1)), Signature(1, 1)) == (1, 1)


@pytest.mark.parametrize("retract", [exp, cayley])
def test_not_in_the_algebra(retract):
    with pytest.raises(ValueError, match="K must be in the Lie algebra \\(J K skew\\), got"):
        retract(np.array([[0, -1.0], [1.0, 0]]), Signature(1, 1))


def turn(angle, dtype=np.float64):
    K = np.zeros((5, 5), dtype)
    K[0, 1], K[1, 0] = -angle, angle
    return K


@pytest.mark.parametrize("angle", [1e12, 1e16, 1e18, 1e100])
@pytest.mark.parametrize("make", [np.asarray, torch.tensor, lambda K: np.stack([0 * K, K])])
def test_too_many_turns(angle, make):
    with pytest.raises(ValueError, match=r"K must be small enough for exp\(K\) to .*, got"):
        exp(make(turn(angle)), Signature(3, 2))
