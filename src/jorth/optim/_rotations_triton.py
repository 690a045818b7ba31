"""Turns by given angles for Triton: a strip of columns goes through all rounds in registers.

Every row knows its partner of a round and its two factors, so that a round is one gather and one
increment: see `jorth.optim.rotations`. ``codes`` (rounds, n) hold the partner p of a row whose
sign is the same, and -1 - p if it is the other one; a row without a partner is its own.
"""

import triton
import triton.language as tl


@triton.jit
def round_factors(codes, even, odd, turn, rounds, boosts, n, N: tl.constexpr):
    """(partner, even, odd) of a round, with zeros beyond the matrix and after the last round."""
    i = tl.arange(0, N)
    at, inside = turn * n + i, (i < n) & (turn < rounds)
    code = tl.load(codes + at, mask=inside, other=0).to(tl.int32)
    e, o = tl.load(even + at, mask=inside, other=0.0), tl.load(odd + at, mask=inside, other=0.0)
    weight = tl.where(code < 0, boosts, 1)
    return tl.where(code < 0, -1 - code, code), e * weight, o * weight


@triton.jit
def turned_tile(
    x, codes, even, odd, rounds, boosts, n, N: tl.constexpr, W: tl.constexpr
):  # fmt: skip
    """The rows of x (N, W) after all rounds, with the factors (rounds, n) of this matrix.

    ``boosts`` is 0 for rotations alone, else 1. A round's factors are loaded during the one before.
    """
    partner, e, o = round_factors(codes, even, odd, 0, rounds, boosts, n, N)
    for turn in range(rounds):
        after, e_after, o_after = round_factors(codes, even, odd, turn + 1, rounds, boosts, n, N)
        y = tl.gather(x, tl.broadcast_to(partner[:, None], [N, W]), 0)
        x += e[:, None] * x + o[:, None] * y
        partner, e, o = after, e_after, o_after
    return x


@triton.jit(do_not_specialize=["rounds"])  # compiling for one round of two rows would not end
def turn_strips(
    X, out, codes, even, odd, only, rounds, n, k, row_stride, column_stride, stride,
    N: tl.constexpr, W: tl.constexpr, HAS_MASK: tl.constexpr, BOOSTS: tl.constexpr,
):  # fmt: skip
    """out = T X for matrices (b, n, k), W columns of one matrix per program.

    With a mask ``only`` (b,) the others are not written; BOOSTS is 0 for rotations alone. Strides
    are those of rows and columns in X and ``out`` (swapped, rows and columns are), and of factors.
    """
    matrix = tl.program_id(0).to(tl.int64)
    if HAS_MASK:  # noqa: SIM102 - this is known at compile time, the other condition is not
        if tl.load(only + matrix) == 0:
            return
    i, c = tl.arange(0, N), tl.program_id(1) * W + tl.arange(0, W)
    at = matrix * n * k + i[:, None] * row_stride + c[None, :] * column_stride
    inside = (i < n)[:, None] & (c < k)[None, :]
    x = tl.load(X + at, mask=inside, other=0.0).to(tl.float64)
    own = matrix * stride
    x = turned_tile(x, codes, even + own, odd + own, rounds, BOOSTS, n, N, W)
    tl.store(out + at, x, mask=inside)
