"""The compiled norms of a point are what the functions of torch give one by one."""

import math

import numpy as np
import pytest
import torch

import jorth
from jorth.group._numba import point_norms
from jorth.group.gradient import gradient_norm
from jorth.group.norms import scaled_violation

U = 2.0**-53


def case(n, k, size=1.0, slope=1.0, seed=0):
    rng = np.random.default_rng(seed)
    signs = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    X = size * np.linalg.qr(rng.standard_normal((n, n)))[0][:, :k]
    X += size * rng.standard_normal((n, k))
    return np.ascontiguousarray(X), slope * rng.standard_normal((n, k)), signs


@pytest.mark.parametrize(("n", "k"), [(1, 1), (2, 2), (3, 2), (8, 8), (9, 1), (33, 33), (64, 40)])
@pytest.mark.parametrize("size", [1e-160, 1.0, 1e160])
@pytest.mark.parametrize("slope", [1e-140, 1.0, 1e140])
def test_as_by_singular_values_and_torch(n, k, size, slope):
    X, G, signs = case(n, k, size, slope)
    gram = np.diag(np.ones(k))
    norm, violation, gradient = point_norms(X, G, signs, gram)
    true_norm = np.linalg.norm(X / size, ord=2) * size
    assert norm == pytest.approx(true_norm, rel=0.01)
    tensors = [torch.from_numpy(part) for part in (X, signs, gram)]
    assert violation == pytest.approx(scaled_violation(*tensors).item(), rel=0.021)
    skew = signs[:, None] * (G / slope) @ (X / size).T
    true_slope = np.linalg.norm(skew - skew.T) / 2
    rounding = 4 * n * U * np.linalg.norm(G / slope) * np.linalg.norm(X / size)
    assert gradient / slope / size == pytest.approx(true_slope, abs=rounding)


def test_a_feasible_point_has_a_violation_at_rounding_level():
    sig = jorth.Signature(9, 7)
    X = jorth.random_point(sig, cond=1e6, seed=1)
    signs = sig.signs.astype(float)
    _, violation, _ = point_norms(np.ascontiguousarray(X), X.copy(), signs, np.diag(signs))
    assert violation <= 16 * 16 * U
    X[3, 4] += 1e-3 * np.abs(X).max()
    assert point_norms(np.ascontiguousarray(X), X.copy(), signs, np.diag(signs))[1] > 1e-7


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite(bad):
    X, G, signs = case(5, 5)
    gram = np.eye(5)
    spoiled = X.copy()
    spoiled[2, 3] = bad
    norm, violation, _ = point_norms(spoiled, G, signs, gram)
    assert norm == abs(bad) or (math.isnan(norm) and math.isnan(bad))
    assert math.isnan(violation)
    slopes = G.copy()
    slopes[4, 0] = bad
    found = point_norms(X, slopes, signs, gram)[2]
    known = gradient_norm(*(torch.from_numpy(part) for part in (X, slopes, signs)))
    assert found == known or (math.isnan(found) and math.isnan(known))


def test_zeros():
    zero = np.zeros((4, 4))
    assert point_norms(zero, zero, np.ones(4), np.eye(4)) == (0.0, 1.0, 0.0)
    assert point_norms(np.eye(4), np.eye(4), np.ones(4), np.eye(4))[1:] == (0.0, 0.0)
