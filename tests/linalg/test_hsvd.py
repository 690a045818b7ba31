"""The hyperbolic SVD: its definition, values to high relative accuracy against 60 digits, zeros
that are exact."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jorth import Signature, hsvd, inverse, random_point, residual
from tests.group.strategies import UNIT, signatures
from tests.linalg.reference import hyperbolic_values, orthogonal

MIXED = Signature.of([1, -1, -1, 1, 1, -1, 1, -1])


def check(G, sig, rank=None):
    """G X = U diag(S), with a zero column of U and a null vector in X wherever S is zero."""
    m, n = G.shape
    found = hsvd(G, sig)
    # the tolerance of the iteration is sqrt(m) eps on every pair
    size, unit = np.linalg.norm(found.X, 2), 20 * (max(m, n) + np.sqrt(m)) * UNIT
    assert (found.U.shape, found.S.shape, found.X.shape) == ((m, n), (n,), (n, n))
    positive = found.S > 0
    assert np.count_nonzero(positive) == (n if rank is None else rank)
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


def relative_errors(S, G, sig):
    """Against 60 digits, with the signs: sorted s_i S_i^2 on both sides."""
    exact = np.array([float(value) for value in hyperbolic_values(G, sig)])
    signed = np.sort(sig.signs * S**2)
    assert (np.sign(signed) == np.sign(exact)).all()
    return np.abs(np.sqrt(np.abs(signed)) - np.sqrt(np.abs(exact))) / np.sqrt(np.abs(exact))


@given(st.data())
def test_properties(data):
    """Any shape, any rank, any signs; graded rows, and graded columns."""
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
    check(rng.standard_normal((sig.n + m, sig.n)) * 10.0 ** rng.uniform(-6, 0, sig.n), sig)


ROWS, COLUMNS = np.geomspace(1, 1e-12, MIXED.n + 3)[:, None], np.geomspace(1, 1e-12, MIXED.n)
GRADED = {  # of a matrix B; r takes rows or columns in another order
    "plain": lambda B, r: B,
    "columns": lambda B, r: B * COLUMNS,
    "columns, shuffled": lambda B, r: B * r(COLUMNS),
    "rows": lambda B, r: ROWS * B,
    "rows, shuffled": lambda B, r: r(ROWS) * B,
    "rows and columns": lambda B, r: ROWS * B * COLUMNS,
    "rows and columns, shuffled": lambda B, r: r(ROWS) * B * r(COLUMNS),
    "rows against columns": lambda B, r: ROWS[::-1] * B * COLUMNS,
}


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("kind", GRADED)
def test_every_value_to_high_relative_accuracy(kind, seed):
    rng = np.random.default_rng(seed)
    G = GRADED[kind](rng.standard_normal((MIXED.n + 3, MIXED.n)), rng.permutation)
    found = check(G, MIXED)
    assert relative_errors(found.S, G, MIXED).max() <= 1e-12  # asked for: 1e-10


@pytest.mark.parametrize("distance", [1e-3, 1e-6, 1e-9])
def test_nearly_parallel_columns_of_opposite_sign(distance):
    """The boost is large:
    e^(2 mu) = |a - b| / |a + b|; for |a| = |b| both S^2 are |a - b| |a + b| / 2."""
    a, d = np.array([1.0, 0.5, 0.25]), np.array([0.5, -0.5, -1.0]) * distance
    G = np.stack([a + d, a - d], axis=1)
    found = check(G, Signature(1, 1))
    half, mean = (G[:, 0] - G[:, 1]) / 2, (G[:, 0] + G[:, 1]) / 2
    expected = np.sqrt(2 * np.linalg.norm(half) * np.linalg.norm(mean))
    np.testing.assert_allclose(found.S, expected, rtol=20 * UNIT / distance)
    assert np.linalg.norm(found.X, 2) ** 2 == pytest.approx(
        np.linalg.norm(mean) / np.linalg.norm(half), rel=1e-6
    )


@pytest.mark.parametrize("cond", [10.0, 1e6, 1e12])
def test_large_with_large_boosts(cond):
    """||X||^2 = cond, with the start that large matrices get."""
    sig = Signature.of(np.where(np.arange(70) % 3 > 0, 1, -1))
    rng = np.random.default_rng(10)
    U = np.linalg.qr(rng.standard_normal((75, 70)))[0]
    G = (U * rng.uniform(1, 3, 70)) @ inverse(random_point(sig, cond=cond, seed=0), sig)
    found = check(G, sig)
    for scale in (2.0**-660, 2.0**660):
        np.testing.assert_allclose(hsvd(scale * G, sig).S / scale, found.S, rtol=1e-14 * cond)


# -- wide and rank-deficient matrices


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
