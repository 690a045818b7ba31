"""The step of one pair for the CPU: `jorth.plane.families` with branches in place of masks.

Most steps are short and are found from V = I in half the time, with a proof that they are global
minima (`short_boost`, `short_rotation`). Importing this loads numba. Tuples cost nothing: numba
passes their members one by one.
"""

from __future__ import annotations

import math
from collections import namedtuple

import numpy as np

from jorth._numba import compiler
from jorth.plane.apply import SMALL_BOOST, SMALL_TURN
from jorth.plane.families import NEAR_NULL, LinearForms, NullForms, QuadraticForms
from jorth.plane.roots import DEFINITE, LARGE

EPS = float(np.finfo(np.float64).eps)
MAX_STEPS = 12
LAST_STEP = 1e-9
"""After a relative Newton step this small, quadratic convergence leaves only rounding errors."""

SHORT_STEPS = 7
"""Newton steps from V = I until a step counts as long."""
NOISE = 16.0 * EPS

Four = tuple[float, float, float, float]
Five = tuple[float, float, float, float, float]
Step = tuple[float, float, float, float, float, bool]
"""V11, V12, V21, V22, the decrease and whether the problem is unbounded."""


Surrogate = namedtuple("Surrogate", "linear quadratic null size_p size_q")
"""All forms that the minimisers of the four families need, and the largest entries of P and Q."""

compiled = compiler()
inlined = compiler(inline=True)
compiled_sum = compiler(fastmath={"reassoc", "contract"}, inline=True)
"""For sums, which may be reassociated into vector registers; all else is IEEE arithmetic."""


# -- the one-dimensional minimisers


@compiled
def cosh_of(S: float) -> float:
    """Return sqrt(1 + S^2) without overflow."""
    return math.sqrt(1.0 + S * S) if S < LARGE else S


@compiled
def hyperbola_root(a: float, d: float) -> float:
    """Return S >= 0 with S (4 - a / c) = d / (c (S + c)): see `jorth.plane.roots`."""
    m = a - d
    if m >= 0.0:  # the dominant balance
        S = 0.25 * a
        if m < 4.0:
            S = min(S, d / (4.0 - m))
        if 2.0 < m < 16.0:  # elsewhere the bounds above are within a small factor
            quarter = 0.25 * m
            at_zero_d = math.sqrt(max(quarter * quarter - 1.0, 0.0))
            S = min(S, at_zero_d + np.cbrt(2.0 * d / m))
    else:
        cube = float(0.5 * np.cbrt(-m))
        S = max(0.25 * a, cube) if a >= 0.0 else min(cube, d / math.sqrt(-a) / math.sqrt(d - m))
        S = min(max(S, d / (4.0 - m)), 0.25 * d)
    for _ in range(MAX_STEPS):
        c = cosh_of(S)
        inverse = 1.0 / c
        slope = 4.0 - m * inverse * inverse * inverse
        if not slope > 0.0:
            return S
        step = (S * (4.0 - a * inverse) - d * inverse / (S + c)) / slope
        S = max(S - step, 0.0)
        if abs(step) <= LAST_STEP * S:
            return S
    return S


@compiled
def lightcone(A: float, B: float, C: float, D: float, positive: bool) -> tuple[float, bool]:
    """Return (u, unbounded) of min A u + B / u + C u^2 + D / u^2: see `jorth.plane.roots`."""
    if math.isnan(A + B + C + D):
        return 1.0, False
    if positive and C >= 0.0 and D >= 0.0:  # raised to where their terms begin to matter
        least_c, least_d = 0.0, 0.0
        if A > 0.0:
            least_c = EPS * EPS * A / max(math.sqrt(max(B, 0.0) / A), np.cbrt(2.0 * D / A))
        if B > 0.0:
            least_d = EPS * EPS * B * min(math.sqrt(B / max(A, 0.0)), np.cbrt(B / (2.0 * C)))
        C, D = max(C, least_c), max(D, least_d)
    u = math.nan
    if C > 0.0 and D > 0.0:
        u = interior(A, B, C, D, positive)
    elif A == 0.0 and B == 0.0 and C == 0.0 and D == 0.0:
        u = 1.0
    elif positive and A > 0.0 and B > 0.0 and C >= 0.0 and D >= 0.0:  # C and D underflow
        u = math.sqrt(B / A)
    elif C == 0.0 and A == 0.0 and D > 0.0 and (B < 0.0 or not positive):
        u = -2.0 * D / B
    elif D == 0.0 and B == 0.0 and C > 0.0 and (A < 0.0 or not positive):
        u = -A / (2.0 * C)
    if math.isfinite(u) and u != 0.0:
        return u, False
    return 1.0, True


