"""`jorth.kge.products` on the CPU, one point or pair after the other; it loads numba.

The sums have the same bits whatever the number of threads.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from jorth.compiling import compiler

compiled = compiler(fastmath={"reassoc", "contract"}, nogil=True)


def multiply(matrices: Tensor, index: Tensor, points: Tensor) -> Tensor:
    """Return M_i x_i (B, n) for the matrices M (m, n, n), an index (B,) and points x (B, n)."""
    product = torch.empty_like(points)
    _multiply(*(part.numpy() for part in (matrices, index, points, product)))
    return product


def multiply_back(
    matrices: Tensor, index: Tensor, points: Tensor, slopes: Tensor, wanted: tuple[bool, bool]
) -> tuple[Tensor, Tensor]:
    """Return the slopes in the matrices and in the points; both come from one pass."""
    of_points, of_matrices = torch.zeros_like(points), torch.zeros_like(matrices)
    parts = (matrices, index, points, slopes, of_points, of_matrices)
    _multiply_back(*(part.numpy() for part in parts))
    return of_matrices, of_points


@compiled
def _multiply(matrices: np.ndarray, index: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
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
def _multiply_back(
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


# one argument per array
@compiled
def add_pair_terms(
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
def add_pair_slopes(
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
