"""`squared_arc` and `distance_softmax` of `jorth.kge` on the CPU, compiled; it loads numba.

log1p, exp and atan are without calls or branches, so that a loop over them fills vector registers.
They are for compiled code only. The arithmetic is that of the argument, float32 or float64; the
results are right to a few units of the last place. NaN gives NaN.

The loss goes block by block: the scores of a block stay in the cache. The rows of the batch are
shared among as many threads as torch uses, each with sums of its own, which are added in order: the
result has the same bits whenever the number of threads is the same.
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

from jorth._numba import by_precision, compiler

if TYPE_CHECKING:
    from jorth.kge.loss import Exclusions

single = np.float32
# IEEE arithmetic: the parts of log(2) must not be joined. A product and a sum may become one.
elementary = compiler(fastmath={"contract"}, inline=True)

summing = compiler(fastmath={"reassoc", "contract"}, inline=True)
"""For loops whose sums may be reassociated into vector registers."""
LARGE = 2.0**40
"""From here on sqrt(g^2 - 1) = g, also in float64, and in float32 g^2 does not overflow below."""


def log1p(z: Any) -> Any:
    """The logarithm of 1 + z for 0 <= z < 2^126, or < 2^1022 in float64; not finite for inf."""
    raise NotImplementedError


def exp(x: Any) -> Any:
    """The exponential of x <= 0; zero instead of numbers below the normal ones."""
    raise NotImplementedError


def atan(t: Any) -> Any:
    """The arc tangent of 0 <= t <= 1."""
    raise NotImplementedError


# 1 + z = 2^k (1 + f) with 1 + f between sqrt(1/2) and sqrt(2); f = z where k = 0. The polynomials
# are those of Cephes (float32) and of fdlibm and Cephes (float64).

ONE_32, HALF_32 = single(1.0), single(0.5)
LN2_HIGH_32, LN2_LOW_32 = single(0.693359375), single(-2.12194440e-4)
LOG2_E_32, TINY_LOG_32 = single(1.44269504088896341), single(-87.0)
ROOT_HALF_32 = np.int32(0x3F3504F3)
LOG_32 = tuple(
    single(c)
    for c in (
        7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
        -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
    )
)  # fmt: skip
EXP_32 = tuple(
    single(c)
    for c in (
        1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1,
        5.0000001201e-1,
    )
)  # fmt: skip
ATAN_32 = tuple(
    single(c) for c in (8.05374449538e-2, -1.38776856032e-1, 1.99777106478e-1, -3.33329491539e-1)
)
BEND_32, QUARTER_PI_32 = single(0.41421356237), single(0.78539816339744831)

LN2_HIGH_64, LN2_LOW_64 = 6.93147180369123816490e-01, 1.90821492927058770002e-10
LOG2_E_64, TINY_LOG_64 = 1.44269504088896338700, -708.0
ROOT_HALF_64 = np.int64(0x3FE6A09E667F3BCD)
LOG_64 = (
    1.479819860511658591e-01, 1.531383769920937332e-01, 1.818357216161805012e-01,
    2.222219843214978396e-01, 2.857142874366239149e-01, 3.999999999940941908e-01,
    6.666666666666735130e-01,
)  # fmt: skip
EXP_64 = tuple(1.0 / float(factorial) for factorial in np.cumprod(np.arange(2, 14.0))[::-1])
"""1 / 13!, ..., 1 / 2!."""
ATAN_TOP_64 = (
    -8.750608600031904122785e-1, -1.615753718733365076637e1, -7.500855792314704667340e1,
    -1.228866684490136173410e2, -6.485021904942025371773e1,
)  # fmt: skip
ATAN_BOTTOM_64 = (
    1.0, 2.485846490142306297962e1, 1.650270098316988542046e2, 4.328810604912902668951e2,
    4.853903996359136964868e2, 1.945506571482613964425e2,
)  # fmt: skip
BEND_64, QUARTER_PI_64, QUARTER_PI_REST_64 = 0.66, 0.78539816339744830962, 3.06161699786838e-17


@elementary
def _polynomial(coefficients: tuple[Any, ...], x: Any) -> Any:
    """The value at x of a polynomial, its highest coefficient first."""
    y = coefficients[0]
    for c in coefficients[1:]:
        y = y * x + c
    return y


@elementary
def _log1p_32(z: Any) -> Any:
    bits = np.float32(ONE_32 + z).view(np.int32)
    k = np.int32(np.int32(bits - ROOT_HALF_32) >> np.int32(23))
    scale = np.int32(np.int32(np.int32(127) - k) << np.int32(23)).view(np.float32)
    f, power = z * scale + (scale - ONE_32), single(k)
    square = f * f
    curve = f * square * _polynomial(LOG_32, f) - HALF_32 * square
    return f + (curve + power * LN2_LOW_32) + power * LN2_HIGH_32


@elementary
def _log1p_64(z: Any) -> Any:
    bits = np.float64(1.0 + z).view(np.int64)
    k = (bits - ROOT_HALF_64) >> 52
    scale = np.int64((1023 - k) << 52).view(np.float64)
    f, power = z * scale + (scale - 1.0), np.float64(np.int32(k))
    s = f / (2.0 + f)
    half = 0.5 * f * f
    curve = s * (half + s * s * _polynomial(LOG_64, s * s)) - half
    return f + (curve + power * LN2_LOW_64) + power * LN2_HIGH_64


@elementary
def _exp_32(x: Any) -> Any:
    c = TINY_LOG_32 if x < TINY_LOG_32 else x
    n = np.int32(c * LOG2_E_32 - HALF_32)
    r = c - single(n) * LN2_HIGH_32 - single(n) * LN2_LOW_32
    y = ONE_32 + (r + r * r * _polynomial(EXP_32, r))
    y = y * np.int32(np.int32(n + np.int32(127)) << np.int32(23)).view(np.float32)
    return single(0.0) if x < TINY_LOG_32 else y


@elementary
def _exp_64(x: Any) -> Any:
    c = TINY_LOG_64 if x < TINY_LOG_64 else x
    n = np.int32(c * LOG2_E_64 - 0.5)
    r = c - np.float64(n) * LN2_HIGH_64 - np.float64(n) * LN2_LOW_64
    y = 1.0 + (r + r * r * _polynomial(EXP_64, r))
    y = y * np.int64((np.int64(n) + 1023) << 52).view(np.float64)
    return 0.0 if x < TINY_LOG_64 else y


@elementary
def _atan_32(t: Any) -> Any:
    far = t > BEND_32
    x = (t - ONE_32) / (t + ONE_32) if far else t
    square = x * x
    y = x + x * square * _polynomial(ATAN_32, square)
    return QUARTER_PI_32 + y if far else y


@elementary
def _atan_64(t: Any) -> Any:
    far = t > BEND_64
    x = (t - 1.0) / (t + 1.0) if far else t
    square = x * x
    ratio = _polynomial(ATAN_TOP_64, square) / _polynomial(ATAN_BOTTOM_64, square)
    y = x + x * square * ratio
    return QUARTER_PI_64 + (y + QUARTER_PI_REST_64) if far else y


by_precision(log1p, _log1p_32, _log1p_64)
by_precision(exp, _exp_32, _exp_64)
by_precision(atan, _atan_32, _atan_64)


@compiler(nogil=True, inline=True)
def square_and_slope(g: np.ndarray, squares: np.ndarray, slopes: np.ndarray) -> None:
    """Write acosh(|g|)^2 where |g| >= 1, acos(|g|)^2 elsewhere, and the slopes: all (count,).

    The slope is 0 at |g| = 1 and at g = 0.
    """
    if _hyperbolic(g, squares, slopes) > 0.0:
        _circular(g, squares, slopes)


@summing
def _hyperbolic(g: np.ndarray, squares: np.ndarray, slopes: np.ndarray) -> Any:
    """acosh(|g|)^2 and its slope as in `jorth.kge.model.squared_arc`; returns how many |g| < 1."""
    zero, one, two = g.dtype.type(0.0), g.dtype.type(1.0), g.dtype.type(2.0)
    large, inside = g.dtype.type(LARGE), zero
    for j in range(g.shape[0]):
        size = abs(g[j])
        e = size - one
        sine = math.sqrt(abs(e) * (size + one)) if size < large else size
        arc = log1p(e + sine)
        slope = math.copysign(two, g[j]) * (arc / sine)
        squares[j] = arc * arc
        slopes[j] = zero if sine == zero else slope
        inside += one if size < one else zero
    return inside


@summing
def _circular(g: np.ndarray, squares: np.ndarray, slopes: np.ndarray) -> None:
    """acos(|g|)^2 and its slope where |g| < 1; tan(acos(|g|) / 2) = sine / (1 + |g|)."""
    zero, one, two = g.dtype.type(0.0), g.dtype.type(1.0), g.dtype.type(2.0)
    for j in range(g.shape[0]):
        size = abs(g[j])
        inside = size < one
        rest = one - size if inside else zero
        sine = math.sqrt(rest * (size + one))
        arc = two * atan(sine / (one + size))
        slope = math.copysign(two, g[j]) * (arc / sine)
        squares[j] = arc * arc if inside else squares[j]
        slopes[j] = (-slope if size > zero else zero) if inside else slopes[j]


def write_squared_arcs(g: Tensor, square: Tensor, slope: Tensor | None) -> None:
    """Write arc^2, and its derivative if wanted, for contiguous g (count,)."""
    slope = torch.empty_like(square) if slope is None else slope
    square_and_slope(*(part.detach().numpy() for part in (g, square, slope)))


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
        area: The factor of the squared arcs, of the dtype of the scores.
        smoothing: The share e of label smoothing.
        weight: That of a row in the loss, 1 / B.
    """

    bias: np.ndarray
    area: Any
    smoothing: float
    weight: float


