"""The plane problem for one pair: `jorth.plane.general` with branches in place of masks.

The tuples cost nothing: numba passes their members one by one.
"""

from __future__ import annotations

import math

import numpy as np

from jorth.plane.compiled.newton import boost_step, near_boost, near_turn
from jorth.plane.compiled.roots import EPS, circle, compiled, lightcone, turn
from jorth.plane.families import LinearForms, NullForms, QuadraticForms, Sizes

NOISE = 16.0 * EPS

Four = tuple[float, float, float, float]
Five = tuple[float, float, float, float, float]
Step = tuple[float, float, float, float, float, bool]
"""V11, V12, V21, V22, the decrease and whether the problem is unbounded."""


@compiled
def rotation(linear: LinearForms, quadratic: QuadraticForms, size_p: float) -> Four:
    """(x, y, decrease, its rounding) of V = x I + y R: see `jorth.plane.general`."""
    i, r = linear.i, linear.r
    ii, ir, rr = quadratic.ii, quadratic.ir, quadratic.rr
    t, found = near_turn(i, r, ii, ir, rr)
    if found:
        inverse = 1.0 / (1.0 + t * t)
        h, y = 2.0 * t * t * inverse, 2.0 * t * inverse
        x = 1.0 - h
    else:
        x, y, h = _far_rotation(i, r, ii, ir, rr)
    decrease = h * i - y * r - 0.5 * (h * h * ii - 2.0 * h * y * ir + y * y * rr)
    step = h + abs(y)
    return x, y, decrease, NOISE * step * (size_p + step * max(abs(ii), abs(rr), abs(ir)))


@compiled
def _far_rotation(
    i: float, r: float, ii: float, ir: float, rr: float
) -> tuple[float, float, float]:
    """(x, y, 1 - x) of a rotation of any length."""
    x, y = circle(i - ii, r - ir, 0.5 * ii, ir, 0.5 * rr)
    h = y * y / (1.0 + x) if x > 0.0 else 1.0 - x
    slope = x * r + y * (h * ii + x * rr - i) - ir * h * (1.0 + 2.0 * x)
    curvature = (
        -x * i - y * r + (y * y + h * x) * ii - ir * y * (3.0 * x - h) + (x * x - y * y) * rr
    )
    x, y = turn(x, y, slope, curvature, abs(i) + abs(r) + abs(ii) + abs(ir) + abs(rr))
    return x, y, y * y / (1.0 + x) if x > 0.0 else 1.0 - x


@compiled
def reflection(linear: LinearForms, quadratic: QuadraticForms) -> Four:
    """(x, y, decrease, its rounding) of V = x Z + y K on the circle."""
    i, _, z, k = linear
    ii, _, iz, ik, _, zz, zk, kk = quadratic
    al, be = z - iz, k - ik
    x, y = circle(al, be, 0.5 * zz, zk, 0.5 * kk)
    value = al * x + be * y + 0.5 * (zz * x * x + 2.0 * zk * x * y + kk * y * y)
    terms = abs(i) + abs(z) + abs(k) + abs(ii) + abs(iz) + abs(ik) + abs(zz) + abs(zk) + abs(kk)
    return x, y, i - 0.5 * ii - value, NOISE * terms


@compiled
def boost(
    linear: LinearForms, quadratic: QuadraticForms, null: NullForms, sizes: Sizes, positive: bool
) -> tuple[float, float, float, float, bool]:
    """(x, y, decrease, its rounding, unbounded) of V = u N+ + N- / u."""
    i, k = linear.i, linear.k
    out, into = null.boost_out, null.boost_in
    p_out = 0.5 * (i + k)
    cross = 0.25 * (quadratic.ii - quadratic.kk)
    w, found = near_boost(k, p_out - cross, out, into)
    u, unbounded = 1.0 + w, False
    if not (found and (positive or _attracts(k, p_out - cross, out, into))):
        u, w, unbounded = _far_boost(linear, quadratic, null, sizes, positive)
    z = -w / u
    tangent, bend = w * k / u, w * w / u * p_out
    grow, shrink, mixed = out * w * w, into * z * z, cross * w * z
    decrease = -(tangent + bend + grow + shrink + mixed)
    terms = abs(tangent) + abs(bend) + grow + shrink + abs(mixed) + sizes.p * (abs(w) + abs(z))
    noise = NOISE * terms + sizes.null_error * (w * w + z * z)
    return 1.0 + 0.5 * w * w / u, 0.5 * w * (u + 1.0) / u, decrease, noise, unbounded


@compiled
def _attracts(odd: float, tilt: float, out: float, into: float) -> bool:
    """Whether the minimum over u > 0 is below that over u < 0."""
    return math.sqrt(into / out) * (tilt - 2.0 * out) + (tilt - odd - 2.0 * into) < 0.0


