"""The plane problem with diagonal A for eight pairs at once, in vector registers.

With A = diag(l_i, l_j) and Q = Y (x) A the forms of `jorth.plane.compiled.pair` are short. A step
of moderate length is found and proved by `jorth.plane.compiled.newton`; other lanes are left to
`kronecker_step`. A lane is one place of a vector register: the loops have no branches, and LLVM
turns each into straight vector code.
"""

from __future__ import annotations

import numpy as np

from jorth.plane.compiled.newton import boost_found, boost_step, turn_found, turn_step
from jorth.plane.compiled.pair import NOISE
from jorth.plane.compiled.roots import compiled

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
        w, _, _ = boost_step(0.0, odd, tilt, out, into)
        w, _, _ = boost_step(w, odd, tilt, out, into)
        w, _, _ = boost_step(w, odd, tilt, out, into)
        w, _, _ = boost_step(w, odd, tilt, out, into)
        w, _, _ = boost_step(w, odd, tilt, out, into)
        w, step, slope = boost_step(w, odd, tilt, out, into)
        solved = boost_found(w, step, slope, odd, tilt, out, into)
        inverse = 1.0 / (1.0 + w)
        z = -w * inverse
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
        t, _, _ = turn_step(0.0, r, c1, ir, c3, c4)
        t, _, _ = turn_step(t, r, c1, ir, c3, c4)
        t, _, _ = turn_step(t, r, c1, ir, c3, c4)
        t, _, _ = turn_step(t, r, c1, ir, c3, c4)
        t, _, _ = turn_step(t, r, c1, ir, c3, c4)
        t, step, slope = turn_step(t, r, c1, ir, c3, c4)
        solved = turn_found(t, step, slope, i, r, ii, ir, rr)
        inverse = 1.0 / (1.0 + t * t)
        h, y = 2.0 * t * t * inverse, 2.0 * t * inverse
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
