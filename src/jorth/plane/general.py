"""The plane problem with a symmetric 4x4 Q, or from the forms of any surrogate."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from jorth.plane.circle import DEFINITE, circle, turn
from jorth.plane.families import (
    Sizes,
    Surrogate,
    above_rounding,
    better,
    improper_matrix,
    lightcone_forms,
    linear_forms,
    proper_matrix,
    quadratic_forms,
)
from jorth.plane.lightcone import lightcone


def solve_general(
    P: Tensor, Q: Tensor, opposite: Tensor, theta: Tensor, all_components: bool, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """V, decrease and unbounded for float64 P (..., 2, 2), Q (..., 4, 4), opposite and theta (...).

    ``eps`` is the precision of the data.
    """
    noise = 16 * eps
    size_p, size_q = P.abs().amax(dim=(-2, -1)), Q.abs().amax(dim=(-2, -1))
    linear = linear_forms(P)
    quadratic, null = quadratic_forms(Q, theta, noise * size_q)
    boost, flip = lightcone_forms(linear, quadratic, null, noise * (size_p + size_q))
    sizes = Sizes(size_p, size_q, noise * size_q)
    surrogate = Surrogate(linear, quadratic, boost, flip, sizes)
    return best_step(surrogate, opposite, all_components, noise)


def best_step(
    surrogate: Surrogate, opposite: Tensor, all_components: bool, noise: float
) -> tuple[Tensor, Tensor, Tensor]:
    """V, decrease and unbounded: the best step for a surrogate.

    A decrease must exceed its rounding error to count, and an improper step must beat the proper
    one by as much. So V = I at a stationary point with a singular Q, where differences are rounding
    errors.
    """
    rotation = _rotation(surrogate, noise)
    *boost, unbounded = _boost(surrogate, not all_components, noise)
    x, y, decrease, rounding = _choose(opposite, boost, rotation)
    decrease = above_rounding(decrease, rounding)
    V = proper_matrix(x, y, opposite)
    if all_components:
        reflection = _reflection(surrogate, noise)
        *flip, flip_unbounded = _flip(surrogate, noise)
        x, y, gain, rounding = _choose(opposite, flip, reflection)
        V, decrease = better(V, decrease, improper_matrix(x, y, opposite), gain, rounding)
        unbounded = unbounded | flip_unbounded
    return V, decrease, unbounded & opposite


def _choose(opposite: Tensor, cone: Sequence[Tensor], circle: Sequence[Tensor]) -> list[Tensor]:
    """The candidates on the hyperbola for opposite signs, those on the circle for equal ones."""
    return [torch.where(opposite, a, b) for a, b in zip(cone, circle, strict=True)]


def _rotation(surrogate: Surrogate, noise: float) -> tuple[Tensor, ...]:
    """(x, y, decrease, its rounding) of V = x I + y R on the circle."""
    linear, quadratic, _, _, sizes = surrogate
    i, r = linear.i, linear.r
    ii, ir, rr = quadratic.ii, quadratic.ir, quadratic.rr
    x, y = circle(i - ii, r - ir, ii / 2, ir, rr / 2)
    # a Newton step on the slope in terms of h = 1 - x, in which nothing as large as Q cancels
    h = torch.where(x > 0, y * y / (1 + x), 1 - x)
    slope = x * r + y * (h * ii + x * rr - i) - ir * h * (1 + 2 * x)
    curvature = -x * i - y * r + (y * y + h * x) * ii - ir * y * (3 * x - h) + (x * x - y * y) * rr
    size = i.abs() + r.abs() + ii.abs() + ir.abs() + rr.abs()
    x, y = turn(x, y, -slope / curvature, curvature, DEFINITE * size)
    h = torch.where(x > 0, y * y / (1 + x), 1 - x)
    decrease = h * i - y * r - (h * h * ii - 2 * h * y * ir + y * y * rr) / 2
    step = 1 - x + y.abs()
    return x, y, decrease, noise * step * (sizes.p + step * sizes.q)


def _reflection(surrogate: Surrogate, noise: float) -> tuple[Tensor, ...]:
    """(x, y, decrease, its rounding) of V = x Z + y K on the circle."""
    linear, quadratic, _, _, sizes = surrogate
    al, be = linear.z - quadratic.iz, linear.k - quadratic.ik
    zz, zk, kk = quadratic.zz, quadratic.zk, quadratic.kk
    x, y = circle(al, be, zz / 2, zk, kk / 2)
    value = al * x + be * y + (zz * x * x + 2 * zk * x * y + kk * y * y) / 2
    step = 1 + x.abs() + y.abs()
    decrease = linear.i - quadratic.ii / 2 - value
    return x, y, decrease, noise * step * (sizes.p + step * sizes.q)


def _boost(surrogate: Surrogate, positive: bool, noise: float) -> tuple[Tensor, ...]:
    """(x, y, decrease, its rounding, unbounded) of V = u N+ + N- / u."""
    k, form, sizes = surrogate.linear.k, surrogate.boost, surrogate.sizes
    out, into, p_out, cross = form.out, form.into, form.p_out, form.cross
    u, unbounded = lightcone(form.A, form.B, out, into, positive)
    # a Newton step in w = u - 1 on u^3 F'(u) = u <P, K> + w g(u), without cancellation near u = 1
    w = u - 1
    tilt = p_out - cross
    g = tilt * u * (u + 1) + 2 * out * u * u * u + 2 * into
    slope = k + g + w * (tilt * (2 * u + 1) + 6 * out * u * u)
    step = (u * k + w * g) / slope
    sound = (w.abs() < 0.5) & (slope > 0) & (step.abs() < 1e-3)
    w = torch.where(sound, w - step, w)
    u = torch.where(sound, 1 + w, u)
    z = -w / u
    terms = (w * k / u, w * w / u * p_out, out * w * w, into * z * z, cross * w * z)
    decrease = -(terms[0] + terms[1] + terms[2] + terms[3] + terms[4])
    size = sum(term.abs() for term in terms) + sizes.p * (w.abs() + z.abs())
    rounding = noise * size + sizes.null_error * (w * w + z * z)
    return 1 + w * w / (2 * u), w * (u + 1) / (2 * u), decrease, rounding, unbounded


def _flip(surrogate: Surrogate, noise: float) -> tuple[Tensor, ...]:
    """(x, y, decrease, its rounding, unbounded) of V = diag(-1, 1) (u N+ + N- / u)."""
    boost, form, sizes = surrogate.boost, surrogate.flip, surrogate.sizes
    u, unbounded = lightcone(form.A, form.B, form.out, form.into, positive=False)
    inverse = 1 / u
    grow, shrink = form.out * u * u, form.into * inverse * inverse
    value = form.A * u + grow + form.B * inverse + shrink + form.cross
    minus_value_at_zero = boost.p_out + boost.p_in - boost.out - boost.into - boost.cross
    terms = sizes.q + sizes.p * (1 + u.abs() + inverse.abs()) + grow + shrink
    rounding = noise * terms + sizes.null_error * (u * u + inverse * inverse)
    decrease = minus_value_at_zero - value
    return (u + inverse) / 2, (u - inverse) / 2, decrease, rounding, unbounded
