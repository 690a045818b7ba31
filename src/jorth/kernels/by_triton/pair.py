"""The plane problem with Q = Y (x) A for Triton, one pair per lane, as `jorth.plane.compiled.pair`.

Triton has no tuples of tensors, hence the many arguments here and in the kernels.
"""

import triton
import triton.language as tl

from jorth.kernels.by_triton.roots import circle, finite, lightcone, turn
from jorth.plane import apply
from jorth.plane import circle as plain_circle

DEFINITE = tl.constexpr(plain_circle.DEFINITE)
SMALL_BOOST = tl.constexpr(apply.SMALL_BOOST)
SMALL_TURN = tl.constexpr(apply.SMALL_TURN)


@triton.jit
def largest(a, b, c):
    """The largest of three magnitudes."""
    return tl.maximum(tl.maximum(tl.abs(a), tl.abs(b)), tl.abs(c))


@triton.jit
def clean(linear, quadratic, rounding):
    """A linear coefficient at rounding level is zero where the quadratic one beside it is zero."""
    return tl.where((quadratic == 0.0) & (tl.abs(linear) <= rounding), 0.0, linear)


@triton.jit
def clip_null(form, rounding):
    """A null form that is negative by less than ``rounding`` is zero."""
    return tl.where((form < 0.0) & (form >= -rounding), 0.0, form)


@triton.jit
def rotation(i, r, ii, ir, rr, size_p, noise):
    """(x, y, decrease, its rounding) of V = x I + y R on the circle."""
    x, y = circle(i - ii, r - ir, 0.5 * ii, ir, 0.5 * rr)
    h = tl.where(x > 0.0, y * y / (1.0 + x), 1.0 - x)
    slope = x * r + y * (h * ii + x * rr - i) - ir * h * (1.0 + 2.0 * x)
    curvature = (
        -x * i - y * r + (y * y + h * x) * ii - ir * y * (3.0 * x - h) + (x * x - y * y) * rr
    )
    size = tl.abs(i) + tl.abs(r) + tl.abs(ii) + tl.abs(ir) + tl.abs(rr)
    x, y = turn(x, y, slope, curvature, DEFINITE * size)
    h = tl.where(x > 0.0, y * y / (1.0 + x), 1.0 - x)
    decrease = h * i - y * r - 0.5 * (h * h * ii - 2.0 * h * y * ir + y * y * rr)
    step = h + tl.abs(y)
    return x, y, decrease, noise * step * (size_p + step * largest(ii, rr, ir))


@triton.jit
def reflection(i, z, k, ii, iz, ik, zz, zk, kk, noise):
    """(x, y, decrease, its rounding) of V = x Z + y K on the circle."""
    al, be = z - iz, k - ik
    x, y = circle(al, be, 0.5 * zz, zk, 0.5 * kk)
    value = al * x + be * y + 0.5 * (zz * x * x + 2.0 * zk * x * y + kk * y * y)
    terms = tl.abs(i) + tl.abs(z) + tl.abs(k) + tl.abs(ii) + tl.abs(iz) + tl.abs(ik)
    terms += tl.abs(zz) + tl.abs(zk) + tl.abs(kk)
    return x, y, i - 0.5 * ii - value, noise * terms


@triton.jit
def boost(i, k, ii, ik, kk, out, into, size_p, size_q, noise, POSITIVE: tl.constexpr):
    """(x, y, decrease, its rounding, unbounded) of V = u N+ + N- / u."""
    al, be, rounding = i - ii, k - ik, noise * (size_p + size_q)
    A, B = clean(0.5 * (al + be), out, rounding), clean(0.5 * (al - be), into, rounding)
    u, unbounded = lightcone(A, B, out, into, POSITIVE)
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
def flip(i, r, z, ii, ir, iz, rr, zz, out, into, size_p, size_q, noise):
    """(x, y, decrease, its rounding, unbounded) of V = diag(-1, 1) (u N+ + N- / u)."""
    al, be, rounding = iz - z, r - ir, noise * (size_p + size_q)
    A, B = clean(0.5 * (al + be), out, rounding), clean(0.5 * (al - be), into, rounding)
    u, unbounded = lightcone(A, B, out, into, False)
    inverse = 1.0 / u
    value = (A + out * u) * u + (B + into * inverse) * inverse + 0.25 * (zz - rr)
    terms = size_q + size_p * (1.0 + tl.abs(u) + tl.abs(inverse)) + out * u * u
    terms += into * inverse * inverse
    return 0.5 * (u + inverse), 0.5 * (u - inverse), i - 0.5 * ii - value, noise * terms, unbounded


