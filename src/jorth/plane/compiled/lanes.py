"""The plane problem with diagonal A for eight pairs at once, in vector registers.

With A = diag(l_i, l_j) and Q = Y (x) A the forms of `jorth.plane.compiled.pair` are short, and a
step of moderate length is found by Newton's method from V = I on a polynomial in which nothing
cancels: in w = u - 1 for V = u N+ + N- / u (opposite signs), in t = tan(angle / 2) for rotations
(equal signs). What it has found is taken only with a certificate that it is the global minimiser in
the component of I:

* opposite signs: F(u) = A u + B / u + C u^2 + D / u^2 with C, D > 0 has one stationary point on
  u > 0 unless A, B < 0 and A B >= 16 C D. Else `jorth.plane.hyperbola` says which one is global:
  with r^2 = sqrt(D / C), the one on the side u^2 >= r^2 if A r^2 <= B, and u^2 <= r^2 if not, where
  r^2 (4 C u + A) + 4 D / u + B >= 0.
* equal signs: minimising over the circle is a trust-region problem, whose minimiser is the only
  stationary point with a multiplier that makes the Hessian positive semidefinite.

Other lanes are left to `kronecker_step`. A lane is one place of a vector register: the loops have
no branches, and LLVM turns each into straight vector code.
"""

from __future__ import annotations

import math

import numpy as np

from jorth.plane.compiled.pair import NOISE
from jorth.plane.compiled.roots import LAST_STEP, compiled

LANES = 8
P11, P12, P21, P22, Y11, Y12, Y22, Y_PLUS, Y_MINUS, L1, L2 = (LANES * f for f in range(11))
FIRST, SECOND, DECREASE, SOLVED, C12, C21 = (LANES * f for f in range(11, 17))
OPPOSITE = LANES * 17
SIZE = OPPOSITE + 1
"""The numbers of eight pairs of one kind: field f of lane k is at LANES f + k.

P and the parts C12 and C21 of C X^T in it, Y and its null lengths, and l are given; the kind, of
opposite signs or not, is the last number. FIRST and SECOND are w = u - 1 and 1 / u - 1 of a boost,
cos - 1 and sin of a rotation. SOLVED is 1 if they are the global minimiser. The decrease is zero if
it is not above its rounding.
"""
SHORTEST, LONGEST = -0.75, 3.0
"""The range of w = u - 1 in which 1 + w has its digits."""
CERTAIN = 1.0 + 1e-6


@compiled
def solve_boosts(lane: np.ndarray, theta: float) -> None:
    """The boosts of eight pairs of opposite signs; ``theta`` < 0 is relative to the size of Q."""
    for k in range(LANES):
        p11, p12, p21, p22 = lane[P11 + k], lane[P12 + k], lane[P21 + k], lane[P22 + k]
        y11, y12, y22, l1, l2 = (
            lane[Y11 + k],
            lane[Y12 + k],
            lane[Y22 + k],
            lane[L1 + k],
            lane[L2 + k],
        )
        half = 0.5 * _proximal(theta, y11, y12, y22, l1, l2)
        eighth = 0.125 * (l1 + l2)
        out, into = eighth * lane[Y_PLUS + k] + half, eighth * lane[Y_MINUS + k] + half
        cross = 0.25 * (y11 - y22) * (l1 - l2)
        odd, p_out = p12 + p21, 0.5 * ((p11 + p22) + (p12 + p21))
        tilt = p_out - cross
        w, _, _ = _boost_step(0.0, odd, tilt, out, into)
        w, _, _ = _boost_step(w, odd, tilt, out, into)
        w, _, _ = _boost_step(w, odd, tilt, out, into)
        w, _, _ = _boost_step(w, odd, tilt, out, into)
        w, _, _ = _boost_step(w, odd, tilt, out, into)
        w, step, slope = _boost_step(w, odd, tilt, out, into)
        u = 1.0 + w
        inverse = 1.0 / u
        z = -w * inverse
        A, B = tilt - 2.0 * out, tilt - odd - 2.0 * into
        squared = math.sqrt(into / out)
        alone = (A >= 0.0) | (B >= 0.0) | (16.0 * out * into > A * B)
        sided = (u * u - squared) * (A * squared - B) <= 0.0
        outside = squared * (4.0 * out * u + A) + (4.0 * into * inverse + B) >= 0.0
        found = (slope > 0.0) & (abs(step) <= LAST_STEP * abs(w))
        inside = (out > 0.0) & (into > 0.0) & (w >= SHORTEST) & (w <= LONGEST)
        solved = found & inside & (alone | (sided & outside))
        tangent, bend = w * odd * inverse, w * w * inverse * p_out
        grow, shrink, mixed = out * w * w, into * z * z, cross * w * z
        size = max(abs(p11), abs(p12), abs(p21), abs(p22))
        decrease = -(tangent + bend + grow + shrink + mixed)
        terms = abs(tangent) + abs(bend) + grow + shrink + abs(mixed) + size * (abs(w) + abs(z))
        lane[FIRST + k] = w
        lane[SECOND + k] = z
        lane[DECREASE + k] = decrease if decrease > NOISE * terms else 0.0
        lane[SOLVED + k] = 1.0 if solved else 0.0


