"""One Jacobi round on f = 1/2 tr(X^T A X D) + <C, X> for Triton: coefficients, steps, application.

A round moves 6 n^2 words. The step of a pair is that of `jorth.plane.families` in float64, where
loops have a fixed length and masks replace branches. Triton has no tuples of tensors, hence the
many arguments.
"""

import triton
import triton.language as tl

from jorth.plane import apply, families, roots

EPS = tl.constexpr(2.0**-52)
LARGE = tl.constexpr(roots.LARGE)
DEFINITE = tl.constexpr(roots.DEFINITE)
HYPERBOLA_STEPS = tl.constexpr(roots.HYPERBOLA_STEPS)
CIRCLE_STEPS = tl.constexpr(roots.CIRCLE_STEPS)
NEAR_NULL = tl.constexpr(families.NEAR_NULL)
SMALL_BOOST = tl.constexpr(apply.SMALL_BOOST)
SMALL_TURN = tl.constexpr(apply.SMALL_TURN)


# -- the one-dimensional minimisers


@triton.jit
def cube_root(x):
    """Return x^(1/3) for x >= 0, good enough for the start of an iteration."""
    return tl.exp(tl.log(x) * (1.0 / 3.0))


@triton.jit
def cosh_of(S):
    """Return sqrt(1 + S^2) for S >= 0, without overflow."""
    bounded = tl.minimum(S, LARGE)
    return tl.maximum(tl.sqrt(1.0 + bounded * bounded), S)


@triton.jit
def hyperbola_root(a, d):
    """Return S >= 0 with S (4 - a / c) = d / (c (S + c)), c = sqrt(1 + S^2)."""
    m = a - d
    quarter = tl.maximum(m, 0.0) * 0.25  # the dominant balance
    bounded = tl.minimum(quarter, LARGE)
    root = tl.sqrt(tl.maximum(bounded * bounded - 1.0, 0.0))
    cubic = tl.where(quarter > LARGE, quarter, root) + cube_root(2.0 * d / tl.maximum(m, 1.0))
    linear = tl.where(m < 4.0, d / (4.0 - m), float("inf"))
    attracted = tl.minimum(tl.minimum(0.25 * a, linear), cubic)
    k = tl.maximum(-m, 0.0)
    cube = cube_root(0.125 * k)
    ratio = d / tl.sqrt(tl.abs(a)) / tl.sqrt(k + d)
    repelled = tl.where(a >= 0.0, tl.maximum(0.25 * a, cube), tl.minimum(cube, ratio))
    repelled = tl.minimum(tl.maximum(repelled, linear), 0.25 * d)
    S = tl.where(m >= 0.0, attracted, repelled)
    for _ in tl.static_range(HYPERBOLA_STEPS):
        c = cosh_of(S)
        inverse = 1.0 / c
        value = S * (4.0 - a * inverse) - d * inverse / (S + c)
        slope = 4.0 - m * inverse * inverse * inverse
        S = tl.maximum(tl.where(slope > 0.0, S - value / slope, S), 0.0)
    return S


@triton.jit
def interior(A, B, C, D):
    """Return the minimiser u > 0 of A u + B / u + C u^2 + D / u^2 for C > 0 and D > 0."""
    root_c, root_d = tl.sqrt(C), tl.sqrt(D)
    product = root_c * root_d
    r = tl.sqrt(root_d / root_c)
    right, left = -A * (r / product), -B * (1.0 / r / product)
    inverted = ((right == left) & (r > 1.0)) | (left > right)
    a, b = tl.maximum(right, left), tl.minimum(right, left)
    S = hyperbola_root(a, 0.5 * (a - b))
    v = S + cosh_of(S)
    far = (a > 2.0 / EPS) & (b >= -a)
    u = tl.where(inverted, r / v, r * v)
    return tl.where(far, tl.where(inverted, -2.0 * D / B, -A / (2.0 * C)), u)


