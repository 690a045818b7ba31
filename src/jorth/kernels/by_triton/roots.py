"""The one-dimensional minimisers of `jorth.plane` for Triton: one problem per lane, in float64.

The formulas are those of `hyperbola`, `lightcone` and `circle`. Loops have a fixed length, and
masks replace branches.
"""

import triton
import triton.language as tl

from jorth.plane import circle as plain_circle
from jorth.plane import hyperbola as plain_hyperbola

EPS = tl.constexpr(2.0**-52)
LARGE = tl.constexpr(plain_hyperbola.LARGE)
DEFINITE = tl.constexpr(plain_circle.DEFINITE)
HYPERBOLA_STEPS = tl.constexpr(plain_hyperbola.NEWTON_STEPS)
CIRCLE_STEPS = tl.constexpr(plain_circle.NEWTON_STEPS)


@triton.jit
def finite(x):
    """Whether x is neither infinite nor NaN."""
    return tl.abs(x) < float("inf")


@triton.jit
def cube_root(x):
    """x^(1/3) for x >= 0, good enough for the start of an iteration."""
    return tl.exp(tl.log(x) * (1.0 / 3.0))


@triton.jit
def cosh_of(S):
    """sqrt(1 + S^2) for S >= 0, without overflow."""
    bounded = tl.minimum(S, LARGE)
    return tl.maximum(tl.sqrt(1.0 + bounded * bounded), S)


@triton.jit
def dominant_balance(a, d, m):
    """The start of `hyperbola_root`: see `jorth.plane.hyperbola`."""
    quarter = tl.maximum(m, 0.0) * 0.25
    bounded = tl.minimum(quarter, LARGE)
    at_zero_d = tl.where(
        quarter > LARGE, quarter, tl.sqrt(tl.maximum(bounded * bounded - 1.0, 0.0))
    )
    cubic = at_zero_d + cube_root(2.0 * d / tl.maximum(m, 1.0))
    linear = tl.where(m < 4.0, d / (4.0 - m), float("inf"))
    attracted = tl.minimum(tl.minimum(0.25 * a, linear), cubic)
    k = tl.maximum(-m, 0.0)
    cube = cube_root(0.125 * k)
    ratio = d / tl.sqrt(tl.abs(a)) / tl.sqrt(k + d)
    repelled = tl.where(a >= 0.0, tl.maximum(0.25 * a, cube), tl.minimum(cube, ratio))
    repelled = tl.minimum(tl.maximum(repelled, linear), 0.25 * d)
    return tl.where(m >= 0.0, attracted, repelled)


@triton.jit
def hyperbola_root(a, d):
    """S >= 0 with S (4 - a / c) = d / (c (S + c)), c = sqrt(1 + S^2)."""
    m = a - d
    S = dominant_balance(a, d, m)
    for _ in tl.static_range(HYPERBOLA_STEPS):
        c = cosh_of(S)
        inverse = 1.0 / c
        value = S * (4.0 - a * inverse) - d * inverse / (S + c)
        slope = 4.0 - m * inverse * inverse * inverse
        S = tl.maximum(tl.where(slope > 0.0, S - value / slope, S), 0.0)
    return S


@triton.jit
def interior(A, B, C, D, POSITIVE: tl.constexpr):
    """The minimiser of A u + B / u + C u^2 + D / u^2 for C > 0 and D > 0."""
    root_c, root_d = tl.sqrt(C), tl.sqrt(D)
    product = root_c * root_d
    r = tl.sqrt(root_d / root_c)
    al, be = A * (r / product), B * (1.0 / r / product)
    sigma = A * 0.0 + 1.0
    if not POSITIVE:
        sigma = tl.where(al > -be, -sigma, sigma)
    right, left = -sigma * al, -sigma * be
    inverted = ((right == left) & (r > 1.0)) | (left > right)
    a, b = tl.maximum(right, left), tl.minimum(right, left)
    S = hyperbola_root(a, 0.5 * (a - b))
    v = S + cosh_of(S)
    far = (a > 2.0 / EPS) & (b >= -a)
    u = tl.where(inverted, sigma * (r / v), sigma * (r * v))
    return tl.where(far, tl.where(inverted, -2.0 * D / B, -A / (2.0 * C)), u)


