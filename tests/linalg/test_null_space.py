"""The hyperbolic SVD of wide and rank-deficient matrices: zeros that are exact, and the rest."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jorth import Signature, hsvd, inverse, random_point, residual
from tests.group.strategies import UNIT, signatures
from tests.linalg.reference import orthogonal

MIXED = Signature.of([1, -1, -1, 1, 1, -1, 1, -1])


def check(G, sig, rank, **options):
    """G X = U diag(S), with a zero column of U and a null vector in X wherever S is zero."""
    m, n = G.shape
    found = hsvd(G, sig, **options)
    size, unit = np.linalg.norm(found.X, 2), 20 * max(m, n) * UNIT
    assert (found.U.shape, found.S.shape, found.X.shape) == ((m, n), (n,), (n, n))
    positive = found.S > 0
    assert np.count_nonzero(positive) == rank
    assert (found.S >= 0).all()
    assert residual(found.X, sig) <= unit
    assert not found.U[:, ~positive].any()
    assert np.abs(found.U.T @ found.U - np.diag(positive)).max() <= unit
    length = np.linalg.norm(G)
    assert np.linalg.norm(G @ found.X - found.U * found.S) <= unit * length * size
    assert np.abs(found.compose() - G).max() <= unit * length * size**2
    for positions in (sig.positive, sig.negative):
        assert (np.diff(found.S[positions]) <= 0).all()
    return found


@given(st.data())
def test_properties(data):
    """Any shape, any rank, any signs; graded rows, or graded columns."""
    sig = data.draw(signatures())
    m = data.draw(st.integers(1, 9))
    rank = data.draw(st.integers(0, min(m, sig.n)))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    # the form on the row space has eigenvalues of at least 0.2, so that no draw is degenerate
    T = inverse(random_point(sig, cond=5.0, seed=rng), sig)
    G = (orthogonal(m, rng)[:, :rank] * rng.uniform(1, 3, rank)) @ T[rng.permutation(sig.n)[:rank]]
    rows = 10.0 ** rng.uniform(-6, 0, (m, 1))
    check(G, sig, rank)
    check(rows * G, sig, rank)


def exact_squares(G, signature):
    """The eigenvalues of G J G^T, ascending, from 60 digits."""
    with mpmath.workdps(60):
        matrix = mpmath.matrix(G.tolist())
        product = matrix * mpmath.diag([int(s) for s in signature.signs]) * matrix.T
        values = sorted(mpmath.eigsy((product + product.T) / 2, eigvals_only=True))
        return np.array([float(value) for value in values])


@pytest.mark.parametrize("m", [1, 3, 7])
@pytest.mark.parametrize("cond", [1.0, 1e3])
def test_values_of_wide_matrices(m, cond):
    """Against 60 digits: s_i S_i^2 are the eigenvalues of G J G^T.

    G changes by c n u ||G||, so that U^T G X changes by ||X|| times that. So does S, since X^T J X
    = J has the same relative error ||X||^2 u and S the size of at most ||G|| ||X||.
    """
    for seed in range(5):
        rng = np.random.default_rng(seed)
        G = rng.standard_normal((m, 8)) @ random_point(MIXED, cond=cond, seed=seed)
        found = check(G, MIXED, m)
        exact = exact_squares(G, MIXED)
        signed = np.sort((MIXED.signs * found.S**2)[found.S > 0])
        size = np.linalg.norm(found.X, 2) ** 2 * np.linalg.norm(G) ** 2
        assert np.abs(signed - exact).max() <= 20 * 8 * UNIT * size
        assert (np.sign(signed) == np.sign(exact)).all()


def dependent(i, j):
    G = np.random.default_rng(8).standard_normal((9, 8)) * np.geomspace(1, 1e-8, 8)
    G[:, j] = -3e-4 * G[:, i]
    return G


@pytest.mark.parametrize(
    ("G", "rank"),
    [
        (np.zeros((8, 8)), 0),
        (np.zeros((2, 8)), 0),
        (np.diag([1.0, 1, 1, 1, 1, 1, 1, 0]), 7),
        (dependent(0, 3), 7),  # equal signs
        (dependent(0, 1), 7),  # opposite signs
        (np.eye(8)[:3], 3),
        (np.ones((1, 8)) * np.geomspace(1, 1e-12, 8), 1),
    ],
    ids=["zero", "zero, wide", "a zero column", "equal", "opposite", "unit rows", "one row"],
)
def test_kinds_of_deficiency(G, rank):
    check(G, MIXED, rank)


@pytest.mark.parametrize(
    "G",
    [
        np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]),  # (1, -1, 0, 0)
        np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]]),  # isotropic, all of it
        np.outer(np.ones(5), [1.0, 1.0, 0.0, 0.0]),  # its J-complement is in it
        np.array([[1.0, 1.0 + 1e-15, 0.0, 0.0]]),  # to rounding
    ],
)
@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_a_degenerate_null_space_is_refused(G, scale):
    with pytest.raises(ValueError, match=r"null space on which x\^T J y is nondegenerate"):
        hsvd(scale * G, Signature.of([1, -1, 1, -1]))