@compiled
def interior(A: float, B: float, C: float, D: float, positive: bool) -> float:
    root_c, root_d = math.sqrt(C), math.sqrt(D)
    product = root_c * root_d
    r = math.sqrt(root_d / root_c)
    al, be = A * (r / product), B / (r * product)
    sigma = -1.0 if al > -be and not positive else 1.0
    a, b = -sigma * al, -sigma * be
    inverted = b > a or (b == a and r > 1.0)
    if inverted:
        a, b = b, a
    if a > 2.0 / EPS and b >= -a:
        return -2.0 * D / B if inverted else -A / (2.0 * C)
    S = hyperbola_root(a, 0.5 * (a - b))
    v = S + cosh_of(S)
    return sigma * (r / v if inverted else r * v)


@compiled
def circle(a: float, b: float, c: float, d: float, e: float) -> tuple[float, float]:
    """Return (x, y) of min a x + b y + c x^2 + d x y + e y^2: see `jorth.plane.roots`."""
    size = max(abs(a), abs(b), abs(c), abs(d), abs(e))
    if size > LARGE or size < 1.0 / LARGE:
        if not 0.0 < size < math.inf:
            return (1.0, 0.0) if size == 0.0 else (math.nan, math.nan)
        a, b, c, d, e = a / size, b / size, c / size, d / size, e / size
    half_difference, half_cross = 0.5 * (c - e), 0.5 * d
    R = math.sqrt(half_difference * half_difference + half_cross * half_cross)
    p, q = 1.0, 0.0
    if R > 0.0:
        t = half_cross / (R + abs(half_difference))
        near = 1.0 / math.sqrt(1.0 + t * t)
        far = abs(t) * near
        p, q = (near, far) if half_difference >= 0.0 else (far, near)
        q = math.copysign(q, half_cross)
    al, be = a * p + b * q, b * p - a * q
    x, y = quadrant(abs(al), abs(be), 4.0 * R)
    if al > 0.0:
        x = -x
    if be > 0.0 or (be == 0.0 and q >= 0.0):
        y = -y
    x, y = x * p - y * q, x * q + y * p
    squares, cross = x * x - y * y, x * y
    slope = b * x - a * y + d * squares - 2.0 * (c - e) * cross
    curvature = -a * x - b * y - 2.0 * (c - e) * squares - 4.0 * d * cross
    return polish_angle(x, y, slope, curvature, max(abs(a), abs(b), abs(c), abs(d), abs(e)))


@compiled
def quadrant(al: float, be: float, R4: float) -> tuple[float, float]:
    excess = al - R4
    L = max(be, excess)
    if 2.0 * be < R4:  # elsewhere the multiplier is within a small factor of the bound above
        root = np.cbrt(be / R4)
        cube = 0.6299 * R4 * root * root
        if excess < 0.0:
            cube = min(cube, be * math.sqrt(0.25 * R4 / -excess))
        L = max(L, cube)
    if L <= 0.0:
        x = al / R4 if R4 > 0.0 else 1.0
        return x, math.sqrt(max((1.0 - x) * (1.0 + x), 0.0))
    for _ in range(MAX_STEPS):
        outer, inner = 1.0 / (R4 + L), 1.0 / L
        x, y = al * outer, be * inner
        square = x * x + y * y
        step = square * (math.sqrt(square) - 1.0) / (x * x * outer + y * y * inner)
        if not step > LAST_STEP * L:
            break
        L += step
    inverse = 1.0 / math.sqrt(x * x + y * y)
    return x * inverse, y * inverse


@compiled
def polish_angle(
    x: float, y: float, slope: float, curvature: float, size: float
) -> tuple[float, float]:
    """Return (x, y) after a Newton step in the angle, if it is small and the minimum definite."""
    angle = -slope / curvature
    if not (curvature > DEFINITE * size and abs(angle) < 1e-3):
        return x, y
    even = 1.0 - 0.5 * angle * angle
    x, y = x * even - y * angle, y * even + x * angle
    inverse = 1.0 / math.sqrt(x * x + y * y)
    return x * inverse, y * inverse


# -- the best step of a pair


