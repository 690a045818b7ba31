"""The plane problem with a symmetric 4x4 Q."""

from __future__ import annotations

import torch
from torch import Tensor

from jorth.plane.assemble import above_rounding, better, improper_matrix, proper_matrix
from jorth.plane.circle import DEFINITE, circle, turn
from jorth.plane.families import Linear, Quadratic, linear_forms, quadratic_forms
from jorth.plane.lightcone import lightcone


def solve_general(
    P: Tensor, Q: Tensor, opposite: Tensor, theta: Tensor, all_components: bool, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """V, decrease and unbounded for float64 pairs P (..., 2, 2), Q (..., 4, 4), opposite (...), theta (...).

    A step counts as a decrease if that is above rounding, and an improper one must be better than the proper one by as
    much: at a stationary point with a singular Q the differences are rounding and V is I. ``eps`` is that of the data.
    """
    noise = 16 * eps
    size_p, size_q = P.abs().amax(dim=(-2, -1)), Q.abs().amax(dim=(-2, -1))
    linear = linear_forms(P)
    quadratic = quadratic_forms(Q, theta, noise * size_q)
    rounding = noise * (size_p + size_q)

    x_rotation, y_rotation, gain_rotation = _rotation(linear, quadratic)
    x_boost, y_boost, gain_boost, step, unbounded = _boost(linear, quadratic, rounding, not all_components)
    x, y = torch.where(opposite, x_boost, x_rotation), torch.where(opposite, y_boost, y_rotation)
    step = torch.where(opposite, step, 1 - x_rotation + y_rotation.abs())
    decrease = torch.where(opposite, gain_boost, gain_rotation)
    decrease = above_rounding(decrease, noise * step * (size_p + step * size_q))
    V = proper_matrix(x, y, opposite)
    if all_components:
        x_reflection, y_reflection, gain_reflection = _reflection(linear, quadratic)
        x_flip, y_flip, gain_flip, endless = _flip(linear, quadratic, rounding)
        x, y = torch.where(opposite, x_flip, x_reflection), torch.where(opposite, y_flip, y_reflection)
        gain = torch.where(opposite, gain_flip, gain_reflection)
        step = 1 + x.abs() + y.abs()
        gain_noise = noise * step * (size_p + step * size_q)
        V, decrease = better(V, decrease, improper_matrix(x, y, opposite), gain, gain_noise)
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
    linear: Linear, quadratic: Quadratic, rounding: Tensor, positive: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """(x, y, decrease, |u - 1| + |1/u - 1|, unbounded) of V = u N+ + N- / u."""
    out, into = quadratic.boost_out, quadratic.boost_in
    al, be = linear.i - quadratic.ii, linear.k - quadratic.ik
    A, B = _clean((al + be) / 2, out, rounding), _clean((al - be) / 2, into, rounding)
    u, unbounded = lightcone(A, B, out, into, positive)
    # One Newton step in w = u - 1 on u^3 F'(u) = u <P, K> + w g(u), which has no cancellation near u = 1
    p_out = (linear.i + linear.k) / 2
    cross = (quadratic.ii - quadratic.kk) / 4
    w = u - 1
    tilt = p_out - cross
    g = tilt * u * (u + 1) + 2 * out * u * u * u + 2 * into
    slope = linear.k + g + w * (tilt * (2 * u + 1) + 6 * out * u * u)
    step = (u * linear.k + w * g) / slope
    sound = (w.abs() < 0.5) & (slope > 0) & (step.abs() < 1e-3)
    w = torch.where(sound, w - step, w)
    u = torch.where(sound, 1 + w, u)
    z = -w / u
    decrease = -(w * linear.k / u + w * w / u * p_out + out * w * w + into * z * z + cross * w * z)
    return 1 + w * w / (2 * u), w * (u + 1) / (2 * u), decrease, w.abs() + z.abs(), unbounded


def _flip(linear: Linear, quadratic: Quadratic, rounding: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(x, y, decrease, unbounded) of V = diag(-1, 1) (u N+ + N- / u)."""
    out, into = quadratic.flip_out, quadratic.flip_in
    al, be = quadratic.iz - linear.z, linear.r - quadratic.ir
    A, B = _clean((al + be) / 2, out, rounding), _clean((al - be) / 2, into, rounding)
    u, unbounded = lightcone(A, B, out, into, positive=False)
    cross = (quadratic.zz - quadratic.rr) / 4
    value = (A + out * u) * u + (B + into / u) / u + cross
    return (u + 1 / u) / 2, (u - 1 / u) / 2, linear.i - quadratic.ii / 2 - value, unbounded


def _clean(linear: Tensor, quadratic: Tensor, rounding: Tensor) -> Tensor:
    """A linear coefficient at rounding level counts as zero where the quadratic one beside it is zero."""
    return torch.where((quadratic == 0) & (linear.abs() <= rounding), 0.0, linear)