@triton.jit
def lightcone(A, B, C, D):
    """Return (u, unbounded) of min A u + B / u + C u^2 + D / u^2, u > 0, as `jorth.plane.roots`."""
    no_out, no_in = (C == 0.0) & (A == 0.0), (D == 0.0) & (B == 0.0)
    rises_out = (C > 0.0) | ((C == 0.0) & (A > 0.0))
    rises_in = (D > 0.0) | ((D == 0.0) & (B > 0.0))
    attained = (rises_out & rises_in) | (no_out & no_in)
    attained = attained | (no_out & (D > 0.0) & (B < 0.0)) | (no_in & (C > 0.0) & (A < 0.0))
    u = tl.where(no_out & (B != 0.0), -2.0 * D / B, 1.0)
    u = tl.where(no_in & (A != 0.0), -A / (2.0 * C), u)
    u = tl.where((A > 0.0) & (B > 0.0), tl.sqrt(B / A), u)  # where C and D underflow
    # C and D are raised to where their terms begin to matter
    upper = tl.maximum(tl.sqrt(tl.maximum(B, 0.0) / A), cube_root(2.0 * D / A))
    lower = tl.minimum(tl.sqrt(B / tl.maximum(A, 0.0)), cube_root(B / (2.0 * C)))
    C = tl.where((A > 0.0) & (C >= 0.0), tl.maximum(C, EPS * EPS * A / upper), C)
    D = tl.where((B > 0.0) & (D >= 0.0), tl.maximum(D, EPS * EPS * B * lower), D)
    u = tl.where((C > 0.0) & (D > 0.0), interior(A, B, C, D), u)
    bounded = attained & (tl.abs(u) < float("inf")) & (u != 0.0)
    return tl.where(bounded, u, 1.0), bounded == 0


@triton.jit
def polish_angle(x, y, slope, curvature, floor):
    """Return (x, y) after a Newton step in the angle, if it is small and the minimum definite."""
    angle = -slope / curvature
    angle = tl.where((curvature > floor) & (tl.abs(angle) < 1e-3), angle, 0.0)
    even = 1.0 - 0.5 * angle * angle
    x, y = x * even - y * angle, y * even + x * angle
    inverse = 1.0 / tl.sqrt(x * x + y * y)
    return x * inverse, y * inverse


@triton.jit
def quadrant(al, be, R4):
    """Return the minimiser of -al x - be y + R4/2 x^2, x, y >= 0, for al, be, R4 >= 0."""
    excess = al - R4
    cube_be = cube_root(be)
    cube = cube_root(0.25 * R4) * cube_be * cube_be
    near = tl.minimum(cube, be * tl.sqrt(0.25 * R4 / tl.abs(excess)))
    L = tl.maximum(tl.maximum(be, excess), tl.where(excess >= 0.0, 1.2599 * cube, near))
    hard = L <= 0.0  # be = 0 and al <= R4: the multiplier is zero
    L = tl.where(hard, 1.0, L)
    for _ in tl.static_range(CIRCLE_STEPS):
        outer, inner = 1.0 / (R4 + L), 1.0 / L
        x, y = al * outer, be * inner
        square = x * x + y * y
        step = square * (tl.sqrt(square) - 1.0) / (x * x * outer + y * y * inner)
        L += tl.where(step > 0.0, step, 0.0)
    x_hard = tl.where(R4 > 0.0, al / R4, 1.0)
    x = tl.where(hard, x_hard, al / (R4 + L))
    y = tl.where(hard, tl.sqrt(tl.maximum((1.0 - x_hard) * (1.0 + x_hard), 0.0)), be / L)
    inverse = 1.0 / tl.sqrt(x * x + y * y)
    return x * inverse, y * inverse


@triton.jit
def circle(a, b, c, d, e):
    """Return (x, y) of min a x + b y + c x^2 + d x y + e y^2 on the unit circle."""
    size = tl.maximum(tl.maximum(tl.abs(a), tl.abs(b)), tl.maximum(tl.abs(c), tl.abs(d)))
    size = tl.maximum(size, tl.abs(e))
    scale = 1.0 / tl.where(size > 0.0, size, 1.0)
    a, b, c, d, e = a * scale, b * scale, c * scale, d * scale, e * scale
    half_difference, half_cross = 0.5 * (c - e), 0.5 * d
    R = tl.sqrt(half_difference * half_difference + half_cross * half_cross)
    t = tl.where(R > 0.0, half_cross / (R + tl.abs(half_difference)), 0.0)
    near = 1.0 / tl.sqrt(1.0 + t * t)
    far = tl.abs(t) * near
    p = tl.where(half_difference >= 0.0, near, far)
    q = tl.where(half_difference >= 0.0, far, near)
    q = tl.where(half_cross < 0.0, -q, q)
    al, be = a * p + b * q, b * p - a * q
    x, y = quadrant(tl.abs(al), tl.abs(be), 4.0 * R)
    # a tie goes to the point whose first coordinate in the old axes is larger
    x = tl.where(al > 0.0, -x, x)
    y = tl.where((be > 0.0) | ((be == 0.0) & (q >= 0.0)), -y, y)
    x, y = x * p - y * q, x * q + y * p
    squares, cross = x * x - y * y, x * y
    slope = b * x - a * y + d * squares - 2.0 * (c - e) * cross
    curvature = -a * x - b * y - 2.0 * (c - e) * squares - 4.0 * d * cross
    return polish_angle(x, y, slope, curvature, DEFINITE)


