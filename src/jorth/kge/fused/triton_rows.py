"""The fused loss for Triton: inner products g (B, k) become the gradients of the loss.

`row_sums` reads each row once, `row_weights` overwrites it. Everything about a row is relative to
its true score, whose exponential is thus 1.
"""

import triton
import triton.language as tl

HALF_PI = tl.constexpr(1.5707963267948966)
LOG_TWO = tl.constexpr(0.6931471805599453)


@triton.jit
def natural_log(u, x):
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
    arc = natural_log(1.0 + x, x) + tl.where(large, tl.full([], LOG_TWO, g.dtype), 0.0)
    if tl.max((large | (e < 0.0)).to(tl.int32)) > 0:  # rare for q = 1
        inverse = tl.where(large, 1.0 / size, inverse)
        arc = tl.where(e < 0.0, circular_arc(size, e), arc)
    return arc, inverse, e


@triton.jit
def leave_out(g, first, last, answers, column, MARK: tl.constexpr, BLOCK: tl.constexpr):
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
    SMOOTHING: tl.constexpr, LEAVES_OUT: tl.constexpr, MARK: tl.constexpr, LARGE: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """For each row its loss, log sum_j exp(s_j - truth), label of a false answer, d loss / d truth.

    One program per row. A lane keeps its largest score and the sum of exp(score - largest), which
    needs one exponential per score: that of minus the difference of old and new.
    """
    row = tl.program_id(0).to(tl.int64)
    g += row * k
    if LEAVES_OUT:
        leave_out(g, tl.load(first + row), tl.load(last + row), answers, column, MARK, BLOCK)
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
    log_whole = tl.where(top > 0.0, top + tl.log(whole), natural_log(1.0 + false, false))
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
    g, bias, truth, area, log_sum, flat, d_bias, d_area, rows, B, k, size,
    MARK: tl.constexpr, LARGE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Overwrite g by d loss / d g, and sum the slopes of biases and area over ``size`` rows.

    A program has BLOCK columns of these rows. What programs sum is added up later, in one order.
    """
    part = tl.program_id(0)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    weight = tl.full([], 1.0, g.dtype.element_ty) / B
    scale = tl.load(area)
    own = tl.load(bias + j, mask=j < k, other=0.0)
    biases, areas = tl.zeros([BLOCK], g.dtype.element_ty), tl.zeros([BLOCK], g.dtype.element_ty)
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
        areas -= share * (arc * arc)
    tl.store(d_bias + tl.cast(part, tl.int64) * k + j, biases, mask=j < k)
    tl.store(d_area + part * tl.num_programs(1) + tl.program_id(1), tl.sum(areas, 0))
