"""The stationarity equation on the hyperbola, solved globally and without branches.

On the branch (cosh mu, sinh mu) the function 2 + 4 sinh^2 - 2 m cosh - 2 d sinh with d >= 0 takes
its minimum at mu >= 0 (replacing mu by -mu changes it by 4 d sinh mu), and S = sinh mu solves

    S (4 - m / c) = d,   c = sqrt(1 + S^2),   c >= m / 4.

That S is unique: for m >= 0 the left side is negative up to c = m / 4 and increasing and convex
beyond; for m < 0 it is increasing and concave. So although the quartic of the plane problem has up
to three roots on the branch, one root is enough and no values need to be compared. With a = m + d
the equation reads S (4 - a / c) = d / (c (S + c)); given a and d, nothing in it cancels.
"""

from __future__ import annotations

import torch
from torch import Tensor

NEWTON_STEPS = 6
"""Worst case over 3e6 (a, d) in 1e-300 .. 1e300 and around the cusp m = 4, d = 0: the relative
error of S + c is 1e-7, 1e-13 and rounding after 4, 5 and 6 steps."""
LARGE = torch.finfo(torch.float64).max ** 0.45


def hyperbola_root(a: Tensor, d: Tensor) -> Tensor:
    """The global minimiser S = sinh mu >= 0 for m = a - d and d >= 0, in float64.

    Newton's method on S (4 - a / c) = d / (c (S + c)) starts from the dominant balance.
    """
    m = a - d
    S = _dominant_balance(a, d, m)
    for _ in range(NEWTON_STEPS):
        c = cosh_of(S)
        value = S * (4 - a / c) - (d / c) / (S + c)
        slope = 4 - m / c / c / c
        # the slope vanishes only at the cusp S = 0, m = 4, where S is the answer
        S = torch.where(slope > 0, S - value / slope, S).clamp_(min=0)
    return S


def cosh_of(S: Tensor) -> Tensor:
    """sqrt(1 + S^2) for S >= 0, without overflow."""
    return torch.maximum((1 + S.clamp(max=LARGE).square()).sqrt(), S)


def _dominant_balance(a: Tensor, d: Tensor, m: Tensor) -> Tensor:
    """A start within a small factor of the root at every magnitude."""
    # m >= 0: S <= a/4 (S/c <= 1), S <= d/(4 - m) (1/c <= 1),
    # and S <= about S(d = 0) + (2 d/m)^(1/3) near the cusp
    quarter = m.clamp(min=0) / 4
    root = (quarter.clamp(max=LARGE).square() - 1).clamp(min=0).sqrt()
    at_zero_d = torch.where(quarter > LARGE, quarter, root)
    cubic = at_zero_d + (2 * d / m.clamp(min=1)).pow(1 / 3)
    linear = torch.where(m < 4, d / (4 - m), torch.inf)
    attracted = torch.minimum(torch.minimum(a / 4, linear), cubic)
    # m < 0: d/(4 + |m|) <= S <= d/4; S >= a/4;
    # 8 S^3 = |m| when a is small, S/c = d/|m| when a is large and negative
    k = (-m).clamp(min=0)
    cube = (k / 8).pow(1 / 3)
    ratio = d / a.abs().sqrt() / (k + d).sqrt()
    repelled = torch.where(a >= 0, torch.maximum(a / 4, cube), torch.minimum(cube, ratio))
    repelled = torch.minimum(torch.maximum(repelled, linear), d / 4)
    return torch.where(m >= 0, attracted, repelled)
