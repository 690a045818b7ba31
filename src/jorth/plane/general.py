"""The plane problem with a symmetric 4x4 Q."""

from __future__ import annotations

import torch
from torch import Tensor

from jorth.plane.assemble import above_rounding, better, improper_matrix, proper_matrix
from jorth.plane.circle import DEFINITE, circle, turn
from jorth.plane.families import (
    Lightcone,
    Linear,
    Quadratic,
    Sizes,
    boost_forms,
    flip_forms,
    linear_forms,
    quadratic_forms,
)
from jorth.plane.lightcone import lightcone


def solve_general(
    P: Tensor, Q: Tensor, opposite: Tensor, theta: Tensor, all_components: bool, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """V, decrease and unbounded for float64 pairs P (..., 2, 2), Q (..., 4, 4), opposite (...), theta (...).

    ``eps`` is that of the data.
    """
    noise = 16 * eps
    size_p, size_q = P.abs().amax(dim=(-2, -1)), Q.abs().amax(dim=(-2, -1))
    sizes = Sizes(size_p, size_q, noise * size_q)
    linear, quadratic = linear_forms(P), quadratic_forms(Q, theta, noise * size_q)
    boost, flip = (
        boost_forms(linear, quadratic, sizes, noise),
        flip_forms(linear, quadratic, sizes, noise),
    )
    return solve_forms(linear, quadratic, boost, flip, sizes, opposite, all_components, noise)


def solve_forms(
    linear: Linear,
    quadratic: Quadratic,
    boost: Lightcone,
    flip: Lightcone,
    sizes: Sizes,
    opposite: Tensor,
    all_components: bool,
    noise: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """The best step for the surrogate in these forms.

    A step counts as a decrease if that is above rounding, and an improper one must be better than the proper one by as
    much: at a stationary point with a singular Q the differences are rounding and V is I.
    """
    x_rotation, y_rotation, gain_rotation = _rotation(linear, quadratic)
    x_boost, y_boost, gain_boost, rounding, unbounded = _boost(
        linear.k, boost, sizes, not all_components, noise
    )
    x, y = torch.where(opposite, x_boost, x_rotation), torch.where(opposite, y_boost, y_rotation)
    step = 1 - x_rotation + y_rotation.abs()
    rounding = torch.where(opposite, rounding, noise * step * (sizes.p + step * sizes.q))
    decrease = above_rounding(torch.where(opposite, gain_boost, gain_rotation), rounding)
    V = proper_matrix(x, y, opposite)
    if all_components:
        x_reflection, y_reflection, gain_reflection = _reflection(linear, quadratic)
        x_flip, y_flip, gain_flip, rounding, endless = _flip(boost, flip, sizes, noise)
        x, y = (
            torch.where(opposite, x_flip, x_reflection),
            torch.where(opposite, y_flip, y_reflection),
        )
        gain = torch.where(opposite, gain_flip, gain_reflection)
        step = 1 + x_reflection.abs() + y_reflection.abs()
        rounding = torch.where(opposite, rounding, noise * step * (sizes.p + step * sizes.q))
        V, decrease = better(V, decrease, improper_matrix(x, y, opposite), gain, rounding)
        unbounded = unbounded | endless
    return V, decrease, unbounded & opposite


def _rotation(linear: Linear, quadratic: Quadratic) -> tuple[Tensor, Tensor, Tensor]:
    """(x, y, decrease) of V = x I + y R on the circle."""
    i, r = linear.i, linear.r
    ii, ir, rr = quadratic.ii, quadratic.ir, quadratic.rr
    x, y = circle(i - ii, r - ir, ii / 2, ir, rr / 2)
    # One Newton step on the slope written from the identity: h = 1 - x, and nothing of the order of Q cancels
    h = torch.where(x > 0, y * y / (1 + x), 1 - x)
    slope = x * r + y * (h * ii + x * rr - i) - ir * h * (1 + 2 * x)
    curvature = -x * i - y * r + (y * y + h * x) * ii - ir * y * (3 * x - h) + (x * x - y * y) * rr
    size = i.abs() + r.abs() + ii.abs() + ir.abs() + rr.abs()
    x, y = turn(x, y, -slope / curvature, curvature, DEFINITE * size)
    h = torch.where(x > 0, y * y / (1 + x), 1 - x)
    decrease = h * i - y * r - (h * h * ii - 2 * h * y * ir + y * y * rr) / 2
    return x, y, decrease


def _reflection(linear: Linear, quadratic: Quadratic) -> tuple[Tensor, Tensor, Tensor]:
    """(x, y, decrease) of V = x Z + y K on the circle."""
    al, be = linear.z - quadratic.iz, linear.k - quadratic.ik
    zz, zk, kk = quadratic.zz, quadratic.zk, quadratic.kk
    x, y = circle(al, be, zz / 2, zk, kk / 2)
    value = al * x + be * y + (zz * x * x + 2 * zk * x * y + kk * y * y) / 2
    return x, y, linear.i - quadratic.ii / 2 - value


def _boost(
    k: Tensor, forms: Lightcone, sizes: Sizes, positive: bool, noise: float
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """(x, y, decrease, rounding of it, unbounded) of V = u N+ + N- / u; ``k`` is <P, K>, the slope at u = 1."""
    out, into, p_out, cross = forms.out, forms.into, forms.p_out, forms.cross
    u, unbounded = lightcone(forms.A, forms.B, out, into, positive)
    # One Newton step in w = u - 1 on u^3 F'(u) = u <P, K> + w g(u), which has no cancellation near u = 1
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
    rounding = noise * size + sizes.fuzz * (w * w + z * z)
    return 1 + w * w / (2 * u), w * (u + 1) / (2 * u), decrease, rounding, unbounded


def _flip(
    boost: Lightcone, forms: Lightcone, sizes: Sizes, noise: float
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """(x, y, decrease, rounding of it, unbounded) of V = diag(-1, 1) (u N+ + N- / u)."""
    u, unbounded = lightcone(forms.A, forms.B, forms.out, forms.into, positive=False)
    inverse = 1 / u
    grow, shrink = forms.out * u * u, forms.into * inverse * inverse
    value = forms.A * u + grow + forms.B * inverse + shrink + forms.cross
    start = (
        boost.p_out + boost.p_in - boost.out - boost.into - boost.cross
    )  # minus the value of V = 0
    terms = sizes.q + sizes.p * (1 + u.abs() + inverse.abs()) + grow + shrink
    rounding = noise * terms + sizes.fuzz * (u * u + inverse * inverse)
    return (u + inverse) / 2, (u - inverse) / 2, start - value, rounding, unbounded
