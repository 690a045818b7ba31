"""Inner products and sums of pairs of rows for `jorth.kge.products.pairs`, compiled.

One pair after the other: the sums have the same bits whatever the number of threads.
"""

from __future__ import annotations

import numpy as np

from jorth.compiling import compiler

compiled = compiler(fastmath={"reassoc", "contract"}, nogil=True)


# one argument per array
@compiled
def terms(
    x: np.ndarray,
    b: np.ndarray,
    y: np.ndarray,
    c: np.ndarray,
    rows: np.ndarray,
    columns: np.ndarray,
    products: np.ndarray,
    sums: np.ndarray,
) -> None:
    """Put x_i . y_j into the products (N,) and b_i + c_j into the sums (N,)."""
    for pair in range(rows.shape[0]):
        i, j = rows[pair], columns[pair]
        one, other = x[i], y[j]
        total = products.dtype.type(0.0)
        for k in range(one.shape[0]):
            total += one[k] * other[k]
        products[pair] = total
        sums[pair] = b[i] + c[j]


# one argument per array
@compiled
def terms_back(
    x: np.ndarray,
    y: np.ndarray,
    rows: np.ndarray,
    columns: np.ndarray,
    product_slopes: np.ndarray,
    sum_slopes: np.ndarray,
    x_slopes: np.ndarray,
    b_slopes: np.ndarray,
    y_slopes: np.ndarray,
    c_slopes: np.ndarray,
) -> None:
    """Add the slopes of products (N,) and sums (N,) to those of x, b, y and c."""
    for pair in range(rows.shape[0]):
        i, j = rows[pair], columns[pair]
        g, s = product_slopes[pair], sum_slopes[pair]
        one, other, one_slope, other_slope = x[i], y[j], x_slopes[i], y_slopes[j]
        for k in range(one.shape[0]):
            one_slope[k] += g * other[k]
            other_slope[k] += g * one[k]
        b_slopes[i] += s
        c_slopes[j] += s
