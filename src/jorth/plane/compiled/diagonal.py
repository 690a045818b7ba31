"""Exact pair steps on f = 1/2 tr(X^T A X D) + <C, X> with A = diag(l), compiled.

f is a sum over the rows of X, so that steps on disjoint pairs do not touch each other: those that
follow one another are solved together (`jorth.plane.compiled.lanes`), and the outcome is that of
one after the other. No Gram matrix is kept. A pair needs three products of rows, x_i D x_j^T,
c_i x_j^T and c_j x_i^T; those of a row with itself follow from them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jorth.plane.compiled import lanes
from jorth.plane.compiled.lanes import LANES, solve_boosts, solve_turns
from jorth.plane.compiled.pair import Four, kronecker_step
from jorth.plane.compiled.roots import compiled
from jorth.plane.compiled.rows import apply_pair, compiled_sum, inlined, null_lengths
from jorth.plane.proximal import NEAR_NULL, StepRule

L, SQUARE, LINEAR = range(3)
"""The columns of what a sweep knows of each row: l, x D x^T and c x^T."""


class Layout(NamedTuple):
    """The rows that belong to x_i: ``stride`` of them from stride * i on, the first one is x_i.

    The others are c_i and x_i D, at these places; zero where there is no C or D.
    """

    stride: int
    linear: int
    weighted: int


@compiled
def sweep_diagonal(
    rows: np.ndarray, own: np.ndarray, signs: np.ndarray, pairs: np.ndarray, rule: StepRule
) -> tuple[int, float]:
    """Pair steps on rows in O(n) each, in place.

    The rows are x_i, c_i unless C = 0, and x_i D if the rule has a D, for each i in turn. The first
    column of ``own`` (n, 3) is l; the others are filled here. Returns the number t of pairs done,
    or -t - 1 if the sweep stopped at an unbounded one, and the decrease.
    """
    count = rows.shape[0] // own.shape[0]
    weighted = count - 1 if rule.has_d else 0
    layout = Layout(count, 1 if count > 1 + (weighted > 0) else 0, weighted)
    for i in range(own.shape[0]):
        _renew(rows, layout, own, i)
    group = np.full(own.shape[0], -1)
    boosts, turns = np.zeros(lanes.SIZE), np.zeros(lanes.SIZE)
    boosts[lanes.OPPOSITE] = 1.0
    total = 0.0
    start = 0
    while start < pairs.shape[0]:
        stop, opposite, equal = start, 0, 0
        while stop < pairs.shape[0] and max(opposite, equal) < LANES:
            i, j = pairs[stop, 0], pairs[stop, 1]
            if group[i] == start or group[j] == start:
                break
            group[i] = group[j] = start
            if signs[i] != signs[j]:
                _load(rows, layout, own, boosts, opposite, i, j)
                opposite += 1
            else:
                _load(rows, layout, own, turns, equal, i, j)
                equal += 1
            stop += 1
        if opposite > 0:
            solve_boosts(boosts, rule.theta)
        if equal > 0:
            solve_turns(turns, rule.theta)
        opposite, equal = 0, 0
        for t in range(start, stop):
            i, j = pairs[t, 0], pairs[t, 1]
            if signs[i] != signs[j]:
                decrease, unbounded = _move(rows, layout, own, boosts, opposite, (i, j), rule)
                opposite += 1
            else:
                decrease, unbounded = _move(rows, layout, own, turns, equal, (i, j), rule)
                equal += 1
            if unbounded and rule.stop_unbounded:
                return -t - 1, total
            total += decrease
        start = stop
    return pairs.shape[0], total


@inlined
def _load(
    rows: np.ndarray, layout: Layout, own: np.ndarray, lane: np.ndarray, k: int, i: int, j: int
) -> None:
    """The numbers of a pair into lane k; P = [L Y + C X^T]_BB."""
    l1, y11, c11 = own[i, L], own[i, SQUARE], own[i, LINEAR]
    l2, y22, c22 = own[j, L], own[j, SQUARE], own[j, LINEAR]
    y12, c12, c21 = _products(rows, layout, i, j)
    y_plus, y_minus = y11 + 2.0 * y12 + y22, y11 - 2.0 * y12 + y22
    if layout.weighted == 0 and min(y_plus, y_minus) < NEAR_NULL * (y11 + y22):
        y_plus, y_minus = null_lengths(rows, layout.stride * i, layout.stride * j)
    lane[lanes.P11 + k] = l1 * y11 + c11
    lane[lanes.P12 + k] = l1 * y12 + c12
    lane[lanes.P21 + k] = l2 * y12 + c21
    lane[lanes.P22 + k] = l2 * y22 + c22
    lane[lanes.C12 + k] = c12
    lane[lanes.C21 + k] = c21
    lane[lanes.Y11 + k] = y11
    lane[lanes.Y12 + k] = y12
    lane[lanes.Y22 + k] = y22
    lane[lanes.Y_PLUS + k] = y_plus
    lane[lanes.Y_MINUS + k] = y_minus
    lane[lanes.L1 + k] = l1
    lane[lanes.L2 + k] = l2


@inlined
def _move(
    rows: np.ndarray,
    layout: Layout,
    own: np.ndarray,
    lane: np.ndarray,
    k: int,
    pair: tuple[int, int],
    rule: StepRule,
) -> tuple[float, bool]:
    """Apply the step of lane k; returns its decrease, and whether it is unbounded."""
    decrease, unbounded = lane[lanes.DECREASE + k], False
    first, second = lane[lanes.FIRST + k], lane[lanes.SECOND + k]
    if lane[lanes.SOLVED + k] == 0.0 or rule.all_components:
        v11, v12, v21, v22, decrease, unbounded = _general_step(lane, k, rule)
    elif lane[lanes.OPPOSITE] != 0.0:
        v11 = v22 = 1.0 + 0.5 * (first + second)
        v12 = v21 = 0.5 * (first - second)
    else:
        v11 = v22 = 1.0 + first
        v12, v21 = -second, second
    if decrease > 0.0:
        i, j = pair
        first_row, second_row = layout.stride * i, layout.stride * j
        apply_pair(rows, first_row, second_row, v11, v12, v21, v22)
        if layout.weighted > 0:
            first_row, second_row = first_row + layout.weighted, second_row + layout.weighted
            apply_pair(rows, first_row, second_row, v11, v12, v21, v22)
        if not _follow(own, lane, k, i, j, (v11, v12, v21, v22)):
            _renew(rows, layout, own, i)
            _renew(rows, layout, own, j)
    return decrease, unbounded


@inlined
def _general_step(
    lane: np.ndarray, k: int, rule: StepRule
) -> tuple[float, float, float, float, float, bool]:
    """The step of lane k by `kronecker_step`."""
    P = (lane[lanes.P11 + k], lane[lanes.P12 + k], lane[lanes.P21 + k], lane[lanes.P22 + k])
    y11, y12, y22 = lane[lanes.Y11 + k], lane[lanes.Y12 + k], lane[lanes.Y22 + k]
    Y = (y11, y12, y22, lane[lanes.Y_PLUS + k], lane[lanes.Y_MINUS + k])
    A = (lane[lanes.L1 + k], 0.0, lane[lanes.L2 + k])
    opposite = lane[lanes.OPPOSITE] != 0.0
    return kronecker_step(P, Y, A, rule.theta, opposite, rule.all_components)


@inlined
def _follow(own: np.ndarray, lane: np.ndarray, k: int, i: int, j: int, V: Four) -> bool:
    """Update the products of the two rows with themselves, or return False where they cancel."""
    v11, v12, v21, v22 = V
    y11, y12, y22 = lane[lanes.Y11 + k], lane[lanes.Y12 + k], lane[lanes.Y22 + k]
    first, second = v11 * v11 * y11 + v12 * v12 * y22, v21 * v21 * y11 + v22 * v22 * y22
    square_i, square_j = first + 2.0 * v11 * v12 * y12, second + 2.0 * v21 * v22 * y12
    own[i, SQUARE], own[j, SQUARE] = square_i, square_j
    own[i, LINEAR] = v11 * own[i, LINEAR] + v12 * lane[lanes.C12 + k]
    own[j, LINEAR] = v22 * own[j, LINEAR] + v21 * lane[lanes.C21 + k]
    return bool(square_i >= 0.5 * first and square_j >= 0.5 * second)


@compiled_sum
def _renew(rows: np.ndarray, layout: Layout, own: np.ndarray, i: int) -> None:
    """The products of a row with itself, from the row."""
    x = layout.stride * i
    weighted, linear = x + layout.weighted, x + layout.linear
    square, product = 0.0, 0.0
    for c in range(rows.shape[1]):
        square += rows[x, c] * rows[weighted, c]
        product += rows[x, c] * rows[linear, c]
    own[i, SQUARE] = square
    own[i, LINEAR] = product if layout.linear > 0 else 0.0


@compiled_sum
def _products(rows: np.ndarray, layout: Layout, i: int, j: int) -> tuple[float, float, float]:
    """x_i D x_j^T, c_i x_j^T and c_j x_i^T."""
    x, y = layout.stride * i, layout.stride * j
    gram, upper, lower = 0.0, 0.0, 0.0
    if layout.linear > 0:
        first, second, weighted = x + layout.linear, y + layout.linear, y + layout.weighted
        for c in range(rows.shape[1]):
            gram += rows[x, c] * rows[weighted, c]
            upper += rows[first, c] * rows[y, c]
            lower += rows[second, c] * rows[x, c]
    else:
        weighted = y + layout.weighted
        for c in range(rows.shape[1]):
            gram += rows[x, c] * rows[weighted, c]
    return gram, upper, lower
