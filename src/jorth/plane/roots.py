"""The one-dimensional minimisers of the plane problem, global, without branches or candidates.

`circle` minimises a x + b y + c x^2 + d x y + e y^2 over x^2 + y^2 = 1, `lightcone` minimises
F(u) = A u + B / u + C u^2 + D / u^2 over real u != 0. Both take float64 tensors of one shape.
"""

from __future__ import annotations

import torch
from torch import Tensor

HYPERBOLA_STEPS = 6
"""Worst case over 3e6 (a, d) in 1e-300 .. 1e300 and around the cusp m = 4, d = 0: the relative
error of S + c is 1e-7, 1e-13 and rounding after 4, 5 and 6 steps."""
CIRCLE_STEPS = 6
"""Worst case over 2e6 problems in 1e-150 .. 1e150 and around the cusp: the error of the angle is
6e-8, 3e-14 and rounding after 4, 5 and 6 steps."""
DEFINITE = 1e-5
"""Below this curvature, relative to the coefficients, a Newton step is noise."""
LARGE = torch.finfo(torch.float64).max ** 0.45
"""A size whose square is finite and next to which 1 is nothing."""


def lightcone(A: Tensor, B: Tensor, C: Tensor, D: Tensor, positive: bool) -> tuple[Tensor, Tensor]:
    """Return the global minimiser u of F over u != 0, or over u > 0 only, and the flag unbounded.

    u = sigma r v with r = (D / C)^(1/4) leaves two parameters, al = A r / sqrt(C D) and be = B / (r
    sqrt(C D)), and v = exp(mu) gives the equation of `hyperbola_root`. By symmetry sigma is minus
    the sign of al + be, and v >= 1 where -sigma al >= -sigma be. The flag marks problems without a
    minimiser or with one beyond the range of numbers; u is 1 there, and where all coefficients are
    zero or one is NaN.
    """
    no_out, no_in = (C == 0) & (A == 0), (D == 0) & (B == 0)
    # F has a minimum if it rises at both ends, or is flat at one and lower inside
    rises_out = (C > 0) | ((C == 0) & (A > 0)) if positive else C > 0
    rises_in = (D > 0) | ((D == 0) & (B > 0)) if positive else D > 0
    attained = (rises_out & rises_in) | (no_out & no_in)
    attained |= no_out & (D > 0) & ((B < 0) if positive else (B != 0))
    attained |= no_in & (C > 0) & ((A < 0) if positive else (A != 0))
    nan = torch.isnan(A + B + C + D)
    u = torch.where(no_out & (B != 0), -2 * D / B, 1.0)
    u = torch.where(no_in & (A != 0), -A / (2 * C), u)
    if positive:
        u = torch.where((A > 0) & (B > 0), (B / A).sqrt(), u)  # where C and D underflow
        # C and D are raised from zero to where their terms begin to matter at the minimiser, which
        # is at most `upper` with A > 0, and at least `lower` with B > 0
        eps2 = torch.finfo(A.dtype).eps ** 2
        upper = torch.maximum((B.clamp(min=0) / A).sqrt(), (2 * D / A).pow(1 / 3))
        lower = torch.minimum((B / A.clamp(min=0)).sqrt(), (B / (2 * C)).pow(1 / 3))
        C = torch.where((A > 0) & (C >= 0), torch.fmax(C, eps2 * A / upper), C)
        D = torch.where((B > 0) & (D >= 0), torch.fmax(D, eps2 * B * lower), D)
    u = torch.where((C > 0) & (D > 0), interior(A, B, C, D, positive), u)
    unbounded = ~(attained & torch.isfinite(u) & (u != 0)) & ~nan
    return torch.where(unbounded | nan, 1.0, u), unbounded


def interior(A: Tensor, B: Tensor, C: Tensor, D: Tensor, positive: bool) -> Tensor:
    """Return the minimiser for C > 0 and D > 0."""
    root_c, root_d = C.sqrt(), D.sqrt()
    product = root_c * root_d
    r = (root_d / root_c).sqrt()
    al, be = A * (r / product), B * (1 / r / product)
    sigma = torch.ones_like(al) if positive else torch.where(al > -be, -1.0, 1.0).to(al)
    right, left = -sigma * al, -sigma * be
    inverted = torch.where(right == left, r > 1, left > right)  # on a tie the u nearer 1
    a, b = torch.maximum(right, left), torch.minimum(right, left)
    S = hyperbola_root(a, (a - b) / 2)
    v = S + cosh_of(S)
    # far out v = a / 2 to rounding, which needs neither al nor be: they may overflow
    far = (a > 2 / torch.finfo(a.dtype).eps) & (b >= -a)
    u = torch.where(inverted, sigma * (r / v), sigma * (r * v))
    return torch.where(far, torch.where(inverted, -2 * D / B, -A / (2 * C)), u)


