"""What a pair step needs of two rows: products, null lengths, and applying V."""

from __future__ import annotations

import numpy as np

from jorth.compiling import compiler
from jorth.plane.apply import SMALL_BOOST, SMALL_TURN
from jorth.plane.compiled.pair import Four

inlined = compiler(inline=True)
compiled_sum = compiler(fastmath={"reassoc", "contract"}, inline=True)
"""For sums, which may be reassociated into vector registers; all else is IEEE arithmetic."""


@compiled_sum
def cross_products(U: np.ndarray, W: np.ndarray, i: int, j: int) -> Four:
    """The products <U_i, W_i>, <U_i, W_j>, <U_j, W_i>, <U_j, W_j> of rows."""
    ii, ij, ji, jj = 0.0, 0.0, 0.0, 0.0
    for c in range(U.shape[1]):
        a, b, x, y = U[i, c], U[j, c], W[i, c], W[j, c]
        ii += a * x
        ij += a * y
        ji += b * x
        jj += b * y
    return ii, ij, ji, jj


@compiled_sum
def null_lengths(X: np.ndarray, i: int, j: int) -> tuple[float, float]:
    """||x_i + x_j||^2 and ||x_i - x_j||^2, each to full relative accuracy."""
    plus, minus = 0.0, 0.0
    for c in range(X.shape[1]):
        a, b = X[i, c], X[j, c]
        plus += (a + b) * (a + b)
        minus += (a - b) * (a - b)
    return plus, minus


@inlined
def apply_pair(
    X: np.ndarray, i: int, j: int, v11: float, v12: float, v21: float, v22: float
) -> None:
    """X[(i, j), :] <- V X[(i, j), :] for X (n, k), in place: see `jorth.plane.apply`."""
    if np.sign(v11) * np.sign(v12) * np.sign(v21) * np.sign(v22) > 0.0:
        _hyperbolic(X, i, j, v11, v21, v22)
    elif v11 > SMALL_TURN and v22 > SMALL_TURN:
        _small_turn(X, i, j, v12, v21, v11)
    else:
        for k in range(X.shape[1]):
            a, b = X[i, k], X[j, k]
            X[i, k] = v11 * a + v12 * b
            X[j, k] = v21 * a + v22 * b


@inlined
def _hyperbolic(X: np.ndarray, i: int, j: int, v11: float, sinh: float, cosh: float) -> None:
    """Scale the sum and difference of the rows by u and 1/u, as an increment when u is near 1."""
    if v11 > 0.0 and cosh > 0.0 and abs(sinh) < SMALL_BOOST:
        even = sinh * sinh / (1.0 + cosh)
        grow, shrink = 0.5 * (even + sinh), 0.5 * (even - sinh)
        for k in range(X.shape[1]):
            a, b = X[i, k], X[j, k]
            up, down = (a + b) * grow, (a - b) * shrink
            X[i, k] = a + (up + down)
            X[j, k] = b + (up - down)
        return
    if sinh * cosh > 0.0:
        u = cosh + sinh
        grow, shrink = 0.5 * u, 0.5 / u
    else:
        inverse = cosh - sinh
        grow, shrink = 0.5 / inverse, 0.5 * inverse
    side = 1.0 if v11 * cosh > 0.0 else -1.0
    for k in range(X.shape[1]):
        a, b = X[i, k], X[j, k]
        up, down = (a + b) * grow, (a - b) * shrink
        X[i, k] = side * (up + down)
        X[j, k] = up - down


@inlined
def _small_turn(X: np.ndarray, i: int, j: int, v12: float, v21: float, cosine: float) -> None:
    even = -v21 * v21 / (1.0 + cosine)
    for k in range(X.shape[1]):
        a, b = X[i, k], X[j, k]
        X[i, k] = a + (even * a + v12 * b)
        X[j, k] = b + (v21 * a + even * b)


@inlined
def conjugate_pair(
    Y: np.ndarray, i: int, j: int, v11: float, v12: float, v21: float, v22: float
) -> None:
    """Y <- V Y V^T on rows and columns (i, j) of a symmetric Y, in place."""
    apply_pair(Y, i, j, v11, v12, v21, v22)
    a, b, c, d = Y[i, i], Y[i, j], Y[j, i], Y[j, j]
    for row in range(Y.shape[0]):
        Y[row, i] = Y[i, row]
        Y[row, j] = Y[j, row]
    Y[i, i] = a * v11 + b * v12
    Y[j, j] = c * v21 + d * v22
    Y[i, j] = Y[j, i] = 0.5 * ((a * v21 + b * v22) + (c * v11 + d * v12))
