"""Exact pair steps on f = 1/2 tr(X^T A X D) + <C, X>, compiled: no Python between pairs."""

from __future__ import annotations

import numpy as np

from jorth.plane.compiled.pair import Four, kronecker_step
from jorth.plane.compiled.roots import compiled
from jorth.plane.compiled.rows import (
    apply_pair,
    conjugate_pair,
    cross_products,
    inlined,
    null_lengths,
)
from jorth.plane.proximal import LARGEST_SQUARE, NEAR_NULL, StepRule

FINISHED, UNBOUNDED, NEEDS_ROWS = 0, 1, 2
"""How `sweep_block` ended."""


@inlined
def _slopes(A: np.ndarray, C: np.ndarray, X: np.ndarray, Y: np.ndarray, i: int, j: int) -> Four:
    """The block (i, j) of P = A Y + C X^T."""
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
) -> tuple[int, float]:
    """Pair steps on rows of X in O(n) each, with Y = X D X^T updated; X and Y change in place.

    C has no columns if it is zero. A concave f is majorised by its linear part: Q = 0, and theta
    alone bounds the step; a relative theta is then the size of Q. A step that would leave a row
    without digits counts as unbounded: it is skipped if the run continues, until most boosts are.
    Returns the number t of pairs
    done, or -t - 1 if the sweep stopped at an unbounded one, and the decrease.
    """
    theta, all_components, stop_unbounded, has_d, concave = rule
    total = 0.0
    skipped, boosted = 0, 0
    for t in range(pairs.shape[0]):
        i, j = pairs[t, 0], pairs[t, 1]
        P = _slopes(A, C, X, Y, i, j)
        y11, y12, y22 = Y[i, i], Y[i, j], Y[j, j]
        y_plus, y_minus = y11 + 2.0 * y12 + y22, y11 - 2.0 * y12 + y22
        if not has_d and min(y_plus, y_minus) < NEAR_NULL * (y11 + y22):
            y_plus, y_minus = null_lengths(X, i, j)
        gram = (y11, y12, y22, y_plus, y_minus)
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
            return -t - 1, total
        if concave:
            plus, minus = null_lengths(X, i, j)
            if (v11 * v11 + v12 * v12) * 0.5 * (plus + minus) > LARGEST_SQUARE:
                if stop_unbounded:
                    return -t - 1, total
                skipped += 1
                continue
        if decrease > 0.0:
            total += decrease
            apply_pair(X, i, j, v11, v12, v21, v22)
            conjugate_pair(Y, i, j, v11, v12, v21, v22)
            boosted += signs[i] != signs[j]
    if skipped > boosted:
        return -pairs.shape[0] - 1, total
    return pairs.shape[0], total


@compiled
def sweep_block(
    A: np.ndarray,
    R: np.ndarray,
    U: np.ndarray,
    Y: np.ndarray,
    rows: np.ndarray,
    signs: np.ndarray,
    pairs: np.ndarray,
    rule: StepRule,
) -> tuple[int, float, int]:
    """Pair steps on a few rows Z = U Z_0 of X for f(U) = 1/2 tr(U^T A U Y_0) + <R, U>.

    The steps are those of `sweep_quadratic`; U, Y = U Y_0 U^T and ``rows`` change in place. The
    rows are those of Z, up to an isometry from the right. They may have no columns: the sweep then
    stops where D = I and a null length must be formed from rows. Returns the number of pairs done,
    the decrease, and how the sweep ended.
    """
    theta, all_components, stop_unbounded, has_d, _ = rule
    total = 0.0
    for t in range(pairs.shape[0]):
        i, j = pairs[t, 0], pairs[t, 1]
        y11, y12, y22 = Y[i, i], Y[i, j], Y[j, j]
        y_plus, y_minus = y11 + 2.0 * y12 + y22, y11 - 2.0 * y12 + y22
        if not has_d and min(y_plus, y_minus) < NEAR_NULL * (y11 + y22):
            if rows.shape[1] == 0:
                return t, total, NEEDS_ROWS
            y_plus, y_minus = null_lengths(rows, i, j)
        P = _slopes(A, R, U, Y, i, j)
        block = (A[i, i], A[i, j], A[j, j])
        v11, v12, v21, v22, decrease, unbounded = kronecker_step(
            P, (y11, y12, y22, y_plus, y_minus), block, theta, signs[i] != signs[j], all_components
        )
        if unbounded and stop_unbounded:
            return t, total, UNBOUNDED
        if decrease > 0.0:
            total += decrease
            apply_pair(U, i, j, v11, v12, v21, v22)
            conjugate_pair(Y, i, j, v11, v12, v21, v22)
            if rows.shape[1] > 0:
                apply_pair(rows, i, j, v11, v12, v21, v22)
    return pairs.shape[0], total, FINISHED
