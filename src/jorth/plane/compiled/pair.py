"""The plane problem for one pair: the formulas of `families` and `general` with branches in place of masks."""

from __future__ import annotations

import math

import numpy as np

from jorth.plane.compiled.roots import EPS, circle, compiled, lightcone, turn

NOISE = 16.0 * EPS


@compiled
def rotation(
    i: float, r: float, ii: float, ir: float, rr: float, size_p: float
) -> tuple[float, float, float, float]:
    """(x, y, decrease, rounding of it) of V = x I + y R on the circle: see `jorth.plane.general`."""
    x, y = circle(i - ii, r - ir, 0.5 * ii, ir, 0.5 * rr)
    h = y * y / (1.0 + x) if x > 0.0 else 1.0 - x
    slope = x * r + y * (h * ii + x * rr - i) - ir * h * (1.0 + 2.0 * x)
    curvature = (
        -x * i - y * r + (y * y + h * x) * ii - ir * y * (3.0 * x - h) + (x * x - y * y) * rr
    )
    x, y = turn(x, y, slope, curvature, abs(i) + abs(r) + abs(ii) + abs(ir) + abs(rr))
    h = y * y / (1.0 + x) if x > 0.0 else 1.0 - x
    decrease = h * i - y * r - 0.5 * (h * h * ii - 2.0 * h * y * ir + y * y * rr)
    step = h + abs(y)
    return x, y, decrease, NOISE * step * (size_p + step * max(abs(ii), abs(rr), abs(ir)))


@compiled
def reflection(
    i: float, z: float, k: float, ii: float, iz: float, ik: float, zz: float, zk: float, kk: float
) -> tuple[float, float, float, float]:
    """(x, y, decrease, rounding of it) of V = x Z + y K on the circle."""
    al, be = z - iz, k - ik
    x, y = circle(al, be, 0.5 * zz, zk, 0.5 * kk)
    value = al * x + be * y + 0.5 * (zz * x * x + 2.0 * zk * x * y + kk * y * y)
    terms = abs(i) + abs(z) + abs(k) + abs(ii) + abs(iz) + abs(ik) + abs(zz) + abs(zk) + abs(kk)
    return x, y, i - 0.5 * ii - value, NOISE * terms


@compiled
def boost(
    i: float,
    k: float,
    ii: float,
    ik: float,
    kk: float,
    out: float,
    into: float,
    size_p: float,
    size_q: float,
    fuzz: float,
    positive: bool,
) -> tuple[float, float, float, float, bool]:
    """(x, y, decrease, rounding of it, unbounded) of V = u N+ + N- / u."""
    al, be, rounding = i - ii, k - ik, NOISE * (size_p + size_q)
    u, unbounded = lightcone(
        _clean(0.5 * (al + be), out, rounding),
        _clean(0.5 * (al - be), into, rounding),
        out,
        into,
        positive,
    )
    p_out, cross, w = 0.5 * (i + k), 0.25 * (ii - kk), u - 1.0
    if abs(w) < 0.5:
        tilt = p_out - cross
        g = tilt * u * (u + 1.0) + 2.0 * out * u * u * u + 2.0 * into
        slope = k + g + w * (tilt * (2.0 * u + 1.0) + 6.0 * out * u * u)
        step = (u * k + w * g) / slope
        if slope > 0.0 and abs(step) < 1e-3:
            w -= step
            u = 1.0 + w
    z = -w / u
    linear, bend = w * k / u, w * w / u * p_out
    grow, shrink, mixed = out * w * w, into * z * z, cross * w * z
    decrease = -(linear + bend + grow + shrink + mixed)
    terms = abs(linear) + abs(bend) + grow + shrink + abs(mixed) + size_p * (abs(w) + abs(z))
    noise = NOISE * terms + fuzz * (w * w + z * z)
    return 1.0 + 0.5 * w * w / u, 0.5 * w * (u + 1.0) / u, decrease, noise, unbounded


@compiled
def flip(
    i: float,
    r: float,
    z: float,
    ii: float,
    ir: float,
    iz: float,
    rr: float,
    zz: float,
    out: float,
    into: float,
    size_p: float,
    size_q: float,
    fuzz: float,
) -> tuple[float, float, float, float, bool]:
    """(x, y, decrease, rounding of it, unbounded) of V = diag(-1, 1) (u N+ + N- / u)."""
    al, be, rounding = iz - z, r - ir, NOISE * (size_p + size_q)
    A, B = _clean(0.5 * (al + be), out, rounding), _clean(0.5 * (al - be), into, rounding)
    u, unbounded = lightcone(A, B, out, into, False)
    inverse = 1.0 / u
    value = (A + out * u) * u + (B + into * inverse) * inverse + 0.25 * (zz - rr)
    squares = u * u + inverse * inverse
    terms = size_q + size_p * (1.0 + abs(u) + abs(inverse)) + out * u * u + into * inverse * inverse
    noise = NOISE * terms + fuzz * squares
    return 0.5 * (u + inverse), 0.5 * (u - inverse), i - 0.5 * ii - value, noise, unbounded


@compiled
def _clean(linear: float, quadratic: float, rounding: float) -> float:
    return 0.0 if quadratic == 0.0 and abs(linear) <= rounding else linear


@compiled
def clip_null(form: float, rounding: float) -> float:
    """A null form that is negative by less than ``rounding`` is zero."""
    return 0.0 if -rounding <= form < 0.0 else form


@compiled
def certain_null(form: float, theta: float, rounding: float) -> float:
    """A null form of Q over 8; at its upper end where, with theta, it is positive by no more than rounding."""
    found = 0.125 * clip_null(form, rounding)
    return found + 2.0 * rounding if 0.0 < found + 0.5 * theta < 2.0 * rounding else found


