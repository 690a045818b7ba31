"""The mean of elements: what defines it, its invariances, and where there is none."""

import numpy as np
import pytest

from jorth import Signature, exp, inverse, log, mean, random_point, residual
from tests.group.algebra import exact_exp, random_algebra
from tests.group.strategies import UNIT

SIGS = [
    Signature(3, 1),
    Signature.of([1, -1, 1, -1, 1]),
    Signature(4, 0),
    Signature(0, 2),
    Signature(1, 1),
]
BOUND = 1e-11
"""For matrices of norm 3, and translations of norm 2: some 5,000 n u."""


def cluster(sig, count=5, size=1.5, component=(1, 1)):
    """Elements within 1.5 of a centre: near enough for a unique mean."""
    centre = random_point(sig, cond=4.0, component=component, seed=2)
    return np.stack([centre @ exp(random_algebra(sig, k, size), sig) for k in range(count)])


@pytest.mark.parametrize("sig", SIGS, ids=str)
def test_the_weighted_logarithms_cancel(sig):
    X = cluster(sig)
    w = np.random.default_rng(1).uniform(0, 1, 5)
    for weights in (None, w, 1e-200 * w):
        M = mean(X, sig, weights=weights)
        w_used = np.ones(5) / 5 if weights is None else w / w.sum()
        left = np.tensordot(w_used, log(inverse(M, sig) @ X, sig), 1)
        assert np.linalg.norm(left) <= BOUND
        assert residual(M, sig) <= 100 * sig.n * UNIT


@pytest.mark.parametrize("sig", SIGS, ids=str)
def test_it_is_invariant_under_both_translations_and_inversion(sig):
    X = cluster(sig)
    M = mean(X, sig)
    A = random_point(sig, cond=4.0, component=(-1, 1) if sig.p else (1, -1), seed=3)
    B = random_point(sig, cond=4.0, seed=4)
    np.testing.assert_allclose(mean(A @ X, sig), A @ M, atol=BOUND)
    np.testing.assert_allclose(mean(X @ B, sig), M @ B, atol=BOUND)
    np.testing.assert_allclose(mean(A @ X @ B, sig), A @ M @ B, atol=BOUND)
    np.testing.assert_allclose(mean(inverse(X, sig), sig), inverse(M, sig), atol=BOUND)
    np.testing.assert_allclose(mean(X[::-1], sig), M, atol=BOUND)


def test_of_two_it_is_the_midpoint():
    sig = Signature(3, 2)
    X, Y = cluster(sig, 2, 3.0)
    K = log(inverse(X, sig) @ Y, sig)
    np.testing.assert_allclose(mean(np.stack([X, Y]), sig), X @ exp(K / 2, sig), atol=BOUND)
    weighted = mean(np.stack([X, Y]), sig, weights=[3, 1])
    np.testing.assert_allclose(weighted, X @ exp(K / 4, sig), atol=BOUND)


def test_of_commuting_ones_it_is_exp_of_the_mean_of_logarithms():
    """Also far apart: rapidities up to 8, where the fixed-point iteration would diverge."""
    sig = Signature(2, 1)
    K = random_algebra(sig, 1)
    K = (K + K.T) / np.linalg.norm(K + K.T, 2)
    t = np.array([-8.0, 1.0, 3.0, 8.0])
    X = np.stack([exact_exp(k * K) for k in t])
    np.testing.assert_allclose(mean(X, sig), exact_exp(t.mean() * K), rtol=1e-8)


def test_errors():
    sig = Signature(2, 0)
    eye = np.eye(2)
    with pytest.raises(ValueError, match=r"X_i\^-1 X_j of the Xs must have no eigenvalue"):
        mean(np.stack([eye, -eye]), sig)
    with pytest.raises(ValueError, match=r"Xs must be in one component .* 2 components"):
        mean(np.stack([eye, np.diag([1.0, -1.0])]), sig)
    with pytest.raises(ValueError, match=r"Xs must have shape \(m, 2, 2\)"):
        mean(eye, sig)
    for weights, message in (([1], "shape"), ([1, -1], "1 negative"), ([0, 0], "zeros only")):
        with pytest.raises(ValueError, match=message):
            mean(np.stack([eye, eye]), sig, weights=weights)