# -- the best step of a pair


@triton.jit
def largest(a, b, c):
    """Return the largest of three magnitudes."""
    return tl.maximum(tl.maximum(tl.abs(a), tl.abs(b)), tl.abs(c))


@triton.jit
def rotation(i, r, ii, ir, rr, size_p, noise):
    """Return (x, y, decrease, its rounding) of V = x I + y R on the circle."""
    x, y = circle(i - ii, r - ir, 0.5 * ii, ir, 0.5 * rr)
    h = tl.where(x > 0.0, y * y / (1.0 + x), 1.0 - x)
    slope = x * r + y * (h * ii + x * rr - i) - ir * h * (1.0 + 2.0 * x)
    curvature = (
        -x * i - y * r + (y * y + h * x) * ii - ir * y * (3.0 * x - h) + (x * x - y * y) * rr
    )
    size = tl.abs(i) + tl.abs(r) + tl.abs(ii) + tl.abs(ir) + tl.abs(rr)
    x, y = polish_angle(x, y, slope, curvature, DEFINITE * size)
    h = tl.where(x > 0.0, y * y / (1.0 + x), 1.0 - x)
    decrease = h * i - y * r - 0.5 * (h * h * ii - 2.0 * h * y * ir + y * y * rr)
    step = h + tl.abs(y)
    return x, y, decrease, noise * step * (size_p + step * largest(ii, rr, ir))


@triton.jit
def boost(i, k, ii, ik, kk, out, into, size_p, size_q, noise):
    """Return (x, y, decrease, its rounding, unbounded) of V = u N+ + N- / u, u > 0."""
    al, be, rounding = i - ii, k - ik, noise * (size_p + size_q)
    A, B = 0.5 * (al + be), 0.5 * (al - be)  # zero at rounding level, if its null form is zero
    A = tl.where((out == 0.0) & (tl.abs(A) <= rounding), 0.0, A)
    B = tl.where((into == 0.0) & (tl.abs(B) <= rounding), 0.0, B)
    u, unbounded = lightcone(A, B, out, into)
    p_out, cross, w = 0.5 * (i + k), 0.25 * (ii - kk), u - 1.0
    tilt = p_out - cross
    g = tilt * u * (u + 1.0) + 2.0 * out * u * u * u + 2.0 * into
    slope = k + g + w * (tilt * (2.0 * u + 1.0) + 6.0 * out * u * u)
    step = (u * k + w * g) / slope
    sound = (tl.abs(w) < 0.5) & (slope > 0.0) & (tl.abs(step) < 1e-3)
    w = tl.where(sound, w - step, w)
    u = tl.where(sound, 1.0 + w, u)
    inverse = 1.0 / u
    z = -w * inverse
    linear, bend = w * k * inverse, w * w * inverse * p_out
    grow, shrink, mixed = out * w * w, into * z * z, cross * w * z
    decrease = -(linear + bend + grow + shrink + mixed)
    terms = tl.abs(linear) + tl.abs(bend) + grow + shrink + tl.abs(mixed)
    terms += size_p * (tl.abs(w) + tl.abs(z))
    x, y = 1.0 + 0.5 * w * w * inverse, 0.5 * w * (u + 1.0) * inverse
    return x, y, decrease, noise * terms, unbounded