@compiled
def short_rotation(i: float, r: float, ii: float, ir: float, rr: float) -> tuple[float, bool]:
    """Return t = tan(angle / 2) by Newton's method from V = I, and whether it is the minimiser.

    This is a trust-region problem: only the minimiser has a multiplier that makes the Hessian
    positive semidefinite. It must be positive definite by a part of 1e-6.
    """
    c1, c3, c4 = 2.0 * (rr - i), 2.0 * (2.0 * ii - rr - i), 2.0 * ir - r
    t, step, slope = 0.0, 0.0, 0.0
    for _ in range(SHORT_STEPS):
        slope = c1 + t * (-12.0 * ir + t * (3.0 * c3 + t * 4.0 * c4))
        step = (r + t * (c1 + t * (-6.0 * ir + t * (c3 + t * c4)))) / slope
        t = min(max(t - step, -2.0), 2.0)
        if not abs(step) > LAST_STEP * abs(t):
            break
    inverse = 1.0 / (1.0 + t * t)
    x, y = 1.0 - 2.0 * t * t * inverse, 2.0 * t * inverse
    linear = (i - ii) * x + (r - ir) * y
    raised = 0.25 * (ii + rr) - 0.5 * (linear + ii * x * x + 2.0 * ir * x * y + rr * y * y)
    radius = 0.0625 * (ii - rr) * (ii - rr) + 0.25 * ir * ir
    found = (slope > 0.0) & (abs(step) <= LAST_STEP * abs(t)) & (abs(t) <= 1.0)
    return t, found & (raised > 0.0) & (raised * raised > 1.000001 * radius)


@compiled
def rotation(surrogate: Surrogate) -> Four:
    """Return (x, y, decrease, its rounding) of V = x I + y R: see `jorth.plane.families`."""
    (i, r, _, _), (ii, ir, _, _, rr, _, _, _), _, size_p, _ = surrogate
    t, short = short_rotation(i, r, ii, ir, rr)
    if short:
        y = 2.0 * t / (1.0 + t * t)
        h = t * y
        x = 1.0 - h
    else:
        x, y = circle(i - ii, r - ir, 0.5 * ii, ir, 0.5 * rr)
        h = y * y / (1.0 + x) if x > 0.0 else 1.0 - x
        slope = x * r + y * (h * ii + x * rr - i) - ir * h * (1.0 + 2.0 * x)
        curvature = (
            -x * i - y * r + (y * y + h * x) * ii - ir * y * (3.0 * x - h) + (x * x - y * y) * rr
        )
        x, y = polish_angle(x, y, slope, curvature, abs(i) + abs(r) + abs(ii) + abs(ir) + abs(rr))
        h = y * y / (1.0 + x) if x > 0.0 else 1.0 - x
    decrease = h * i - y * r - 0.5 * (h * h * ii - 2.0 * h * y * ir + y * y * rr)
    step = h + abs(y)
    return x, y, decrease, NOISE * step * (size_p + step * max(abs(ii), abs(rr), abs(ir)))


@compiled
def reflection(surrogate: Surrogate) -> Four:
    """Return (x, y, decrease, its rounding) of V = x Z + y K on the circle."""
    (i, _, z, k), (ii, _, iz, ik, _, zz, zk, kk), _, _, _ = surrogate
    al, be = z - iz, k - ik
    x, y = circle(al, be, 0.5 * zz, zk, 0.5 * kk)
    value = al * x + be * y + 0.5 * (zz * x * x + 2.0 * zk * x * y + kk * y * y)
    terms = abs(i) + abs(z) + abs(k) + abs(ii) + abs(iz) + abs(ik) + abs(zz) + abs(zk) + abs(kk)
    return x, y, i - 0.5 * ii - value, NOISE * terms


@compiled
def boost_newton_step(
    w: float, odd: float, tilt: float, out: float, into: float
) -> tuple[float, float]:
    """Return the Newton step on u^3 F'(u) = u odd + w g(u), w = u - 1, and the slope."""
    u = 1.0 + w
    g = tilt * u * (u + 1.0) + 2.0 * out * u * u * u + 2.0 * into
    slope = odd + g + w * (tilt * (2.0 * u + 1.0) + 6.0 * out * u * u)
    return (u * odd + w * g) / slope, slope


