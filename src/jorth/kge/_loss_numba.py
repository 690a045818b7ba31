"""`squared_arc` and `distance_softmax` of `jorth.kge` on the CPU, compiled; it loads numba.

log1p, exp and the arcs are without calls or branches, so that loops over them use vector registers.
Their results are right to a few units of the last place; NaN gives NaN. The loss goes block by
block, and the rows of the batch are shared among as many threads as torch uses: the result has the
same bits whenever the number of threads is the same.
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

# IEEE arithmetic: the parts of log(2) must not be joined. A product and a sum may become one.
elementary = compiler(fastmath={"contract"}, inline=True)
# for loops whose sums may be reassociated into vector registers
summing = compiler(fastmath={"reassoc", "contract"}, inline=True)


def log1p(z: Any) -> Any:
    """Return log(1 + z) for 0 <= z < 2^126, or < 2^1022 in float64; not finite for inf."""
    raise NotImplementedError  # compiled code has one of those that `_elementary` makes


def exp(x: Any) -> Any:
    """Return the exponential of x <= 0, and zero instead of numbers below the normal ones."""
    raise NotImplementedError


def arc_series(x: Any) -> Any:
    """Return sum_k x^k / ((k + 1)^2 binomial(2k + 2, k + 1)) for 0 <= x < 0.6.

    acos(1 - h)^2 is 4 h times the sum for x = 2 h.
    """
    raise NotImplementedError


@elementary
def _polynomial(coefficients: tuple[Any, ...], x: Any) -> Any:
    """Return the value at x of a polynomial, its highest coefficient first."""
    y = coefficients[0]
    for c in coefficients[1:]:
        y = y * x + c
    return y


def _elementary(
    real: Any,
    integer: Any,
    ln2: tuple[float, float],
    log: tuple[float, ...],
    terms: tuple[int, int],
) -> tuple[Any, Any, Any]:
    """Return log1p, exp and arc_series for a kind of numbers.

    Args:
        real: numpy.float32 or numpy.float64.
        integer: The integers of as many bits.
        ln2: log(2) in two parts, the first with so few digits that its multiples are exact.
        log: The polynomial of log(1 + f), as in fdlibm (e_log.c, e_logf.c).
        terms: How many terms the series of exp and of `arc_series` have.
    """
    digits, bias = integer(np.finfo(real).nmant), integer(np.finfo(real).maxexp - 1)
    one, half, two, zero = real(1.0), real(0.5), real(2.0), real(0.0)
    high, low = map(real, ln2)
    root_half = np.sqrt(half).view(integer)
    per_octave, smallest = real(1 / math.log(2)), real(math.ceil(np.log(np.finfo(real).tiny)))
    log = tuple(map(real, log))
    taylor = tuple(real(1 / math.factorial(k)) for k in range(terms[0] + 1, 1, -1))
    series = tuple(real(1 / (k * k * math.comb(2 * k, k))) for k in range(terms[1], 0, -1))

    @elementary
    def logarithm(z: Any) -> Any:
        # 1 + z = 2^k (1 + f) with 1 + f between sqrt(1/2) and sqrt(2); f = z where k = 0
        k = integer(integer(real(one + z).view(integer) - root_half) >> digits)
        scale = integer(integer(bias - k) << digits).view(real)
        f, power = z * scale + (scale - one), real(np.int32(k))
        s = f / (two + f)
        square = half * f * f
        curve = s * (square + s * s * _polynomial(log, s * s)) - square
        return f + (curve + power * low) + power * high

    @elementary
    def exponential(x: Any) -> Any:
        c = smallest if x < smallest else x
        n = np.int32(c * per_octave - half)
        r = c - real(n) * high - real(n) * low
        y = one + (r + r * r * _polynomial(taylor, r))
        y = y * integer(integer(integer(n) + bias) << digits).view(real)
        return zero if x < smallest else y

    @elementary
    def arcs(x: Any) -> Any:
        return _polynomial(series, x)

    return logarithm, exponential, arcs


_SINGLE = _elementary(
    np.float32, np.int32, (0.693359375, -2.12194440e-4),
    (2.4279078841e-1, 2.8498786688e-1, 4.0000972152e-1, 6.6666662693e-1), (6, 9),
)  # fmt: skip
_DOUBLE = _elementary(
    np.float64, np.int64, (6.93147180369123816490e-01, 1.90821492927058770002e-10),
    (1.479819860511658591e-01, 1.531383769920937332e-01, 1.818357216161805012e-01,
     2.222219843214978396e-01, 2.857142874366239149e-01, 3.999999999940941908e-01,
     6.666666666666735130e-01), (12, 19),
)  # fmt: skip
for _function, _single, _double in zip((log1p, exp, arc_series), _SINGLE, _DOUBLE, strict=True):
    by_precision(_function, _single, _double)

LARGE = 2.0**40
"""From here on sqrt(g^2 - 1) = g, also in float64, and in float32 g^2 does not overflow below."""


@compiler(nogil=True, inline=True)
def square_and_slope(g: np.ndarray, squares: np.ndarray, slopes: np.ndarray) -> None:
    """Write acosh(|g|)^2 where |g| >= 1, acos(|g|)^2 elsewhere, and the slopes: all (count,).

    The slope is 0 at |g| = 1 and at g = 0.
    """
    if _hyperbolic(g, squares, slopes) > 0.0:
        _circular(g, squares, slopes)


@summing
def _hyperbolic(g: np.ndarray, squares: np.ndarray, slopes: np.ndarray) -> Any:
    """Write acosh(|g|)^2 and its slope, and return how many |g| < 1 there are."""
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
    """Write acos(|g|)^2 and its slope where |g| < 1.

    acos(|g|) is twice the arc whose cosine is c = sqrt((1 + |g|) / 2), and 2 (1 - c) is
    (1 - |g|) / (1 + c).
    """
    zero, half, one = g.dtype.type(0.0), g.dtype.type(0.5), g.dtype.type(1.0)
    two, eight = g.dtype.type(2.0), g.dtype.type(8.0)
    for j in range(g.shape[0]):
        size = abs(g[j])
        inside = size < one
        rest = one - size if inside else zero
        below = one + math.sqrt(half + half * size)
        ratio = eight / below * arc_series(rest / below)
        slope = -math.copysign(two, g[j]) * math.sqrt(ratio / (one + size))
        squares[j] = rest * ratio if inside else squares[j]
        slopes[j] = (slope if size > zero else zero) if inside else slopes[j]


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


@compiler(inline=True)
def _rows(X: np.ndarray, i: int, first: int, last: int) -> tuple[Any, Any, Any, Any]:
    """Return columns from ``first`` to ``last`` of four rows, each of them contiguous."""
    return X[i, first:last], X[i + 1, first:last], X[i + 2, first:last], X[i + 3, first:last]


# Both tiles are written out: as loops over four rows and columns they take ten times as long.
@summing
def _add_tile(
    A: np.ndarray, X: np.ndarray, Y: np.ndarray, i: int, d: int, first: int, last: int
) -> None:
    x0, x1, x2, x3 = _rows(X, d, first, last)
    y0, y1, y2, y3 = _rows(Y, i, first, last)
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
    w0, w1, w2, w3 = _rows(W, i, first, last)
    x0, x1, x2, x3 = _rows(X, d, first, last)
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


class Given(NamedTuple):
    """What the loss depends on, with rows and n filled up by zeros to multiples of `TILE`."""

    signed: NDArray[Any]
    across: NDArray[Any]
    """(n, k), the transpose of the candidates."""
    bias: NDArray[Any]
    truth: NDArray[Any]
    first: NDArray[Any]
    """This and what follows are a `jorth.kge.loss.Exclusions`."""
    last: NDArray[Any]
    answers: NDArray[Any]
    column: NDArray[Any]


class Slopes(NamedTuple):
    """The derivatives, to which a thread adds those of its rows; it writes those in ``truth``."""

    signed: NDArray[Any]
    across: NDArray[Any]
    bias: NDArray[Any]
    truth: NDArray[Any]


@compiler(nogil=True)
def loss_of_rows(
    given: Given, slopes: Slopes, area: Any, smoothing: float, start: int, stop: int, size: int
) -> float:
    """Return the part of the mean loss of rows from ``start`` to ``stop``, in blocks of ``size``.

    ``area`` is the factor of the squared arcs, of the dtype of the scores.
    """
    k = given.bias.shape[0]
    G, work = np.empty((size, k), dtype=given.bias.dtype), np.empty((2, k), dtype=given.bias.dtype)
    losses = 0.0
    for top in range(start, stop, size):
        end = min(top + size, stop)
        block, g = given.signed[top:end], G[: end - top]
        g[:] = 0.0
        add_product(block, given.across, g)
        for i in range(top, min(end, given.truth.shape[0])):
            losses += _replace_by_slopes(given, slopes, area, smoothing, i, g[i - top], work)
        add_inner_products(g, given.across, slopes.signed[top:end])
        add_product(block.T, g, slopes.across)
    return losses


@compiler(inline=True)
def _replace_by_slopes(
    given: Given, slopes: Slopes, area: Any, smoothing: float, i: int, g: np.ndarray, work: Any
) -> Any:
    """Replace the products g (k,) of row i by the slopes of the loss in them, and return its part.

    The slopes in the biases are added, and that in the true score is written.
    """
    p, steep = work[0], work[1]
    true, competing = given.truth[i], g.shape[0]
    square_and_slope(g, p, steep)
    _score(given.bias, area, p)
    for t in range(given.first[i], given.last[i]):
        j = given.column[given.answers[t]]
        if j >= 0:
            p[j], steep[j] = -np.inf, 0.0
            competing -= 1
    top = _largest(p, true)
    own = math.exp(true - top)
    false, summed = _exponentials(p, top)
    total = own + false
    share, weight = smoothing / (competing + 1), 1.0 / given.truth.shape[0]
    factor, rest = g.dtype.type(weight / total), g.dtype.type(weight * share)
    slopes.truth[i] = weight * ((own / total - 1.0) + (smoothing - share))
    _finish(g, area, factor, rest, steep, p, slopes.bias)
    for t in range(given.first[i], given.last[i]):  # which had no weight to be reduced
        j = given.column[given.answers[t]]
        if j >= 0:
            slopes.bias[j] += rest
    loss = math.log(total) + (top - true) + (smoothing * true - share * (summed + true))
    return weight * loss


@summing
def _score(bias: np.ndarray, area: Any, p: np.ndarray) -> None:
    """Replace squared arcs by scores."""
    for j in range(p.shape[0]):
        p[j] = bias[j] - area * p[j]


@compiler(fastmath={"nnan", "nsz"}, inline=True)  # NaN comes through the exponentials
def _largest(s: np.ndarray, least: Any) -> Any:
    top = least
    for j in range(s.shape[0]):
        top = max(top, s[j])
    return top


@summing
def _exponentials(s: np.ndarray, top: Any) -> tuple[Any, Any]:
    """Replace s by exp(s - top), and return their sum and that of all s but -inf."""
    zero, lowest = s.dtype.type(0.0), s.dtype.type(-np.inf)
    total, summed = zero, zero
    for j in range(s.shape[0]):
        summed += zero if s[j] == lowest else s[j]
        s[j] = exp(s[j] - top)
        total += s[j]
    return total, summed


@summing
def _finish(
    g: np.ndarray, area: Any, factor: Any, rest: Any, steep: np.ndarray, p: np.ndarray, sums: Any
) -> None:
    """Put the slopes of the loss in g, and add those in the biases to the sums."""
    for j in range(g.shape[0]):
        slope = factor * p[j] - rest
        sums[j] += slope
        g[j] = -area * slope * steep[j]


CACHE = 2**17
"""How many bytes the scores of a block take, if it can have `FEWEST_ROWS`."""
FEWEST_ROWS = 8
THREAD_ROWS = 64
"""So many rows of a batch are worth another thread."""


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
    padded, across = _padded(signed), _padded(candidates.mT, rows_only=True)
    none = torch.zeros(count, dtype=torch.int64)
    lists = (none, none, none, none) if excluded is None else excluded
    given = Given(*map(_array, (padded, across, bias, truth, *lists)))
    d_signed, d_truth = torch.zeros_like(padded), torch.empty_like(truth)
    d_across = across.new_zeros(threads, *across.shape)
    d_bias = bias.new_zeros(threads, len(bias))
    size = max(FEWEST_ROWS, CACHE // max(1, len(bias) * bias.element_size()) // TILE * TILE)
    factor = given.bias.dtype.type(area)

    def part(thread: int, rows: tuple[int, int]) -> float:
        slopes = Slopes(*map(_array, (d_signed, d_across[thread], d_bias[thread], d_truth)))
        return loss_of_rows(given, slopes, factor, float(smoothing), *rows, size)

    tiles = -(-count // TILE)
    edges = list(pairwise(TILE * (tiles * thread // threads) for thread in range(threads + 1)))
    if threads == 1:
        sums = [part(0, edges[0])]
    else:
        with ThreadPoolExecutor(threads) as pool:
            sums = list(pool.map(part, range(threads), edges))
    loss = torch.tensor(sums, dtype=torch.float64).sum().to(truth)
    return loss, (d_signed[:count, :n], d_across.sum(0)[:n].mT, d_bias.sum(0), d_truth)


def _padded(matrix: Tensor, rows_only: bool = False) -> Tensor:
    """Return the matrix with rows and columns of zeros, up to multiples of `TILE`."""
    height, width = (-(-length // TILE) * TILE for length in matrix.shape)
    padded = matrix.new_zeros(height, matrix.shape[1] if rows_only else width)
    padded[: matrix.shape[0], : matrix.shape[1]] = matrix
    return padded


def _array(tensor: Tensor) -> NDArray[Any]:
    array: NDArray[Any] = tensor.detach().contiguous().numpy()
    return array
