import numpy as np
import pytest
import torch

from jorth import PolishError, Signature, component, polish, random_point, residual
from tests.group.strategies import UNIT


@pytest.mark.parametrize("distance", [1e-12, 1e-6, 1e-2, 0.3])
@pytest.mark.parametrize("cond", [1.0, 100.0])
def test_polishing_returns_to_the_group(distance, cond):
    sig = Signature.of([1, -1, 1, 1, -1, 1])
    X = random_point(sig, cond=cond, component=(-1, 1), seed=1)
    E = np.random.default_rng(0).standard_normal(X.shape)
    E *= distance / np.linalg.norm(E, 2) / np.linalg.norm(X, 2)
    Y = polish(X + E, sig)
    assert residual(Y, sig) <= 30 * sig.n * UNIT
    assert component(Y, sig) == (-1, 1)
    # the factor is a first-order projection:
    # it moves X + E by no more than a few times what separates X + E from X
    assert np.linalg.norm(Y - X) <= 5 * cond * np.linalg.norm(E)


def test_a_feasible_point_is_left_alone():
    sig = Signature(4, 4)
    for cond in (1.0, 1e8, 1e15):
        X = random_point(sig, cond=cond, seed=4)
        np.testing.assert_array_equal(polish(X, sig), X)
        assert not np.shares_memory(polish(X, sig), X)


def test_far_from_the_group_newton_keeps_the_component():
    """The Schulz step would send 2 I to -I."""
    np.testing.assert_allclose(polish(2 * np.eye(3), Signature(2, 1)), np.eye(3), atol=1e-14)
    np.testing.assert_allclose(polish(0.3 * np.eye(3), Signature(2, 1)), np.eye(3), atol=1e-14)


@pytest.mark.parametrize(
    "X",
    [
        np.zeros((2, 2)),  # singular
        np.array([[0.0, 1], [1, 0]]),  # J X^T J X = -I has no square root of the right kind
        np.array([[0.0, 2], [3, 0]]),
    ],
)
def test_says_when_it_cannot(X):
    with pytest.raises(PolishError, match=r"no J-orthogonal factor .* \|\|E\|\| \|\|X\|\| < 1"):
        polish(X, Signature(1, 1))


def test_batch_mixes_near_and_far():
    sig = Signature(3, 1)
    X = random_point(sig, batch=(4,), dtype=torch.float32, seed=3)
    scale = torch.tensor([0.0, 1e-4, 0.05, 0.1])[:, None, None]
    Y = polish(X + scale * torch.ones(4, 4), sig)
    assert Y.dtype == torch.float32
    assert residual(Y, sig).amax() <= 30 * 4 * 2.0**-24
    assert torch.equal(Y[0], X[0])


@pytest.mark.parametrize("off", [0.0, 1e-12, 1e-3])
def test_the_derivative_at_a_feasible_point_is_the_projection_onto_the_tangent_space(off):
    """Where no step is needed, too."""
    sig = Signature(3, 2)
    noise = torch.randn(5, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    X = random_point(sig, cond=5.0, seed=3, dtype=torch.float64) + off * noise
    X.requires_grad_()
    assert torch.autograd.gradcheck(lambda A: polish(A, sig), X)
    assert torch.autograd.gradgradcheck(lambda A: polish(A, sig), X)
    W = polish(X, sig)
    assert off or torch.equal(W, X)
    slopes = torch.autograd.functional.jacobian(lambda A: polish(A, sig), W.detach())
    J = torch.diag(sig.vector(W))
    E = noise.flip(0)
    projected = (E - W @ J @ E.mT @ J @ W).detach() / 2
    torch.testing.assert_close((slopes * E).sum(dim=(-2, -1)), projected, rtol=0, atol=1e-12)
