"""A = X S: against scipy's and mpmath's principal root, and the answer where there is none."""

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st

from jorth import PolishError, Signature, inverse, polar, random_point, residual
from tests.group.strategies import UNIT, dense_j, points, signatures
from tests.linalg.reference import principal_root

MIXED = Signature.of([1, -1, 1, 1, -1])


def selfadjoint(sig, size, seed, cond=1.0):
    """S = Z D Z^-1 with J S symmetric and positive eigenvalues over 10^+-size, Z in the group."""
    rng = np.random.default_rng(seed)
    Z = random_point(sig, cond=cond, seed=seed)
    return (Z * 10.0 ** rng.uniform(-size, size, sig.n)) @ inverse(Z, sig)


def check(A, sig):
    X, S = polar(A, sig)
    size = np.linalg.norm(X, 2)
    assert residual(X, sig) <= 100 * sig.n * UNIT  # measured: 9 n u
    JS = sig.signs[:, None] * S
    np.testing.assert_array_equal(JS, JS.T)
    assert np.linalg.eigvals(S).real.min() > 0
    # measured: 8
    assert np.abs(X @ S - A).max() <= 100 * sig.n * UNIT * np.linalg.norm(A, 2) * size**2
    return X, S


@given(st.data())
def test_the_planted_factors_come_back(data):
    """The decomposition is unique: X and S are those that A was made of."""
    sig = data.draw(signatures())
    X = data.draw(points(sig, 2))
    S = selfadjoint(sig, data.draw(st.floats(0, 1)), data.draw(st.integers(0, 2**32)), cond=5.0)
    found, root = check(X @ S, sig)
    scale = np.linalg.cond(S) * np.linalg.cond(X)
    assert np.abs(found - X).max() <= 1e-13 * scale * np.linalg.norm(X)
    assert np.abs(root - S).max() <= 1e-13 * scale * np.linalg.norm(S)


@pytest.mark.parametrize("seed", range(4))
def test_root_against_sixty_digits_and_scipy(seed):
    rng = np.random.default_rng(seed)
    A = random_point(MIXED, cond=4.0, component=(-1, 1), seed=seed) + 0.1 * rng.standard_normal(
        (5, 5)
    )
    _, S = check(A, MIXED)
    J = dense_j(MIXED)
    np.testing.assert_allclose(S, principal_root((J @ A.T @ J @ A).tolist()), atol=1e-12)
    np.testing.assert_allclose(S, scipy.linalg.sqrtm(J @ A.T @ J @ A), atol=1e-12)


NONE = {
    "singular": np.diag([1.0, 1.0, 0.0]),
    "J A^T J A = -I on a plane": np.array([[0.0, 0, 1], [0, 1, 0], [1, 0, 0]]),
    "-9 and -4": np.array([[0.0, 0, 2], [0, 1, 0], [3, 0, 0]]),
    "two negative eigenvalues": np.array([[0.1, 0, 2], [0, 1, 0], [3, 0, 0.1]]),
    "a null column": np.array([[1.0, 0, 0], [0, 1, 0], [1, 0, 1e-30]]),
}


@pytest.mark.parametrize("name", NONE)
def test_says_where_there_is_none(name):
    with pytest.raises(PolishError, match="A has no"):
        polar(NONE[name], Signature(2, 1))


def test_an_iteration_that_converges_to_something_else():
    """J A^T J A has a double eigenvalue -3/16:
    rounding takes the iteration to a J-orthogonal X with a wrong S."""
    with pytest.raises(PolishError, match="no eigenvalue on the negative real axis"):
        polar(np.array([[-0.25, 0.0], [-1.0, -0.75]]), Signature(1, 1))
