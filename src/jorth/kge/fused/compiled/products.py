"""Matrix products in tiles of four by four rows, compiled, for a thread of its own.

Each tile reads eight rows for sixteen products of them, so that vector units and not memory set the
pace: as fast as BLAS, whose threads would get in the way of ours.
"""

from __future__ import annotations

import numpy as np

from jorth.compiling import compiler

summing = compiler(fastmath={"reassoc", "contract"}, inline=True)
"""For loops whose sums may be reassociated into vector registers."""
TILE = 4
WIDTH = 1024
"""How many columns are worked on at a time: so many stay in the cache for all rows."""


@summing
def add_product(A: np.ndarray, X: np.ndarray, Y: np.ndarray) -> None:
    """Add A X to Y (m, k) for A (m, n) and X (n, k), m and n multiples of `TILE`."""
    for first in range(0, X.shape[1], WIDTH):
        last = min(first + WIDTH, X.shape[1])
        for i in range(0, A.shape[0], TILE):
            for d in range(0, A.shape[1], TILE):
                _add_tile(A[i : i + TILE, d : d + TILE], X, Y, i, d, first, last)


@summing
def _add_tile(
    A: np.ndarray, X: np.ndarray, Y: np.ndarray, i: int, d: int, first: int, last: int
) -> None:
    x0, x1, x2, x3 = (
        X[d, first:last], X[d + 1, first:last], X[d + 2, first:last], X[d + 3, first:last],
    )  # fmt: skip
    y0, y1, y2, y3 = (
        Y[i, first:last], Y[i + 1, first:last], Y[i + 2, first:last], Y[i + 3, first:last],
    )  # fmt: skip
    a00, a01, a02, a03 = A[0, 0], A[0, 1], A[0, 2], A[0, 3]
    a10, a11, a12, a13 = A[1, 0], A[1, 1], A[1, 2], A[1, 3]
    a20, a21, a22, a23 = A[2, 0], A[2, 1], A[2, 2], A[2, 3]
    a30, a31, a32, a33 = A[3, 0], A[3, 1], A[3, 2], A[3, 3]
    for j in range(last - first):
        u, v, w, z = x0[j], x1[j], x2[j], x3[j]
        y0[j] += a00 * u + a01 * v + a02 * w + a03 * z
        y1[j] += a10 * u + a11 * v + a12 * w + a13 * z
        y2[j] += a20 * u + a21 * v + a22 * w + a23 * z
        y3[j] += a30 * u + a31 * v + a32 * w + a33 * z


@summing
def add_inner_products(W: np.ndarray, X: np.ndarray, D: np.ndarray) -> None:
    """Add W X^T to D (m, n) for W (m, k) and X (n, k), m and n multiples of `TILE`."""
    for first in range(0, X.shape[1], WIDTH):
        last = min(first + WIDTH, X.shape[1])
        for i in range(0, D.shape[0], TILE):
            for d in range(0, D.shape[1], TILE):
                _add_inner_tile(W, X, D[i : i + TILE, d : d + TILE], i, d, first, last)


@summing
def _add_inner_tile(
    W: np.ndarray, X: np.ndarray, D: np.ndarray, i: int, d: int, first: int, last: int
) -> None:
    w0, w1, w2, w3 = (
        W[i, first:last], W[i + 1, first:last], W[i + 2, first:last], W[i + 3, first:last],
    )  # fmt: skip
    x0, x1, x2, x3 = (
        X[d, first:last], X[d + 1, first:last], X[d + 2, first:last], X[d + 3, first:last],
    )  # fmt: skip
    d00, d01, d02, d03 = D[0, 0], D[0, 1], D[0, 2], D[0, 3]
    d10, d11, d12, d13 = D[1, 0], D[1, 1], D[1, 2], D[1, 3]
    d20, d21, d22, d23 = D[2, 0], D[2, 1], D[2, 2], D[2, 3]
    d30, d31, d32, d33 = D[3, 0], D[3, 1], D[3, 2], D[3, 3]
    for j in range(last - first):
        p, q, r, s = w0[j], w1[j], w2[j], w3[j]
        u, v, w, z = x0[j], x1[j], x2[j], x3[j]
        d00, d01, d02, d03 = d00 + p * u, d01 + p * v, d02 + p * w, d03 + p * z
        d10, d11, d12, d13 = d10 + q * u, d11 + q * v, d12 + q * w, d13 + q * z
        d20, d21, d22, d23 = d20 + r * u, d21 + r * v, d22 + r * w, d23 + r * z
        d30, d31, d32, d33 = d30 + s * u, d31 + s * v, d32 + s * w, d33 + s * z
    D[0, 0], D[0, 1], D[0, 2], D[0, 3] = d00, d01, d02, d03
    D[1, 0], D[1, 1], D[1, 2], D[1, 3] = d10, d11, d12, d13
    D[2, 0], D[2, 1], D[2, 2], D[2, 3] = d20, d21, d22, d23
    D[3, 0], D[3, 1], D[3, 2], D[3, 3] = d30, d31, d32, d33