@triton.jit
def proper(
    i, r, k, ii, ir, ik, rr, kk, out, into, size_p, size_q, noise, opposite,
    ALL_COMPONENTS: tl.constexpr,
):  # fmt: skip
    """`boost` for opposite signs, `rotation` for equal ones; one that no lane needs is skipped."""
    x, y, decrease, rounding = i * 0.0 + 1.0, i * 0.0, i * 0.0, i * 0.0
    unbounded = opposite & (opposite == 0)
    kinds = tl.sum(opposite.to(tl.int32), 0)
    if kinds > 0:
        x, y, decrease, rounding, unbounded = boost(
            i, k, ii, ik, kk, out, into, size_p, size_q, noise, not ALL_COMPONENTS
        )
    if kinds < opposite.shape[0]:
        x_turn, y_turn, decrease_turn, rounding_turn = rotation(i, r, ii, ir, rr, size_p, noise)
        x, y = tl.where(opposite, x, x_turn), tl.where(opposite, y, y_turn)
        decrease = tl.where(opposite, decrease, decrease_turn)
        rounding = tl.where(opposite, rounding, rounding_turn)
    return x, y, decrease, rounding, unbounded


@triton.jit
def kronecker_step(
    p11, p12, p21, p22, y11, y12, y22, y_plus, y_minus, a11, a12, a22, theta, opposite,
    EPS: tl.constexpr, ALL_COMPONENTS: tl.constexpr,
):  # fmt: skip
    """(V11, V12, V21, V22, decrease, unbounded) for P and Q = Y (x) A.

    The formulas are those of `jorth.plane.compiled.pair.kronecker_step`. ``theta`` < 0 is relative
    to the largest entry of Q; ``EPS`` is the precision of the data.
    """
    noise = 16.0 * EPS
    size_a, size_y = largest(a11, a22, a12), largest(y11, y22, y12)
    size_p, size_q = tl.maximum(largest(p11, p12, p21), tl.abs(p22)), size_a * size_y
    valid = finite(p11 + p12 + p21 + p22 + size_q + theta) & finite(size_q + size_p)
    a_plus = clip_null(a11 + 2.0 * a12 + a22, noise * size_a)
    a_minus = clip_null(a11 - 2.0 * a12 + a22, noise * size_a)
    theta = tl.where(theta >= 0.0, theta, -theta * size_q)
    i, r, z, k = p11 + p22, p21 - p12, p11 - p22, p21 + p12
    cross, twice, half = y12 * a12, 2.0 * theta, 0.5 * theta
    ii = y11 * a11 + y22 * a22 + 2.0 * cross + twice
    ir = (y11 - y22) * a12 - y12 * (a11 - a22)
    ik = (y11 + y22) * a12 + y12 * (a11 + a22)
    rr = y11 * a22 + y22 * a11 - 2.0 * cross + twice
    kk = y11 * a22 + y22 * a11 + 2.0 * cross + twice
    x, y, decrease, rounding, unbounded = proper(
        i, r, k, ii, ir, ik, rr, kk,
        0.125 * y_plus * a_plus + half, 0.125 * y_minus * a_minus + half,
        size_p, size_q, noise, opposite, ALL_COMPONENTS,
    )  # fmt: skip
    v11, v12, v21, v22 = x, tl.where(opposite, y, -y), y, x
    none = decrease <= rounding
    v11, v22 = tl.where(none, 1.0, v11), tl.where(none, 1.0, v22)
    v12, v21 = tl.where(none, 0.0, v12), tl.where(none, 0.0, v21)
    decrease = tl.where(none, 0.0, decrease)
    if ALL_COMPONENTS:
        iz, zk = y11 * a11 - y22 * a22, (y11 - y22) * a12 + y12 * (a11 - a22)
        zz = y11 * a11 + y22 * a22 - 2.0 * cross + twice
        x, y, gain, rounding, flip_unbounded = flip(
            i, r, z, ii, ir, iz, rr, zz,
            0.125 * y_plus * a_minus + half, 0.125 * y_minus * a_plus + half,
            size_p, size_q, noise,
        )  # fmt: skip
        x_turn, y_turn, gain_turn, rounding_turn = reflection(
            i, z, k, ii, iz, ik, zz, zk, kk, noise
        )
        gain = tl.where(opposite, gain, gain_turn)
        rounding = tl.where(opposite, rounding, rounding_turn)
        take = gain > decrease + rounding
        v11 = tl.where(take, tl.where(opposite, -x, x_turn), v11)
        v12 = tl.where(take, tl.where(opposite, -y, y_turn), v12)
        v21 = tl.where(take, tl.where(opposite, y, y_turn), v21)
        v22 = tl.where(take, tl.where(opposite, x, -x_turn), v22)
        decrease = tl.where(take, gain, decrease)
        unbounded = unbounded | flip_unbounded
    unbounded = ((unbounded & opposite) | (tl.abs(decrease) == float("inf"))) & valid
    keep = valid & (decrease > 0.0) & (unbounded == 0)
    v11, v22 = tl.where(keep, v11, 1.0), tl.where(keep, v22, 1.0)
    v12, v21 = tl.where(keep, v12, 0.0), tl.where(keep, v21, 0.0)
    decrease = tl.where(keep, decrease, tl.where(valid, 0.0, float("nan")))
    return v11, v12, v21, v22, decrease, unbounded


