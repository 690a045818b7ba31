"""The plane problem for one pair: the formulas of `families` and `general` with branches in place of masks."""

from __future__ import annotations

import math

import numpy as np

from jorth.plane.compiled.roots import EPS, circle, compiled, lightcone, turn


@compiled
def rotation(i: float, r: float, ii: float, ir: float, rr: float) -> tuple[float, float, float]:
    """(x, y, decrease) of V = x I + y R on the circle: see `jorth.plane.general`."""
    x, y = circle(i - ii, r - ir, 0.5 * ii, ir, 0.5 * rr)
    h = y * y / (1.0 + x) if x > 0.0 else 1.0 - x
    slope = x * r + y * (h * ii + x * rr - i) - ir * h * (1.0 + 2.0 * x)
    curvature = -x * i - y * r + (y * y + h * x) * ii - ir * y * (3.0 * x - h) + (x * x - y * y) * rr
    x, y = turn(x, y, slope, curvature)
    h = y * y / (1.0 + x) if x > 0.0 else 1.0 - x
    return x, y, h * i - y * r - 0.5 * (h * h * ii - 2.0 * h * y * ir + y * y * rr)


@compiled
def reflection(
    i: float, z: float, k: float, ii: float, iz: float, ik: float, zz: float, zk: float, kk: float
) -> tuple[float, float, float]:
    """(x, y, decrease) of V = x Z + y K on the circle."""
    al, be = z - iz, k - ik
    x, y = circle(al, be, 0.5 * zz, zk, 0.5 * kk)
    value = al * x + be * y + 0.5 * (zz * x * x + 2.0 * zk * x * y + kk * y * y)
    return x, y, i - 0.5 * ii - value


@compiled
def boost(
    i: float,
    k: float,
    ii: float,
    ik: float,
    kk: float,
    out: float,
    into: float,
    rounding: float,
    positive: bool,
) -> tuple[float, float, float, bool]:
    """(x, y, decrease, unbounded) of V = u N+ + N- / u."""
    al, be = i - ii, k - ik
    u, unbounded = lightcone(
        _clean(0.5 * (al + be), out, rounding), _clean(0.5 * (al - be), into, rounding), out, into, positive
    )
    p_out, p_in, cross, w = 0.5 * (i + k), 0.5 * (i - k), 0.25 * (ii - kk), u - 1.0
    if abs(w) < 0.5:
        tilt = p_out - cross
        g = tilt * u * (u + 1.0) + 2.0 * out * u * u * u + 2.0 * into
        slope = k + g + w * (tilt * (2.0 * u + 1.0) + 6.0 * out * u * u)
        step = (u * k + w * g) / slope
        if slope > 0.0 and abs(step) < 1e-3:
            w -= step
            u = 1.0 + w
    z = -w / u
    decrease = -(w * p_out + z * p_in + out * w * w + into * z * z + cross * w * z)
    return 1.0 + 0.5 * w * w / u, 0.5 * w * (u + 1.0) / u, decrease, unbounded


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
    rounding: float,
) -> tuple[float, float, float, bool]:
    """(x, y, decrease, unbounded) of V = diag(-1, 1) (u N+ + N- / u)."""
    al, be = iz - z, r - ir
    A, B = _clean(0.5 * (al + be), out, rounding), _clean(0.5 * (al - be), into, rounding)
    u, unbounded = lightcone(A, B, out, into, False)
    inverse = 1.0 / u
    value = (A + out * u) * u + (B + into * inverse) * inverse + 0.25 * (zz - rr)
    return 0.5 * (u + inverse), 0.5 * (u - inverse), i - 0.5 * ii - value, unbounded


@compiled
def _clean(linear: float, quadratic: float, rounding: float) -> float:
    return 0.0 if quadratic == 0.0 and abs(linear) <= rounding else linear


@compiled
def _null(form: float, rounding: float, theta: float) -> float:
    return 0.125 * (0.0 if -rounding <= form < 0.0 else form) + 0.5 * theta


