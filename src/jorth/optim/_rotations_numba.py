"""Turns of rows by given angles in many planes, one plane after the other, compiled.

A turn by the angle (rapidity) a is three shears, x += t y, y += s x, x += t y, with t = -tan(a/2)
and s = sin(a) for a rotation, t = tanh(a/2) and s = sinh(a) for a boost: three multiplications and
additions per column. For rounded t and s the shears still keep a form x^2 + c y^2 (x^2 - c y^2)
exactly, c = 1 up to rounding, so that rows drift only by the rounding of their entries.
"""

from __future__ import annotations

import math

import numpy as np

from jorth.compiling import compiler
from jorth.plane._numba import apply_pair, compiled, inlined

MOST_SHEARED = 0.5
"""Larger angles are applied by `apply_pair`: shears lose digits where t is near 1 or s is large."""
TANGENT = (
    1.0,
    1.0 / 3.0,
    2.0 / 15.0,
    17.0 / 315.0,
    62.0 / 2835.0,
    1382.0 / 155925.0,
    21844.0 / 6081075.0,
    929569.0 / 638512875.0,
    6404582.0 / 10854718875.0,
    443861162.0 / 1856156927625.0,
    18888466084.0 / 194896477400625.0,
)
"""tan(h) = h (1 + h^2 / 3 + ...), tanh(h) = h (1 - h^2 / 3 + ...), to rounding for |h| <= 1/4."""

compiled_products = compiler(fastmath={"contract"}, inline=True)
"""A product and a sum may be rounded once, together."""


@compiled
def turn_batch(X: np.ndarray, angles: np.ndarray, signs: np.ndarray, pairs: np.ndarray) -> None:
    """Turn the rows of each matrix, in place: X <- ... T_2 T_1 X with one T per pair, in order.

    T turns the rows i and j by exp(-J K), where K_ij = -K_ji is the angle and all else is zero.
    It changes X to first order by -s_i K_ij x_j in row i and s_j K_ij x_i in row j.

    Args:
        X: (b, n, k), float64, C-contiguous.
        angles: (b, n, n), skew; entries above the diagonal and below are read.
        signs: (n,), the diagonal of J.
        pairs: (m, 2), pairs of different indices.
    """
    shears = np.empty((2, pairs.shape[0]))
    for m in range(X.shape[0]):
        turn_rows(X[m], angles[m], signs, pairs, shears)


@compiled
def turn_rows(
    X: np.ndarray, angles: np.ndarray, signs: np.ndarray, pairs: np.ndarray, shears: np.ndarray
) -> None:
    """`turn_batch` for one matrix (n, k); ``shears`` (2, m) is work space."""
    find_shears(angles, signs, pairs, shears)
    for t in range(pairs.shape[0]):
        i, j = pairs[t, 0], pairs[t, 1]
        angle = angles[i, j]
        if angle == 0.0:
            continue
        if abs(angle) <= MOST_SHEARED:
            _shear(X, i, j, shears[0, t], shears[1, t])
        else:
            _turn_far(X, i, j, signs[j] * angle, signs[i] != signs[j])


@compiled_products
def find_shears(
    angles: np.ndarray, signs: np.ndarray, pairs: np.ndarray, shears: np.ndarray
) -> None:
    """t and s of every pair, for angles up to `MOST_SHEARED`, as the rows of ``shears``."""
    for m in range(pairs.shape[0]):
        i, j = pairs[m, 0], pairs[m, 1]
        shears[0, m] = signs[i] * signs[j]
        shears[1, m] = 0.5 * signs[j] * angles[i, j]
    for m in range(pairs.shape[0]):  # contiguous and without branches, for vector registers
        kind, half = shears[0, m], shears[1, m]
        square = kind * half * half
        series = TANGENT[-1]
        for power in range(len(TANGENT) - 2, -1, -1):
            series = series * square + TANGENT[power]
        tangent = half * series
        shears[0, m] = -kind * tangent
        shears[1, m] = 2.0 * tangent / (1.0 + kind * tangent * tangent)


@compiled_products
def _shear(X: np.ndarray, i: int, j: int, outer: float, inner: float) -> None:
    for c in range(X.shape[1]):
        y = X[j, c]
        x = X[i, c] + outer * y
        y += inner * x
        X[i, c] = x + outer * y
        X[j, c] = y


@inlined
def _turn_far(X: np.ndarray, i: int, j: int, angle: float, opposite: bool) -> None:
    if opposite:
        cosh, sinh = math.cosh(angle), math.sinh(angle)
        apply_pair(X, i, j, cosh, sinh, sinh, cosh)
    else:
        cosine, sine = math.cos(angle), math.sin(angle)
        apply_pair(X, i, j, cosine, -sine, sine, cosine)