@compiled
def solve_turns(lane: np.ndarray, theta: float) -> None:
    """The rotations of eight pairs of equal signs; ``theta`` < 0 is relative to the size of Q."""
    for k in range(LANES):
        p11, p12, p21, p22 = lane[P11 + k], lane[P12 + k], lane[P21 + k], lane[P22 + k]
        y11, y12, y22, l1, l2 = (
            lane[Y11 + k],
            lane[Y12 + k],
            lane[Y22 + k],
            lane[L1 + k],
            lane[L2 + k],
        )
        twice = 2.0 * _proximal(theta, y11, y12, y22, l1, l2)
        i, r = p11 + p22, p21 - p12
        ii, rr = y11 * l1 + y22 * l2 + twice, y11 * l2 + y22 * l1 + twice
        ir = y12 * (l2 - l1)
        c1, c3, c4 = 2.0 * (rr - i), 2.0 * (2.0 * ii - rr - i), 2.0 * ir - r
        t, _, _ = _turn_step(0.0, r, c1, ir, c3, c4)
        t, _, _ = _turn_step(t, r, c1, ir, c3, c4)
        t, _, _ = _turn_step(t, r, c1, ir, c3, c4)
        t, _, _ = _turn_step(t, r, c1, ir, c3, c4)
        t, _, _ = _turn_step(t, r, c1, ir, c3, c4)
        t, step, slope = _turn_step(t, r, c1, ir, c3, c4)
        inverse = 1.0 / (1.0 + t * t)
        h, y = 2.0 * t * t * inverse, 2.0 * t * inverse
        x = 1.0 - h
        linear = (i - ii) * x + (r - ir) * y
        raised = 0.25 * (ii + rr) - 0.5 * (linear + ii * x * x + 2.0 * ir * x * y + rr * y * y)
        radius = 0.0625 * (ii - rr) * (ii - rr) + 0.25 * ir * ir
        found = (slope > 0.0) & (abs(step) <= LAST_STEP * abs(t)) & (abs(t) <= 1.0)
        solved = found & (raised > 0.0) & (raised * raised > CERTAIN * radius)
        size = max(abs(p11), abs(p12), abs(p21), abs(p22))
        moved = h + abs(y)
        decrease = h * i - y * r - 0.5 * (h * h * ii - 2.0 * h * y * ir + y * y * rr)
        noise = NOISE * moved * (size + moved * max(abs(ii), abs(rr), abs(ir)))
        lane[FIRST + k] = -h
        lane[SECOND + k] = y
        lane[DECREASE + k] = decrease if decrease > noise else 0.0
        lane[SOLVED + k] = 1.0 if solved else 0.0


@compiled
def _proximal(theta: float, y11: float, y12: float, y22: float, l1: float, l2: float) -> float:
    size = max(abs(l1), abs(l2)) * max(abs(y11), abs(y12), abs(y22))
    return theta if theta >= 0.0 else -theta * size


@compiled
def _boost_step(
    w: float, odd: float, tilt: float, out: float, into: float
) -> tuple[float, float, float]:
    """A Newton step on u^3 F'(u) = u odd + w g(u), which at most halves or doubles u."""
    u = 1.0 + w
    square = out * u * u
    g = tilt * u * (u + 1.0) + 2.0 * square * u + 2.0 * into
    slope = odd + g + w * (tilt * (2.0 * u + 1.0) + 6.0 * square)
    step = (u * odd + w * g) / slope
    return min(max(w - step, 0.5 * u - 1.0), 2.0 * u - 1.0), step, slope


@compiled
def _turn_step(
    t: float, r: float, c1: float, ir: float, c3: float, c4: float
) -> tuple[float, float, float]:
    """A Newton step on the slope r + c1 t - 6 ir t^2 + c3 t^3 + c4 t^4 over (1 + t^2)^2."""
    value = r + t * (c1 + t * (-6.0 * ir + t * (c3 + t * c4)))
    slope = c1 + t * (-12.0 * ir + t * (3.0 * c3 + t * 4.0 * c4))
    step = value / slope
    return min(max(t - step, -2.0), 2.0), step, slope
