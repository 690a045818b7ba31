"""`jorth.kge.loss.distance_softmax` on CUDA: products by cuBLAS, everything between them by Triton.

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

from jorth.kge._distances_triton import LARGE, arc_of, log_near_one

if TYPE_CHECKING:
    from jorth.kge.loss import LeftOut


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
    area: Tensor,
    smoothing: float,
    left_out: LeftOut | None,
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The loss of `jorth.kge.loss.distance_softmax` and its gradients, in chunks of rows."""
    B, k = len(signed), len(candidates)
    shared = _Shared(candidates.contiguous(), bias.contiguous(), area, smoothing, B)
    size = max(1, MOST_BYTES // (max(k, 1) * signed.element_size()))
    losses, parts = [], []
    for start in range(0, B, size):
        rows = slice(start, start + size)
        own = None if left_out is None else left_out._replace(
            first=left_out.first[rows], last=left_out.last[rows]
        )  # fmt: skip
        loss, gradients = _chunk(signed[rows], truth[rows].contiguous(), shared, own)
        losses.append(loss)
        parts.append(gradients)
    if len(parts) == 1:
        return losses[0], parts[0]
    anchors, points, biases, truths, areas = zip(*parts, strict=True)
    summed = [torch.stack(part).sum(0) for part in (points, biases, areas)]
    gradients = (torch.cat(anchors), *summed[:2], torch.cat(truths), summed[2])
    return torch.stack(losses).sum(), gradients


class _Shared(NamedTuple):
    """What all chunks of a batch of ``total`` rows share."""

    candidates: Tensor
    bias: Tensor
    area: Tensor
    smoothing: float
    total: int


def _chunk(
    signed: Tensor, truth: Tensor, shared: _Shared, left_out: LeftOut | None
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The share of some rows in the loss, and its gradients."""
    g = signed @ shared.candidates.mT
    rows, k = g.shape
    constants = {"MARK": MARK[g.dtype], "LARGE": LARGE[g.dtype]}
    loss, log_sum, flat, d_truth = g.new_empty((4, rows)).unbind()
    lists = [truth] * 4 if left_out is None else [part.contiguous() for part in left_out]
    row_sums[(rows,)](
        g, shared.bias, truth, shared.area, *lists, loss, log_sum, flat, d_truth,
        shared.total, k, SMOOTHING=shared.smoothing, LEAVES_OUT=left_out is not None,
        BLOCK=SUMMED, num_warps=2, **constants,
    )  # fmt: skip
    across = max(1, -(-k // WEIGHED))
    size = max(1, rows * across // ENOUGH_PROGRAMS)
    parts = -(-rows // size)
    d_bias, d_area = g.new_empty((parts, k)), g.new_empty((parts * across,))
    row_weights[(parts, across)](
        g, shared.bias, truth, shared.area, log_sum, flat, d_bias, d_area, rows, shared.total, k,
        size, BLOCK=WEIGHED, num_warps=4, **constants,
    )  # fmt: skip
    gradients = (g @ shared.candidates, g.mT @ signed, d_bias.sum(0), d_truth, d_area.sum())
    return loss.sum(), gradients