class Lists(NamedTuple):
    """The arrays of a `jorth.kge.loss.Exclusions`; ``first`` is empty if nothing is left out."""

    first: np.ndarray
    last: np.ndarray
    answers: np.ndarray
    column: np.ndarray


@compiler(nogil=True)
def loss_and_slopes(
    G: np.ndarray,
    truth: np.ndarray,
    scores: Scores,
    lists: Lists,
    bias_slopes: np.ndarray,
    truth_slopes: np.ndarray,
) -> float:
    """Replace the products G (m, k) of rows and candidates by the slopes of the loss in them.

    Args:
        G: (m, k), C-contiguous, float32 or float64.
        truth: (m,), the scores of the true answers.
        scores: What the rows share.
        lists: Which candidates each of these rows leaves out.
        bias_slopes: (k,), to which the slopes in the biases are added.
        truth_slopes: (m,), which get those in ``truth``.

    Returns:
        The weighted sum of the losses.
    """
    k = G.shape[1]
    work = np.zeros((4, k), dtype=G.dtype)
    squares, slopes, p, totals = work[0], work[1], work[2], work[3]
    area, loss = scores.area, 0.0
    for i in range(G.shape[0]):
        square_and_slope(G[i], squares, slopes)
        _score(squares, scores.bias, area, p)
        competing = k
        if lists.first.shape[0] > 0:
            competing -= _exclude(lists, i, p, slopes)
        top = _largest(p, truth[i])
        share = scores.smoothing / (competing + 1)
        smooth = share * (_finite_sum(p) + truth[i]) if share > 0.0 else 0.0
        own = math.exp(truth[i] - top)
        total = own + _exponentials(p, top)
        loss += math.log(total) + (top - truth[i]) + (scores.smoothing * truth[i] - smooth)
        truth_slopes[i] = scores.weight * ((own / total - 1.0) + (scores.smoothing - share))
        factor = G.dtype.type(scores.weight / total)
        rest = G.dtype.type(scores.weight * share)
        _finish(G[i], area, factor, rest, slopes, p, totals)
        if rest > 0.0 and lists.first.shape[0] > 0:
            _restore_biases(lists, i, rest, totals)
    for j in range(k):
        bias_slopes[j] += totals[j]
    return scores.weight * loss


