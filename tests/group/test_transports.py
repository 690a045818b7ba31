"""Parallel transport: from its differential equation, invariance, and what it keeps."""

import numpy as np
import pytest
import torch

from jorth import Signature, exp, inverse, log, random_point, transport
from tests.group.algebra import random_algebra

SIGS = [Signature(3, 1), Signature.of([1, -1, 1, -1]), Signature(3, 0)]


def pair(sig, seed=0):
    X = random_point(sig, cond=5.0, seed=seed)
    return X, X @ exp(random_algebra(sig, seed, 2.0), sig), X @ random_algebra(sig, seed + 50)


@pytest.mark.parametrize("sig", SIGS, ids=str)
def test_it_solves_the_equation_of_parallel_fields(sig):
    """For X(t) = X exp(t K) and V = X(t) W(t): W' = -[K, W] / 2, by steps of Runge and Kutta."""
    X, Y, V = pair(sig)
    K = log(inverse(X, sig) @ Y, sig)
    W = inverse(X, sig) @ V

    def slope(W):
        return -(K @ W - W @ K) / 2

    steps = 200
    for _ in range(steps):
        a = slope(W)
        b = slope(W + a / (2 * steps))
        c = slope(W + b / (2 * steps))
        d = slope(W + c / steps)
        W = W + (a + 2 * b + 2 * c + d) / (6 * steps)
    np.testing.assert_allclose(transport(X, Y, V, sig), Y @ W, atol=1e-8)


@pytest.mark.parametrize("sig", SIGS, ids=str)
def test_it_is_invariant_from_both_sides_and_keeps_the_form(sig):
    X, Y, V = pair(sig)
    U = X @ random_algebra(sig, 60)
    A, B = (random_point(sig, cond=4.0, seed=seed) for seed in (5, 6))
    there = transport(X, Y, V, sig)
    np.testing.assert_allclose(
        transport(A @ X @ B, A @ Y @ B, A @ V @ B, sig), A @ there @ B, atol=1e-11
    )
    form = np.trace(inverse(X, sig) @ V @ inverse(X, sig) @ U)
    moved = np.trace(inverse(Y, sig) @ there @ inverse(Y, sig) @ transport(X, Y, U, sig))
    np.testing.assert_allclose(moved, form, atol=1e-12)
    np.testing.assert_allclose(transport(Y, X, there, sig), V, atol=1e-12)
    velocity = X @ log(inverse(X, sig) @ Y, sig)
    expected = Y @ log(inverse(X, sig) @ Y, sig)
    np.testing.assert_allclose(transport(X, Y, velocity, sig), expected, atol=1e-12)
    M = Y.T @ (sig.signs[:, None] * there)
    assert np.abs(M + M.T).max() <= 1e-12


def test_batches_dtypes_and_derivatives():
    sig = Signature.of([1, -1, 1])
    X, Y, V = (torch.from_numpy(M) for M in pair(sig))
    stacked = torch.stack([V, 2 * V])
    assert torch.allclose(transport(X, Y, stacked, sig)[1], 2 * transport(X, Y, V, sig))
    single = transport(X.float(), Y.float(), V.float(), sig)
    assert single.dtype == torch.float32
    assert torch.allclose(single.double(), transport(X, Y, V, sig), atol=1e-5)
    signs = sig.vector(X)[:, None]
    start = torch.zeros(3, 3, dtype=torch.float64, requires_grad=True)

    def moved(M):
        return transport(X, exp(signs * (M - M.mT) / 2, sig) @ Y, V, sig)

    assert torch.autograd.gradcheck(moved, (start,), atol=1e-7)


def test_errors():
    sig = Signature(2, 0)
    eye, turn = np.eye(2), np.array([[0.0, -1.0], [1.0, 0.0]])
    with pytest.raises(ValueError, match=r"X\^-1 Y must have no eigenvalue .* half turn"):
        transport(eye, -eye, turn, sig)
    with pytest.raises(ValueError, match="V must be tangent at X"):
        transport(eye, eye, eye, sig)
    with pytest.raises(ValueError, match="V must broadcast against X"):
        transport(np.stack([eye, eye]), eye, np.stack([turn] * 3), sig)
