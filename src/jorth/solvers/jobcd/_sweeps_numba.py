"""Sweeps of exact pair steps, compiled: no Python between pairs. It loads numba."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jorth.plane._numba import (
    Four,
    apply_pair,
    compiled,
    cross_products,
    inlined,
    kronecker_step,
    null_lengths,
    with_null_lengths,
)
from jorth.plane.families import NEAR_NULL
from jorth.plane.problem import RELATIVE_THETA

if TYPE_CHECKING:
    from jorth.solvers.jobcd.sweeps import StepRule

LARGEST_SQUARE = 2.0**53
"""The squared length of a row beyond which feasibility has no digits left."""


@inlined
def conjugate_pair(
    Y: np.ndarray, i: int, j: int, v11: float, v12: float, v21: float, v22: float
) -> None:
    """Set Y <- V Y V^T on rows and columns (i, j), in place.

    Y (n, n) is symmetric; its rows may be longer, by zeros.
    """
    apply_pair(Y, i, j, v11, v12, v21, v22)
    a, b, c, d = Y[i, i], Y[i, j], Y[j, i], Y[j, j]
    for row in range(Y.shape[0]):
        Y[row, i] = Y[i, row]
        Y[row, j] = Y[j, row]
    Y[i, i] = a * v11 + b * v12
    Y[j, j] = c * v21 + d * v22
    Y[i, j] = Y[j, i] = 0.5 * ((a * v21 + b * v22) + (c * v11 + d * v12))


@inlined
def _slopes(A: np.ndarray, C: np.ndarray, X: np.ndarray, Y: np.ndarray, i: int, j: int) -> Four:
    """Return the block (i, j) of P = A Y + C X^T."""
    p11, p12, p21, p22 = cross_products(A, Y, i, j)
    if C.shape[1] > 0:
        c11, c12, c21, c22 = cross_products(C, X, i, j)
        return p11 + c11, p12 + c12, p21 + c21, p22 + c22
    return p11, p12, p21, p22


@compiled
def sweep_quadratic(
    A: np.ndarray,
    C: np.ndarray,
    X: np.ndarray,
    Y: np.ndarray,
    signs: np.ndarray,
    pairs: np.ndarray,
    rule: StepRule,
) -> int:
    """Minimise f = 1/2 tr(X^T A X D) + <C, X> over pairs of rows, in O(n) each and in place.

    Y = X D X^T is updated. C has no columns if it is zero. A concave f is majorised by its linear
    part: Q = 0, and theta alone bounds the step; a relative theta is then the size of Q. A step
    that would leave a row without digits counts as unbounded: it is skipped if the run continues,
    until most boosts are. Return the number t of pairs done, or -t - 1 if the sweep stopped at an
    unbounded one.
    """
    theta, all_components, stop_unbounded, has_d, concave = rule
    skipped, boosted = 0, 0
    for t in range(pairs.shape[0]):
        i, j = pairs[t, 0], pairs[t, 1]
        P = _slopes(A, C, X, Y, i, j)
        y11, y12, y22 = Y[i, i], Y[i, j], Y[j, j]
        gram = with_null_lengths(y11, y12, y22, X, i, j, not has_d)
        block = (A[i, i], A[i, j], A[j, j])
        weight = theta
        if concave:
            if theta < 0.0:
                size_a = max(abs(block[0]), abs(block[2]), abs(block[1]))
                weight = size_a * max(abs(y11), abs(y22), abs(y12))
            block = (0.0, 0.0, 0.0)
        v11, v12, v21, v22, decrease, unbounded = kronecker_step(
            P, gram, block, weight, signs[i] != signs[j], all_components
        )
        if unbounded and stop_unbounded:
            return -t - 1
        if concave:
            plus, minus = null_lengths(X, i, j)
            if (v11 * v11 + v12 * v12) * 0.5 * (plus + minus) > LARGEST_SQUARE:
                if stop_unbounded:
                    return -t - 1
                skipped += 1
                continue
        if decrease > 0.0:
            apply_pair(X, i, j, v11, v12, v21, v22)
            conjugate_pair(Y, i, j, v11, v12, v21, v22)
            boosted += signs[i] != signs[j]
    if skipped > boosted:
        return -len(pairs) - 1
    return len(pairs)


@compiled
def sweep_trace(
    F: np.ndarray, X: np.ndarray, signs: np.ndarray, pairs: np.ndarray, rounding: float
) -> int:
    """Diagonalise X^T A X for A = M^T M by J-Jacobi steps of O(n), and return their number.

    Columns of X and of M X are given as rows, of X and F, from which products and null lengths are
    formed, so that no plane is unbounded. A step makes an entry of X^T A X zero: it minimises the
    trace in a plane of opposite signs, and leaves it as it is in a plane of equal ones.
    ``rounding`` is the error of the squares of a row of F, relative to the largest row of X.
    """
    largest = 0.0
    for i in range(X.shape[0]):
        largest = max(largest, cross_products(X, X, i, i)[0])
    for t in range(pairs.shape[0]):
        i, j = pairs[t, 0], pairs[t, 1]
        a, c, _, b = cross_products(F, F, i, j)
        if c == 0.0 or a + b <= rounding * largest:
            continue
        if signs[i] == signs[j]:
            ratio = 0.5 * (b - a) / c
            tangent = np.copysign(1.0, ratio) / (abs(ratio) + np.hypot(1.0, ratio))
            cosine = 1.0 / np.sqrt(1.0 + tangent * tangent)
            v11, v12, v21, v22 = cosine, -tangent * cosine, tangent * cosine, cosine
        else:
            plus, minus, gap = a + b + 2.0 * c, a + b - 2.0 * c, -4.0 * c
            if not min(plus, minus) > NEAR_NULL * (a + b):
                plus, minus = null_lengths(F, i, j)
                weight = RELATIVE_THETA * (plus + minus)  # with it the infimum is attained
                plus, minus = plus + weight, minus + weight
                gap = minus - plus
                x_plus, x_minus = null_lengths(X, i, j)
                u2 = np.sqrt(minus / plus)
                if 0.5 * (u2 * x_plus + x_minus / u2) > LARGEST_SQUARE:
                    continue
            root_plus, root_minus = np.sqrt(plus), np.sqrt(minus)
            product = np.sqrt(root_plus * root_minus)
            total = root_plus + root_minus
            cosh, sinh = 0.5 * total / product, 0.5 * gap / (total * product)
            v11, v12, v21, v22 = cosh, sinh, sinh, cosh
        apply_pair(X, i, j, v11, v12, v21, v22)
        apply_pair(F, i, j, v11, v12, v21, v22)
    return len(pairs)