@compiled
def short_boost(odd: float, tilt: float, out: float, into: float) -> tuple[float, bool]:
    """Return w = u - 1 by Newton's method from V = I, and whether it is the minimiser over u > 0.

    F(u) = A u + B / u + out u^2 + into / u^2 with out, into > 0 has one stationary point there
    unless A, B < 0 and A B >= 16 out into.
    """
    w, step, slope = 0.0, 0.0, 0.0
    for _ in range(SHORT_STEPS):
        step, slope = boost_newton_step(w, odd, tilt, out, into)
        w = min(max(w - step, 0.5 * w - 0.5), 2.0 * w + 1.0)  # at most halve or double u
        if not abs(step) > LAST_STEP * abs(w):
            break
    A, B = tilt - 2.0 * out, tilt - odd - 2.0 * into
    single = (out > 0.0) & (into > 0.0) & ((A >= 0.0) | (B >= 0.0) | (16.0 * out * into > A * B))
    found = (slope > 0.0) & (abs(step) <= LAST_STEP * abs(w))
    return w, found & single & (w >= -0.75) & (w <= 3.0)


@compiled
def boost(surrogate: Surrogate, positive: bool) -> tuple[float, float, float, float, bool]:
    """Return (x, y, decrease, its rounding, unbounded) of V = u N+ + N- / u."""
    linear, quadratic, null, size_p, size_q = surrogate
    i, k, ii, kk = linear.i, linear.k, quadratic.ii, quadratic.kk
    out, into, rounding = null.boost_out, null.boost_in, NOISE * (size_p + size_q)
    p_out, cross, unbounded = 0.5 * (i + k), 0.25 * (ii - kk), False
    tilt = p_out - cross
    w, short = short_boost(k, tilt, out, into)
    u = 1.0 + w
    # the minimum over u > 0 is below that over u < 0 if A sqrt(into / out) + B < 0
    attracts = math.sqrt(into / out) * (tilt - 2.0 * out) + (tilt - k - 2.0 * into) < 0.0
    if not (short and (positive or attracts)):
        al, be = i - ii, k - quadratic.ik
        A = clean(0.5 * (al + be), out, rounding)
        B = clean(0.5 * (al - be), into, rounding)
        u, unbounded = lightcone(A, B, out, into, positive)
        w = u - 1.0
        if abs(w) < 0.5:
            step, slope = boost_newton_step(w, k, tilt, out, into)
            if slope > 0.0 and abs(step) < 1e-3:
                w -= step
                u = 1.0 + w
    z = -w / u
    tangent, bend = w * k / u, w * w / u * p_out
    grow, shrink, mixed = out * w * w, into * z * z, cross * w * z
    decrease = -(tangent + bend + grow + shrink + mixed)
    terms = abs(tangent) + abs(bend) + grow + shrink + abs(mixed) + size_p * (abs(w) + abs(z))
    return 1.0 + 0.5 * w * w / u, 0.5 * w * (u + 1.0) / u, decrease, NOISE * terms, unbounded


@compiled
def flip(surrogate: Surrogate) -> tuple[float, float, float, float, bool]:
    """Return (x, y, decrease, its rounding, unbounded) of V = diag(-1, 1) (u N+ + N- / u)."""
    linear, quadratic, null, size_p, size_q = surrogate
    out, into = null.flip_out, null.flip_in
    al, be = quadratic.iz - linear.z, linear.r - quadratic.ir
    rounding = NOISE * (size_p + size_q)
    A = clean(0.5 * (al + be), out, rounding)
    B = clean(0.5 * (al - be), into, rounding)
    u, unbounded = lightcone(A, B, out, into, False)
    inverse = 1.0 / u
    cross = 0.25 * (quadratic.zz - quadratic.rr)
    value = (A + out * u) * u + (B + into * inverse) * inverse + cross
    terms = size_q + size_p * (1.0 + abs(u) + abs(inverse)) + out * u * u + into * inverse * inverse
    decrease = linear.i - 0.5 * quadratic.ii - value
    return 0.5 * (u + inverse), 0.5 * (u - inverse), decrease, NOISE * terms, unbounded


@compiled
def clean(linear: float, quadratic: float, rounding: float) -> float:
    return 0.0 if quadratic == 0.0 and abs(linear) <= rounding else linear


