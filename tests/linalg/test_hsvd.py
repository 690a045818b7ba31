"""The hyperbolic SVD: its definition,
and every value to high relative accuracy against 60 digits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jorth import Signature, hsvd, inverse, random_point, residual
from tests.group.strategies import UNIT, signatures
from tests.linalg.reference import hyperbolic_values

MIXED = Signature.of([1, -1, -1, 1, 1, -1, 1, -1])


def check(G, sig):
    """G X = U diag(S) with every factor what it should be, each to a few n u."""
    m, n = G.shape
    found = hsvd(G, sig)
    size = np.linalg.norm(found.X, 2)
    assert residual(found.X, sig) <= 20 * n * UNIT
    # the tolerance of the iteration is sqrt(m) eps on every pair
    assert np.abs(found.U.T @ found.U - np.eye(n)).max() <= 20 * (np.sqrt(m) + n) * UNIT
    assert (
        np.linalg.norm(G @ found.X - found.U * found.S) <= 20 * n * UNIT * np.linalg.norm(G) * size
    )
    assert np.abs(found.compose() - G).max() <= 20 * n * UNIT * np.linalg.norm(G) * size**2
    assert (found.S > 0).all()
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
    sig = data.draw(signatures())
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    G = rng.standard_normal((sig.n + data.draw(st.integers(0, 4)), sig.n))
    check(G * 10.0 ** rng.uniform(-6, 0, sig.n), sig)


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