@triton.jit
def attained(A, B, C, D, POSITIVE: tl.constexpr):
    """Whether the infimum is a minimum: see `jorth.plane.lightcone`."""
    rises_out, rises_in = C > 0.0, D > 0.0
    falls_inward, falls_outward = A != 0.0, B != 0.0
    if POSITIVE:
        rises_out = rises_out | ((C == 0.0) & (A > 0.0))
        rises_in = rises_in | ((D == 0.0) & (B > 0.0))
        falls_inward, falls_outward = A < 0.0, B < 0.0
    flat_out = (C == 0.0) & (A == 0.0) & (D > 0.0) & falls_outward
    flat_in = (D == 0.0) & (B == 0.0) & (C > 0.0) & falls_inward
    constant = (A == 0.0) & (B == 0.0) & (C == 0.0) & (D == 0.0)
    return (rises_out & rises_in) | flat_out | flat_in | constant


@triton.jit
def lightcone(A, B, C, D, POSITIVE: tl.constexpr):
    """(u, unbounded) of min A u + B / u + C u^2 + D / u^2 over u != 0, or u > 0, without NaN."""
    u = A * 0.0 + 1.0
    u = tl.where((C == 0.0) & (A == 0.0) & (B != 0.0), -2.0 * D / B, u)
    u = tl.where((D == 0.0) & (B == 0.0) & (A != 0.0), -A / (2.0 * C), u)
    inside = (C > 0.0) & (D > 0.0)
    C_, D_ = tl.where(C > 0.0, C, 1.0), tl.where(D > 0.0, D, 1.0)
    if POSITIVE:  # a zero is replaced by a value whose term is negligible at the minimiser
        upper = tl.maximum(tl.sqrt(tl.maximum(B, 0.0) / A), cube_root(2.0 * D / A))
        lower = tl.minimum(tl.sqrt(B / tl.maximum(A, 0.0)), cube_root(B / (2.0 * C)))
        C_ = tl.where(C == 0.0, EPS * EPS * A / upper, C)
        D_ = tl.where(D == 0.0, EPS * EPS * B * lower, D)
        cubic = ((C == 0.0) & (A > 0.0) & ((D > 0.0) | (B > 0.0))) | (
            (D == 0.0) & (B > 0.0) & ((C > 0.0) | (A > 0.0))
        )
        inside = inside | (cubic & (C >= 0.0) & (D >= 0.0))
    u = tl.where(inside, interior(A, B, C_, D_, POSITIVE), u)
    if POSITIVE:  # sqrt(B / A), where C and D are negligible
        root_a, root_b = tl.sqrt(A), tl.sqrt(B)
        balance = root_b / root_a
        small = (C * balance) * balance + (D / balance) / balance <= 0.125 * EPS * (root_a * root_b)
        u = tl.where((A > 0.0) & (B > 0.0) & (C >= 0.0) & (D >= 0.0) & small, balance, u)
    bounded = attained(A, B, C, D, POSITIVE) & finite(u) & (u != 0.0)
    return tl.where(bounded, u, 1.0), bounded == 0


@triton.jit
def turn(x, y, slope, curvature, floor):
    """(x, y) after one Newton step in the angle, if it is small and the curvature is definite."""
    angle = -slope / curvature
    angle = tl.where((curvature > floor) & (tl.abs(angle) < 1e-3), angle, 0.0)
    even = 1.0 - 0.5 * angle * angle
    x, y = x * even - y * angle, y * even + x * angle
    inverse = 1.0 / tl.sqrt(x * x + y * y)
    return x * inverse, y * inverse


@triton.jit
def quadrant(al, be, R4):
    """The minimiser of -al x - be y + R4/2 x^2 on the circle, x, y >= 0, for al, be, R4 >= 0."""
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
    """(x, y) of min a x + b y + c x^2 + d x y + e y^2 on the unit circle."""
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
    return turn(x, y, slope, curvature, DEFINITE)
