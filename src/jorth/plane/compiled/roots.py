"""The one-dimensional minimisers of `hyperbola`, `lightcone` and `circle` for scalars."""

from __future__ import annotations

import math

import numpy as np

from jorth.compiling import compiler
from jorth.plane.circle import DEFINITE

EPS = float(np.finfo(np.float64).eps)
LARGE = float(np.finfo(np.float64).max) ** 0.45
MAX_STEPS = 12
LAST_STEP = 1e-9
"""After a relative Newton step this small, quadratic convergence leaves only rounding errors."""

compiled = compiler()


@compiled
def cosh_of(S: float) -> float:
    """sqrt(1 + S^2) without overflow."""
    return math.sqrt(1.0 + S * S) if S < LARGE else S


@compiled
def hyperbola_root(a: float, d: float) -> float:
    """S >= 0 with S (4 - a / c) = d / (c (S + c)): see `jorth.plane.hyperbola`."""
    m = a - d
    S = _dominant_balance(a, d, m)
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
def _dominant_balance(a: float, d: float, m: float) -> float:
    if m >= 0.0:
        start = 0.25 * a
        if m < 4.0:
            start = min(start, d / (4.0 - m))
        if 2.0 < m < 16.0:  # elsewhere the bounds above are within a small factor
            quarter = 0.25 * m
            at_zero_d = math.sqrt(max(quarter * quarter - 1.0, 0.0))
            start = min(start, at_zero_d + (2.0 * d / m) ** (1.0 / 3.0))
        return start
    cube: float = (-m / 8.0) ** (1.0 / 3.0)
    start = max(0.25 * a, cube) if a >= 0.0 else min(cube, d / math.sqrt(-a) / math.sqrt(d - m))
    return min(max(start, d / (4.0 - m)), 0.25 * d)


@compiled
def lightcone(A: float, B: float, C: float, D: float, positive: bool) -> tuple[float, bool]:
    """(u, unbounded) of min A u + B / u + C u^2 + D / u^2: see `jorth.plane.lightcone`."""
    if math.isnan(A + B + C + D):
        return 1.0, False
    if positive and A > 0.0 and B > 0.0 and C >= 0.0 and D >= 0.0:
        root_a, root_b = math.sqrt(A), math.sqrt(B)
        u = root_b / root_a
        if (C * u) * u + (D / u) / u <= 0.125 * EPS * (root_a * root_b):
            return u, False
    if C > 0.0 and D > 0.0:
        u = _interior(A, B, C, D, positive)
    else:
        u = _boundary(A, B, C, D, positive)
    if math.isfinite(u) and u != 0.0:
        return u, False
    return 1.0, True


@compiled
def _interior(A: float, B: float, C: float, D: float, positive: bool) -> float:
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
def _boundary(A: float, B: float, C: float, D: float, positive: bool) -> float:
    """The minimiser where C or D is not positive, or NaN if there is none."""
    if not (C >= 0.0 and D >= 0.0):
        return math.nan
    if A == 0.0 and B == 0.0 and C == 0.0 and D == 0.0:
        return 1.0
    if C == 0.0 and A == 0.0:
        return -2.0 * D / B if D > 0.0 and (B < 0.0 or (B != 0.0 and not positive)) else math.nan
    if D == 0.0 and B == 0.0:
        return -A / (2.0 * C) if C > 0.0 and (A < 0.0 or (A != 0.0 and not positive)) else math.nan
    if not positive or (C == 0.0 and A < 0.0) or (D == 0.0 and B < 0.0):
        return math.nan
    if C == 0.0:
        C_ = EPS * EPS * A / max(math.sqrt(max(B, 0.0) / A), (2.0 * D / A) ** (1.0 / 3.0))
    else:
        C_ = C
    if D == 0.0:
        D_ = EPS * EPS * B * min(math.sqrt(B / max(A, 0.0)), (B / (2.0 * C)) ** (1.0 / 3.0))
    else:
        D_ = D
    return _interior(A, B, C_, D_, positive)


@compiled
def circle(a: float, b: float, c: float, d: float, e: float) -> tuple[float, float]:
    """(x, y) of min a x + b y + c x^2 + d x y + e y^2 on the circle: see `jorth.plane.circle`."""
    size = max(abs(a), abs(b), abs(c), abs(d), abs(e))
    if size > LARGE or size < 1.0 / LARGE:
        if not 0.0 < size < math.inf:
            return (1.0, 0.0) if size == 0.0 else (math.nan, math.nan)
        a, b, c, d, e = a / size, b / size, c / size, d / size, e / size
    half_difference, half_cross = 0.5 * (c - e), 0.5 * d
    R = math.hypot(half_difference, half_cross)
    p, q = 1.0, 0.0
    if R > 0.0:
        t = half_cross / (R + abs(half_difference))
        near = 1.0 / math.sqrt(1.0 + t * t)
        far = abs(t) * near
        p, q = (near, far) if half_difference >= 0.0 else (far, near)
        q = math.copysign(q, half_cross)
    al, be = a * p + b * q, b * p - a * q
    x, y = _quadrant(abs(al), abs(be), 4.0 * R)
    if al > 0.0:
        x = -x
    if be > 0.0 or (be == 0.0 and q >= 0.0):
        y = -y
    x, y = x * p - y * q, x * q + y * p
    squares, cross = x * x - y * y, x * y
    slope = b * x - a * y + d * squares - 2.0 * (c - e) * cross
    curvature = -a * x - b * y - 2.0 * (c - e) * squares - 4.0 * d * cross
    return turn(x, y, slope, curvature, max(abs(a), abs(b), abs(c), abs(d), abs(e)))


@compiled
def _quadrant(al: float, be: float, R4: float) -> tuple[float, float]:
    excess = al - R4
    L = max(be, excess)
    if 2.0 * be < R4:  # elsewhere the multiplier is within a small factor of the bound above
        cube = 0.6299 * R4 * (be / R4) ** (2.0 / 3.0)
        if excess < 0.0:
            cube = min(cube, be * math.sqrt(0.25 * R4 / -excess))
        L = max(L, cube)
    if L <= 0.0:
        x = al / R4 if R4 > 0.0 else 1.0
        return x, math.sqrt(max((1.0 - x) * (1.0 + x), 0.0))
    x, y = al / (R4 + L), be / L
    for _ in range(MAX_STEPS):
        square = x * x + y * y
        step = square * (math.sqrt(square) - 1.0) / (x * x / (R4 + L) + y * y / L)
        L += max(step, 0.0)
        x, y = al / (R4 + L), be / L
        if not step > LAST_STEP * L:
            break
    inverse = 1.0 / math.sqrt(x * x + y * y)
    return x * inverse, y * inverse


@compiled
def turn(x: float, y: float, slope: float, curvature: float, size: float) -> tuple[float, float]:
    """(x, y) after one Newton step in the angle, if it is small and the curvature is definite."""
    angle = -slope / curvature
    if not (curvature > DEFINITE * size and abs(angle) < 1e-3):
        return x, y
    even = 1.0 - 0.5 * angle * angle
    x, y = x * even - y * angle, y * even + x * angle
    inverse = 1.0 / math.sqrt(x * x + y * y)
    return x * inverse, y * inverse
