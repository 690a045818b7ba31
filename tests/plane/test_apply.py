"""V applied to rows: equal to the product."""

import numpy as np
import pytest
import torch

from jorth.plane import apply_rows, random_matching

UNIT = 2.0**-53


def steps_of_every_kind(signs, seed, reach=2.0):
    """V (m, 2, 2) with V^T J V = J: rotations, reflections, boosts and flips,
    large and small, both signs."""
    rng = np.random.default_rng(seed)
    t = rng.uniform(-reach, reach, len(signs)) * 10.0 ** rng.integers(-6, 1, len(signs))
    opposite = signs[:, 0] != signs[:, 1]
    x, y = np.where(opposite, np.cosh(t), np.cos(t)), np.where(opposite, np.sinh(t), np.sin(t))
    V = np.stack([x, np.where(opposite, y, -y), y, x], axis=-1).reshape(-1, 2, 2)
    return V * rng.choice([-1, 1], (len(signs), 2, 1))  # signs of the rows: all components


@pytest.mark.parametrize("n", [2, 7, 50])
@pytest.mark.parametrize("reach", [0.2, 2.0, 8.0])
def test_rows_equal_the_product(n, reach):
    rng = np.random.default_rng(n)
    signs = rng.choice([-1, 1], n)
    pairs = random_matching(n, seed=rng)
    V = steps_of_every_kind(signs[pairs], 1, reach)
    full = np.eye(n)
    for (i, j), step in zip(pairs, V, strict=True):
        full[np.ix_([i, j], [i, j])] = step
    X = rng.standard_normal((n, n))
    rows = X.copy()
    apply_rows(rows, pairs, V)
    bound = (
        32 * UNIT * np.abs(V).max() * np.abs(X).max()
    )  # two products and a sum, here and there; measured: 3 u
    assert np.abs(rows - full @ X).max() <= bound


def test_thin_batched_float32_and_shared_pairs():
    signs = np.array([1, -1, 1, -1])
    pairs = np.array([[0, 1], [2, 3]])
    V = torch.from_numpy(
        np.stack([steps_of_every_kind(signs[pairs], seed) for seed in range(3)])
    ).float()
    X = torch.randn(3, 4, 2, generator=torch.Generator().manual_seed(0))
    expected = torch.stack([torch.block_diag(*V[b]) @ X[b] for b in range(3)])
    apply_rows(X, torch.from_numpy(pairs), V)
    torch.testing.assert_close(X, expected, rtol=1e-5, atol=1e-5)


def test_a_parameter_can_be_updated_in_place():
    X = torch.nn.Parameter(torch.eye(2, dtype=torch.float64))
    V = torch.tensor([[[1.25, 0.75], [0.75, 1.25]]], dtype=torch.float64)
    apply_rows(X, np.array([[0, 1]]), V)
    torch.testing.assert_close(X.data, V[0])
    assert X.requires_grad


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (dict(pairs=np.array([[0, 1], [1, 2]])), ValueError, "pairs must be disjoint"),
        (dict(pairs=np.array([[0, 4], [1, 2]])), ValueError, "pairs must index 0 .. 3"),
        (dict(pairs=np.array([[0.0, 1], [2, 3]])), ValueError, "pairs must be integers"),
        (dict(V=np.eye(2)), ValueError, "V must have shape"),
        (dict(V=np.full((2, 2, 2), 2.0)), ValueError, "V must hold rotations"),
        (dict(V=np.zeros((2, 2, 2), np.float32)), TypeError, "V must have the dtype"),
        (dict(X=np.broadcast_to(1.0, (4, 4))), ValueError, "X must be writable"),
    ],
)
def test_bad_input(change, error, message):
    pairs = np.array([[0, 1], [2, 3]])
    arguments = dict(X=np.eye(4), pairs=pairs, V=np.stack([np.eye(2)] * 2)) | change
    with pytest.raises(error, match=message):
        apply_rows(**arguments)


# -- X on a device: a tensor on "meta" stands for it, as it has no data to read


def test_pairs_on_the_host_are_checked_and_nothing_is_read_from_the_device():
    X, V = torch.empty(4, 4, device="meta"), torch.empty(2, 2, 2, device="meta")
    for kind in (np.array, torch.tensor, list):
        with pytest.raises(ValueError, match=r"pairs must index 0 \.\. 3, got"):
            apply_rows(X, kind([[0, 1], [2, 4]]), V)
        apply_rows(X, kind([[0, 1], [2, 3]]), V)
    apply_rows(X, torch.tensor([[0, 1], [2, 3]], device="meta"), V)
