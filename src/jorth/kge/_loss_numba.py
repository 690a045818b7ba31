"""`jorth.kge.loss.distance_softmax` on the CPU, block by block; it loads numba.

The scores of a block stay in the cache. The rows of the batch are shared among as many threads as
torch uses, each with sums of its own, which are added in order: the result has the same bits
whenever the number of threads is the same.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth.compiling import compiler
from jorth.kge._distances_numba import exp, square_and_slope

if TYPE_CHECKING:
    from jorth.kge.loss import LeftOut

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
    """The arrays of a `jorth.kge.loss.LeftOut`; ``first`` is empty if nothing is left out."""

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


CACHE = 2**17
"""How many bytes the scores of a block take, if it can have `FEWEST_ROWS`."""
FEWEST_ROWS = 8
THREAD_ROWS = 64
"""So many rows of a batch are worth another thread."""


class Rows(NamedTuple):
    """What a thread reads, and the slopes of the loss in it; n and B are filled up with zeros.

    Attributes:
        signed: (B, n).
        across: (n, k), the transpose of the candidates.
        truth: (B,).
        signed_slopes: (B, n), added to.
        truth_slopes: (B,), written.
        across_slopes: (n, k), added to.
        bias_slopes: (k,), added to.
    """

    signed: NDArray[Any]
    across: NDArray[Any]
    truth: NDArray[Any]
    signed_slopes: NDArray[Any]
    truth_slopes: NDArray[Any]
    across_slopes: NDArray[Any]
    bias_slopes: NDArray[Any]


def loss_and_gradients(
    signed: Tensor,
    candidates: Tensor,
    bias: Tensor,
    truth: Tensor,
    area: Tensor,
    smoothing: float,
    left_out: LeftOut | None,
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The loss of `jorth.kge.loss.distance_softmax` with its gradients."""
    count, n = signed.shape
    threads = max(1, min(torch.get_num_threads(), count // THREAD_ROWS))
    ours, across = _filled(signed), _filled(candidates.mT, rows_only=True)
    signed_slopes, truth_slopes = torch.zeros_like(ours), torch.empty_like(truth)
    across_slopes = across.new_zeros(threads, *across.shape)
    bias_slopes = bias.new_zeros(threads, len(bias))
    weight = 1 / max(1, count)
    scores = Scores(_array(bias), _array(area.to(truth).reshape(1)), float(smoothing), weight)
    lists = _lists(left_out)
    size = max(FEWEST_ROWS, CACHE // max(1, len(bias) * bias.element_size()) // TILE * TILE)
    shared = (ours, across, truth, signed_slopes, truth_slopes)

    def part(thread: int, edges: tuple[int, int]) -> tuple[float, float]:
        own = (*shared, across_slopes[thread], bias_slopes[thread])
        rows = Rows(*(_array(part) for part in own))
        return soften_rows(rows, scores, lists, *edges, size)

    tiles = -(-count // TILE)
    edges = list(pairwise(TILE * (tiles * thread // threads) for thread in range(threads + 1)))
    if threads == 1:
        sums = [part(0, edges[0])]
    else:
        with ThreadPoolExecutor(threads) as pool:
            sums = list(pool.map(part, range(threads), edges))
    loss, area_slope = torch.tensor(sums, dtype=torch.float64).sum(0).to(truth)
    candidate_slopes = across_slopes.sum(0)[:n].mT
    slopes = (candidate_slopes, bias_slopes.sum(0), truth_slopes, area_slope)
    return loss, (signed_slopes[:count, :n], *slopes)


@compiler(nogil=True)
def soften_rows(
    rows: Rows, scores: Scores, lists: Lists, first: int, last: int, size: int
) -> tuple[float, float]:
    """The part of the loss, and of its slope in the area, of rows from ``first`` to ``last``.

    All slopes are added to those in ``rows``; a block has ``size`` rows.
    """
    G = np.empty((size, rows.across.shape[1]), dtype=rows.across.dtype)
    loss, area_slope = 0.0, 0.0
    for start in range(first, last, size):
        stop = min(start + size, last)
        block = rows.signed[start:stop]
        g = G[: stop - start]
        g[:] = 0.0
        add_product(block, rows.across, g)
        true = min(stop, rows.truth.shape[0])  # what follows is filled up with zeros
        listed = Lists(lists.first[start:true], lists.last[start:true], lists.answers, lists.column)
        sums = soften(
            g[: true - start], rows.truth[start:true], scores, listed,
            rows.bias_slopes, rows.truth_slopes[start:true],
        )  # fmt: skip
        loss += sums[0]
        area_slope += sums[1]
        add_inner_products(g, rows.across, rows.signed_slopes[start:stop])
        add_product(block.T, g, rows.across_slopes)
    return loss, area_slope


def _filled(matrix: Tensor, rows_only: bool = False) -> Tensor:
    """The matrix with rows and columns of zeros, up to multiples of `TILE`."""
    height, width = (-(-length // TILE) * TILE for length in matrix.shape)
    filled = matrix.new_zeros(height, matrix.shape[1] if rows_only else width)
    filled[: matrix.shape[0], : matrix.shape[1]] = matrix
    return filled


def _lists(left_out: LeftOut | None) -> Lists:
    if left_out is None:
        return Lists(*[np.zeros(0, dtype=np.int64)] * 4)
    return Lists(*map(_array, left_out))


def _array(tensor: Tensor) -> NDArray[Any]:
    array: NDArray[Any] = tensor.detach().contiguous().numpy()
    return array
