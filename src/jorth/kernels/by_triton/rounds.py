"""One Jacobi round on f = 1/2 tr(X^T A X D) + <C, X> in three kernels that update Y = X D X^T.

`pair_coefficients` reads A and Y once, and C and X if C is given; `solve_pairs` has one pair per
lane; `turn_matrices` reads and writes X and Y once: 6 n^2 words per round.
"""

import triton
import triton.language as tl

from jorth.kernels.by_triton.pair import kronecker_step, row_factors, turned_rows


@triton.jit
def cross_products(U, W, i, j, width, TILE: tl.constexpr):
    """The products <U_i, W_i>, <U_i, W_j>, <U_j, W_i>, <U_j, W_j> of rows, summed in float64."""
    ii, ij = tl.zeros([TILE], tl.float64), tl.zeros([TILE], tl.float64)
    ji, jj = tl.zeros([TILE], tl.float64), tl.zeros([TILE], tl.float64)
    for start in range(0, width, TILE):
        c = start + tl.arange(0, TILE)
        inside = c < width
        a = tl.load(U + i * width + c, mask=inside, other=0.0)
        b = tl.load(U + j * width + c, mask=inside, other=0.0)
        x = tl.load(W + i * width + c, mask=inside, other=0.0)
        y = tl.load(W + j * width + c, mask=inside, other=0.0)
        a, b, x, y = a.to(tl.float64), b.to(tl.float64), x.to(tl.float64), y.to(tl.float64)
        ii += a * x
        ij += a * y
        ji += b * x
        jj += b * y
    return tl.sum(ii, 0), tl.sum(ij, 0), tl.sum(ji, 0), tl.sum(jj, 0)


@triton.jit
def null_lengths(X, i, j, width, TILE: tl.constexpr):
    """||x_i + x_j||^2 and ||x_i - x_j||^2, each to full relative accuracy."""
    plus, minus = tl.zeros([TILE], tl.float64), tl.zeros([TILE], tl.float64)
    for start in range(0, width, TILE):
        c = start + tl.arange(0, TILE)
        a = tl.load(X + i * width + c, mask=c < width, other=0.0).to(tl.float64)
        b = tl.load(X + j * width + c, mask=c < width, other=0.0).to(tl.float64)
        plus += (a + b) * (a + b)
        minus += (a - b) * (a - b)
    return tl.sum(plus, 0), tl.sum(minus, 0)