@compiled
def _far_boost(
    linear: LinearForms, quadratic: QuadraticForms, null: NullForms, sizes: Sizes, positive: bool
) -> tuple[float, float, bool]:
    """(u, u - 1, unbounded) of a boost of any length."""
    i, k = linear.i, linear.k
    ii, kk = quadratic.ii, quadratic.kk
    out, into = null.boost_out, null.boost_in
    al, be = i - ii, k - quadratic.ik
    rounding = NOISE * (sizes.p + sizes.q)
    A = _clean(0.5 * (al + be), out, rounding)
    B = _clean(0.5 * (al - be), into, rounding)
    u, unbounded = lightcone(A, B, out, into, positive)
    w = u - 1.0
    if abs(w) < 0.5:
        tilt = 0.5 * (i + k) - 0.25 * (ii - kk)
        _, step, slope = boost_step(w, k, tilt, out, into)
        if slope > 0.0 and abs(step) < 1e-3:
            w -= step
            u = 1.0 + w
    return u, w, unbounded


@compiled
def flip(
    linear: LinearForms, quadratic: QuadraticForms, null: NullForms, sizes: Sizes
) -> tuple[float, float, float, float, bool]:
    """(x, y, decrease, its rounding, unbounded) of V = diag(-1, 1) (u N+ + N- / u)."""
    out, into = null.flip_out, null.flip_in
    al, be = quadratic.iz - linear.z, linear.r - quadratic.ir
    rounding = NOISE * (sizes.p + sizes.q)
    A = _clean(0.5 * (al + be), out, rounding)
    B = _clean(0.5 * (al - be), into, rounding)
    u, unbounded = lightcone(A, B, out, into, False)
    inverse = 1.0 / u
    cross = 0.25 * (quadratic.zz - quadratic.rr)
    value = (A + out * u) * u + (B + into * inverse) * inverse + cross
    squares = u * u + inverse * inverse
    terms = (
        sizes.q + sizes.p * (1.0 + abs(u) + abs(inverse)) + out * u * u + into * inverse * inverse
    )
    noise = NOISE * terms + sizes.null_error * squares
    decrease = linear.i - 0.5 * quadratic.ii - value
    return 0.5 * (u + inverse), 0.5 * (u - inverse), decrease, noise, unbounded


@compiled
def _clean(linear: float, quadratic: float, rounding: float) -> float:
    return 0.0 if quadratic == 0.0 and abs(linear) <= rounding else linear


@compiled
def clip_null(form: float, rounding: float) -> float:
    """A null form that is negative by less than ``rounding`` is zero."""
    return 0.0 if -rounding <= form < 0.0 else form


@compiled
def certain_null(form: float, theta: float, rounding: float) -> float:
    """A null form of Q over 8, at its upper bound where it is positive by no more than rounding."""
    found = 0.125 * clip_null(form, rounding)
    return found + 2.0 * rounding if 0.0 < found + 0.5 * theta < 2.0 * rounding else found


@compiled
def solve_pair(
    P: np.ndarray, Q: np.ndarray, opposite: bool, theta: float, all_components: bool
) -> Step:
    """`solve_plane` for one pair: the step for P (2, 2) and symmetric Q (4, 4)."""
    q11, q22, q33, q44 = Q[0, 0], Q[1, 1], Q[2, 2], Q[3, 3]
    q12, q13, q14, q23, q24, q34 = Q[0, 1], Q[0, 2], Q[0, 3], Q[1, 2], Q[1, 3], Q[2, 3]
    corners, middles = q11 + q44, q22 + q33
    diagonal = corners + middles
    outer, inner, across = q14 + q23, q12 + q34, q13 + q24
    size_q = 0.0
    for a in range(4):
        for b in range(a, 4):
            size_q = max(size_q, abs(Q[a, b]))
    p11, p12, p21, p22 = P[0, 0], P[0, 1], P[1, 0], P[1, 1]
    sizes = Sizes(max(abs(p11), abs(p12), abs(p21), abs(p22)), size_q, NOISE * size_q)
    quadratic = QuadraticForms(
        ii=corners + 2.0 * q14,
        ir=q12 - q13 + q24 - q34,
        iz=q11 - q44,
        ik=q12 + q13 + q24 + q34,
        rr=middles - 2.0 * q23,
        zz=corners - 2.0 * q14,
        zk=q12 + q13 - q24 - q34,
        kk=middles + 2.0 * q23,
    )
    null = NullForms(
        certain_null(diagonal + 2.0 * (outer + inner + across), theta, sizes.null_error),
        certain_null(diagonal + 2.0 * (outer - inner - across), theta, sizes.null_error),
        certain_null(diagonal + 2.0 * (across - inner - outer), theta, sizes.null_error),
        certain_null(diagonal + 2.0 * (inner - across - outer), theta, sizes.null_error),
    )
    linear = LinearForms(p11 + p22, p21 - p12, p11 - p22, p21 + p12)
    return solve_forms(linear, quadratic, null, sizes, theta, opposite, all_components)


