"""Angles of larger matrices for Triton: some rows of one side of a matrix per program.

The formulas are those of `whole_steps`, in three launches: the sums over a matrix that gains and
directions need, the new averages with the half tangents of the angles, and these in the order of
the rounds. States are per plane.
"""

import triton
import triton.language as tl

from jorth.kernels.by_triton.whole_steps import LARGEST_GAIN, half_tangent, limited, write_factors

SUMS = tl.constexpr(8)
"""Infinities, r^2, and for rotations and boosts <D, S>, <D, D>, <S, S>."""


@triton.jit
def row_slopes(products, signs, i, j, inside, n):
    """S_ij = (s_i P_ij - s_j P_ji) / 2 of P = G X^T, rounded as P, and where planes boost."""
    real = products.dtype.element_ty
    own = tl.load(signs + i, mask=i < n, other=0.0)
    other = tl.load(signs + j, mask=j < n, other=0.0)
    there = tl.load(products + i * n + j, mask=inside, other=0.0).to(tl.float64)
    back = tl.load(products + j * n + i, mask=inside, other=0.0).to(tl.float64)
    S = (0.5 * (own * there - other * back)).to(real).to(tl.float64)
    return S, own * other < 0.0


@triton.jit
def plain_direction(M, r, momentum_weight, root_weight, small):
    """M / (r + small), each over its weight; ``small`` is not."""
    M = M * (1.0 / tl.where(momentum_weight > 0.0, momentum_weight, 1.0))
    scale = 1.0 / tl.sqrt(tl.where(root_weight > 0.0, root_weight, 1.0))
    r = r * scale
    return tl.where(r > 0.0, M / (r + small * scale), 0.0)


@triton.jit
def store_sums(sums, before, S, mask):
    """<D, S>, <D, D> and <S, S> over a mask."""
    a, b = tl.where(mask, before, 0.0), tl.where(mask, S, 0.0)
    tl.store(sums, tl.sum(tl.sum(a * b, 1), 0))
    tl.store(sums + 1, tl.sum(tl.sum(a * a, 1), 0))
    tl.store(sums + 2, tl.sum(tl.sum(b * b, 1), 0))


