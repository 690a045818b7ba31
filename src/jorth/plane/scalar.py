"""The plane problem with Q = kappa I: a closed form on the circle, one root on the hyperbola."""

from __future__ import annotations

import torch
from torch import Tensor

from jorth.plane.families import (
    above_rounding,
    better,
    improper_matrix,
    linear_forms,
    proper_matrix,
)
from jorth.plane.hyperbola import cosh_of, hyperbola_root


def solve_scalar(
    P: Tensor, kappa: Tensor, opposite: Tensor, all_components: bool, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """V, decrease and unbounded for float64 P (..., 2, 2), kappa (...) and opposite (...).

    ``eps`` is the precision of the data. The surrogate on a family is al x + be y + const, plus
    2 kappa y^2 on the hyperbola. At the identity be is the slope itself, so that small steps have
    full relative accuracy.
    """
    linear = linear_forms(P)
    noise = 16 * eps
    size = P.abs().amax(dim=(-2, -1)) + kappa.abs()
    al = linear.i - 2 * kappa
    be = torch.where(opposite, linear.k, linear.r)
    x, y, unbounded = _minimum(al, be, kappa, opposite, positive=not all_components)
    curved = torch.where(opposite, 2 * kappa * y * y, 0.0)
    # x - 1 without cancellation
    shift = torch.where(x > 0, torch.where(opposite, y, -y) * y / (1 + x), x - 1)
    decrease = -(shift * al + y * be + curved)
    decrease = above_rounding(decrease, noise * (size * (shift.abs() + y.abs()) + curved.abs()))
    V = proper_matrix(x, y, opposite)
    if not all_components:
        return V, decrease, unbounded
    al = torch.where(opposite, -linear.z, linear.z)
    be = torch.where(opposite, linear.r, linear.k)
    x, y, flip_unbounded = _minimum(al, be, kappa, opposite, positive=False)
    curved = torch.where(opposite, 2 * kappa * y * y, 0.0)
    gain = linear.i - 2 * kappa - (x * al + y * be + curved)
    gain_noise = noise * (size * (1 + x.abs() + y.abs()) + curved.abs())
    V, decrease = better(V, decrease, improper_matrix(x, y, opposite), gain, gain_noise)
    return V, decrease, unbounded | flip_unbounded


def _minimum(
    al: Tensor, be: Tensor, kappa: Tensor, opposite: Tensor, positive: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """(x, y, unbounded): the minimum of al x + be y, plus 2 kappa y^2 on the hyperbola."""
    length = torch.hypot(al, be)
    divisor = torch.where(length > 0, length, 1.0)
    x_circle = torch.where(length > 0, -al / divisor, 1.0)
    y_circle = -be / divisor

    branch = torch.ones_like(al) if positive else torch.where(al > 0, -1.0, 1.0).to(al)
    S = hyperbola_root((be.abs() - branch * al) / kappa, be.abs() / kappa)
    c = cosh_of(S)
    attained = kappa > 0
    if positive:  # where al > |be| the linear terms alone have a minimiser
        inside = (kappa >= 0) & (al > be.abs())
        length = torch.where(inside, (al - be) * (al + be), 1.0).sqrt()
        cosh = al / length
        flat = inside & (4 * kappa * cosh * cosh * cosh <= torch.finfo(al.dtype).eps / 8 * al)
        S = torch.where(flat, be.abs() / length, S)
        c = torch.where(flat, cosh, c)
        attained = attained | flat
    still = (kappa == 0) & (al == 0) & (be == 0)
    x_hyperbola = torch.where(still, 1.0, branch * c)
    y_hyperbola = torch.where(still, 0.0, -be.sign() * S)
    x = torch.where(opposite, x_hyperbola, x_circle)
    y = torch.where(opposite, y_hyperbola, y_circle)
    return x, y, opposite & ~(attained | still)
