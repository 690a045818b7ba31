"""Scores, softmax and slopes of a block of rows, compiled: what lies between its matrix products.

Each row takes four passes over numbers that stay in the first cache.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from jorth.compiling import compiler
from jorth.kernels.compiled.arcs import square_and_slope
from jorth.kernels.compiled.elementary import exp
from jorth.kge.fused.compiled.products import summing


class Scores(NamedTuple):
    """What the rows share.

    Attributes:
        bias: (k,).
        area: (1,), the factor of the squared arcs, of the dtype of the scores.
        smoothing: The share e of label smoothing.
        weight: That of a row in the loss, 1 / B.
    """

    bias: np.ndarray
    area: np.ndarray
    smoothing: float
    weight: float


class Lists(NamedTuple):
    """The arrays of a `jorth.kge.fused.LeftOut`; ``first`` is empty if nothing is left out."""

    first: np.ndarray
    last: np.ndarray
    answers: np.ndarray
    column: np.ndarray


@compiler(nogil=True)
def soften(
    G: np.ndarray,
    truth: np.ndarray,
    scores: Scores,
    lists: Lists,
    bias_slopes: np.ndarray,
    truth_slopes: np.ndarray,
) -> tuple[float, float]:
    """Replace the products G (m, k) of rows and candidates by the slopes of the loss in them.

    Args:
        G: (m, k), C-contiguous, float32 or float64.
        truth: (m,), the scores of the true answers.
        scores: What the rows share.
        lists: Which candidates each of these rows leaves out.
        bias_slopes: (k,), to which the slopes in the biases are added.
        truth_slopes: (m,), which get those in ``truth``.

    Returns:
        The weighted sum of the losses, and its slope in the area.
    """
    k = G.shape[1]
    work = np.zeros((4, k), dtype=G.dtype)
    squares, slopes, p, totals = work[0], work[1], work[2], work[3]
    area = scores.area[0]
    loss, area_slope = 0.0, 0.0
    for i in range(G.shape[0]):
        square_and_slope(G[i], squares, slopes)
        _score(squares, scores.bias, area, p)
        competing = k
        if lists.first.shape[0] > 0:
            competing -= _leave_out(lists, i, p, squares, slopes)
        top = _largest(p, truth[i])
        share = scores.smoothing / (competing + 1)
        smooth = share * (_finite_sum(p) + truth[i]) if share > 0.0 else 0.0
        own = math.exp(truth[i] - top)
        total = own + _exponentials(p, top)
        loss += math.log(total) + (top - truth[i]) + (scores.smoothing * truth[i] - smooth)
        truth_slopes[i] = scores.weight * ((own / total - 1.0) + (scores.smoothing - share))
        factor = G.dtype.type(scores.weight / total)
        rest = G.dtype.type(scores.weight * share)
        area_slope -= _finish(G[i], area, factor, rest, squares, slopes, p, totals)
        if rest > 0.0 and lists.first.shape[0] > 0:
            _give_back(lists, i, rest, totals)
    for j in range(k):
        bias_slopes[j] += totals[j]
    return scores.weight * loss, area_slope


@summing
def _score(squares: np.ndarray, bias: np.ndarray, area: Any, s: np.ndarray) -> None:
    for j in range(s.shape[0]):
        s[j] = bias[j] - area * squares[j]


@compiler(inline=True)
def _leave_out(
    lists: Lists, row: int, s: np.ndarray, squares: np.ndarray, slopes: np.ndarray
) -> int:
    """Give -inf, and no slopes, to the scores that do not compete; returns their number."""
    count = 0
    for t in range(lists.first[row], lists.last[row]):
        j = lists.column[lists.answers[t]]
        if j >= 0:
            s[j], squares[j], slopes[j] = -np.inf, 0.0, 0.0
            count += 1
    return count


@compiler(inline=True)
def _give_back(lists: Lists, row: int, rest: Any, totals: np.ndarray) -> None:
    """Undo what `_finish` has taken from the biases of candidates that do not compete."""
    for t in range(lists.first[row], lists.last[row]):
        j = lists.column[lists.answers[t]]
        if j >= 0:
            totals[j] += rest


@compiler(fastmath={"nnan", "nsz"}, inline=True)  # NaN comes through the exponentials
def _largest(s: np.ndarray, least: Any) -> Any:
    top = least
    for j in range(s.shape[0]):
        top = max(top, s[j])
    return top


@summing
def _finite_sum(s: np.ndarray) -> Any:
    """The sum of all scores that are not -inf."""
    zero = s.dtype.type(0.0)
    lowest, total = s.dtype.type(-np.inf), zero
    for j in range(s.shape[0]):
        total += zero if s[j] == lowest else s[j]
    return total


@summing
def _exponentials(s: np.ndarray, top: Any) -> Any:
    """Replace s by exp(s - top), and return the sum."""
    total = s.dtype.type(0.0)
    for j in range(s.shape[0]):
        s[j] = exp(s[j] - top)
        total += s[j]
    return total


@summing
def _finish(
    g: np.ndarray,
    area: Any,
    factor: Any,
    rest: Any,
    squares: np.ndarray,
    slopes: np.ndarray,
    p: np.ndarray,
    totals: np.ndarray,
) -> Any:
    """Put the slopes of the loss in g, add those in the biases; returns sum slope_j square_j."""
    sum_of_squares = g.dtype.type(0.0)
    for j in range(g.shape[0]):
        slope = factor * p[j] - rest
        totals[j] += slope
        sum_of_squares += slope * squares[j]
        g[j] = -area * slope * slopes[j]
    return sum_of_squares