@triton.jit
def slope_sums(
    products, momentum, momentum_weight, root, root_weight, root_norm, signs, sums, n,
    b2: tl.float64, eps: tl.float64, ascend: tl.float64, R: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """The sums (b sides, blocks, 8) over R rows each; ``root_norm`` (b sides,) is ||r||_F."""
    side, block = tl.program_id(0).to(tl.int64), tl.program_id(1)
    i, j = block * R + tl.arange(0, R)[:, None], tl.arange(0, N)[None, :]
    inside = (i < n) & (j < n)
    at = side * n * n + i * n + j
    S, boost = row_slopes(products + side * n * n, signs, i, j, inside, n)
    S = ascend * S
    wm = tl.load(momentum_weight + side).to(tl.float64)
    wr = tl.load(root_weight + side).to(tl.float64)
    M = tl.load(momentum + at, mask=inside, other=0.0).to(tl.float64)
    r = tl.load(root + at, mask=inside, other=0.0).to(tl.float64)
    before = plain_direction(M, r, wm, wr, eps * tl.load(root_norm + side) / n)
    bad = tl.sum(tl.sum(((tl.abs(S) < float("inf")) == 0).to(tl.float64), 1), 0)
    S, squares = limited(S, r, wr, b2, n, True)
    out = sums + (side * tl.num_programs(1) + block) * SUMS
    tl.store(out, bad)
    tl.store(out + 1, tl.sum(tl.sum(b2 * r * r + (1.0 - b2) * squares, 1), 0))
    store_sums(out + 2, before, S, inside & (boost == 0))
    store_sums(out + 5, before, S, inside & boost)


@triton.jit
def summed(sums, side, which, blocks, BLOCKS: tl.constexpr):
    """One of the sums over all blocks of a side."""
    block = tl.arange(0, BLOCKS)
    at = sums + (side * blocks + block) * SUMS + which
    return tl.sum(tl.load(at, mask=block < blocks, other=0.0), 0)


@triton.jit
def grown(gain, sums, side, which, blocks, first_gain, rate, BLOCKS: tl.constexpr):
    """The gain after new slopes, whose sums begin at ``which``."""
    size = tl.sqrt(summed(sums, side, which + 1, blocks, BLOCKS))
    size *= tl.sqrt(summed(sums, side, which + 2, blocks, BLOCKS))
    cosine = summed(sums, side, which, blocks, BLOCKS) / tl.where(size > 0.0, size, 1.0)
    gain = tl.where(gain == 0.0, first_gain, gain)
    larger = gain * tl.exp(rate * tl.where(size > 0.0, cosine, 0.0))
    larger = tl.where(larger > LARGEST_GAIN, 1.0 * LARGEST_GAIN, larger)
    larger = tl.where(larger * LARGEST_GAIN < 1.0, 1.0 / LARGEST_GAIN, larger)
    return tl.where(rate > 0.0, larger, gain)


@triton.jit
def next_halves(
    products, momentum, momentum_weight, root, root_weight, gain, signs, sums, halves, scalars,
    finite, n, lr: tl.float64, b1: tl.float64, b2: tl.float64, eps: tl.float64,
    first_gain: tl.float64, rate: tl.float64, max_angle: tl.float64, reach: tl.float64,
    ascend: tl.float64, doublings,
    SIDES: tl.constexpr, R: tl.constexpr, N: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    """The averages after new slopes, in place, and half tangents (b sides, n, n).

    ``scalars`` (b sides, 4) are the new weights and gains, ``finite`` (b,) which gradients are.
    """
    side, block, blocks = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.num_programs(1)
    real = momentum.dtype.element_ty
    matrix = side // SIDES
    bad = summed(sums, matrix * SIDES, 0, blocks, BLOCKS)
    if SIDES == 2:
        bad += summed(sums, matrix * SIDES + 1, 0, blocks, BLOCKS)
    fine = bad == 0.0
    i, j = block * R + tl.arange(0, R)[:, None], tl.arange(0, N)[None, :]
    inside = (i < n) & (j < n)
    at = side * n * n + i * n + j
    S, boost = row_slopes(products + side * n * n, signs, i, j, inside, n)
    S = tl.where(fine, ascend * S, 0.0)
    wm = tl.load(momentum_weight + side).to(tl.float64)
    wr = tl.load(root_weight + side).to(tl.float64)
    M = tl.load(momentum + at, mask=inside, other=0.0).to(tl.float64)
    r = tl.load(root + at, mask=inside, other=0.0).to(tl.float64)
    S, squares = limited(S, r, wr, b2, n, True)
    r = tl.where(fine, tl.sqrt(b2 * r * r + (1.0 - b2) * squares), r).to(real)
    M = tl.where(fine, M + (1.0 - b1) * (S - M), M).to(real)
    wm = tl.where(fine, b1 * wm + (1.0 - b1), wm).to(real)
    wr = tl.where(fine, b2 * wr + (1.0 - b2), wr).to(real)
    turns, pushes = tl.load(gain + 2 * side).to(tl.float64), tl.load(gain + 2 * side + 1)
    start = (0.0 * turns + first_gain).to(real).to(tl.float64)
    change = tl.where(fine, rate + 0.0 * turns, 0.0)
    turns = grown(turns, sums, side, 2, blocks, start, change, BLOCKS).to(real)
    pushes = grown(pushes.to(tl.float64), sums, side, 5, blocks, start, change, BLOCKS).to(real)
    tl.store(momentum + at, M, mask=inside)
    tl.store(root + at, r, mask=inside)
    out = scalars + 4 * side
    tl.store(out, wm)
    tl.store(out + 1, wr)
    tl.store(out + 2, turns)
    tl.store(out + 3, pushes)
    tl.store(finite + matrix, fine)
    small = eps * tl.sqrt(summed(sums, side, 1, blocks, BLOCKS)) / n
    wm, wr = wm.to(tl.float64), wr.to(tl.float64)
    D = plain_direction(M.to(tl.float64), r.to(tl.float64), wm, wr, small)
    scale = tl.where(boost, reach * pushes.to(tl.float64), turns.to(tl.float64))
    angle = tl.maximum(tl.minimum(lr * scale * D, max_angle), -max_angle)
    own = tl.load(signs + i, mask=i < n, other=0.0)
    h = half_tangent(-0.5 * own * tl.where(fine, angle, 0.0), boost, doublings)
    tl.store(halves + at, h, mask=inside)


@triton.jit
def ordered_factors(
    halves, codes, even, odd, rounds, n, R: tl.constexpr, N: tl.constexpr
):  # fmt: skip
    """The factors (b sides, rounds, n) of rows from the half tangents, R rounds per program."""
    side, first = tl.program_id(0).to(tl.int64), tl.program_id(1) * R
    at = side * rounds * n + first * n
    count = tl.minimum(rounds - first, R)
    write_factors(halves + side * n * n, even + at, odd + at, codes + first * n, count, n, R, N)
