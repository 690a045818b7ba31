"""The fused loss for Triton: inner products g (B, k) become the gradients of the loss.

`row_sums` reads each row once, `row_weights` overwrites it. Everything about a row is relative to
its true score, whose exponential is thus 1.
"""

import triton
import triton.language as tl

HALF_PI = tl.constexpr(1.5707963267948966)


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
def arc_and_sine(g, LARGE: tl.constexpr):
    """(arc, sine, e) of `jorth.kge.model.squared_arc`; beyond LARGE the sine is |g|."""
    size = tl.abs(g)
    e = size - 1.0
    square = tl.abs(e) * (tl.minimum(size, LARGE) + 1.0)
    sine = tl.where(size > LARGE, size, tl.sqrt(square))
    x = tl.maximum(e, 0.0) + sine
    arc = natural_log(1.0 + x, x)
    if tl.max((e < 0.0).to(tl.int32)) > 0:  # never for q = 1
        far = size < 0.5
        half = -0.5 * e
        z = tl.where(far, size * size, half)
        half_arc = arc_sine(tl.where(far, size, tl.sqrt(tl.maximum(half, 0.0))), z)
        circular = tl.where(far, HALF_PI - half_arc, 2.0 * half_arc)
        arc = tl.where(e < 0.0, circular, arc)
    return arc, sine, e


@triton.jit
def leave_out(g, first, last, answers, column, MARK: tl.constexpr, BLOCK: tl.constexpr):
    """Mark the columns of one row that do not compete."""
    for start in range(first, last, BLOCK):
        t = start + tl.arange(0, BLOCK)
        entity = tl.load(answers + t, mask=t < last, other=0)
        place = tl.load(column + entity, mask=t < last, other=-1)
        tl.store(g + place, tl.full([BLOCK], MARK, g.dtype.element_ty), mask=place >= 0)
    tl.debug_barrier()  # the row is read by other threads than those that wrote


@triton.jit
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
        arc, _, _ = arc_and_sine(tl.where(competes, product, 1.0), LARGE)
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


@triton.jit(do_not_specialize=["loops"])
def row_weights(
    g, bias, truth, area, log_sum, flat, d_bias, d_area, rows, B, k,
    loops, MARK: tl.constexpr, LARGE: tl.constexpr, R: tl.constexpr, C: tl.constexpr,
):  # fmt: skip
    """Overwrite g by d loss / d g, and write sums over loops * R rows for biases and area.

    A lane has the same columns in all R rows, so that sums over rows stay within it.
    """
    weight = tl.full([], 1.0, g.dtype.element_ty) / B
    j = tl.program_id(1) * C + tl.arange(0, C)
    scale = tl.load(area)
    own = tl.load(bias + j, mask=j < k, other=0.0)[None, :]
    biases = tl.zeros([C], g.dtype.element_ty)
    areas = tl.zeros([C], g.dtype.element_ty)
    for turn in range(loops):
        i = (tl.program_id(0) * loops + turn) * R + tl.arange(0, R)
        at = i.to(tl.int64)[:, None] * k + j[None, :]
        inside = (i < rows)[:, None] & (j < k)[None, :]
        product = tl.load(g + at, mask=inside, other=MARK)
        competes = product != MARK
        product = tl.where(competes, product, 1.0)
        arc, sine, e = arc_and_sine(product, LARGE)
        true = tl.load(truth + i, mask=i < rows, other=0.0)[:, None]
        log_whole = tl.load(log_sum + i, mask=i < rows, other=0.0)[:, None]
        label = tl.load(flat + i, mask=i < rows, other=0.0)[:, None]
        score = own - scale * (arc * arc) - true
        share = tl.where(competes, (tl.exp(score - log_whole) - label) * weight, 0.0)
        ratio = arc / tl.where(sine > 0.0, sine, 1.0)
        slope = tl.where((e < 0.0) == (product < 0.0), -2.0 * scale, 2.0 * scale) * ratio
        slope = tl.where(product == 0.0, 0.0, slope)
        tl.store(g + at, share * slope, mask=inside)
        biases += tl.sum(share, 0)
        areas -= tl.sum(share * (arc * arc), 0)
    tl.store(d_bias + tl.program_id(0).to(tl.int64) * k + j, biases, mask=j < k)
    part = tl.program_id(0) * tl.num_programs(1) + tl.program_id(1)
    tl.store(d_area + part, tl.sum(areas, 0))
