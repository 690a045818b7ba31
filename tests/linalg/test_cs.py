"""The hyperbolic CS decomposition: recomposition, orthogonal factors,
and mu against scipy's cossin and mpmath."""

import mpmath
import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st

from jorth import Signature, cs_decomposition, random_point
from tests.group.strategies import points, signatures


def check(X, sig):
    cs = cs_decomposition(X, sig)
    cond = np.linalg.norm(X, 2) ** 2
    assert np.abs(cs.compose() - X).max() <= 1e-12 * cond
    for factor in (cs.U1, cs.U2, cs.V1, cs.V2):
        if factor.size:
            assert np.abs(factor.T @ factor - np.eye(len(factor))).max() <= 1e-12
    assert (cs.mu >= 0).all()
    assert (np.diff(cs.mu) <= 0).all()
    return cs


@given(st.data())
def test_properties(data):
    sig = data.draw(signatures())
    check(data.draw(points(sig, 15)), sig)


@pytest.mark.parametrize("cond", [1.0, 1e4, 1e8, 1e12, 1e15])
@pytest.mark.parametrize(
    "sig", [Signature(30, 20), Signature(20, 30), Signature(49, 1), Signature(1, 49)], ids=repr
)
def test_large(sig, cond):
    cs = check(random_point(sig, cond=cond, seed=6), sig)
    assert cs.mu[0] == pytest.approx(np.log(cond) / 2, rel=1e-12, abs=1e-7)
    # the recomposition is better than asked: relative to ||X||, not to its square
    X = random_point(sig, cond=cond, seed=6)
    assert np.abs(cs.compose() - X).max() <= 1e-14 * 50 * np.linalg.norm(X, 2)


def test_mu_is_accurate_where_cossin_is_not():
    """mu = 17 and mu = 0.5 in one matrix, against singular values of X[-,+] at 60 digits."""
    sig = Signature(3, 2)
    mu = np.array([17.0, 0.5])
    rng = np.random.default_rng(3)
    U1, V1 = (np.linalg.qr(rng.standard_normal((3, 3)))[0] for _ in range(2))
    U2, V2 = (np.linalg.qr(rng.standard_normal((2, 2)))[0] for _ in range(2))
    H = np.eye(5)
    H[:2, :2] = H[3:, 3:] = np.diag(np.cosh(mu))
    H[:2, 3:] = H[3:, :2] = np.diag(np.sinh(mu))
    X = scipy.linalg.block_diag(U1, U2) @ H @ scipy.linalg.block_diag(V1, V2).T
    with mpmath.workdps(60):
        sigma = mpmath.svd_r(mpmath.matrix(X[3:, :3].tolist()), compute_uv=False)
        reference = [float(mpmath.asinh(value)) for value in sigma]
    found = cs_decomposition(X, sig).mu
    assert abs(found[0] - reference[0]) <= 1e-14 * 17
    # absolute accuracy of singular values: u ||X|| = 2e-9 in sinh(0.5)
    assert abs(found[1] - reference[1]) <= 1e-8