@triton.jit
def kronecker_step(
    p11, p12, p21, p22, y11, y12, y22, y_plus, y_minus, a11, a12, a22, theta, opposite,
    EPS: tl.constexpr,
):  # fmt: skip
    """Return (x, y, decrease, unbounded) of the best proper step for P and Q = Y (x) A.

    The formulas are those of `jorth.plane._numba.kronecker_step`. ``theta`` < 0 is relative
    to the largest entry of Q; ``EPS`` is the precision of the data.
    """
    noise = 16.0 * EPS
    size_a, size_y = largest(a11, a22, a12), largest(y11, y22, y12)
    size_p, size_q = tl.maximum(largest(p11, p12, p21), tl.abs(p22)), size_a * size_y
    valid = tl.abs(p11 + p12 + p21 + p22 + size_q + theta) < float("inf")
    valid = valid & (size_q + size_p < float("inf"))
    a_plus, a_minus = a11 + 2.0 * a12 + a22, a11 - 2.0 * a12 + a22
    a_plus = tl.where((a_plus < 0.0) & (a_plus >= -noise * size_a), 0.0, a_plus)  # by rounding
    a_minus = tl.where((a_minus < 0.0) & (a_minus >= -noise * size_a), 0.0, a_minus)
    theta = tl.where(theta >= 0.0, theta, -theta * size_q)
    i, r, k = p11 + p22, p21 - p12, p21 + p12
    cross, twice, half = y12 * a12, 2.0 * theta, 0.5 * theta
    ii = y11 * a11 + y22 * a22 + 2.0 * cross + twice
    ir = (y11 - y22) * a12 - y12 * (a11 - a22)
    ik = (y11 + y22) * a12 + y12 * (a11 + a22)
    rr = y11 * a22 + y22 * a11 - 2.0 * cross + twice
    kk = y11 * a22 + y22 * a11 + 2.0 * cross + twice
    x, y, decrease, rounding = i * 0.0 + 1.0, i * 0.0, i * 0.0, i * 0.0
    unbounded = opposite & (opposite == 0)
    boosts = tl.sum(opposite.to(tl.int32), 0)
    if boosts > 0:  # what no lane needs is skipped
        x, y, decrease, rounding, unbounded = boost(
            i, k, ii, ik, kk, 0.125 * y_plus * a_plus + half, 0.125 * y_minus * a_minus + half,
            size_p, size_q, noise,
        )  # fmt: skip
    if boosts < opposite.shape[0]:
        x_turn, y_turn, decrease_turn, rounding_turn = rotation(i, r, ii, ir, rr, size_p, noise)
        x, y = tl.where(opposite, x, x_turn), tl.where(opposite, y, y_turn)
        decrease = tl.where(opposite, decrease, decrease_turn)
        rounding = tl.where(opposite, rounding, rounding_turn)
    decrease = tl.where(decrease <= rounding, 0.0, decrease)
    unbounded = ((unbounded & opposite) | (tl.abs(decrease) == float("inf"))) & valid
    keep = valid & (decrease > 0.0) & (unbounded == 0)
    decrease = tl.where(keep, decrease, tl.where(valid, 0.0, float("nan")))
    return tl.where(keep, x, 1.0), tl.where(keep, y, 0.0), decrease, unbounded


@triton.jit
def apply_to_rows(a, b, mixed, keep, m11, m12, m21, m22):
    """Return the two rows after the step, from the factors of `solve_pairs`."""
    first = a + mixed * b
    second = mixed * a + (1.0 - 2.0 * mixed) * b
    return keep * a + (m11 * first + m12 * second), keep * b + (m21 * first + m22 * second)


# -- one round