@compiled
def kronecker_step(
    P: Four,
    Y: Five,
    A: tuple[float, float, float],
    theta: float,
    opposite: bool,
    all_components: bool,
) -> Step:
    """Return the best V for P = (p11, p12, p21, p22) and Q = Y (x) A with A = (a11, a12, a22).

    Y is (y11, y12, y22, y11 + 2 y12 + y22, y11 - 2 y12 + y22), whose last two the caller forms
    accurately. ``theta`` < 0 is relative to the largest entry of Q.
    """
    p11, p12, p21, p22 = P
    y11, y12, y22, y_plus, y_minus = Y
    a11, a12, a22 = A
    size_a = max(abs(a11), abs(a22), abs(a12))
    size_q = size_a * max(abs(y11), abs(y22), abs(y12))
    a_plus, a_minus = a11 + 2.0 * a12 + a22, a11 - 2.0 * a12 + a22
    a_plus = 0.0 if -NOISE * size_a <= a_plus < 0.0 else a_plus  # negative by rounding
    a_minus = 0.0 if -NOISE * size_a <= a_minus < 0.0 else a_minus
    absolute = theta if theta >= 0.0 else -theta * size_q
    cross, twice, half = y12 * a12, 2.0 * absolute, 0.5 * absolute
    linear = LinearForms(p11 + p22, p21 - p12, p11 - p22, p21 + p12)
    quadratic = QuadraticForms(
        ii=y11 * a11 + y22 * a22 + 2.0 * cross + twice,
        ir=(y11 - y22) * a12 - y12 * (a11 - a22),
        iz=y11 * a11 - y22 * a22,
        ik=(y11 + y22) * a12 + y12 * (a11 + a22),
        rr=y11 * a22 + y22 * a11 - 2.0 * cross + twice,
        zz=y11 * a11 + y22 * a22 - 2.0 * cross + twice,
        zk=(y11 - y22) * a12 + y12 * (a11 - a22),
        kk=y11 * a22 + y22 * a11 + 2.0 * cross + twice,
    )
    null = NullForms(
        0.125 * y_plus * a_plus + half,
        0.125 * y_minus * a_minus + half,
        0.125 * y_plus * a_minus + half,
        0.125 * y_minus * a_plus + half,
    )
    size_p = max(abs(p11), abs(p12), abs(p21), abs(p22))
    surrogate, unbounded = Surrogate(linear, quadratic, null, size_p, size_q), False
    if opposite:
        x, y, decrease, noise, unbounded = boost(surrogate, not all_components)
        v11, v12, v21, v22 = x, y, y, x
    else:
        x, y, decrease, noise = rotation(surrogate)
        v11, v12, v21, v22 = x, -y, y, x
    if decrease <= noise:
        v11, v12, v21, v22, decrease = 1.0, 0.0, 0.0, 1.0, 0.0
    if all_components and opposite:
        x, y, gain, noise, flip_unbounded = flip(surrogate)
        unbounded = unbounded or flip_unbounded
        if gain > decrease + noise:
            v11, v12, v21, v22, decrease = -x, -y, y, x, gain
    elif all_components:
        x, y, gain, noise = reflection(surrogate)
        if gain > decrease + noise:
            v11, v12, v21, v22, decrease = x, y, y, -x, gain
    if math.isnan(decrease):  # the input was not a number
        return 1.0, 0.0, 0.0, 1.0, decrease, False
    if unbounded or math.isinf(decrease):
        return 1.0, 0.0, 0.0, 1.0, 0.0, True
    return v11, v12, v21, v22, decrease, False


# -- rows


@compiled_sum
def cross_products(U: np.ndarray, W: np.ndarray, i: int, j: int) -> Four:
    """Return the products <U_i, W_i>, <U_i, W_j>, <U_j, W_i>, <U_j, W_j> of rows."""
    ii, ij, ji, jj = 0.0, 0.0, 0.0, 0.0
    for c in range(U.shape[1]):
        a, b, x, y = U[i, c], U[j, c], W[i, c], W[j, c]
        ii += a * x
        ij += a * y
        ji += b * x
        jj += b * y
    return ii, ij, ji, jj


@compiled_sum
def null_lengths(X: np.ndarray, i: int, j: int) -> tuple[float, float]:
    """Return ||x_i + x_j||^2 and ||x_i - x_j||^2, each to full relative accuracy."""
    plus, minus = 0.0, 0.0
    for c in range(X.shape[1]):
        a, b = X[i, c], X[j, c]
        plus += (a + b) * (a + b)
        minus += (a - b) * (a - b)
    return plus, minus


