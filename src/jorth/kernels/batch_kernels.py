"""Rounds on the majoriser of one gradient for a batch of small matrices: one program a matrix, one launch in all."""

import triton
import triton.language as tl

from jorth.kernels.pair import kronecker_step, row_factors, turned_rows


@triton.jit
def majoriser_rounds(
    X, centre, first, second, signs, curvature, rounds, n, k, m,
    EPS: tl.constexpr, ALL: tl.constexpr, LANES: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Pair steps for L/2 ||X - centre||^2 on rows of X, in place. Both hold transposes, (b, k, n): a lane is a pair.

    The pairs of a round are first, second (rounds, m). A round sees what the last one wrote: the barrier is between.
    """
    X += tl.program_id(0).to(tl.int64) * n * k
    centre += tl.program_id(0).to(tl.int64) * n * k
    L = tl.load(curvature)
    t, c = tl.arange(0, LANES), tl.arange(0, WIDTH)[None, :] * n
    inside = (t < m)[:, None] & (tl.arange(0, WIDTH) < k)[None, :]
    for turn in range(rounds):
        i = tl.load(first + turn * m + t, mask=t < m, other=0)
        j = tl.load(second + turn * m + t, mask=t < m, other=0)
        opposite = tl.load(signs + i) != tl.load(signs + j)
        at_i, at_j = i[:, None] + c, j[:, None] + c
        a, b = tl.load(X + at_i, mask=inside, other=0.0), tl.load(X + at_j, mask=inside, other=0.0)
        p, q = tl.load(centre + at_i, mask=inside, other=0.0), tl.load(centre + at_j, mask=inside, other=0.0)
        p, q = a - p, b - q
        y11, y12, y22 = tl.sum(a * a, 1), tl.sum(a * b, 1), tl.sum(b * b, 1)
        plus, minus = tl.sum((a + b) * (a + b), 1), tl.sum((a - b) * (a - b), 1)
        v11, v12, v21, v22, _, _ = kronecker_step(
            L * tl.sum(p * a, 1), L * tl.sum(p * b, 1), L * tl.sum(q * a, 1), L * tl.sum(q * b, 1),
            y11, y12, y22, plus, minus, L + 0.0 * y11, 0.0 * y11, L + 0.0 * y11, 0.0 * y11, opposite, EPS, ALL,
        )  # fmt: skip
        mixed, keep, m11, m12, m21, m22 = row_factors(v11, v12, v21, v22)
        a, b = turned_rows(a, b, mixed[:, None], keep[:, None], m11[:, None], m12[:, None], m21[:, None], m22[:, None])
        tl.store(X + at_i, a, mask=inside)
        tl.store(X + at_j, b, mask=inside)
        tl.debug_barrier()