@triton.jit
def cross_products(U, W, i, j, width, TILE: tl.constexpr):
    """Return <U_i, W_i>, <U_i, W_j>, <U_j, W_i>, <U_j, W_j> for rows, summed in float64."""
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
    """Return ||x_i + x_j||^2 and ||x_i - x_j||^2, each to full relative accuracy."""
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
        if tl.minimum(plus, minus) < NEAR_NULL * (y11 + y22):
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
    EPS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Return the step of every pair, as ``factors`` (6, m) and, for columns, as shift and mix.

    The factors, mixed, keep, M11, M12, M21 and M22, apply V to rows as in `jorth.plane.apply`; V -
    I has ``shift`` on the diagonal and ``mix`` beside it. ``settings`` holds the factor of A_BB and
    theta. An index without a partner is a pair with itself.
    """
    t = tl.program_id(0) * LANES + tl.arange(0, LANES)
    live = t < m
    i, j = tl.load(first + t, mask=live, other=0), tl.load(second + t, mask=live, other=0)
    opposite = tl.load(signs + i) != tl.load(signs + j)
    at, scale = coefficients + t, tl.load(settings)
    p11, p12 = tl.load(at, mask=live, other=0.0), tl.load(at + m, mask=live, other=0.0)
    p21, p22 = tl.load(at + 2 * m, mask=live, other=0.0), tl.load(at + 3 * m, mask=live, other=0.0)
    y11, y12 = tl.load(at + 4 * m, mask=live, other=1.0), tl.load(at + 5 * m, mask=live, other=0.0)
    y22, plus = tl.load(at + 6 * m, mask=live, other=1.0), tl.load(at + 7 * m, mask=live, other=2.0)
    minus = tl.load(at + 8 * m, mask=live, other=2.0)
    a11 = scale * tl.load(at + 9 * m, mask=live, other=1.0)
    a12 = scale * tl.load(at + 10 * m, mask=live, other=0.0)
    a22 = scale * tl.load(at + 11 * m, mask=live, other=1.0)
    x, y, decrease, unbounded = kronecker_step(
        p11, p12, p21, p22, y11, y12, y22, plus, minus, a11, a12, a22,
        tl.load(settings + 1), opposite, EPS,
    )  # fmt: skip
    alone = i == j
    x, y = tl.where(alone, 1.0, x), tl.where(alone, 0.0, y)
    counted = live & (alone == 0)
    tl.store(gained + t, tl.load(gained + t, mask=counted) + decrease, mask=counted)
    before = tl.load(flags + t, mask=counted)
    tl.store(flags + t, before | unbounded.to(tl.int32), mask=counted)
    even = y * y / (1.0 + x)  # x - 1, up to sign
    on_diagonal = tl.where(x > 0.5, tl.where(opposite, even, -even), x - 1.0)
    tl.store(shift + i, on_diagonal, mask=live)
    tl.store(shift + j, on_diagonal, mask=live)
    tl.store(mix + i, tl.where(opposite, y, -y), mask=live)
    tl.store(mix + j, y, mask=live)
    keep = (opposite & (tl.abs(y) < SMALL_BOOST)) | ((opposite == 0) & (x > SMALL_TURN))
    u = tl.where(y > 0.0, x + y, 1.0 / (x - y))
    grow = 0.5 * tl.where(keep, even + y, u)
    shrink = 0.5 * tl.where(keep, even - y, 1.0 / u)
    turn = tl.where(keep, -even, x)
    out = factors + t
    tl.store(out, tl.where(opposite, x * 0.0 + 1.0, x * 0.0), mask=live)
    tl.store(out + m, tl.where(keep, x * 0.0 + 1.0, x * 0.0), mask=live)
    tl.store(out + 2 * m, tl.where(opposite, grow, turn), mask=live)
    tl.store(out + 3 * m, tl.where(opposite, shrink, -y), mask=live)
    tl.store(out + 4 * m, tl.where(opposite, grow, y), mask=live)
    tl.store(out + 5 * m, tl.where(opposite, -shrink, turn), mask=live)


@triton.jit
def apply_steps(
    X, Y, new_Y, first, second, partner, factors, shift, mix, n, k, m, TILE: tl.constexpr
):  # fmt: skip
    """Set X <- V X and new_Y = V Y V^T, a pair of rows and a tile of columns per program.

    Column c of V Y V^T is 1 + shift_c times its own and mix_c times its partner's column of V Y.
    """
    c = tl.program_id(0) * TILE + tl.arange(0, TILE)
    t = tl.program_id(1)
    i, j = tl.load(first + t).to(tl.int64), tl.load(second + t).to(tl.int64)
    at = factors + t
    real = X.dtype.element_ty  # Triton has no tuples of types
    mixed, keep = tl.load(at).to(real), tl.load(at + m).to(real)
    m11, m12 = tl.load(at + 2 * m).to(real), tl.load(at + 3 * m).to(real)
    m21, m22 = tl.load(at + 4 * m).to(real), tl.load(at + 5 * m).to(real)
    if tl.program_id(2) == 0:
        inside = c < n
        other = tl.load(partner + c, mask=inside, other=0)
        a, b = tl.load(Y + i * n + c, mask=inside), tl.load(Y + j * n + c, mask=inside)
        a_, b_ = tl.load(Y + i * n + other, mask=inside), tl.load(Y + j * n + other, mask=inside)
        own = tl.load(shift + c, mask=inside, other=0.0)
        across = tl.load(mix + c, mask=inside, other=0.0)
        a, b = apply_to_rows(a, b, mixed, keep, m11, m12, m21, m22)
        a_, b_ = apply_to_rows(a_, b_, mixed, keep, m11, m12, m21, m22)
        tl.store(new_Y + i * n + c, a + (own * a + across * a_), mask=inside)
        tl.store(new_Y + j * n + c, b + (own * b + across * b_), mask=inside)
    else:
        inside = c < k
        at_i, at_j = X + i * k + c, X + j * k + c
        a, b = tl.load(at_i, mask=inside), tl.load(at_j, mask=inside)
        a, b = apply_to_rows(a, b, mixed, keep, m11, m12, m21, m22)
        tl.store(at_i, a, mask=inside)
        tl.store(at_j, b, mask=inside)