@inlined
def with_null_lengths(
    y11: float, y12: float, y22: float, X: np.ndarray, i: int, j: int, from_rows: bool
) -> Five:
    """Return y11, y12, y22, y11 + 2 y12 + y22, y11 - 2 y12 + y22 of a product Y of rows.

    ``from_rows`` says that Y is X X^T: null lengths that cancel are then formed from the rows.
    """
    plus, minus = y11 + 2.0 * y12 + y22, y11 - 2.0 * y12 + y22
    if from_rows and min(plus, minus) < NEAR_NULL * (y11 + y22):
        plus, minus = null_lengths(X, i, j)
    return y11, y12, y22, plus, minus


@inlined
def apply_pair(
    X: np.ndarray, i: int, j: int, v11: float, v12: float, v21: float, v22: float
) -> None:
    """Set X[(i, j), :] <- V X[(i, j), :] for X (n, k), in place: see `jorth.plane.apply`."""
    keep = 0.0
    if np.sign(v11) * np.sign(v12) * np.sign(v21) * np.sign(v22) > 0.0:
        u = v22 + v21 if v21 * v22 > 0.0 else 1.0 / (v22 - v21)
        grow, shrink = 0.5 * u, 0.5 / u
        if v11 > 0.0 and v22 > 0.0 and abs(v21) < SMALL_BOOST:
            even = v21 * v21 / (1.0 + v22)
            keep, grow, shrink = 1.0, 0.5 * (even + v21), 0.5 * (even - v21)
        side = 1.0 if v11 * v22 > 0.0 else -1.0
        for k in range(X.shape[1]):
            a, b = X[i, k], X[j, k]
            up, down = (a + b) * grow, (a - b) * shrink
            X[i, k] = keep * a + side * (up + down)
            X[j, k] = keep * b + (up - down)
        return
    if v11 > SMALL_TURN and v22 > SMALL_TURN:
        keep = 1.0
        v11 = v22 = -v21 * v21 / (1.0 + v11)
    for k in range(X.shape[1]):
        a, b = X[i, k], X[j, k]
        X[i, k] = keep * a + (v11 * a + v12 * b)
        X[j, k] = keep * b + (v21 * a + v22 * b)


# -- steps on the majoriser of one gradient


@compiled_sum
def slopes_and_products(
    G: np.ndarray, X: np.ndarray, Y: np.ndarray, L: float, i: int, j: int
) -> tuple[Four, float, float, float]:
    """Return P = (G + L (Y - X)) Y^T in the plane (i, j), and y_ii, y_ij, y_jj of Y Y^T."""
    p11, p12, p21, p22, y11, y12, y22 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for c in range(X.shape[1]):
        a, b = Y[i, c], Y[j, c]
        g, h = G[i, c] + L * (a - X[i, c]), G[j, c] + L * (b - X[j, c])
        p11 += g * a
        p12 += g * b
        p21 += h * a
        p22 += h * b
        y11 += a * a
        y12 += a * b
        y22 += b * b
    return (p11, p12, p21, p22), y11, y12, y22


# compiled code takes its numbers one by one
@compiled
def majorised_steps(
    Y: np.ndarray,
    X: np.ndarray,
    G: np.ndarray,
    L: float,
    scalar: bool,
    signs: np.ndarray,
    pairs: np.ndarray,
    theta: float,
    all_components: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Take the best step on pairs of rows of each Y (b, n, k), at first a copy of X, in place.

    Each pair has the slopes of the majoriser <Y - X, G> + L/2 ||Y - X||^2 at the current Y, and
    Q = L (Z Z^T) (x) I_2 for its two rows Z, or Q = L I if it is ``scalar``; then no two pairs may
    share rows. Return the decreases (b,), and which have met a plane without a minimiser (b,).
    """
    total, any_unbounded = np.zeros(X.shape[0]), np.zeros(X.shape[0], np.bool_)
    for m in range(X.shape[0]):
        for t in range(pairs.shape[0]):
            i, j = pairs[t, 0], pairs[t, 1]
            P, y11, y12, y22 = slopes_and_products(G[m], X[m], Y[m], L, i, j)
            products = with_null_lengths(y11, y12, y22, Y[m], i, j, True)
            if scalar:
                products = (1.0, 0.0, 1.0, 2.0, 2.0)
            block = (L, 0.0, L)
            v11, v12, v21, v22, decrease, unbounded = kronecker_step(
                P, products, block, theta, signs[i] != signs[j], all_components
            )
            any_unbounded[m] |= unbounded
            total[m] += decrease
            if decrease > 0.0:
                apply_pair(Y[m], i, j, v11, v12, v21, v22)
    return total, any_unbounded