@compiled
def kronecker_step(
    P: Four,
    Y: Five,
    A: tuple[float, float, float],
    theta: float,
    opposite: bool,
    all_components: bool,
) -> Step:
    """The best V for P = (p11, p12, p21, p22) and Q = Y (x) A with A = (a11, a12, a22).

    Y is (y11, y12, y22, y11 + 2 y12 + y22, y11 - 2 y12 + y22): the caller knows how to form the
    last two accurately. The null forms of Q are the products
    (y11 +- 2 y12 + y22) (a11 +- 2 a12 + a22) / 8. ``theta`` < 0 is relative to the largest entry
    of Q.
    """
    p11, p12, p21, p22 = P
    y11, y12, y22, y_plus, y_minus = Y
    a11, a12, a22 = A
    size_a = max(abs(a11), abs(a22), abs(a12))
    size_q = size_a * max(abs(y11), abs(y22), abs(y12))
    a_plus = clip_null(a11 + 2.0 * a12 + a22, NOISE * size_a)
    a_minus = clip_null(a11 - 2.0 * a12 + a22, NOISE * size_a)
    cross = y12 * a12
    linear = LinearForms(p11 + p22, p21 - p12, p11 - p22, p21 + p12)
    quadratic = QuadraticForms(
        ii=y11 * a11 + y22 * a22 + 2.0 * cross,
        ir=(y11 - y22) * a12 - y12 * (a11 - a22),
        iz=y11 * a11 - y22 * a22,
        ik=(y11 + y22) * a12 + y12 * (a11 + a22),
        rr=y11 * a22 + y22 * a11 - 2.0 * cross,
        zz=y11 * a11 + y22 * a22 - 2.0 * cross,
        zk=(y11 - y22) * a12 + y12 * (a11 - a22),
        kk=y11 * a22 + y22 * a11 + 2.0 * cross,
    )
    null = NullForms(
        0.125 * y_plus * a_plus,
        0.125 * y_minus * a_minus,
        0.125 * y_plus * a_minus,
        0.125 * y_minus * a_plus,
    )
    sizes = Sizes(max(abs(p11), abs(p12), abs(p21), abs(p22)), size_q, 0.0)
    absolute = theta if theta >= 0.0 else -theta * size_q
    return solve_forms(linear, quadratic, null, sizes, absolute, opposite, all_components)


@compiled
def solve_forms(
    linear: LinearForms,
    quadratic: QuadraticForms,
    null: NullForms,
    sizes: Sizes,
    theta: float,
    opposite: bool,
    all_components: bool,
) -> Step:
    """The step from the forms of P and Q, as `jorth.plane.general.best_step`."""
    twice = 2.0 * theta
    half = 0.5 * theta
    ii, ir, iz, ik, rr, zz, zk, kk = quadratic
    quadratic = QuadraticForms(ii + twice, ir, iz, ik, rr + twice, zz + twice, zk, kk + twice)
    null = NullForms(
        null.boost_out + half, null.boost_in + half, null.flip_out + half, null.flip_in + half
    )
    unbounded = False
    if opposite:
        x, y, decrease, noise, unbounded = boost(linear, quadratic, null, sizes, not all_components)
        v11, v12, v21, v22 = x, y, y, x
    else:
        x, y, decrease, noise = rotation(linear, quadratic, sizes.p)
        v11, v12, v21, v22 = x, -y, y, x
    if decrease <= noise:
        v11, v12, v21, v22, decrease = 1.0, 0.0, 0.0, 1.0, 0.0
    if all_components and opposite:
        x, y, gain, noise, flip_unbounded = flip(linear, quadratic, null, sizes)
        unbounded = unbounded or flip_unbounded
        if gain > decrease + noise:
            v11, v12, v21, v22, decrease = -x, -y, y, x, gain
    elif all_components:
        x, y, gain, noise = reflection(linear, quadratic)
        if gain > decrease + noise:
            v11, v12, v21, v22, decrease = x, y, y, -x, gain
    if math.isnan(decrease):  # the input was not a number
        return 1.0, 0.0, 0.0, 1.0, decrease, False
    if unbounded or math.isinf(decrease):
        return 1.0, 0.0, 0.0, 1.0, 0.0, True
    return v11, v12, v21, v22, decrease, False
