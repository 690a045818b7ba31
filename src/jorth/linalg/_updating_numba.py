"""Householder reflections that add rows to a triangular factor, or take them out, compiled.

All rows meet a row of R in one pass: they stay in the cache while R passes by.
Import this only where it is used: it loads numba.
"""

from __future__ import annotations

import math

import numpy as np

from jorth._numba import compiler

compiled = compiler(fastmath={"contract"})
"""Products and sums may be fused; all else is IEEE arithmetic."""
inlined = compiler(fastmath={"contract"}, inline=True)


@compiled
def copy_triangle(source: np.ndarray, out: np.ndarray) -> tuple[int, int]:
    """Copy an upper triangle (n, n), with a diagonal that is not negative, into ``out``.

    Returns how many entries are not finite, and how many below the diagonal are not zero.
    """
    infinite, below = 0, 0
    for i in range(source.shape[0]):
        row, copy = source[i], out[i]
        for j in range(i):
            below += row[j] != 0.0
            infinite += row[j] - row[j] != 0.0
            copy[j] = 0.0
        sign = -1.0 if row[i] < 0.0 else 1.0
        for j in range(i, row.shape[0]):
            infinite += row[j] - row[j] != 0.0
            copy[j] = sign * row[j]
    return infinite, below


@compiled
def reflect_rows(R: np.ndarray, rows: np.ndarray, adding: bool, least: float) -> float:
    """Make R (n, n) the triangular factor of R^T R +- rows^T rows, in place; ``rows`` are used up.

    The reflection for column j, with the first row (c, s^T) up to sign, takes a row r of R to r' =
    c r + s^T rows, and rows lose s (r + s^T rows / (1 + c)). To drop rows, r = (r' - s^T rows) / c
    is solved for (the mixed form). Returns the smallest c^2; at one that is not above ``least`` a
    drop stops.
    """
    n, k = R.shape[0], rows.shape[0]
    smallest = 1.0
    s, product = np.empty(k), np.empty(n)
    for j in range(n):
        length: float = abs(R[j, j])
        if adding:
            length = _length(R[j, j], rows, j)
        square = 0.0
        for i in range(k):
            if rows[i, j] != 0.0:
                if length == 0.0:
                    return -math.inf
                s[i] = rows[i, j] / length
                square += s[i] * s[i]
            else:
                s[i] = 0.0
        if square == 0.0:
            R[j, j] = length  # infinite where it overflows
            continue
        c = R[j, j] / length
        if not adding:
            if not 1.0 - square > least:
                return 1.0 - square
            smallest = min(smallest, 1.0 - square)
            c = math.sqrt(1.0 - square)
        R[j, j] = length if adding else c * length
        row, sums = R[j, j + 1 :], product[j + 1 :]
        sums[:] = 0.0
        for i in range(k):
            s0, r0 = s[i], rows[i, j + 1 :]
            for a in range(sums.shape[0]):
                sums[a] += s0 * r0[a]
        share, inverse = 1.0 / (1.0 + c), 1.0 / c
        if adding:
            for a in range(sums.shape[0]):
                r, p = row[a], sums[a]
                row[a] = c * r + p
                sums[a] = r + share * p
        else:
            for a in range(sums.shape[0]):
                p = sums[a]
                r = (row[a] - p) * inverse
                row[a] = r
                sums[a] = r + share * p
        for i in range(k):
            s0, r0 = s[i], rows[i, j + 1 :]
            for a in range(sums.shape[0]):
                r0[a] -= s0 * sums[a]
    return smallest


@inlined
def _length(first: float, rows: np.ndarray, j: int) -> float:
    """Return the norm of ``first`` and column j of ``rows``, without overflow."""
    largest: float = abs(first)
    for i in range(rows.shape[0]):
        largest = max(largest, abs(rows[i, j]))
    if largest == 0.0:
        return 0.0
    total = (first / largest) ** 2
    for i in range(rows.shape[0]):
        total += (rows[i, j] / largest) ** 2
    return largest * math.sqrt(total)
