"""Vectorised log1p, exp and arcs against mpmath, in units of the last place."""

import mpmath
import numpy as np
import pytest

from jorth._numba import compiler
from jorth.kge import _loss_numba as elementary

DTYPES = (np.float32, np.float64)
ULPS = 3


@compiler()
def logs(x, y):
    for j in range(x.shape[0]):
        y[j] = elementary.log1p(x[j])


@compiler()
def exponentials(x, y):
    for j in range(x.shape[0]):
        y[j] = elementary.exp(x[j])


def values(function, x):
    y = np.empty_like(x)
    function(x, y)
    assert y.dtype == x.dtype
    return y


def ulps(ours, x, exact):
    """The largest error in units of the last place, down to those of the least normal number."""
    with mpmath.workprec(200):
        errors = [
            abs(mpmath.mpf(float(one)) - exact(mpmath.mpf(float(argument)))) / np.spacing(one)
            for one, argument in zip(ours, x, strict=True)
        ]
    return float(max(errors))


@pytest.mark.parametrize("dtype", DTYPES)
def test_log1p(dtype):
    random = np.random.default_rng(0)
    top = 125 if dtype == np.float32 else 1020
    everywhere = 2.0 ** random.uniform(-100, top, 800)
    near_one = 2.0 ** random.uniform(-8, 4, 800)
    borders = np.sqrt(2.0) * 2.0 ** np.arange(20) - 1
    x = np.concatenate([[0.0], everywhere, near_one, borders]).astype(dtype)
    ours = values(logs, x)
    assert ours[0] == 0
    assert ulps(ours, x, mpmath.log1p) <= ULPS


@pytest.mark.parametrize("dtype", DTYPES)
def test_exp(dtype):
    random = np.random.default_rng(0)
    least = -87 if dtype == np.float32 else -708
    halves = np.log(2) * (np.arange(40) / -2)
    x = np.concatenate(
        [random.uniform(least, 0, 1000), -(2.0 ** random.uniform(-60, 2, 500)), halves]
    )
    x = x.astype(dtype)
    assert ulps(values(exponentials, x), x, mpmath.exp) <= ULPS
    below = np.array([2.0 * least, -1e30, -np.inf], dtype=dtype)
    assert not values(exponentials, below).any()
    assert values(exponentials, np.zeros(1, dtype))[0] == 1


@pytest.mark.parametrize("dtype", DTYPES)
def test_circular_arcs(dtype):
    random = np.random.default_rng(0)
    g = np.concatenate([random.uniform(0, 1, 500), 1 - 2.0 ** random.uniform(-20, -1, 300)])
    g = g.astype(dtype)
    g = g[g < 1]
    squares, slopes = np.empty_like(g), np.empty_like(g)
    elementary.square_and_slope(g, squares, slopes)
    assert ulps(squares, g, lambda x: mpmath.acos(x) ** 2) <= ULPS
    assert ulps(-slopes, g, lambda x: 2 * mpmath.acos(x) / mpmath.sqrt(1 - x * x)) <= ULPS


@pytest.mark.parametrize("dtype", DTYPES)
def test_nan_stays(dtype):
    nan = np.full(40, np.nan, dtype)
    for function in (logs, exponentials):
        assert np.isnan(values(function, nan)).all()
    assert not np.isfinite(values(logs, np.full(40, np.inf, dtype))).any()
