"""Householder reflections that add rows to a triangular factor, or take them out, compiled.

All rows meet a row of R in one pass: they stay in the cache while R passes by. With 10 rows this
takes half the time of LAPACK's ``tpqrt``; it is slower from 100 rows on.
Import this only where it is used: it loads numba.
"""

from __future__ import annotations

import math

import numpy as np

from jorth.compiling import compiler

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
def add_rows(R: np.ndarray, rows: np.ndarray) -> None:
    """Make R (n, n) the triangular factor of R^T R + rows^T rows, in place.

    The reflection for column j acts on row j of R and on all of ``rows`` (k, n), which are used up.
    With its first row (c, s^T), up to sign, r becomes c r + s^T rows, and rows lose
    s (r + s^T rows / (1 + c)).
    """
    work = np.empty(R.shape[0])
    for j in range(R.shape[0]):
        length = _length(R, rows, j)
        if length == 0.0:
            continue
        c = R[j, j] / length
        R[j, j] = length
        _weighted_sum(rows, j, length, work)
        share, row, after = 1.0 / (1.0 + c), R[j, j + 1 :], work[j + 1 :]
        for i in range(row.shape[0]):
            entry, other = row[i], after[i]
            row[i] = c * entry + other
            after[i] = entry + share * other
        _subtract(rows, j, length, work)


@compiled
def drop_rows(R: np.ndarray, rows: np.ndarray, least: float) -> float:
    """Make R (n, n) the triangular factor of R^T R - rows^T rows, in place.

    The reflections are those of `add_rows` that lead from the new R to the old one: the new row of
    R is solved for, r' = (r - s^T rows) / c, and ``rows`` are reflected with it (the mixed form).
    Returns the smallest c^2 of all; at one that is not above ``least`` it stops.
    """
    smallest = 1.0
    work = np.empty(R.shape[0])
    for j in range(R.shape[0]):
        length = R[j, j]
        square = _remaining(rows, j, length)
        if not square > least:
            return square
        if square == 1.0:
            continue
        smallest = min(smallest, square)
        c = math.sqrt(square)
        R[j, j] = c * length
        _weighted_sum(rows, j, length, work)
        share, inverse, row, after = 1.0 / (1.0 + c), 1.0 / c, R[j, j + 1 :], work[j + 1 :]
        for i in range(row.shape[0]):
            other = after[i]
            entry = (row[i] - other) * inverse
            row[i] = entry
            after[i] = entry + share * other
        _subtract(rows, j, length, work)
    return smallest


@inlined
def _length(R: np.ndarray, rows: np.ndarray, j: int) -> float:
    """Return the length of column j: of R[j, j] and the ``rows``, without overflow."""
    largest: float = abs(R[j, j])
    for i in range(rows.shape[0]):
        largest = max(largest, abs(rows[i, j]))
    if largest == 0.0:
        return 0.0
    total = (R[j, j] / largest) ** 2
    for i in range(rows.shape[0]):
        total += (rows[i, j] / largest) ** 2
    return largest * math.sqrt(total)


@inlined
def _remaining(rows: np.ndarray, j: int, length: float) -> float:
    """Return 1 - |s|^2 for s = column j of ``rows`` over ``length``; -inf if only that is zero."""
    total = 0.0
    for i in range(rows.shape[0]):
        if rows[i, j] != 0.0:
            if length == 0.0:
                return -math.inf
            s = rows[i, j] / length
            total += s * s
    return 1.0 - total


@inlined
def _weighted_sum(rows: np.ndarray, j: int, length: float, out: np.ndarray) -> None:
    """Compute, right of column j, out = s^T rows for s = column j of ``rows`` over ``length``."""
    k = rows.shape[0]
    total = out[j + 1 :]
    total[:] = 0.0
    for i in range(0, k - 3, 4):  # four rows for each pass over the sum
        s0, s1 = rows[i, j] / length, rows[i + 1, j] / length
        s2, s3 = rows[i + 2, j] / length, rows[i + 3, j] / length
        a0, a1 = rows[i, j + 1 :], rows[i + 1, j + 1 :]
        a2, a3 = rows[i + 2, j + 1 :], rows[i + 3, j + 1 :]
        for c in range(total.shape[0]):
            total[c] += s0 * a0[c] + s1 * a1[c] + s2 * a2[c] + s3 * a3[c]
    for i in range(k - k % 4, k):
        s0, a0 = rows[i, j] / length, rows[i, j + 1 :]
        for c in range(total.shape[0]):
            total[c] += s0 * a0[c]


@inlined
def _subtract(rows: np.ndarray, j: int, length: float, work: np.ndarray) -> None:
    """Compute, right of column j, rows -= s work for s = column j of ``rows`` over ``length``."""
    after = work[j + 1 :]
    for i in range(rows.shape[0]):
        s, row = rows[i, j] / length, rows[i, j + 1 :]
        for c in range(after.shape[0]):
            row[c] -= s * after[c]
