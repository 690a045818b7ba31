"""Hyperbolic QR: backward error over a grid of conditions,
R against a Cholesky factor at 60 digits."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jorth import Signature, hyperbolic_qr, indefinite_lstsq, random_point, residual
from tests.group.strategies import UNIT, signatures
from tests.linalg.reference import TALL_GRID, tall

MIXED = Signature.of([1, -1, 1, 1, -1, 1, -1, 1, 1])


def check(A, sig):
    """A = Q[:, positive[:k]] R, Q J-orthogonal, R upper triangular with a positive diagonal."""
    m, k = A.shape
    Q, R = hyperbolic_qr(A, sig)
    assert Q.shape == (m, m)
    assert R.shape == (k, k)
    assert residual(Q, sig) <= 50 * m * UNIT  # measured: 3 m u
    # Q and R themselves are rounded: m u ||Q|| ||R|| is what can be had
    backward = np.linalg.norm(Q[:, sig.positive[:k]] @ R - A)
    assert backward <= 50 * m * UNIT * np.linalg.norm(Q, 2) * np.linalg.norm(R, 2)
    np.testing.assert_array_equal(R, np.triu(R))
    assert (np.diagonal(R) > 0).all()
    return Q, R


@given(st.data())
def test_properties(data):
    sig = data.draw(signatures().filter(lambda sig: sig.p > 0))
    k = data.draw(st.integers(1, sig.p))
    cond, closeness = (10.0 ** data.draw(st.floats(0, 7)) for _ in range(2))
    check(tall(sig, k, cond, closeness, data.draw(st.integers(0, 2**32))), sig)


@pytest.mark.parametrize(("cond", "closeness"), TALL_GRID)
def test_backward_error(cond, closeness):
    """||Q||^2 = (C + S)^2 closeness <= 2 closeness;
    rounding of A changes its closeness by a few per cent at most."""
    for seed in range(3):
        Q, _ = check(tall(MIXED, 4, cond, closeness, seed), MIXED)
        assert np.linalg.norm(Q, 2) <= 2 * np.sqrt(closeness)


@pytest.mark.parametrize("closeness", [2.0, 1e4])
def test_r_is_the_cholesky_factor(closeness):
    A = tall(MIXED, 4, 100.0, closeness, 0)
    with mpmath.workdps(60):
        matrix = mpmath.matrix(A.tolist())
        product = matrix.T * mpmath.diag([int(s) for s in MIXED.signs]) * matrix
        expected = np.array(mpmath.cholesky(product).T.tolist(), dtype=float)
    _, R = check(A, MIXED)
    # R changes by the condition of R^-T (A^T J A) R^-1 = I under a perturbation of A:
    # ||Q||^2 cond(R)
    bound = 10 * MIXED.n * UNIT * closeness * np.linalg.cond(expected) * np.linalg.norm(expected)
    assert np.abs(R - expected).max() <= bound


def light_like(seed):
    """(m, 3) of full rank, with one column a of <a, a>_J = 0 up to rounding,
    and the others orthogonal to it."""
    rng = np.random.default_rng(seed)
    X = random_point(MIXED, cond=3.0, seed=seed)
    plus, minus = MIXED.positive, MIXED.negative
    columns = np.stack([X[:, plus[0]], X[:, plus[1]], X[:, plus[2]] + X[:, minus[0]]], axis=1)
    return columns @ np.linalg.qr(rng.standard_normal((3, 3)))[0]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("seed", range(10))
def test_every_such_matrix_is_refused(seed, dtype):
    """The smallest eigenvalue comes out as some u / 10 of either sign."""
    A = light_like(seed).astype(dtype)
    with pytest.raises(ValueError, match=r"A\^T J A must be positive definite"):
        hyperbolic_qr(A, MIXED)
    with pytest.raises(ValueError, match=r"A\^T J A must be positive definite"):
        indefinite_lstsq(A, np.ones(MIXED.n, dtype), MIXED)
