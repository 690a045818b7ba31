import numpy as np
import pytest
import torch

from jorth import Signature, component, random_point, residual
from tests.group.strategies import UNIT


@pytest.mark.parametrize("cond", [1.0, 1e4, 1e8, 1e12, 1e15])
@pytest.mark.parametrize(
    "sig",
    [Signature(25, 25), Signature(45, 5), Signature(1, 9), Signature.of([1, -1] * 8 + [1])],
    ids=repr,
)
def test_condition_number_and_residual(sig, cond):
    X = random_point(sig, cond=cond, seed=3)
    assert residual(X, sig) <= 30 * sig.n * UNIT
    # cond(X) = ||X||^2 for J-orthogonal X; the smallest singular value itself is below rounding at
    # 1e15
    assert np.linalg.norm(X, 2) ** 2 == pytest.approx(cond, rel=0.01)
    if cond <= 1e8:
        assert np.linalg.cond(X) == pytest.approx(cond, rel=0.01)


@pytest.mark.parametrize("sig", [Signature(6, 0), Signature(0, 6)], ids=repr)
def test_definite_signatures_give_orthogonal_matrices(sig):
    X = random_point(sig, cond=1e4, seed=0)
    assert np.abs(X.T @ X - np.eye(6)).max() < 60 * UNIT


def test_seeds_and_generators():
    sig = Signature(2, 3)
    np.testing.assert_array_equal(random_point(sig, seed=7), random_point(sig, seed=7))
    assert np.abs(random_point(sig, seed=7) - random_point(sig, seed=8)).max() > 0.1
    rng = np.random.default_rng(7)
    np.testing.assert_array_equal(random_point(sig, seed=rng), random_point(sig, seed=7))
    assert np.abs(random_point(sig, seed=rng) - random_point(sig, seed=7)).max() > 0.1


def test_kind_follows_dtype_and_device():
    sig = Signature(2, 1)
    assert isinstance(random_point(sig), np.ndarray)
    assert random_point(sig, dtype=np.float32).dtype == np.float32
    assert random_point(sig, dtype=torch.float32).dtype == torch.float32
    on_device = random_point(sig, device="cpu", dtype="float32")
    assert isinstance(on_device, torch.Tensor)
    assert on_device.dtype == torch.float32


def test_every_matrix_of_a_batch_is_in_the_component_and_different():
    sig = Signature(3, 2)
    X = random_point(sig, cond=50.0, component=(-1, 1), batch=(40,), seed=1)
    np.testing.assert_array_equal(component(X, sig), np.tile([-1, 1], (40, 1)))
    np.testing.assert_allclose(np.linalg.cond(X), 50.0, rtol=0.01)
    assert np.abs(X[0] - X[1]).max() > 0.1


def test_haar_factors_are_unbiased():
    """Without the sign correction QR puts a bias on the diagonal:
    mean of Q11 would be about -0.4."""
    X = random_point(Signature(3, 0), batch=(4000,), seed=2)
    assert np.abs(X.mean(axis=0)).max() < 5 / np.sqrt(3 * 4000)
