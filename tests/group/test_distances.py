"""The distance: a metric, invariant from the right, the length of a shortest curve."""

import numpy as np
import pytest
import torch

from jorth import Signature, distance, exp, inverse, log, random_point
from jorth.group.geodesics import geodesic_end
from tests.group.algebra import boost, exact_exp, random_algebra

SIGS = [Signature(3, 1), Signature.of([1, -1, 1, -1]), Signature(3, 0), Signature(1, 1)]
BOUND = 1e-11
"""For elements of norm 10: n u ||Y X^-1||^2, times 250."""


def elements(sig, count, size=2.0):
    sizes = size * np.linspace(1, 0.5, count)  # where p = q = 1 a random K has a sign, no more
    return np.stack([exp(random_algebra(sig, k, length), sig) for k, length in enumerate(sizes)])


@pytest.mark.parametrize("sig", SIGS, ids=str)
def test_it_is_an_invariant_metric(sig):
    X, Y, Z = elements(sig, 3)
    A = random_point(sig, cond=5.0, component=(1, -1) if sig.q else (-1, 1), seed=7)
    d = distance(X, Y, sig)
    assert isinstance(d, float)
    assert d > 0.1
    assert abs(distance(X @ A, Y @ A, sig) - d) <= BOUND
    assert abs(distance(Y, X, sig) - d) <= BOUND
    assert distance(X, X, sig) == 0
    assert d <= distance(X, Z, sig) + distance(Z, Y, sig) + BOUND
    left = distance(inverse(X, sig), inverse(Y, sig), sig)
    assert abs(left - distance(inverse(A @ X, sig), inverse(A @ Y, sig), sig)) <= BOUND


@pytest.mark.parametrize("sig", SIGS, ids=str)
@pytest.mark.parametrize("size", [1e-9, 0.3, 2.0])
def test_the_geodesic_that_was_walked_is_found(sig, size):
    K = torch.from_numpy(random_algebra(sig, 3, size))
    X = random_point(sig, cond=5.0, seed=8)
    Y = geodesic_end(K).numpy() @ X
    assert abs(distance(X, Y, sig) - size) <= BOUND


@pytest.mark.parametrize("sig", [Signature(3, 1), Signature(2, 2)], ids=str)
def test_of_rotations_and_boosts_it_is_the_norm_of_the_logarithm(sig):
    for K in (boost(sig, 1, 3.0), random_algebra(sig, 1, 2.0) - random_algebra(sig, 1, 2.0).T):
        X = exact_exp(K)
        expected = np.linalg.norm(log(X, sig))
        np.testing.assert_allclose(distance(np.eye(4), X, sig), expected, rtol=1e-10)
    half_turn = np.diag([-1.0, -1.0, 1.0])  # no principal logarithm, but a distance
    np.testing.assert_allclose(
        distance(np.eye(3), half_turn, Signature(3, 0)), np.sqrt(2) * np.pi, rtol=1e-14
    )


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_batches_broadcast(dtype):
    sig = Signature.of([1, -1, 1])
    X = torch.from_numpy(elements(sig, 4)).to(dtype)
    found = distance(X[:, None], X[None], sig)
    assert found.shape == (4, 4)
    assert found.dtype == dtype
    assert torch.allclose(found, found.mT, atol=50 * torch.finfo(dtype).eps)
    assert abs(found[0, 1] - distance(X[0], X[1], sig)) <= 1e-6
    assert distance(X[:0], X[0], sig).shape == (0,)
    assert distance(np.eye(1), np.eye(1), Signature(1, 0)) == 0


def test_its_derivative_is_that_of_a_length():
    sig = Signature.of([1, -1, 1])
    X, Y = torch.from_numpy(elements(sig, 2))
    signs = sig.vector(X)[:, None]
    start = torch.zeros(2, 3, 3, dtype=torch.float64, requires_grad=True)

    def moved(M):
        steps = exp(signs * (M - M.mT) / 2, sig)
        return distance(steps[0] @ X, steps[1] @ Y, sig)

    assert torch.autograd.gradcheck(moved, (start,), atol=1e-6)
    point = X.clone().requires_grad_()
    assert torch.equal(torch.autograd.grad(distance(point, X, sig), point)[0], 0 * X)
    with pytest.raises(RuntimeError, match="first derivatives only"):
        torch.autograd.grad(moved(start), start, create_graph=True)


def test_errors():
    sig = Signature(2, 1)
    with pytest.raises(ValueError, match="X and Y must lie in the same component"):
        distance(np.eye(3), np.diag([1.0, 1.0, -1.0]), sig)
    with pytest.raises(ValueError, match="Y must be J-orthogonal"):
        distance(np.eye(3), 2 * np.eye(3), sig)
    with pytest.raises(ValueError, match=r"near enough .* got \|\|Y X\^-1\|\|_2 = 1e\+10"):
        distance(np.eye(3), random_point(sig, cond=1e20, seed=1), sig)
