"""Boosts, rotations and frames: against mpmath and scipy, the group, equivariance, derivatives."""

import math

import mpmath
import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

import jorth
from jorth import Signature
from jorth.ultrahyperbolic import boost, frame, inner, rotation

SIGNATURES = [Signature.lorentz(4), Signature.lorentz(4, time="last"), Signature.of("+-++")]
U = 2.0**-53


def split(signature):
    return signature.positive, signature.negative[0]


@pytest.mark.parametrize("signature", SIGNATURES)
@pytest.mark.parametrize("size", [0.0, 1e-9, 0.3, 5.0, 30.0])
def test_a_boost_is_the_exponential_of_its_generator(signature, size):
    w = size * np.array([2.0, -1.0, 2.0]) / 3
    X = boost(w, signature)
    space, time = split(signature)
    with mpmath.workdps(60):
        K = mpmath.zeros(4)
        for i, value in zip(space.tolist(), w.tolist(), strict=True):
            K[i, int(time)] = K[int(time), i] = mpmath.mpf(value)
        exact = np.array(mpmath.expm(K, method="taylor").tolist(), dtype=float)
    assert np.abs(X - exact).max() <= 20 * U * math.exp(size) * max(1.0, size)
    assert jorth.residual(X, signature) <= 40 * U


@pytest.mark.parametrize("signature", SIGNATURES)
def test_what_is_at_rest_gets_the_velocity(signature):
    v = np.array([[0.6, 0.0, 0.0], [0.1, -0.2, 0.3], [0.0, 0.0, 0.0], [0.0, 0.9999999, 0.0]])
    X = boost(v, signature, kind="velocity")
    space, time = split(signature)
    u = X[..., time]
    assert np.allclose(u[:, space] / u[:, [time]], v, rtol=1e-14, atol=0)
    gamma = [1.25, 1 / math.sqrt(0.86), 1.0, float(1 / mpmath.sqrt(1 - mpmath.mpf(0.9999999) ** 2))]
    assert (np.abs(u[:, time] / gamma - 1) <= 10 * U * np.square(gamma)).all()  # its condition
    w = math.atanh(np.linalg.norm(v[1])) * v[1] / np.linalg.norm(v[1])
    assert np.allclose(X[1], boost(w, signature), rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("signature", SIGNATURES)
def test_rotations_are_those_of_scipy(signature):
    w = np.random.default_rng(0).standard_normal((5, 3)) * 2
    w[4] *= 1e6
    X = rotation(w, signature)
    space, time = split(signature)
    wanted = Rotation.from_rotvec(w).as_matrix()
    error = np.abs(X[:, space[:, None], space] - wanted).max(axis=(1, 2))
    assert (error <= 100 * U * np.maximum(1, np.linalg.norm(w, axis=1))).all()
    assert np.array_equal(X[:, time], np.eye(4)[[time] * 5])
    assert np.max(jorth.residual(X, signature)) <= 40 * U


@pytest.mark.parametrize("signature", [*SIGNATURES, Signature.lorentz(7), Signature.lorentz(2)])
@pytest.mark.parametrize("past", [False, True])
def test_a_frame_is_made_of_its_vectors(signature, past):
    rng = np.random.default_rng(1)
    space, time = split(signature)
    v = rng.standard_normal((6, signature.n, signature.n))
    v[:, 0, time] = (2 + np.linalg.norm(v[:, 0], axis=1)) * (-1 if past else 1)
    X = frame(v, signature)
    assert np.max(jorth.residual(X, signature)) <= 1e3 * U
    # coordinates J X^T J v are triangular, time first, with a positive diagonal
    C = jorth.inverse(X, signature) @ v.swapaxes(-1, -2)
    C = C[:, [time, *space]]
    size = np.linalg.norm(X, axis=(1, 2)) ** 2 * np.linalg.norm(v, axis=(1, 2))
    assert (np.abs(np.tril(C, -1)).max(axis=(1, 2)) <= 1e3 * U * size).all()
    assert (np.diagonal(C, axis1=1, axis2=2) > 0).all()


@pytest.mark.parametrize("signature", SIGNATURES)
def test_frames_go_along_with_transforms_of_the_vectors(signature):
    rng = np.random.default_rng(2)
    v = rng.standard_normal((8, 4, 4))
    v[:, 0, signature.negative[0]] = 5.0
    for component in ((1, 1), (-1, 1), (1, -1)):
        L = jorth.random_point(signature, cond=50.0, component=component, seed=3)
        assert np.allclose(frame(v @ L.T, signature), L @ frame(v, signature), atol=1e-9)
        x = rng.standard_normal(4)
        seen = jorth.inverse(frame(v, signature), signature) @ x
        again = jorth.inverse(frame(v @ L.T, signature), signature) @ (L @ x)
        assert np.allclose(seen, again, atol=1e-9)


def test_derivatives():
    sig = SIGNATURES[0]
    w = torch.tensor([[0.3, -0.2, 0.5], [0.0, 0.0, 0.0]], dtype=torch.float64, requires_grad=True)
    v = torch.randn(2, 4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    v[:, 0, 0] = 4.0
    v.requires_grad_()
    for call in (
        lambda w: boost(w, sig),
        lambda w: boost(w, sig, kind="velocity"),
        lambda w: rotation(w, sig),
    ):
        assert torch.autograd.gradcheck(call, (w,))
    assert torch.autograd.gradcheck(lambda v: frame(v, sig), (v,))


def test_float32_and_compiled():
    sig = SIGNATURES[0]
    v = torch.randn(3, 4, 4, generator=torch.Generator().manual_seed(0))
    v[:, 0, 0] = 4.0

    def move(w, v):
        return boost(w, sig) @ rotation(w, sig) @ frame(v, sig)

    compiled = torch.compile(move, fullgraph=True, backend="eager")
    w = torch.tensor([0.1, 0.2, 0.3])
    found = compiled(w, v)
    assert found.dtype == torch.float32
    assert torch.equal(found, move(w, v))
    assert float(torch.as_tensor(jorth.residual(found, sig)).max()) <= 1e3 * 2.0**-24
    assert torch.allclose(torch.vmap(lambda v: frame(v, sig))(v), frame(v, sig), atol=1e-6)
    for call, vectors in ((boost, w), (rotation, w), (frame, v)):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            rounded = call(vectors, sig)
        assert torch.equal(rounded, call(vectors, sig))


def test_the_largest_boosts_are_finite():
    X = boost([0.0, 700.0, 0.0], SIGNATURES[0])
    assert X[0, 0] == pytest.approx(math.cosh(700.0), rel=1e-12)
    assert X[2, 2] == pytest.approx(math.cosh(700.0), rel=1e-12)
    with pytest.raises(ValueError, match=r"vector must be of a size at which the boost is finite"):
        boost([0.0, 720.0, 0.0], SIGNATURES[0])


def test_what_cannot_be():
    sig = SIGNATURES[0]
    with pytest.raises(ValueError, match=r"signature must have one negative sign"):
        boost([0.1, 0.2], Signature(2, 2))
    with pytest.raises(ValueError, match=r"vector must have lengths below 1, got 1"):
        boost([1.0, 0.0, 0.0], sig, kind="velocity")
    with pytest.raises(ValueError, match=r"three positive signs"):
        rotation([0.0, 0.0, 1.0], Signature.lorentz(5))
    with pytest.raises(ValueError, match=r"begin with a timelike one"):
        frame(np.eye(4)[::-1], sig)
    with pytest.raises(ValueError, match=r"linearly independent"):
        frame(np.eye(4)[[0, 1, 2, 2]], sig)
    assert np.array_equal(inner(np.eye(4)[0], np.eye(4)[0], sig), -1.0)
