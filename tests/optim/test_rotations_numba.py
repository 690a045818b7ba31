"""Turns by given angles: each is the exponential of its generator, rows do not drift, and turns by
the negative angles in the opposite order lead back."""

import mpmath as mp
import numpy as np
import pytest

from jorth.group import random_point
from jorth.optim._rotations_numba import MOST_SHEARED, turn_batch
from jorth.plane import tournament
from jorth.signature import Signature

UNIT = 2.0**-53
SIGNS = np.array([1.0, -1.0, 1.0, 1.0, -1.0])


def skew(rng, shape, size):
    """Skew matrices with entries up to ``size``."""
    upper = np.triu(rng.uniform(-size, size, shape), 1)
    return upper - upper.swapaxes(-2, -1)


def all_pairs(n, seed=0):
    return tournament(n, seed=seed).reshape(-1, 2)


def exact_turns(X, angles, signs, pairs):
    """The product of exp(-J K) over the planes, times X, in 50 digits; and the product of norms."""
    with mp.workdps(50):
        product, growth = mp.matrix(X.tolist()), mp.mpf(1)
        for i, j in pairs.tolist():
            generator = mp.zeros(len(X))
            generator[i, j] = -signs[i] * mp.mpf(angles[i, j])
            generator[j, i] = -signs[j] * mp.mpf(angles[j, i])
            product = mp.expm(generator) * product
            growth *= mp.exp(abs(mp.mpf(angles[i, j]))) if signs[i] != signs[j] else 1
        return np.array(product.tolist(), dtype=float), float(growth)


@pytest.mark.parametrize("size", [1e-300, 1e-9, 0.1, MOST_SHEARED, 3.0, 8.0])
@pytest.mark.parametrize("columns", [5, 2, 19])
def test_turns_are_exponentials(size, columns):
    rng = np.random.default_rng(3)
    pairs = all_pairs(5)
    angles = skew(rng, (2, 5, 5), size)
    angles[1] = 0.0
    angles[1, 4, 0], angles[1, 0, 4] = size, -size
    X = rng.standard_normal((2, 5, columns))
    start = X.copy()
    turn_batch(X, angles, SIGNS, pairs)
    for moved, before, theta in zip(X, start, angles, strict=True):
        expected, growth = exact_turns(before, theta, SIGNS, pairs)
        rounding = 8 * len(pairs) * UNIT * growth * np.linalg.norm(before)
        assert np.abs(moved - expected).max() <= rounding
        change, expected_change = moved - before, expected - before
        if size == 1e-9:  # an error in the angles themselves would hide in the rounding of X
            assert np.abs(change - expected_change).max() <= 1e-6 * np.abs(expected_change).max()


@pytest.mark.parametrize("angle", [1e-3, 0.3, -MOST_SHEARED, 0.51, -1.7, 3.0])
@pytest.mark.parametrize("signs", [(1.0, 1.0), (-1.0, -1.0), (1.0, -1.0), (-1.0, 1.0)])
def test_single_turns(angle, signs):
    """To a few roundings of each entry: the convention of the signs, and the accuracy."""
    X = np.eye(2)[None].copy()
    turn_batch(X, np.array([[[0.0, angle], [-angle, 0.0]]]), np.array(signs), np.array([[0, 1]]))
    a = signs[1] * mp.mpf(angle)
    if signs[0] == signs[1]:
        expected = [[mp.cos(a), -mp.sin(a)], [mp.sin(a), mp.cos(a)]]
    else:
        expected = [[mp.cosh(a), mp.sinh(a)], [mp.sinh(a), mp.cosh(a)]]
    expected = np.array(expected, dtype=float)
    np.testing.assert_allclose(X[0], expected, rtol=8 * UNIT, atol=8 * UNIT * expected.max())


def test_many_turns_stay_on_the_group():
    n = 12
    signature = Signature(7, 5)
    signs = signature.signs.astype(float)
    J = np.diag(signs)
    rng = np.random.default_rng(4)
    X = np.ascontiguousarray(random_point(signature, cond=100.0, batch=(2,), seed=5))
    norm = np.linalg.norm(X, axis=(1, 2)).max()
    for turn in range(100):
        pairs = all_pairs(n, seed=turn)
        angles = skew(rng, (2, n, n), 0.02)
        turn_batch(X, angles, signs, pairs)
        norm = max(norm, np.linalg.norm(X, axis=(1, 2)).max())
        turn_batch(X, -angles, signs, np.ascontiguousarray(pairs[::-1]))
        error = np.abs(X.swapaxes(1, 2) @ J @ X - J).max()
        assert error <= n * UNIT * norm**2


@pytest.mark.parametrize("n", [4, 33])
def test_the_opposite_turns_lead_back(n):
    rng = np.random.default_rng(6)
    signs = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    pairs = all_pairs(n, seed=1)
    X = rng.standard_normal((3, n, n))
    start = X.copy()
    angles = skew(rng, (3, n, n), 0.9 / n)
    turn_batch(X, angles, signs, pairs)
    assert np.abs(X - start).max() > 0.01
    largest = max(np.abs(X).max(), np.abs(start).max())
    turn_batch(X, -angles, signs, np.ascontiguousarray(pairs[::-1]))
    assert np.abs(X - start).max() <= 50 * n * UNIT * largest


def test_a_matrix_without_angles_stays_and_others_do_not_matter():
    rng = np.random.default_rng(7)
    angles = skew(rng, (3, 5, 5), 0.2)
    angles[1] = 0.0
    pairs = all_pairs(5)
    X = rng.standard_normal((3, 5, 5))
    X[1, 0, 0] = np.inf  # 0 * inf would be NaN
    start, alone = X.copy(), X[2:].copy()
    angles[0] = np.nan
    turn_batch(X, angles, SIGNS, pairs)
    turn_batch(alone, angles[2:], SIGNS, pairs)
    assert np.isnan(X[0]).all()
    np.testing.assert_array_equal(X[1], start[1])
    np.testing.assert_array_equal(X[2], alone[0])


@pytest.mark.parametrize("shape", [(0, 5, 5), (2, 5, 0), (2, 1, 3)])
def test_nothing_to_turn(shape):
    rng = np.random.default_rng(8)
    X = rng.standard_normal(shape)
    start = X.copy()
    n = shape[1]
    pairs = all_pairs(n) if n > 1 else np.empty((0, 2), dtype=np.int64)
    turn_batch(X, np.zeros((shape[0], n, n)), np.ones(n), pairs)
    np.testing.assert_array_equal(X, start)