@compiled
def solve_pair(
    P: np.ndarray, Q: np.ndarray, opposite: bool, theta: float, all_components: bool
) -> tuple[float, float, float, float, float, bool]:
    """(V11, V12, V21, V22, decrease, unbounded) for P (2, 2) and symmetric Q (4, 4): `solve_plane` for one pair."""
    i, r = P[0, 0] + P[1, 1], P[1, 0] - P[0, 1]
    z, k = P[0, 0] - P[1, 1], P[1, 0] + P[0, 1]
    q11, q22, q33, q44 = Q[0, 0], Q[1, 1], Q[2, 2], Q[3, 3]
    q12, q13, q14, q23, q24, q34 = Q[0, 1], Q[0, 2], Q[0, 3], Q[1, 2], Q[1, 3], Q[2, 3]
    corners, middles, twice = q11 + q44, q22 + q33, 2.0 * theta
    ii, rr = corners + 2.0 * q14 + twice, middles - 2.0 * q23 + twice
    zz, kk = corners - 2.0 * q14 + twice, middles + 2.0 * q23 + twice
    ir, iz, ik, zk = q12 - q13 + q24 - q34, q11 - q44, q12 + q13 + q24 + q34, q12 + q13 - q24 - q34
    if not opposite:
        return _equal_pair(i, r, z, k, ii, ir, iz, ik, rr, zz, zk, kk, all_components)
    largest_q, largest_p = 0.0, max(abs(P[0, 0]), abs(P[0, 1]), abs(P[1, 0]), abs(P[1, 1]))
    for row in range(4):
        for column in range(row, 4):
            largest_q = max(largest_q, abs(Q[row, column]))
    noise_q, noise = 16.0 * EPS * largest_q, 16.0 * EPS * (largest_q + largest_p)
    diagonal, outer, inner, across = corners + middles, q14 + q23, q12 + q34, q13 + q24
    boost_out = _null(diagonal + 2.0 * (outer + inner + across), noise_q, theta)
    boost_in = _null(diagonal + 2.0 * (outer - inner - across), noise_q, theta)
    flip_out = _null(diagonal + 2.0 * (across - inner - outer), noise_q, theta)
    flip_in = _null(diagonal + 2.0 * (inner - across - outer), noise_q, theta)
    x, y, decrease, unbounded = boost(i, k, ii, ik, kk, boost_out, boost_in, noise, not all_components)
    v11, v12, v21, v22 = x, y, y, x
    if all_components:
        x, y, gain, endless = flip(i, r, z, ii, ir, iz, rr, zz, flip_out, flip_in, noise)
        unbounded = unbounded or endless
        if gain > decrease:
            v11, v12, v21, v22, decrease = -x, -y, y, x, gain
    return _accept(v11, v12, v21, v22, decrease, unbounded)


@compiled
def _equal_pair(
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
    all_components: bool,
) -> tuple[float, float, float, float, float, bool]:
    x, y, decrease = rotation(i, r, ii, ir, rr)
    v11, v12, v21, v22 = x, -y, y, x
    if all_components:
        x, y, gain = reflection(i, z, k, ii, iz, ik, zz, zk, kk)
        if gain > decrease:
            v11, v12, v21, v22, decrease = x, y, y, -x, gain
    return _accept(v11, v12, v21, v22, decrease, False)


@compiled
def _accept(
    v11: float, v12: float, v21: float, v22: float, decrease: float, unbounded: bool
) -> tuple[float, float, float, float, float, bool]:
    """The step if it lowers the surrogate, else the identity; NaN input shows as a NaN decrease."""
    if math.isnan(decrease):
        return 1.0, 0.0, 0.0, 1.0, decrease, False
    if unbounded or math.isinf(decrease):
        return 1.0, 0.0, 0.0, 1.0, 0.0, True
    if not decrease > 0.0:
        return 1.0, 0.0, 0.0, 1.0, 0.0, False
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
