"""The fused loss for Triton: inner products g (B, k) become the gradients of the loss.

`row_sums` reads each row once, `row_weights` overwrites it. Everything about a row is relative to
its true score, whose exponential is thus 1.
"""

import triton
import triton.language as tl

from jorth.kernels.by_triton.arcs import arc_of, log_near_one


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
