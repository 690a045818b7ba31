"""Steps of moderate length by Newton's method from V = I, and proofs that they are global minima.

The unknowns are w = u - 1 for V = u N+ + N- / u (opposite signs) and t = tan(angle / 2) for
rotations (equal signs). In both the slope is a polynomial in which nothing cancels near V = I.
A stationary point is taken only if it is certain to be the global minimiser in the component of I:

* opposite signs: F(u) = A u + B / u + C u^2 + D / u^2 with C, D > 0 has one stationary point on
  u > 0 unless A, B < 0 and A B >= 16 C D. Else `jorth.plane.hyperbola` says which one is global:
  with r^2 = sqrt(D / C), the one on the side u^2 >= r^2 if A r^2 <= B, and u^2 <= r^2 if not, where
  r^2 (4 C u + A) + 4 D / u + B >= 0.
* equal signs: minimising over the circle is a trust-region problem, whose minimiser is the only
  stationary point with a multiplier that makes the Hessian positive semidefinite.

Where a sum overflows or is not a number, nothing is certain.
"""

from __future__ import annotations

import math

from jorth.plane.compiled.roots import LAST_STEP, compiled

STEPS = 6
SHORTEST, LONGEST = -0.75, 3.0
"""The range of w = u - 1 in which 1 + w has its digits."""
CERTAIN = 1.0 + 1e-6
"""How far the multiplier on the circle must be from the limit."""


@compiled
def boost_step(
    w: float, odd: float, tilt: float, out: float, into: float
) -> tuple[float, float, float]:
    """A Newton step on u^3 F'(u) = u odd + w g(u), which at most halves or doubles u.

    Returns the new w, the step and the slope before it.
    """
    u = 1.0 + w
    square = out * u * u
    g = tilt * u * (u + 1.0) + 2.0 * square * u + 2.0 * into
    slope = odd + g + w * (tilt * (2.0 * u + 1.0) + 6.0 * square)
    step = (u * odd + w * g) / slope
    return min(max(w - step, 0.5 * u - 1.0), 2.0 * u - 1.0), step, slope


@compiled
def boost_found(
    w: float, step: float, slope: float, odd: float, tilt: float, out: float, into: float
) -> bool:
    """Whether w, after that step, is the global minimiser over u > 0."""
    u = 1.0 + w
    A, B = tilt - 2.0 * out, tilt - odd - 2.0 * into
    squared = math.sqrt(into / out)
    alone = (A >= 0.0) | (B >= 0.0) | (16.0 * out * into > A * B)
    sided = (u * u - squared) * (A * squared - B) <= 0.0
    outside = squared * (4.0 * out * u + A) * u + (4.0 * into + B * u) >= 0.0
    found = (slope > 0.0) & (abs(step) <= LAST_STEP * abs(w))
    inside = (out > 0.0) & (into > 0.0) & (w >= SHORTEST) & (w <= LONGEST)
    return found & inside & (alone | (sided & outside))


@compiled
def near_boost(odd: float, tilt: float, out: float, into: float) -> tuple[float, bool]:
    """w, and whether it is the global minimiser over u > 0."""
    w, step, slope = boost_step(0.0, odd, tilt, out, into)
    for _ in range(STEPS):
        w, step, slope = boost_step(w, odd, tilt, out, into)
        if not abs(step) > LAST_STEP * abs(w):
            break
    return w, boost_found(w, step, slope, odd, tilt, out, into)


@compiled
def turn_step(
    t: float, r: float, c1: float, ir: float, c3: float, c4: float
) -> tuple[float, float, float]:
    """A Newton step on the slope r + c1 t - 6 ir t^2 + c3 t^3 + c4 t^4 over (1 + t^2)^2.

    Returns the new t, the step and the derivative before it.
    """
    value = r + t * (c1 + t * (-6.0 * ir + t * (c3 + t * c4)))
    slope = c1 + t * (-12.0 * ir + t * (3.0 * c3 + t * 4.0 * c4))
    step = value / slope
    return min(max(t - step, -2.0), 2.0), step, slope


@compiled
def turn_found(
    t: float, step: float, slope: float, i: float, r: float, ii: float, ir: float, rr: float
) -> bool:
    """Whether t, after that step, is the global minimiser on the circle."""
    inverse = 1.0 / (1.0 + t * t)
    x, y = 1.0 - 2.0 * t * t * inverse, 2.0 * t * inverse
    linear = (i - ii) * x + (r - ir) * y
    raised = 0.25 * (ii + rr) - 0.5 * (linear + ii * x * x + 2.0 * ir * x * y + rr * y * y)
    radius = 0.0625 * (ii - rr) * (ii - rr) + 0.25 * ir * ir
    found = (slope > 0.0) & (abs(step) <= LAST_STEP * abs(t)) & (abs(t) <= 1.0)
    return found & (raised > 0.0) & (raised * raised > CERTAIN * radius)


@compiled
def near_turn(i: float, r: float, ii: float, ir: float, rr: float) -> tuple[float, bool]:
    """t = tan(angle / 2), and whether it is the global minimiser on the circle."""
    c1, c3, c4 = 2.0 * (rr - i), 2.0 * (2.0 * ii - rr - i), 2.0 * ir - r
    t, step, slope = turn_step(0.0, r, c1, ir, c3, c4)
    for _ in range(STEPS):
        t, step, slope = turn_step(t, r, c1, ir, c3, c4)
        if not abs(step) > LAST_STEP * abs(t):
            break
    return t, turn_found(t, step, slope, i, r, ii, ir, rr)