@triton.jit
def pair_coefficients(
    A, C, X, Y, first, second, coefficients, n, k, m,
    HAS_C: tl.constexpr, HAS_D: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """P, Y_BB, its null forms and A_BB, one pair per program: rows of ``coefficients`` (12, m)."""
    t = tl.program_id(0)
    i, j = tl.load(first + t).to(tl.int64), tl.load(second + t).to(tl.int64)
    p11, p12, p21, p22 = cross_products(A, Y, i, j, n, TILE)
    if HAS_C:
        c11, c12, c21, c22 = cross_products(C, X, i, j, k, TILE)
        p11, p12, p21, p22 = p11 + c11, p12 + c12, p21 + c21, p22 + c22
    y11, y22 = tl.load(Y + i * n + i).to(tl.float64), tl.load(Y + j * n + j).to(tl.float64)
    y12 = tl.load(Y + i * n + j).to(tl.float64)
    plus, minus = y11 + 2.0 * y12 + y22, y11 - 2.0 * y12 + y22
    if not HAS_D:  # noqa: SIM102 - this is known at compile time, the other condition is not
        if tl.minimum(plus, minus) < 1e-4 * (y11 + y22):
            plus, minus = null_lengths(X, i, j, k, TILE)
    out = coefficients + t
    tl.store(out, p11)
    tl.store(out + m, p12)
    tl.store(out + 2 * m, p21)
    tl.store(out + 3 * m, p22)
    tl.store(out + 4 * m, y11)
    tl.store(out + 5 * m, y12)
    tl.store(out + 6 * m, y22)
    tl.store(out + 7 * m, plus)
    tl.store(out + 8 * m, minus)
    tl.store(out + 9 * m, tl.load(A + i * n + i).to(tl.float64))
    tl.store(out + 10 * m, tl.load(A + i * n + j).to(tl.float64))
    tl.store(out + 11 * m, tl.load(A + j * n + j).to(tl.float64))


@triton.jit(do_not_specialize=["m"])
def solve_pairs(
    coefficients, first, second, signs, settings, factors, shift, mix, gained, flags, m,
    EPS: tl.constexpr, ALL_COMPONENTS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """The step of every pair, as `row_factors` (6, m) and, for columns, as shift and mix.

    V - I has ``shift`` on the diagonal and ``mix`` beside it. ``settings`` holds the factor of A_BB
    and theta. Decreases and flags are added to ``gained`` and ``flags``. An index without a partner
    is a pair with itself.
    """
    t = tl.program_id(0) * LANES + tl.arange(0, LANES)
    live = t < m
    i, j = tl.load(first + t, mask=live, other=0), tl.load(second + t, mask=live, other=0)
    opposite = tl.load(signs + i) != tl.load(signs + j)
    at = coefficients + t
    scale, theta = tl.load(settings), tl.load(settings + 1)
    v11, v12, v21, v22, decrease, unbounded = kronecker_step(
        tl.load(at, mask=live, other=0.0),
        tl.load(at + m, mask=live, other=0.0),
        tl.load(at + 2 * m, mask=live, other=0.0),
        tl.load(at + 3 * m, mask=live, other=0.0),
        tl.load(at + 4 * m, mask=live, other=1.0),
        tl.load(at + 5 * m, mask=live, other=0.0),
        tl.load(at + 6 * m, mask=live, other=1.0),
        tl.load(at + 7 * m, mask=live, other=2.0),
        tl.load(at + 8 * m, mask=live, other=2.0),
        scale * tl.load(at + 9 * m, mask=live, other=1.0),
        scale * tl.load(at + 10 * m, mask=live, other=0.0),
        scale * tl.load(at + 11 * m, mask=live, other=1.0),
        theta,
        opposite,
        EPS,
        ALL_COMPONENTS,
    )
    alone = i == j
    v11, v22 = tl.where(alone, 1.0, v11), tl.where(alone, 1.0, v22)
    v12, v21 = tl.where(alone, 0.0, v12), tl.where(alone, 0.0, v21)
    counted = live & (alone == 0)
    tl.store(gained + t, tl.load(gained + t, mask=counted) + decrease, mask=counted)
    before = tl.load(flags + t, mask=counted)
    tl.store(flags + t, before | unbounded.to(tl.int32), mask=counted)
    even = v21 * v21 / (1.0 + v22)  # V22 - 1, up to sign, for proper steps near I
    near = (v11 > 0.5) & (v22 > 0.5)
    even = tl.where(opposite, even, -even)
    tl.store(shift + i, tl.where(near, even, v11 - 1.0), mask=live)
    tl.store(shift + j, tl.where(near, even, v22 - 1.0), mask=live)
    tl.store(mix + i, v12, mask=live)
    tl.store(mix + j, v21, mask=live)
    mixed, keep, m11, m12, m21, m22 = row_factors(v11, v12, v21, v22)
    out = factors + t
    tl.store(out, mixed, mask=live)
    tl.store(out + m, keep, mask=live)
    tl.store(out + 2 * m, m11, mask=live)
    tl.store(out + 3 * m, m12, mask=live)
    tl.store(out + 4 * m, m21, mask=live)
    tl.store(out + 5 * m, m22, mask=live)


@triton.jit
def load_factors(factors, t, live, m, X):
    """The row factors of pairs t in the precision of X, as columns."""
    real = X.dtype.element_ty
    at = factors + t[:, None]
    mask = live[:, None]
    mixed = tl.load(at, mask=mask, other=0.0).to(real)
    keep = tl.load(at + m, mask=mask, other=0.0).to(real)
    m11 = tl.load(at + 2 * m, mask=mask, other=0.0).to(real)
    m12 = tl.load(at + 3 * m, mask=mask, other=0.0).to(real)
    m21 = tl.load(at + 4 * m, mask=mask, other=0.0).to(real)
    m22 = tl.load(at + 5 * m, mask=mask, other=0.0).to(real)
    return mixed, keep, m11, m12, m21, m22


@triton.jit
def turn_matrices(
    X, Y, new_Y, first, second, partner, factors, shift, mix, n, k, m,
    ROWS: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """X <- V X in place and new_Y = V Y V^T, a few pairs of rows and a tile of columns per program.

    Column c of V Y V^T is 1 + shift_c times its own and mix_c times its partner's column of V Y.
    """
    c = tl.program_id(0) * TILE + tl.arange(0, TILE)
    t = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    live = t < m
    i = tl.load(first + t, mask=live, other=0).to(tl.int64)[:, None]
    j = tl.load(second + t, mask=live, other=0).to(tl.int64)[:, None]
    mixed, keep, m11, m12, m21, m22 = load_factors(factors, t, live, m, X)
    if tl.program_id(2) == 0:
        inside = live[:, None] & (c < n)[None, :]
        a = tl.load(Y + i * n + c[None, :], mask=inside)
        b = tl.load(Y + j * n + c[None, :], mask=inside)
        other = tl.load(partner + c, mask=c < n, other=0)[None, :]
        a_, b_ = tl.load(Y + i * n + other, mask=inside), tl.load(Y + j * n + other, mask=inside)
        own = tl.load(shift + c, mask=c < n, other=0.0)[None, :]
        across = tl.load(mix + c, mask=c < n, other=0.0)[None, :]
        a, b = turned_rows(a, b, mixed, keep, m11, m12, m21, m22)
        a_, b_ = turned_rows(a_, b_, mixed, keep, m11, m12, m21, m22)
        tl.store(new_Y + i * n + c[None, :], a + (own * a + across * a_), mask=inside)
        tl.store(new_Y + j * n + c[None, :], b + (own * b + across * b_), mask=inside)
    else:
        inside = live[:, None] & (c < k)[None, :]
        at_i, at_j = X + i * k + c[None, :], X + j * k + c[None, :]
        a, b = tl.load(at_i, mask=inside), tl.load(at_j, mask=inside)
        a, b = turned_rows(a, b, mixed, keep, m11, m12, m21, m22)
        tl.store(at_i, a, mask=inside)
        tl.store(at_j, b, mask=inside)
