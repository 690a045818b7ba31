"""Cholesky factors up- and downdated: the backward error at 60 digits, up to the breakdown."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jorth import cholesky_update
from tests.group.strategies import UNIT
from tests.linalg.reference import orthogonal


def mixed_error(R, add, drop, found):
    """The least ||perturbation of R, add, drop and R'|| after which R' is exact, / ||[R; add]||.

    R'^T R' + drop^T drop = R^T R + add^T add holds exactly if [R'; drop] = Q [R; add] with an
    orthogonal Q (zero rows added where needed), so the perturbation is min ||[R'; drop] - Q [R;
    add]||: an orthogonal Procrustes problem, ||M||^2 + ||N||^2 - 2 ||N M^T||_* with the triangular
    factors M and N of both. Of the roots that cancel there, 60 digits leave enough.
    """
    with mpmath.workdps(60):
        M, N = (_triangle(np.vstack(rows)) for rows in ((R, add), (found, drop)))
        cross = sum(mpmath.svd_r(N * M.T, compute_uv=False))
        size = mpmath.norm(M, 2)
        square = size**2 + mpmath.norm(N, 2) ** 2 - 2 * cross
        return float(mpmath.sqrt(abs(square)) / size)


def _triangle(A):
    """The n x n factor R of A = Q R in mpmath; the norm 2 of a matrix there is Frobenius's."""
    return mpmath.qr(mpmath.matrix(A.tolist()))[1][: A.shape[1], : A.shape[1]]


def factor(A):
    """The triangular factor of A with a positive diagonal."""
    R = np.linalg.qr(A)[1]
    return R * np.where(np.diagonal(R) < 0, -1.0, 1.0)[:, None]


def difficult(n, k, cond, closeness, seed):
    """R, rows to add and rows to drop: cond(R) = cond, and dropping leaves 1 / closeness of it.

    drop = W [R; add]'s factor with singular values of W up to sqrt(1 - 1 / closeness).
    """
    rng = np.random.default_rng(seed)
    R = factor(orthogonal(n, rng) * np.geomspace(1, 1 / cond, n) @ orthogonal(n, rng))
    add = rng.standard_normal((k, n)) / n
    W = orthogonal(n, rng)[:k] * np.sqrt(1 - 1 / closeness)
    W[1:] *= rng.uniform(0, 1, (k - 1, 1))
    return R, add, W @ factor(np.vstack([R, add]))


GRID = [(cond, closeness) for cond in (1.0, 1e4, 1e8) for closeness in (2.0, 1e4, 1e8, 1e12)]


@pytest.mark.parametrize(("cond", "closeness"), GRID)
def test_mixed_stable(cond, closeness):
    """A few n u at any condition, up to the breakdown: measured below 0.4 n u.

    The data may be singular to rounding after the drop. It is then right to refuse.
    """
    n = 8
    for k in (1, 4, 5):
        R, add, drop = difficult(n, k, cond, closeness, seed=k)
        try:
            found = cholesky_update(R, add=add, drop=drop)
        except ValueError:
            left = np.linalg.svd(exact_factor(R, add, drop), compute_uv=False)[-1]
            assert left**2 <= 100 * n * UNIT * np.linalg.norm(np.vstack([R, add]), 2) ** 2
            continue
        assert mixed_error(R, add, drop, found) <= 4 * n * UNIT


@pytest.mark.parametrize("closeness", [1e8, 1e10])
def test_digits_lost_in_the_first_column(closeness):
    """Where c is 1 / sqrt(closeness) at once, all other columns go through it.

    Measured below 0.1 n u; without the mixed form, with rows reflected by the old row of R, from
    17 n u to 400 n u.
    """
    n = 8
    for seed in range(3):
        rng = np.random.default_rng(seed)
        R = factor(rng.standard_normal((2 * n, n)))
        w = rng.standard_normal(n) / (n * np.sqrt(closeness))
        w[0] = np.sqrt(1 - 1 / closeness)
        drop = (w @ R)[None]
        found = cholesky_update(R, drop=drop)
        assert mixed_error(R, np.zeros((0, n)), drop, found) <= n * UNIT


def exact_factor(R, add, drop):
    """The upper factor of the exact R^T R + add^T add - drop^T drop, rounded once.

    If it is not positive definite, zero.
    """
    with mpmath.workdps(60):
        R, add, drop = (mpmath.matrix(part.tolist()) for part in (R, add, drop))
        try:
            L = mpmath.cholesky(R.T * R + add.T * add - drop.T * drop)
        except ValueError:
            return np.zeros((R.rows, R.rows))
        return np.array(L.T.tolist(), dtype=float)


@given(st.data())
def test_properties(data):
    """Added and dropped again, one by one or at once, in either triangle, with any signs."""
    n, k = data.draw(st.integers(1, 7)), data.draw(st.integers(0, 6))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    R, rows = factor(rng.standard_normal((2 * n + 3, n))), rng.standard_normal((k, n))
    kept, given_rows = R.copy(), rows.copy()
    longer = cholesky_update(R, add=rows)
    np.testing.assert_allclose(longer, factor(np.vstack([R, rows])), atol=1e-12)
    one_by_one = R
    for row in rows:
        one_by_one = cholesky_update(one_by_one, add=row)
    np.testing.assert_allclose(one_by_one, longer, atol=1e-12)
    back = cholesky_update(longer, drop=rows)
    np.testing.assert_allclose(back, R, atol=1e-9)
    np.testing.assert_allclose(cholesky_update(R, add=rows, drop=rows), R, atol=1e-9)
    L = cholesky_update(R.T, add=rows, lower=True)
    np.testing.assert_array_equal(L, longer.T)
    flipped = rng.choice([-1.0, 1.0], (n, 1)) * R
    np.testing.assert_array_equal(cholesky_update(flipped, add=rows), longer)
    assert (np.tril(longer, -1) == 0).all()
    assert (np.diagonal(longer) > 0).all()
    np.testing.assert_array_equal(R, kept)
    np.testing.assert_array_equal(rows, given_rows)


@pytest.mark.parametrize("excess", [1e-6, 1e-2, 10.0])
def test_what_is_not_positive_definite_is_refused(excess):
    R = difficult(7, 3, 100.0, 10.0, 7)[0]
    W = orthogonal(7, np.random.default_rng(8))[:3]
    for rows in (1, 2, 3):
        drop = np.sqrt(1 + excess) * W[:rows] @ R
        with pytest.raises(ValueError, match=r"drop must be rows that leave .* positive definite"):
            cholesky_update(R, drop=drop)
    with pytest.raises(ValueError, match="drop must be rows that leave"):
        cholesky_update(R, add=R[0], drop=2 * R[:1])
    with pytest.raises(ValueError, match="drop must be rows that leave"):
        cholesky_update(np.zeros((2, 2)), drop=[excess, 0.0])