@summing
def _score(squares: np.ndarray, bias: np.ndarray, area: Any, s: np.ndarray) -> None:
    for j in range(s.shape[0]):
        s[j] = bias[j] - area * squares[j]


@compiler(inline=True)
def _exclude(lists: Lists, row: int, s: np.ndarray, slopes: np.ndarray) -> int:
    """Give -inf, and no slopes, to the scores that do not compete; return their number."""
    count = 0
    for t in range(lists.first[row], lists.last[row]):
        j = lists.column[lists.answers[t]]
        if j >= 0:
            s[j], slopes[j] = -np.inf, 0.0
            count += 1
    return count


@compiler(inline=True)
def _restore_biases(lists: Lists, row: int, rest: Any, totals: np.ndarray) -> None:
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
    slopes: np.ndarray,
    p: np.ndarray,
    totals: np.ndarray,
) -> None:
    """Put the slopes of the loss in g, and add those in the biases to the totals."""
    for j in range(g.shape[0]):
        slope = factor * p[j] - rest
        totals[j] += slope
        g[j] = -area * slope * slopes[j]


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
    area: float,
    smoothing: float,
    excluded: Exclusions | None,
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Return the loss of `jorth.kge.loss.distance_softmax` with its gradients."""
    count, n = signed.shape
    threads = max(1, min(torch.get_num_threads(), count // THREAD_ROWS))
    ours, across = _filled(signed), _filled(candidates.mT, rows_only=True)
    signed_slopes, truth_slopes = torch.zeros_like(ours), torch.empty_like(truth)
    across_slopes = across.new_zeros(threads, *across.shape)
    bias_slopes = bias.new_zeros(threads, len(bias))
    weight = 1 / max(1, count)
    biases = _array(bias)
    scores = Scores(biases, biases.dtype.type(area), float(smoothing), weight)
    lists = _lists(excluded)
    size = max(FEWEST_ROWS, CACHE // max(1, len(bias) * bias.element_size()) // TILE * TILE)
    shared = (ours, across, truth, signed_slopes, truth_slopes)

    def part(thread: int, edges: tuple[int, int]) -> float:
        own = (*shared, across_slopes[thread], bias_slopes[thread])
        rows = Rows(*(_array(part) for part in own))
        return loss_of_rows(rows, scores, lists, *edges, size)

    tiles = -(-count // TILE)
    edges = list(pairwise(TILE * (tiles * thread // threads) for thread in range(threads + 1)))
    if threads == 1:
        sums = [part(0, edges[0])]
    else:
        with ThreadPoolExecutor(threads) as pool:
            sums = list(pool.map(part, range(threads), edges))
    loss = torch.tensor(sums, dtype=torch.float64).sum().to(truth)
    slopes = (across_slopes.sum(0)[:n].mT, bias_slopes.sum(0), truth_slopes)
    return loss, (signed_slopes[:count, :n], *slopes)


@compiler(nogil=True)
def loss_of_rows(
    rows: Rows, scores: Scores, lists: Lists, first: int, last: int, size: int
) -> float:
    """Return the part of the loss of rows from ``first`` to ``last``.

    All slopes are added to those in ``rows``; a block has ``size`` rows.
    """
    G = np.empty((size, rows.across.shape[1]), dtype=rows.across.dtype)
    losses = 0.0
    for start in range(first, last, size):
        stop = min(start + size, last)
        block = rows.signed[start:stop]
        g = G[: stop - start]
        g[:] = 0.0
        add_product(block, rows.across, g)
        true = min(stop, rows.truth.shape[0])  # what follows is filled up with zeros
        listed = Lists(lists.first[start:true], lists.last[start:true], lists.answers, lists.column)
        losses += loss_and_slopes(
            g[: true - start], rows.truth[start:true], scores, listed,
            rows.bias_slopes, rows.truth_slopes[start:true],
        )  # fmt: skip
        add_inner_products(g, rows.across, rows.signed_slopes[start:stop])
        add_product(block.T, g, rows.across_slopes)
    return losses


def _filled(matrix: Tensor, rows_only: bool = False) -> Tensor:
    """Return the matrix with rows and columns of zeros, up to multiples of `TILE`."""
    height, width = (-(-length // TILE) * TILE for length in matrix.shape)
    filled = matrix.new_zeros(height, matrix.shape[1] if rows_only else width)
    filled[: matrix.shape[0], : matrix.shape[1]] = matrix
    return filled


def _lists(excluded: Exclusions | None) -> Lists:
    if excluded is None:
        return Lists(*[np.zeros(0, dtype=np.int64)] * 4)
    return Lists(*map(_array, excluded))


def _array(tensor: Tensor) -> NDArray[Any]:
    array: NDArray[Any] = tensor.detach().contiguous().numpy()
    return array
