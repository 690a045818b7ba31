"""The hyperbolic plane problem in light-cone coordinates: min A u + B / u + C u^2 + D / u^2."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from jorth._inputs import check_flag
from jorth.plane.boundary import in_double
from jorth.plane.hyperbola import cosh_of, hyperbola_root


class LightconeMinimum(NamedTuple):
    """The minimiser u, the value there, and whether there is none."""

    u: Any
    value: Any
    unbounded: Any


def minimize_lightcone(
    A: Any, B: Any, C: Any, D: Any, *, positive: bool = False
) -> LightconeMinimum:
    """The global minimiser of F(u) = A u + B / u + C u^2 + D / u^2 over u != 0.

    The coefficients are floats, NumPy arrays or tensors, broadcast against each other. With
    ``positive`` the minimum is over u > 0 only.

    Substituting u = sigma r v with r = (D / C)^(1/4) leaves two parameters, al = A r / sqrt(C D)
    and be = B / (r sqrt(C D)), and v = exp(mu) gives the equation of `jorth.plane.hyperbola`. The
    symmetries (v to 1/v swaps al and be, v to -v negates both) tell beforehand that sigma is minus
    the sign of al + be, and that v >= 1 where -sigma al >= -sigma be.

    Args:
        A: The coefficient of u.
        B: The coefficient of 1 / u.
        C: The coefficient of u^2.
        D: The coefficient of 1 / u^2.
        positive: Whether the minimum is over u > 0 only.

    Returns:
        (u, value, unbounded). ``unbounded`` marks problems without a minimiser, where the value
        falls without bound or towards an infimum that no u attains, or the minimiser is beyond the
        range of the dtype; u is 1 there. If all coefficients are zero, u is 1. If one is NaN, u is
        1 and the value NaN; if one is infinite, the value is not finite. A value that overflows is
        -inf although u is finite. float32 is computed in float64 and rounded at the end.
    """
    check_flag(positive, "positive")
    (A_, B_, C_, D_), dtype, restore = in_double(A=A, B=B, C=C, D=D)
    u, unbounded = lightcone(A_, B_, C_, D_, positive)
    fits = torch.isfinite(u.to(dtype)) & (u.to(dtype) != 0)
    u = torch.where(fits, u, 1.0)
    unbounded = unbounded | ~fits
    value = (A_ + C_ * u) * u + (B_ + D_ / u) / u
    return LightconeMinimum(restore(u), restore(value), restore(unbounded))


def lightcone(A: Tensor, B: Tensor, C: Tensor, D: Tensor, positive: bool) -> tuple[Tensor, Tensor]:
    """u and the flag unbounded for tensors of one shape."""
    u = torch.ones_like(A)
    u = torch.where((C == 0) & (A == 0) & (B != 0), -2 * D / B, u)
    u = torch.where((D == 0) & (B == 0) & (A != 0), -A / (2 * C), u)
    interior = (C > 0) & (D > 0)
    if positive:
        C_, D_ = _fill_vanishing(A, B, C, D)
        without_C = (C == 0) & (A > 0) & ((D > 0) | (B > 0))
        without_D = (D == 0) & (B > 0) & ((C > 0) | (A > 0))
        interior = interior | ((without_C | without_D) & (C >= 0) & (D >= 0))
    else:
        C_ = torch.where(C > 0, C, 1.0)
        D_ = torch.where(D > 0, D, 1.0)
    u = torch.where(interior, _interior(A, B, C_, D_, positive), u)
    if positive:
        u = _linear_only(A, B, C, D, u)
    nan = torch.isnan(A + B + C + D)
    unbounded = ~(_attained(A, B, C, D, positive) & torch.isfinite(u) & (u != 0)) & ~nan
    return torch.where(unbounded | nan, 1.0, u), unbounded


def _interior(A: Tensor, B: Tensor, C: Tensor, D: Tensor, positive: bool) -> Tensor:
    """The minimiser for C > 0 and D > 0."""
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


def _linear_only(A: Tensor, B: Tensor, C: Tensor, D: Tensor, u: Tensor) -> Tensor:
    """sqrt(B / A) where A, B > 0 and the other terms are below rounding at that point."""
    root_a, root_b = A.sqrt(), B.sqrt()
    balance = root_b / root_a
    others = (C * balance) * balance + (D / balance) / balance
    small = others <= torch.finfo(A.dtype).eps / 8 * (root_a * root_b)
    return torch.where((A > 0) & (B > 0) & (C >= 0) & (D >= 0) & small, balance, u)


def _fill_vanishing(A: Tensor, B: Tensor, C: Tensor, D: Tensor) -> tuple[Tensor, Tensor]:
    """C and D, with zeros replaced by values whose terms are negligible at the minimiser."""
    eps2 = torch.finfo(A.dtype).eps ** 2
    # with C = 0 < A the minimiser is at most `upper`; with D = 0 < B at least `lower`
    upper = torch.maximum((B.clamp(min=0) / A).sqrt(), (2 * D / A).pow(1 / 3))
    lower = torch.minimum((B / A.clamp(min=0)).sqrt(), (B / (2 * C)).pow(1 / 3))
    return torch.where(C == 0, eps2 * A / upper, C), torch.where(D == 0, eps2 * B * lower, D)


def _attained(A: Tensor, B: Tensor, C: Tensor, D: Tensor, positive: bool) -> Tensor:
    """Whether F has a minimum: it rises at both ends, or is flat at one and lower inside."""
    rises_out = (C > 0) | ((C == 0) & (A > 0)) if positive else C > 0
    rises_in = (D > 0) | ((D == 0) & (B > 0)) if positive else D > 0
    falls_inward = (A < 0) if positive else (A != 0)
    falls_outward = (B < 0) if positive else (B != 0)
    flat_out = (C == 0) & (A == 0) & (D > 0) & falls_outward
    flat_in = (D == 0) & (B == 0) & (C > 0) & falls_inward
    constant = (A == 0) & (B == 0) & (C == 0) & (D == 0)
    return (rises_out & rises_in) | flat_out | flat_in | constant
