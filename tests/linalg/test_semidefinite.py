"""Semidefinite and negative pencils: the eigenvalues, or an error where X does not exist."""

import numpy as np
import pytest
import torch

from jorth import Signature, eigh, random_point, residual
from tests.group.strategies import UNIT, dense_j
from tests.linalg.reference import positive_definite
from tests.linalg.test_eigh import MIXED, planted

LIGHT = np.array([1.0, 0, 0, 1, 0])
"""z^T J z = 0 for the signature (3, 2)."""


def low_rank(n, rank, seed):
    G = np.random.default_rng(seed).standard_normal((rank, n))
    return G.T @ G


@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e200])
@pytest.mark.parametrize("middle", [0.0, 20.0, -30.0])
def test_negative_definite(middle, scale):
    A, values = planted(MIXED, 1.0, 10.0, 3, middle)
    found, X = eigh(-scale * A, MIXED)
    assert residual(X, MIXED) <= 20 * MIXED.n * UNIT
    np.testing.assert_allclose(found, -scale * values, rtol=1e-10, atol=1e-11 * scale)
    assert found[MIXED.positive].max() < found[MIXED.negative].min()


def test_a_given_shift_is_used():
    A, values = planted(MIXED, 1.0, 10.0, 3, 20.0)
    np.testing.assert_allclose(eigh(A, MIXED, shift=20.1)[0], values, rtol=1e-11)
    np.testing.assert_allclose(eigh(-A, MIXED, shift=-20.1)[0], -values, rtol=1e-11)
    for shift in (0.0, 30.0):
        with pytest.raises(
            ValueError, match=r"shift must be a mu .* got one with eigenvalues from"
        ):
            eigh(A, MIXED, shift=shift)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("middle", [0.0, 7.0])
@pytest.mark.parametrize("rank", [0, 1, 4, 9])
def test_semidefinite(rank, middle, sign):
    """Null vectors of both signs: the eigenvalue mu is exact where it is known to be 0."""
    A = sign * (low_rank(10, rank, rank) + middle * dense_j(MIXED))
    # rounding may leave a factorisation to the rank 9; a tolerance does not
    values, X = eigh(A, MIXED, tolerance=1e-13 if rank == 9 else None)
    size = np.linalg.norm(X, 2) ** 2
    assert residual(X, MIXED) <= 20 * MIXED.n * UNIT
    defect = X.T @ A @ X - np.diag(MIXED.signs * values)
    assert np.abs(defect).max() <= 60 * 10 * UNIT * (np.linalg.norm(A, 2) + middle) * size
    multiple = values[np.argsort(np.abs(values - sign * middle))[: 10 - rank]]
    if middle == 0:
        assert (multiple == 0).all()
    np.testing.assert_allclose(multiple, sign * middle, rtol=100 * UNIT * size)
    away = np.abs(values - sign * middle)
    assert (np.diff(away[MIXED.positive]) >= 0).all()
    assert (np.diff(away[MIXED.negative]) >= 0).all()


DEGENERATE = {
    "one light-like null vector": np.outer(LIGHT, LIGHT) + np.diag([0.0, 2, 3, 0, 4]),
    "with others": np.outer(LIGHT, LIGHT) + np.diag([0.0, 2, 0, 0, 0]),
}


@pytest.mark.parametrize("name", DEGENERATE)
@pytest.mark.parametrize("shift", [0.0, 1.5])
@pytest.mark.parametrize("sign", [1, -1])
def test_no_x_diagonalises_a_jordan_block(name, shift, sign):
    sig = Signature(3, 2)
    A = DEGENERATE[name] + shift * dense_j(sig)
    with pytest.raises(ValueError, match="no J-orthogonal X diagonalises A"):
        eigh(sign * A, sig)


@pytest.mark.parametrize(("weakest", "shift"), [(1.0, 0.0), (1e-6, 0.0), (1.0, 1.5)])
@pytest.mark.parametrize("seed", range(5))
def test_a_form_that_is_rounding_counts_as_zero(seed, weakest, shift):
    """The Jordan block in other coordinates: z^T J z comes out as some u / weakest, not as 0."""
    sig = Signature(3, 2)
    Y = random_point(sig, cond=3.0, seed=seed)
    A = Y.T @ (weakest * np.outer(LIGHT, LIGHT) + np.diag([0.0, 2, 3, 0, 4])) @ Y
    A += shift * dense_j(sig)
    with pytest.raises(ValueError, match="no J-orthogonal X diagonalises A"):
        eigh((A + A.T) / 2, sig, tolerance=1e-14)


@pytest.mark.parametrize("kind", [1, -1])
@pytest.mark.parametrize("middle", [0.0, 3.0])
def test_float32(kind, middle):
    """What is semidefinite to the rounding of float32 counts as that."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(0, 10))
        sig = Signature.of(rng.permutation([1, -1] + [1] * (n // 3) + [-1] * (n - n // 3)))
        n = sig.n
        exact = low_rank(n, int(rng.integers(0, n)), seed) + middle * dense_j(sig)
        A = (kind * exact).astype(np.float32)
        values, X = eigh(A, sig)
        size = np.linalg.norm(X, 2) ** 2 * max(np.linalg.norm(A, 2), 1)
        defect = X.T.astype(float) @ A @ X - np.diag(sig.signs * values)
        assert np.abs(defect).max() <= 20 * n * 2.0**-24 * size  # measured: below 2


def test_batches_of_all_kinds():
    sig = Signature(3, 2)
    good = [
        positive_definite(5, 10.0, 0),
        -positive_definite(5, 10.0, 1),
        low_rank(5, 2, 0),
        planted(sig, 1.0, 5.0, 0)[0],
    ]
    A = torch.from_numpy(np.stack(good)).reshape(2, 2, 5, 5)
    values, X = eigh(A, sig)
    for k, one in enumerate(good):
        np.testing.assert_array_equal(values[k // 2, k % 2], eigh(one, sig)[0])
        np.testing.assert_array_equal(X[k // 2, k % 2], eigh(one, sig)[1])
    A[1, 0] = torch.from_numpy(DEGENERATE["with others"])
    with pytest.raises(ValueError, match=r"diagonalises .*\(matrix \[1, 0\] of the batch\)"):
        eigh(A, sig)
    A[1, 0] = torch.diag(torch.tensor([1.0, 2.0, 3.0, -1.0, -4.0]))
    with pytest.raises(ValueError, match=r"definite pencil .*\(matrix \[1, 0\] of the batch\)"):
        eigh(A, sig)
