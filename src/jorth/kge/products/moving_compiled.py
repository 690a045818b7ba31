"""Products of matrices and points for `jorth.kge.products.moving`, compiled.

One point after the other: the sums have the same bits whatever the number of threads.
"""

from __future__ import annotations

import numpy as np

from jorth.compiling import compiler

compiled = compiler(fastmath={"reassoc", "contract"}, nogil=True)


@compiled
def multiply(matrices: np.ndarray, index: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
    """Put M_i x_i into y (B, n), M_i the matrix (n, n) of the index (B,), x (B, n)."""
    n = x.shape[1]
    for i in range(index.shape[0]):
        M, point = matrices[index[i]], x[i]
        for r in range(n):
            total = y.dtype.type(0.0)
            for c in range(n):
                total += M[r, c] * point[c]
            y[i, r] = total


@compiled
def multiply_back(
    matrices: np.ndarray,
    index: np.ndarray,
    x: np.ndarray,
    slopes: np.ndarray,
    x_slopes: np.ndarray,
    matrix_slopes: np.ndarray,
) -> None:
    """Add M_i^T g_i to the slopes of x_i and g_i x_i^T to those of M_i, g (B, n) those of y."""
    n = x.shape[1]
    for i in range(index.shape[0]):
        M, D = matrices[index[i]], matrix_slopes[index[i]]
        point, back = x[i], x_slopes[i]
        for r in range(n):
            g = slopes[i, r]
            for c in range(n):
                back[c] += g * M[r, c]
            for c in range(n):
                D[r, c] += g * point[c]
