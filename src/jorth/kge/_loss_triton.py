"""`squared_arc` and `distance_softmax` of `jorth.kge` on CUDA, by Triton.

For the loss cuBLAS forms the products, and Triton does everything between them.

Nothing waits for the device and all shapes are those of the arguments, so that a step can be
captured in a CUDA graph. `row_sums` reads each row of inner products once, `row_weights` overwrites
it by the gradients. Everything about a row is relative to its true score, whose exponential is 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

if TYPE_CHECKING:
    from jorth.kge.loss import Exclusions


HALF_PI = tl.constexpr(1.5707963267948966)
LOG_TWO = tl.constexpr(0.6931471805599453)
LARGE = {torch.float32: 2.0**60, torch.float64: 2.0**500}
"""A size whose square is finite and next to which 1 is nothing."""
BLOCK = 512


@triton.jit
def log_near_one(u, x):
    """log(1 + x) for x >= 0, where u is 1 + x as rounded: what rounding took counts near 1."""
    return tl.log(u) + (x - (u - 1.0)) * tl.maximum(2.0 - u, 0.0)


@triton.jit
def arc_sine(w, z):
    """asin(w) for w^2 = z <= 1/4, by the rational function of fdlibm (e_asin.c)."""
    p = 7.91534994289814532176e-04 + z * 3.47933107596021167570e-05
    p = 2.01212532134862925881e-01 + z * (-4.00555345006794114027e-02 + z * p)
    p = 1.66666666666666657415e-01 + z * (-3.25565818622400915405e-01 + z * p)
    q = -6.88283971605453293030e-01 + z * 7.70381505559019352791e-02
    q = 1.0 + z * (-2.40339491173441421878e00 + z * (2.02094576023350569471e00 + z * q))
    return w + w * (z * p / q)


@triton.jit
def circular_arc(size, e):
    """acos(size) for e = size - 1 < 0."""
    far, half = size < 0.5, tl.maximum(-0.5 * e, 0.0)
    part = arc_sine(tl.where(far, size, tl.sqrt(half)), tl.where(far, size * size, half))
    return tl.where(far, HALF_PI - part, 2.0 * part)


@triton.jit
def arc_of(g, LARGE: tl.constexpr):
    """(arc, 1 / sine, e) of `jorth.kge.model.squared_arc`; where e = 0 the first two are 0.

    Beyond LARGE, whose square may overflow, the sine is |g|.
    """
    size = tl.abs(g)
    e = size - 1.0
    square = tl.abs(e) * (size + 1.0)
    inverse = tl.where(square > 0.0, tl.rsqrt(square), 0.0)
    large = size > LARGE
    x = tl.where(large, size, e + square * inverse)
    arc = log_near_one(1.0 + x, x) + tl.where(large, tl.full([], LOG_TWO, g.dtype), 0.0)
    if tl.max((large | (e < 0.0)).to(tl.int32)) > 0:  # rare for q = 1
        inverse = tl.where(large, 1.0 / size, inverse)
        arc = tl.where(e < 0.0, circular_arc(size, e), arc)
    return arc, inverse, e


@triton.jit
def square_and_slope(
    g, square, slope, count, HAS_SLOPE: tl.constexpr, LARGE: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """Return the squared arcs of g (count,), and their derivatives if wanted."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    product = tl.load(g + at, mask=at < count, other=1.0)
    arc, inverse, e = arc_of(product, LARGE)
    tl.store(square + at, arc * arc, mask=at < count)
    if HAS_SLOPE:
        steep = tl.where((e < 0.0) == (product < 0.0), 2.0, -2.0) * (arc * inverse)
        tl.store(slope + at, tl.where(product == 0.0, 0.0, steep), mask=at < count)