@compiled
def solve_pair(
    P: np.ndarray, Q: np.ndarray, opposite: bool, theta: float, all_components: bool
) -> tuple[float, float, float, float, float, bool]:
    """(V11, V12, V21, V22, decrease, unbounded) for P (2, 2) and symmetric Q (4, 4): `solve_plane` for one pair."""
    q11, q22, q33, q44 = Q[0, 0], Q[1, 1], Q[2, 2], Q[3, 3]
    q12, q13, q14, q23, q24, q34 = Q[0, 1], Q[0, 2], Q[0, 3], Q[1, 2], Q[1, 3], Q[2, 3]
    p11, p12, p21, p22 = P[0, 0], P[0, 1], P[1, 0], P[1, 1]
    corners, middles = q11 + q44, q22 + q33
    diagonal, outer, inner, across = corners + middles, q14 + q23, q12 + q34, q13 + q24
    size_q = max(
        abs(q11),
        abs(q22),
        abs(q33),
        abs(q44),
        abs(q12),
        abs(q13),
        abs(q14),
        abs(q23),
        abs(q24),
        abs(q34),
    )
    size_p = max(abs(p11), abs(p12), abs(p21), abs(p22))
    fuzz = NOISE * size_q
    return solve_forms(
        p11 + p22,
        p21 - p12,
        p11 - p22,
        p21 + p12,
        corners + 2.0 * q14,
        q12 - q13 + q24 - q34,
        q11 - q44,
        q12 + q13 + q24 + q34,
        middles - 2.0 * q23,
        corners - 2.0 * q14,
        q12 + q13 - q24 - q34,
        middles + 2.0 * q23,
        certain_null(diagonal + 2.0 * (outer + inner + across), theta, fuzz),
        certain_null(diagonal + 2.0 * (outer - inner - across), theta, fuzz),
        certain_null(diagonal + 2.0 * (across - inner - outer), theta, fuzz),
        certain_null(diagonal + 2.0 * (inner - across - outer), theta, fuzz),
        size_p,
        size_q,
        fuzz,
        theta,
        opposite,
        all_components,
    )


@compiled
def solve_forms(
    i: float,
    r: float,
    z: float,
    k: float,
    ii: float,
    ir: float,
    iz: float,
    ik: float,
    rr: float,
    zz: float,
    zk: float,
    kk: float,
    boost_out: float,
    boost_in: float,
    flip_out: float,
    flip_in: float,
    size_p: float,
    size_q: float,
    fuzz: float,
    theta: float,
    opposite: bool,
    all_components: bool,
) -> tuple[float, float, float, float, float, bool]:
    """`solve_pair` from the linear and quadratic forms of P and Q, named as in `jorth.plane.families`.

    A caller that knows how its Q is made forms these with less cancellation than from the entries of Q. ``size_p`` and
    ``size_q`` are the largest entries of P and Q, ``fuzz`` the uncertainty of the null forms beyond their own rounding.
    A step counts as a decrease if that is above rounding, and an improper one must be better than the proper one by as
    much.
    """
    twice, half = 2.0 * theta, 0.5 * theta
    ii, rr, zz, kk = ii + twice, rr + twice, zz + twice, kk + twice
    if opposite:
        x, y, decrease, noise, unbounded = boost(
            i,
            k,
            ii,
            ik,
            kk,
            boost_out + half,
            boost_in + half,
            size_p,
            size_q,
            fuzz,
            not all_components,
        )
        v11, v12, v21, v22 = x, y, y, x
    else:
        unbounded = False
        x, y, decrease, noise = rotation(i, r, ii, ir, rr, size_p)
        v11, v12, v21, v22 = x, -y, y, x
    if decrease <= noise:
        v11, v12, v21, v22, decrease = 1.0, 0.0, 0.0, 1.0, 0.0
    if all_components and opposite:
        x, y, gain, noise, endless = flip(
            i, r, z, ii, ir, iz, rr, zz, flip_out + half, flip_in + half, size_p, size_q, fuzz
        )
        unbounded = unbounded or endless
        if gain > decrease + noise:
            v11, v12, v21, v22, decrease = -x, -y, y, x, gain
    elif all_components:
        x, y, gain, noise = reflection(i, z, k, ii, iz, ik, zz, zk, kk)
        if gain > decrease + noise:
            v11, v12, v21, v22, decrease = x, y, y, -x, gain
    return _accept(v11, v12, v21, v22, decrease, unbounded)


@compiled
def _accept(
    v11: float, v12: float, v21: float, v22: float, decrease: float, unbounded: bool
) -> tuple[float, float, float, float, float, bool]:
    """The step, or the identity for an unbounded problem; NaN input shows as a NaN decrease."""
    if math.isnan(decrease):
        return 1.0, 0.0, 0.0, 1.0, decrease, False
    if unbounded or math.isinf(decrease):
        return 1.0, 0.0, 0.0, 1.0, 0.0, True
    return v11, v12, v21, v22, decrease, False


@compiled
def solve_pairs(
    P: np.ndarray, Q: np.ndarray, opposite: np.ndarray, theta: float, all_components: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`solve_pair` over a batch, one after the other: V (k, 2, 2), decrease (k,), unbounded (k,)."""
    count = P.shape[0]
    V, decrease, unbounded = np.empty((count, 2, 2)), np.empty(count), np.empty(count, np.bool_)
    for t in range(count):
        V[t, 0, 0], V[t, 0, 1], V[t, 1, 0], V[t, 1, 1], decrease[t], unbounded[t] = solve_pair(
            P[t], Q[t], opposite[t], theta, all_components
        )
    return V, decrease, unbounded
