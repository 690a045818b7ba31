"""The plane problem on the circle: minimise a x + b y + c x^2 + d x y + e y^2, x^2 + y^2 = 1."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from jorth.plane.boundary import in_double

NEWTON_STEPS = 6
"""Worst case over 2e6 problems in 1e-150 .. 1e150 and around the cusp: the error of the angle is
6e-8, 3e-14 and rounding after 4, 5 and 6 steps."""
DEFINITE = 1e-5
"""Below this curvature, relative to the coefficients, a Newton step is noise."""


class CircleMinimum(NamedTuple):
    """The minimiser (cos, sin) and the value there."""

    cos: Any
    sin: Any
    value: Any


def minimize_circle(a: Any, b: Any, c: Any, d: Any, e: Any) -> CircleMinimum:
    """The global minimiser of a x + b y + c x^2 + d x y + e y^2 over the unit circle.

    In the eigenvectors of the quadratic part it is al x + be y + 2 R x^2 + const with R >= 0, whose
    minimiser has the signs of (-al, -be). This is a trust-region problem in the plane, whose
    multiplier L >= 0 is the only one with (|al| / (4 R + L))^2 + (|be| / L)^2 = 1. Newton's method
    on 1 / norm rises to it monotonically from a lower bound (Moré and Sorensen 1983). If two minima
    are equal, the one nearer (1, 0) is returned; where a coefficient is not finite, NaN.

    The coefficients are floats, NumPy arrays or tensors, broadcast against each other.

    Args:
        a: The coefficient of x.
        b: The coefficient of y.
        c: The coefficient of x^2.
        d: The coefficient of x y.
        e: The coefficient of y^2.

    Returns:
        (x, y, value): the minimiser as cosine and sine, and the minimum.
    """
    (a_, b_, c_, d_, e_), _, restore = in_double(a=a, b=b, c=c, d=d, e=e)
    x, y = circle(a_, b_, c_, d_, e_)
    value = a_ * x + b_ * y + c_ * x * x + d_ * x * y + e_ * y * y
    return CircleMinimum(restore(x), restore(y), restore(value))


def circle(a: Tensor, b: Tensor, c: Tensor, d: Tensor, e: Tensor) -> tuple[Tensor, Tensor]:
    """The minimiser (x, y) for float64 tensors of one shape."""
    size = torch.stack([t.abs() for t in (a, b, c, d, e)]).amax(dim=0)
    size = torch.where(size > 0, size, 1.0)
    a, b, c, d, e = a / size, b / size, c / size, d / size, e / size
    half_difference, half_cross = (c - e) / 2, d / 2
    R = torch.hypot(half_difference, half_cross)
    p, q = _half_angle(half_difference, half_cross, R)
    al, be = a * p + b * q, b * p - a * q
    x, y = _quadrant(al.abs(), be.abs(), 4 * R)
    # a tie goes to the point whose first coordinate in the old axes is larger
    x = -_sign(al, towards=-p) * x
    y = -_sign(be, towards=q) * y
    x, y = x * p - y * q, x * q + y * p
    # one Newton step in the angle on the data as given, free of the rounding of the new axes
    slope = b * x - a * y + d * (x * x - y * y) - 2 * (c - e) * x * y
    curvature = -a * x - b * y - 2 * (c - e) * (x * x - y * y) - 4 * d * x * y
    return turn(x, y, -slope / curvature, curvature, DEFINITE)


def _half_angle(cosine: Tensor, sine: Tensor, R: Tensor) -> tuple[Tensor, Tensor]:
    """(cos, sin) of half the angle of (cosine, sine), which has length R; (1, 0) when R = 0."""
    large = (R + cosine.abs()) / 2
    t = torch.where(large > 0, sine / 2 / large, 0.0)
    near = 1 / (1 + t * t).sqrt()
    far = t.abs() * near
    first = torch.where(cosine >= 0, near, far)
    second = torch.where(cosine >= 0, far, near)
    return first, torch.copysign(second, sine)


def _quadrant(al: Tensor, be: Tensor, R4: Tensor) -> tuple[Tensor, Tensor]:
    """The minimiser of -al x - be y + R4/2 x^2 on the circle, x, y >= 0, for al, be, R4 >= 0."""
    excess = al - R4
    cube = (R4 / 4).pow(1 / 3) * be.pow(1 / 3).square()
    small = torch.minimum(cube, be * (R4 / 4 / excess.abs()).sqrt())
    below = torch.where(excess >= 0, 1.2599 * cube, small)
    L = torch.maximum(torch.maximum(be, excess), below)
    hard = L <= 0  # be = 0 and al <= R4: the multiplier is zero
    L = torch.where(hard, 1.0, L)
    for _ in range(NEWTON_STEPS):
        x, y = al / (R4 + L), be / L
        square = x * x + y * y
        rise = square * (square.sqrt() - 1) / (x * x / (R4 + L) + y * y / L)
        L = L + rise.nan_to_num_(0.0).clamp_(min=0)
    x_hard = torch.where(R4 > 0, al / R4, 1.0)
    x = torch.where(hard, x_hard, al / (R4 + L))
    y = torch.where(hard, ((1 - x_hard) * (1 + x_hard)).clamp(min=0).sqrt(), be / L)
    length = torch.hypot(x, y)
    return x / length, y / length


def turn(
    x: Tensor, y: Tensor, angle: Tensor, curvature: Tensor, floor: Tensor | float
) -> tuple[Tensor, Tensor]:
    """(x, y) turned by the angle, where that is small and the minimum is definite."""
    sound = (curvature > floor) & (angle.abs() < 1e-3)
    angle = torch.where(sound, angle, 0.0)
    even = 1 - angle * angle / 2
    x, y = x * even - y * angle, y * even + x * angle
    length = torch.hypot(x, y)
    return x / length, y / length


def _sign(value: Tensor, towards: Tensor) -> Tensor:
    return torch.where(torch.where(value == 0, towards, value) < 0, -1.0, 1.0).to(value)