def write_squared_arcs(g: Tensor, square: Tensor, slope: Tensor | None) -> None:
    """Write arc^2, and its derivative if wanted, for contiguous g (count,)."""
    square_and_slope[(-(-g.numel() // BLOCK),)](
        g, square, square if slope is None else slope, g.numel(),
        HAS_SLOPE=slope is not None, LARGE=LARGE[g.dtype], BLOCK=BLOCK, num_warps=4,
    )  # fmt: skip


@triton.jit
def exclude(g, first, last, answers, column, MARK: tl.constexpr, BLOCK: tl.constexpr):
    """Mark the columns of one row that do not compete."""
    for start in range(first, last, BLOCK):
        t = start + tl.arange(0, BLOCK)
        entity = tl.load(answers + t, mask=t < last, other=0)
        place = tl.load(column + entity, mask=t < last, other=-1)
        tl.store(g + place, tl.full([BLOCK], MARK, g.dtype.element_ty), mask=place >= 0)
    tl.debug_barrier()  # the row is read by other threads than those that wrote


@triton.jit(do_not_specialize=["B"])
def row_sums(
    g, bias, truth, area, first, last, answers, column, row_loss, log_sum, flat, d_truth, B, k,
    SMOOTHING: tl.constexpr, EXCLUDES: tl.constexpr, MARK: tl.constexpr, LARGE: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """For each row its loss, log sum_j exp(s_j - truth), label of a false answer, d loss / d truth.

    One program per row. A lane keeps its largest score and the sum of exp(score - largest), which
    needs one exponential per score: that of minus the difference of old and new.
    """
    row = tl.program_id(0).to(tl.int64)
    g += row * k
    if EXCLUDES:
        exclude(g, tl.load(first + row), tl.load(last + row), answers, column, MARK, BLOCK)
    scale, true = tl.load(area), tl.load(truth + row)
    largest, total = tl.zeros([BLOCK], g.dtype.element_ty), tl.zeros([BLOCK], g.dtype.element_ty)
    summed, count = tl.zeros([BLOCK], g.dtype.element_ty), tl.zeros([BLOCK], tl.int32)
    for start in range(0, k, BLOCK):
        j = start + tl.arange(0, BLOCK)
        product = tl.load(g + j, mask=j < k, other=MARK)
        competes = product != MARK
        arc, _, _ = arc_of(tl.where(competes, product, 1.0), LARGE)
        score = tl.load(bias + j, mask=j < k, other=0.0) - scale * (arc * arc) - true
        if SMOOTHING > 0.0:
            summed += tl.where(competes, score, 0.0)
            count += competes.to(tl.int32)
        score = tl.where(competes, score, float("-inf"))
        smaller = tl.exp(-tl.abs(score - largest))
        total = tl.where(score > largest, total * smaller + 1.0, total + smaller)
        largest = tl.where(score > largest, score, largest)
    top = tl.max(largest, 0)
    false = tl.sum(total * tl.exp(largest - top), 0)
    whole = tl.exp(-top) + false
    log_whole = tl.where(top > 0.0, top + tl.log(whole), log_near_one(1.0 + false, false))
    loss, slope = log_whole, -false / whole
    label = 0.0 * false
    if SMOOTHING > 0.0:
        competing = tl.sum(count, 0).to(g.dtype.element_ty)
        label = SMOOTHING / (competing + 1.0)
        loss -= label * tl.sum(summed, 0)
        slope += label * competing
    tl.store(row_loss + row, loss / B)
    tl.store(log_sum + row, log_whole)
    tl.store(flat + row, label)
    tl.store(d_truth + row, slope / B)


@triton.jit(do_not_specialize=["rows", "B", "size"])
def row_weights(
    g, bias, truth, area, log_sum, flat, d_bias, rows, B, k, size,
    MARK: tl.constexpr, LARGE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Overwrite g by d loss / d g, and sum the slopes of biases over ``size`` rows.

    A program has BLOCK columns of these rows. What programs sum is added up later, in one order.
    """
    part = tl.program_id(0)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    weight = tl.full([], 1.0, g.dtype.element_ty) / B
    scale = tl.load(area)
    own = tl.load(bias + j, mask=j < k, other=0.0)
    biases = tl.zeros([BLOCK], g.dtype.element_ty)
    for row in range(part * size, tl.minimum(part * size + size, rows)):
        at = g + tl.cast(row, tl.int64) * k + j
        product = tl.load(at, mask=j < k, other=MARK)
        competes = product != MARK
        product = tl.where(competes, product, 1.0)
        arc, inverse, e = arc_of(product, LARGE)
        score = own - scale * (arc * arc) - tl.load(truth + row)
        share = (tl.exp(score - tl.load(log_sum + row)) - tl.load(flat + row)) * weight
        share = tl.where(competes, share, 0.0)
        slope = tl.where((e < 0.0) == (product < 0.0), -2.0, 2.0) * scale * (arc * inverse)
        slope = tl.where(product == 0.0, 0.0, slope)
        tl.store(at, share * slope, mask=j < k)
        biases += share
    tl.store(d_bias + tl.cast(part, tl.int64) * k + j, biases, mask=j < k)


MOST_BYTES = 2**30
"""The most inner products that are held at a time, in bytes."""
MARK = {torch.float32: 2.0**127, torch.float64: 2.0**1023}
"""What stands for an inner product whose column does not compete."""
SUMMED, WEIGHED = 256, 512
"""The columns that a program of `row_sums` and one of `row_weights` has at a time."""
ENOUGH_PROGRAMS = 4096
"""Programs of `row_weights`: they have several rows where there would be more."""


def loss_and_gradients(  # what the loss depends on
    signed: Tensor,
    candidates: Tensor,
    bias: Tensor,
    truth: Tensor,
    area: float,
    smoothing: float,
    excluded: Exclusions | None,
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Return the loss of `jorth.kge.loss.distance_softmax` and its gradients, in chunks of rows."""
    B, k = len(signed), len(candidates)
    shared = _Shared(
        candidates.contiguous(), bias.contiguous(), truth.new_full((), area), smoothing, B
    )
    size = max(1, MOST_BYTES // (max(k, 1) * signed.element_size()))
    losses, parts = [], []
    for start in range(0, B, size):
        rows = slice(start, start + size)
        own = None if excluded is None else excluded._replace(
            first=excluded.first[rows], last=excluded.last[rows]
        )  # fmt: skip
        loss, gradients = _chunk(signed[rows], truth[rows].contiguous(), shared, own)
        losses.append(loss)
        parts.append(gradients)
    if len(parts) == 1:
        return losses[0], parts[0]
    anchors, points, biases, truths = zip(*parts, strict=True)
    summed = [torch.stack(part).sum(0) for part in (points, biases)]
    gradients = (torch.cat(anchors), *summed, torch.cat(truths))
    return torch.stack(losses).sum(), gradients


class _Shared(NamedTuple):
    """What all chunks of a batch of ``total`` rows share."""

    candidates: Tensor
    bias: Tensor
    area: Tensor
    smoothing: float
    total: int


def _chunk(
    signed: Tensor, truth: Tensor, shared: _Shared, excluded: Exclusions | None
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Add the share of some rows to the loss and to its gradients."""
    g = signed @ shared.candidates.mT
    rows, k = g.shape
    constants = {"MARK": MARK[g.dtype], "LARGE": LARGE[g.dtype]}
    loss, log_sum, flat, d_truth = g.new_empty((4, rows)).unbind()
    lists = [truth] * 4 if excluded is None else [part.contiguous() for part in excluded]
    row_sums[(rows,)](
        g, shared.bias, truth, shared.area, *lists, loss, log_sum, flat, d_truth,
        shared.total, k, SMOOTHING=shared.smoothing, EXCLUDES=excluded is not None,
        BLOCK=SUMMED, num_warps=2, **constants,
    )  # fmt: skip
    across = max(1, -(-k // WEIGHED))
    size = max(1, rows * across // ENOUGH_PROGRAMS)
    parts = -(-rows // size)
    d_bias = g.new_empty((parts, k))
    row_weights[(parts, across)](
        g, shared.bias, truth, shared.area, log_sum, flat, d_bias, rows, shared.total, k,
        size, BLOCK=WEIGHED, num_warps=4, **constants,
    )  # fmt: skip
    gradients = (g @ shared.candidates, g.mT @ signed, d_bias.sum(0), d_truth)
    return loss.sum(), gradients