@triton.jit
def row_factors(v11, v12, v21, v22):
    """(mixed, keep, M11, M12, M21, M22), how V is applied: see `jorth.plane.apply`."""
    product = ((v11 > 0.0) == (v12 > 0.0)) == ((v21 > 0.0) == (v22 > 0.0))
    hyperbolic = product & (v11 != 0.0) & (v12 != 0.0) & (v21 != 0.0) & (v22 != 0.0)
    u = tl.where(v21 * v22 > 0.0, v22 + v21, 1.0 / (v22 - v21))
    small_boost = hyperbolic & (v11 > 0.0) & (v22 > 0.0) & (tl.abs(v21) < SMALL_BOOST)
    small_turn = (hyperbolic == 0) & (v11 > SMALL_TURN) & (v22 > SMALL_TURN)
    even = v21 * v21 / (1.0 + v22)
    grow = 0.5 * tl.where(small_boost, even + v21, u)
    shrink = 0.5 * tl.where(small_boost, even - v21, 1.0 / u)
    side = tl.where(v11 * v22 > 0.0, 1.0, -1.0)
    m11 = tl.where(hyperbolic, side * grow, tl.where(small_turn, -even, v11))
    m12 = tl.where(hyperbolic, side * shrink, v12)
    m21 = tl.where(hyperbolic, grow, v21)
    m22 = tl.where(hyperbolic, -shrink, tl.where(small_turn, -even, v22))
    mixed = tl.where(hyperbolic, v11 * 0.0 + 1.0, v11 * 0.0)
    keep = tl.where(small_boost | small_turn, v11 * 0.0 + 1.0, v11 * 0.0)
    return mixed, keep, m11, m12, m21, m22


@triton.jit
def turned_rows(a, b, mixed, keep, m11, m12, m21, m22):
    """The two rows after the step, from `row_factors`."""
    first = a + mixed * b
    second = mixed * a + (1.0 - 2.0 * mixed) * b
    return keep * a + (m11 * first + m12 * second), keep * b + (m21 * first + m22 * second)
