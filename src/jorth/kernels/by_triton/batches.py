"""Rounds on the majoriser of one gradient for a batch of small matrices, one program each."""

import triton
import triton.language as tl

from jorth.kernels.by_triton.pair import kronecker_step, row_factors, turned_rows


@triton.jit
def majoriser_rounds(
    X, centre, first, second, signs, settings, decrease, rounds, n, k, m,
    EPS: tl.constexpr, ALL_COMPONENTS: tl.constexpr, LANES: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Pair steps for L/2 ||X - centre||^2 on rows of X, in place, one pair per lane.

    X and centre hold transposes, (b, k, n). ``settings`` holds L and theta; ``first`` and
    ``second`` (rounds, m) are the pairs. The barrier lets a round see what the last one wrote.
    """
    X += tl.program_id(0).to(tl.int64) * n * k
    centre += tl.program_id(0).to(tl.int64) * n * k
    L, theta = tl.load(settings), tl.load(settings + 1)
    gained = tl.zeros([LANES], tl.float64)
    t = tl.arange(0, LANES)
    for turn in range(rounds):
        i = tl.load(first + turn * m + t, mask=t < m, other=0)
        j = tl.load(second + turn * m + t, mask=t < m, other=0)
        p11, p12 = tl.zeros([LANES, WIDTH], tl.float64), tl.zeros([LANES, WIDTH], tl.float64)
        p21, p22 = tl.zeros([LANES, WIDTH], tl.float64), tl.zeros([LANES, WIDTH], tl.float64)
        y11, y12 = tl.zeros([LANES, WIDTH], tl.float64), tl.zeros([LANES, WIDTH], tl.float64)
        y22, plus = tl.zeros([LANES, WIDTH], tl.float64), tl.zeros([LANES, WIDTH], tl.float64)
        minus = tl.zeros([LANES, WIDTH], tl.float64)
        for start in range(0, k, WIDTH):
            c = start + tl.arange(0, WIDTH)
            inside = (t < m)[:, None] & (c < k)[None, :]
            at_i, at_j = i[:, None] + c[None, :] * n, j[:, None] + c[None, :] * n
            a = tl.load(X + at_i, mask=inside, other=0.0)
            b = tl.load(X + at_j, mask=inside, other=0.0)
            p = a - tl.load(centre + at_i, mask=inside, other=0.0)
            q = b - tl.load(centre + at_j, mask=inside, other=0.0)
            p11, p12, p21, p22 = p11 + p * a, p12 + p * b, p21 + q * a, p22 + q * b
            y11, y12, y22 = y11 + a * a, y12 + a * b, y22 + b * b
            plus, minus = plus + (a + b) * (a + b), minus + (a - b) * (a - b)
        opposite = tl.load(signs + i) != tl.load(signs + j)
        y11, y12, y22 = tl.sum(y11, 1), tl.sum(y12, 1), tl.sum(y22, 1)
        v11, v12, v21, v22, gain, _ = kronecker_step(
            L * tl.sum(p11, 1), L * tl.sum(p12, 1), L * tl.sum(p21, 1), L * tl.sum(p22, 1),
            y11, y12, y22, tl.sum(plus, 1), tl.sum(minus, 1),
            L + 0.0 * y11, 0.0 * y11, L + 0.0 * y11, theta + 0.0 * y11, opposite,
            EPS, ALL_COMPONENTS,
        )  # fmt: skip
        gained += tl.where(t < m, gain, 0.0)
        mixed, keep, m11, m12, m21, m22 = row_factors(v11, v12, v21, v22)
        for start in range(0, k, WIDTH):
            c = start + tl.arange(0, WIDTH)
            inside = (t < m)[:, None] & (c < k)[None, :]
            at_i, at_j = i[:, None] + c[None, :] * n, j[:, None] + c[None, :] * n
            a = tl.load(X + at_i, mask=inside, other=0.0)
            b = tl.load(X + at_j, mask=inside, other=0.0)
            a, b = turned_rows(
                a, b, mixed[:, None], keep[:, None],
                m11[:, None], m12[:, None], m21[:, None], m22[:, None],
            )  # fmt: skip
            tl.store(X + at_i, a, mask=inside)
            tl.store(X + at_j, b, mask=inside)
        tl.debug_barrier()
    tl.store(decrease + tl.program_id(0), tl.sum(gained, 0))