def hyperbola_root(a: Tensor, d: Tensor) -> Tensor:
    """Return the global minimiser S = sinh mu >= 0 for m = a - d and d >= 0.

    On the branch (cosh mu, sinh mu) the function 2 + 4 sinh^2 - 2 m cosh - 2 d sinh takes its
    minimum at mu >= 0, where

        S (4 - m / c) = d,   c = sqrt(1 + S^2),   c >= m / 4.

    That S is unique: for m >= 0 the left side is negative up to c = m / 4 and increasing and convex
    beyond; for m < 0 it is increasing and concave. With a = m + d the equation reads S (4 - a / c)
    = d / (c (S + c)); given a and d, nothing cancels. Newton's method starts from the dominant
    balance, within a small factor at every magnitude.
    """
    m = a - d
    # m >= 0: S <= a/4 (S/c <= 1), S <= d/(4 - m) (1/c <= 1),
    # and S <= about S(d = 0) + (2 d/m)^(1/3) near the cusp
    quarter = m.clamp(min=0) / 4
    root = (quarter.clamp(max=LARGE).square() - 1).clamp(min=0).sqrt()
    cubic = torch.where(quarter > LARGE, quarter, root) + (2 * d / m.clamp(min=1)).pow(1 / 3)
    linear = torch.where(m < 4, d / (4 - m), torch.inf)
    attracted = torch.minimum(torch.minimum(a / 4, linear), cubic)
    # m < 0: d/(4 + |m|) <= S <= d/4; S >= a/4;
    # 8 S^3 = |m| when a is small, S/c = d/|m| when a is large and negative
    k = (-m).clamp(min=0)
    cube = (k / 8).pow(1 / 3)
    ratio = d / a.abs().sqrt() / (k + d).sqrt()
    repelled = torch.where(a >= 0, torch.maximum(a / 4, cube), torch.minimum(cube, ratio))
    repelled = torch.minimum(torch.maximum(repelled, linear), d / 4)
    S = torch.where(m >= 0, attracted, repelled)
    for _ in range(HYPERBOLA_STEPS):
        c = cosh_of(S)
        value = S * (4 - a / c) - (d / c) / (S + c)
        slope = 4 - m / c / c / c
        # the slope vanishes only at the cusp S = 0, m = 4, where S is the answer
        S = torch.where(slope > 0, S - value / slope, S).clamp_(min=0)
    return S


def cosh_of(S: Tensor) -> Tensor:
    """Return sqrt(1 + S^2) for S >= 0, without overflow."""
    return torch.maximum((1 + S.clamp(max=LARGE).square()).sqrt(), S)


def circle(a: Tensor, b: Tensor, c: Tensor, d: Tensor, e: Tensor) -> tuple[Tensor, Tensor]:
    """Return the global minimiser (x, y) of a x + b y + c x^2 + d x y + e y^2, x^2 + y^2 = 1.

    In the eigenvectors of the quadratic part it is al x + be y + 2 R x^2 + const with R >= 0, a
    trust-region problem whose multiplier L >= 0 solves (|al| / (4 R + L))^2 + (|be| / L)^2 = 1.
    Newton's method on 1 / norm rises to it monotonically (Moré and Sorensen 1983). If two minima
    are equal, the one nearer (1, 0) is returned; where a coefficient is not finite, NaN.
    """
    size = torch.stack([t.abs() for t in (a, b, c, d, e)]).amax(dim=0)
    size = torch.where(size > 0, size, 1.0)
    a, b, c, d, e = a / size, b / size, c / size, d / size, e / size
    half_difference, half_cross = (c - e) / 2, d / 2
    R = torch.hypot(half_difference, half_cross)
    # cos and sin of half the angle of (half_difference, half_cross)
    large = (R + half_difference.abs()) / 2
    t = torch.where(large > 0, half_cross / 2 / large, 0.0)
    near = 1 / (1 + t * t).sqrt()
    far = t.abs() * near
    p = torch.where(half_difference >= 0, near, far)
    q = torch.copysign(torch.where(half_difference >= 0, far, near), half_cross)
    al, be = a * p + b * q, b * p - a * q
    x, y = quadrant(al.abs(), be.abs(), 4 * R)
    # a tie goes to the point whose first coordinate in the old axes is larger
    x = torch.where(al > 0, -x, x)
    y = torch.where((be > 0) | ((be == 0) & (q >= 0)), -y, y)
    x, y = x * p - y * q, x * q + y * p
    # one Newton step in the angle on the data as given, free of the rounding of the new axes
    slope = b * x - a * y + d * (x * x - y * y) - 2 * (c - e) * x * y
    curvature = -a * x - b * y - 2 * (c - e) * (x * x - y * y) - 4 * d * x * y
    return polish_angle(x, y, -slope / curvature, curvature, DEFINITE)


def quadrant(al: Tensor, be: Tensor, R4: Tensor) -> tuple[Tensor, Tensor]:
    """Return the minimiser of -al x - be y + R4/2 x^2, x, y >= 0, for al, be, R4 >= 0."""
    excess = al - R4
    cube = (R4 / 4).pow(1 / 3) * be.pow(1 / 3).square()
    small = torch.minimum(cube, be * (R4 / 4 / excess.abs()).sqrt())
    below = torch.where(excess >= 0, 1.2599 * cube, small)
    L = torch.maximum(torch.maximum(be, excess), below)
    hard = L <= 0  # be = 0 and al <= R4: the multiplier is zero
    L = torch.where(hard, 1.0, L)
    for _ in range(CIRCLE_STEPS):
        x, y = al / (R4 + L), be / L
        square = x * x + y * y
        rise = square * (square.sqrt() - 1) / (x * x / (R4 + L) + y * y / L)
        L = L + rise.nan_to_num_(0.0).clamp_(min=0)
    x_hard = torch.where(R4 > 0, al / R4, 1.0)
    x = torch.where(hard, x_hard, al / (R4 + L))
    y = torch.where(hard, ((1 - x_hard) * (1 + x_hard)).clamp(min=0).sqrt(), be / L)
    length = torch.hypot(x, y)
    return x / length, y / length


def polish_angle(
    x: Tensor, y: Tensor, angle: Tensor, curvature: Tensor, floor: Tensor | float
) -> tuple[Tensor, Tensor]:
    """Return (x, y) turned by a Newton step in the angle, if small and the minimum definite."""
    sound = (curvature > floor) & (angle.abs() < 1e-3)
    angle = torch.where(sound, angle, 0.0)
    even = 1 - angle * angle / 2
    x, y = x * even - y * angle, y * even + x * angle
    length = torch.hypot(x, y)
    return x / length, y / length
