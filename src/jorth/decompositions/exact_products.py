"""Residuals A X - J X diag(lambda) with nearly twice the working precision.

Matrices are split into slices of so few bits that the products of the leading slices are exact:
K. Ozaki, T. Ogita, S. Oishi, S. M. Rump, Error-free transformations of matrix multiplication by
using fast routines of matrix multiplication and its applications, Numer. Algorithms 59 (2012).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from jorth.arrays import is_sparse
from jorth.decompositions.batch import Floats

UNIT = 2.0**-53
ORDERS = ((0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (2, 0), (1, 2), (2, 1), (2, 2))
"""Pairs of slices, the largest products first. Those of the slices 0 and 1 are exact."""


def residuals(A: Any, X: Floats, J_X: Floats, values: Floats) -> tuple[Floats, Floats]:
    """R = A X - J X diag(values), and bounds of the errors of its entries.

    The errors are a few u |R| and n^2 u^2 |A| |X|, where ordinary products have n u |A| |X|.
    A (n, n) is an array or a csr matrix with entries of at most 1, X is (n, k). Rows and columns of
    A may be graded.
    """
    A, columns = _equilibrated(A)
    X = np.ldexp(X, columns[:, None])
    # sums of n products of two slices are exact
    bits = (53 - math.ceil(math.log2(len(X)))) // 2
    rows, places = _exponents(A, axis=1), _exponents(X, axis=0)
    left, right = _matrix_slices(A, rows, bits), _slices(X, places, bits)
    total, lost = np.zeros_like(X), np.zeros_like(X)
    for i, j in ORDERS:
        total, lost = _add(total, lost, left[i] @ right[j])
    vectors, numbers = (_slices(part, np.frexp(part)[1], 26) for part in (-J_X, values))
    for i, j in ORDERS:
        total, lost = _add(total, lost, vectors[i] * numbers[j])
    found: Floats = total + lost
    sizes = len(X) * np.ldexp(1.0, rows[:, None]) * np.ldexp(1.0, places)
    rounded = 2.0 ** (-2 * bits) * UNIT * (32 * len(X) * sizes + 32 * np.abs(J_X * values))
    return found, 2 * UNIT * np.abs(found) + rounded + len(X) * np.finfo(float).tiny


def _equilibrated(A: Any) -> tuple[Any, np.ndarray]:
    """A with columns divided by powers of two so that their largest entries are about 1."""
    exponents = _exponents(A, axis=0)
    if not is_sparse(A):
        return np.ldexp(A, -exponents), exponents
    scaled = A.copy()
    scaled.data = np.ldexp(A.data, -exponents[A.indices])
    return scaled, exponents


def _exponents(matrix: Any, axis: int) -> np.ndarray:
    """e with 2^e above the largest entries along an axis; 0 where all are zero."""
    largest = abs(matrix).max(axis=axis)
    largest = largest.toarray().ravel() if is_sparse(largest) else largest
    exponents: np.ndarray = np.frexp(largest)[1]
    return exponents


def _matrix_slices(A: Any, rows: np.ndarray, bits: int) -> list[Any]:
    """`_slices` of the rows of A, as sparse as A."""
    if not is_sparse(A):
        return list(_slices(A, rows[:, None], bits))
    parts = _slices(A.data, np.repeat(rows, np.diff(A.indptr)), bits)
    return [type(A)((part, A.indices, A.indptr), shape=A.shape) for part in parts]


def _slices(array: Floats, exponents: np.ndarray, bits: int) -> tuple[Floats, Floats, Floats]:
    """Three arrays with the sum ``array``, of which |array| < 2^exponents.

    The first two are multiples, by integers of at most 2^bits, of 2^(exponents - bits) and
    2^(exponents - 2 bits).
    """
    first = np.ldexp(np.rint(np.ldexp(array, bits - exponents)), exponents - bits)
    rest = array - first
    second = np.ldexp(np.rint(np.ldexp(rest, 2 * bits - exponents)), exponents - 2 * bits)
    return first, second, rest - second


def _add(total: Floats, lost: Floats, part: Floats) -> tuple[Floats, Floats]:
    """total + part rounded, and ``lost`` plus what was rounded away (Knuth)."""
    found = total + part
    away = found - total
    return found, lost + ((total - (found - away)) + (part - away))
