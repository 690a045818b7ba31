"""The centroid of points, their weighted sum scaled back onto U, and the Frechet mean."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from jorth import _inputs
from jorth._inputs import ArrayT, Convertible, describe, like_input, unit_roundoff
from jorth.derivatives import first_derivatives_only
from jorth.signature import Signature
from jorth.ultrahyperbolic.maps import (
    exp_at,
    geodesic_coefficients,
    log_at,
    polynomial,
    project_tangent_at,
    transport_at,
)
from jorth.ultrahyperbolic.points import Radius, check_q, lift_at, membership, points_of, radius_of


def centroid(
    points: ArrayT | Convertible, signature: Signature, *, weights: Any = None, alpha: Radius = 1.0
) -> ArrayT:
    """Return the Lorentzian centroid alpha s / sqrt(-<s, s>_J) (..., n), s = sum w_i x_i.

    It is the point of U at which sum w_i <x_i - c, x_i - c>_J is stationary (Law et al., Lorentzian
    distance learning, 2019). With q = 1, points on one sheet and weights of at least 0, s is always
    timelike; elsewhere it may not be, and a ValueError is raised where <s, s>_J >= 0.

    Args:
        points: Points (..., m, n) of U.
        signature: The signs of J, q at least 1.
        weights: Weights (..., m) of any scale; equal ones if omitted.
        alpha: The radius of U.

    >>> points = np.array([[1.25, 0.75], [1.25, -0.75]])
    >>> jorth.ultrahyperbolic.centroid(points, jorth.Signature.lorentz(2))
    array([1., 0.])
    """
    x, w, radius = points_and_weights(points, signature, weights, alpha)
    mean = centroid_at(x, w, signature.vector(x), radius)
    lost = int(mean.isnan().any(dim=-1).sum()) if _inputs.is_readable(mean) else 0
    if lost:
        names = "points, weights, signature and alpha"
        expected = "such that s = sum w_i x_i has <s, s> < 0"
        raise ValueError(f"{names} must be {expected}, got {lost} sums that have not")
    _inputs.check_overflow(mean, "points, weights and alpha", "the centroid")
    return like_input(mean, points, weights, alpha)


def points_and_weights(
    points: Any, signature: Signature, weights: Any, alpha: Radius
) -> tuple[Tensor, Tensor, Radius]:
    """Return points (..., m, n), weights (..., m) and the radius, all checked."""
    check_q(signature)
    x = points_of(points, signature, "points")
    if x.ndim < 2 or x.shape[-2] == 0:
        expected = f"(..., m, {signature.n}) with m of at least 1"
        raise ValueError(f"points must have shape {expected}, got {describe(points)}")
    if weights is None:
        return x, x.new_ones(x.shape[-2]), radius_of(alpha, x.dtype)
    w = _inputs.tensor_alike(weights, "weights", x, "points")
    _inputs.check_finite(w, "weights")
    fits = w.ndim >= 1 and w.shape[-1] == x.shape[-2]
    if not fits or not _inputs.broadcast(w.shape, x.shape[:-1]):
        expected = f"shape (..., {x.shape[-2]}) for points of shape {tuple(x.shape)}"
        raise ValueError(f"weights must have {expected}, got {describe(weights)}")
    return x, w, radius_of(alpha, x.dtype)


def centroid_at(points: Tensor, weights: Tensor, signs: Tensor, alpha: Radius) -> Tensor:
    """Compute `centroid` without its checks: NaN where the sum is not timelike.

    -<s, s> is computed from the differences from the point of the largest weight, and keeps its
    digits where points are far out but close together.
    """
    shape = torch.broadcast_shapes(weights.shape, points.shape[:-1])  # type: ignore[no-untyped-call]
    points = points.expand(*shape, points.shape[-1])
    size = weights.detach().abs().amax(dim=-1, keepdim=True)
    weights = (weights / torch.where(size > 0, size, 1.0)).expand(shape).unsqueeze(-1)
    heaviest = weights.detach().abs().argmax(dim=-2, keepdim=True)
    base = points.take_along_dim(heaviest, dim=-2)
    apart = (points - base) / alpha
    total = weights.sum(dim=-2)
    shift = (weights * apart).sum(dim=-2)
    spread = (weights * apart.square() * signs).sum(dim=(-2, -1)).unsqueeze(-1)
    square = total * (total + spread) - (shift.square() * signs).sum(dim=-1, keepdim=True)
    timelike = square > 0
    unit = (total * base.squeeze(-2) / alpha + shift) * torch.where(timelike, square, 1.0).rsqrt()
    # <c, c>_J is near -1 and not near 0, as for a sum that is zero but for rounding
    squares = unit.detach().square()
    off = (squares * signs).sum(dim=-1, keepdim=True) + 1
    timelike = timelike & (off < (1 + squares.sum(dim=-1, keepdim=True)) / 4)
    return torch.where(timelike, alpha * unit, torch.nan)


COSINE = tuple((2 * k + 2) / math.factorial(2 * k + 3) for k in range(9))
"""Series of (C - S) / z, summed for |z| < 1/2: its last term is below 1e-18."""


def frechet_mean(
    points: ArrayT | Convertible, signature: Signature, *, weights: Any = None, alpha: Radius = 1.0
) -> ArrayT:
    """Return the Frechet (Karcher) mean x (..., n) of points: sum w_i log(x, x_i) = 0.

    With q = 1 and points on one sheet x is the only minimiser of the weighted sum of squared
    distances, and Newton's method finds it from any start; likewise with p = 0 for points in a ball
    of radius below pi alpha / 2. Elsewhere x need not be the only stationary point, and a
    ValueError is raised where none is found that geodesics join to all points. The `centroid` is
    cheaper; the two agree for two points of equal weight.

    float32 is computed in float64. The first derivatives with respect to points, weights and alpha
    are those of the implicit function.

    Args:
        points: Points (..., m, n) of U.
        signature: The signs of J, q at least 1.
        weights: Weights (..., m) of at least 0, of any scale; equal ones if omitted.
        alpha: The radius of U.

    >>> sig = jorth.Signature.lorentz(2)
    >>> points = np.array([[1.25, 0.75], [1.25, -0.75]])
    >>> np.allclose(jorth.ultrahyperbolic.frechet_mean(points, sig), [1.0, 0.0])
    True
    """
    x, w, radius = points_and_weights(points, signature, weights, alpha)
    with torch.no_grad():
        off = float(membership(x, signature, alpha=radius).max()) if x.numel() else 0.0
    if off > unit_roundoff(x) ** 0.5:  # log means nothing for them
        found = f"a scaled residual of {off:.3g}"
        raise ValueError(
            f"points, signature and alpha must be such that <x, x> = -alpha^2, got {found}"
        )
    largest = w.detach().abs().amax(dim=-1, keepdim=True)
    w = w / torch.where(largest > 0, largest, 1.0)  # their sum would overflow
    total = w.sum(dim=-1, keepdim=True)
    if bool((w < 0).any()) or not bool((total > 0).all()):
        found = f"{int((w < 0).sum())} negative and {int((total <= 0).sum())} sums of 0 or less"
        raise ValueError(f"weights must be at least 0 with a positive sum, got {found}")
    # in the unit alpha lengths neither over- nor underflow, and the derivative in alpha is simple
    shape = np.broadcast_shapes(w.shape, x.shape[:-1])
    unit = (x.double() / radius).expand(*shape, signature.n)
    shares = (w / total).double().expand(shape).unsqueeze(-1)
    with torch.no_grad():
        at, left = _stationary(unit, shares, signature)
    lost = int((~(left.nan_to_num(torch.inf) <= unit_roundoff(x) ** 0.5)).sum())
    if lost:
        expected = f"{'on one sheet and ' if signature.q == 1 else ''}near each other"
        found = f"{lost} of {left.numel()} sets without a point that geodesics join to all of them"
        raise ValueError(f"points must be {expected} to have a mean, got {found}")
    _inputs.check_overflow(at.x, "points and alpha", "the mean")
    return like_input(
        (radius * _attached(at, unit, shares, signature)).to(x.dtype), points, weights, alpha
    )


def _stationary(
    points: Tensor,
    weights: Tensor,
    signature: Signature,
    *,
    max_steps: int = 50,
    halvings: int = 12,
) -> tuple[_Field, Tensor]:
    """Return the field at the mean, and its length there over that of its terms (..., 1).

    Points (..., m, n) are of radius 1, weights (..., m, 1) of sum 1. The start is the centroid, or
    the point of the largest weight where there is none. A step is halved where it does not decrease
    the length; for q = 1 it is a direction of descent.
    """
    signs, places = signature.vector(points), signature.positions(points.device)
    heaviest = points.take_along_dim(weights.argmax(dim=-2, keepdim=True), dim=-2).squeeze(-2)
    start = centroid_at(points, weights.squeeze(-1), signs, 1.0)
    joined = log_at(start.unsqueeze(-2), points, signs, 1.0).isfinite().all(dim=-2)
    start = torch.where(joined.all(dim=-1, keepdim=True), start, heaviest)
    at = _field(start, points, weights, signature)
    for _ in range(max_steps):
        step = _newton_step(at, at.total, signs)
        x, done = at.x, at.size <= _rounding(at.x)
        settled = done
        share = torch.ones_like(at.size)
        for _ in range(halvings):
            trial = lift_at(exp_at(at.x, share * step, signs, 1.0), *places, 1.0)
            size = _field(trial, points, weights, signature).size
            shorter = ~settled & (size <= (1 - share / 4) * at.size)
            x = torch.where(shorter, trial, x)
            settled = settled | shorter
            if bool(settled.all()):
                break
            share = torch.where(settled, share, share / 2)
        if bool((done | ~settled).all()):
            break
        at = _field(x, points, weights, signature)
    return at, at.size / torch.maximum(at.terms, 1e8 * _rounding(at.x))


def _rounding(x: Tensor) -> Tensor:
    """Return the rounding error of a length at x (..., 1): a few n u |x|^2."""
    return 4 * x.shape[-1] * unit_roundoff(x) * x.square().sum(dim=-1, keepdim=True)


class _Field(NamedTuple):
    """sum w_i log(x, x_i) and what Newton's method needs, boosted from x to ``base``, where s is 0.

    At the base, tangent vectors have lengths, and large coordinates of x do no harm.
    """

    x: Tensor
    base: Tensor
    total: Tensor
    """The sum (..., n)."""
    slope: Tensor
    """Minus its derivative (..., n, n)."""
    size: Tensor
    """The length of the sum (..., 1); infinite where a logarithm does not exist."""
    terms: Tensor
    """The weighted length of its terms (..., 1)."""


def _field(x: Tensor, points: Tensor, weights: Tensor, signature: Signature) -> _Field:
    """Return the field at x (..., n).

    Along a tangent vector h the derivative of v_i = log(x, x_i) is -c h + k <v_i, h> v_i
    where c = sqrt(z) coth sqrt(z), z = <v_i, v_i> and k = (c - 1) / z.
    """
    signs = signature.vector(x)
    base = lift_at(torch.where(signs < 0, x, 0.0), *signature.positions(x.device), 1.0)
    ends = x.unsqueeze(-2), base.unsqueeze(-2)
    v = transport_at(*ends, log_at(ends[0], points, signs, 1.0), signs, 1.0)
    c, k = _curvature((v.square() * signs).sum(dim=-1, keepdim=True))
    across = (weights * k * v).mT @ (v * signs)
    slope = torch.diag_embed((weights * c).sum(dim=-2).expand_as(x)) - across
    total = project_tangent_at(base, (weights * v).sum(dim=-2), signs, 1.0)
    size = torch.linalg.vector_norm(total, dim=-1, keepdim=True)
    terms = (weights * torch.linalg.vector_norm(v, dim=-1, keepdim=True)).sum(dim=-2)
    return _Field(x, base, total, slope, torch.where(size.isnan(), torch.inf, size), terms)


def _newton_step(at: _Field, total: Tensor, signs: Tensor) -> Tensor:
    """Return the tangent vector at x that solves slope h = total, both at the base."""
    found, _ = torch.linalg.solve_ex(at.slope, total.unsqueeze(-1))
    step = project_tangent_at(at.base, found.squeeze(-1), signs, 1.0)
    return transport_at(at.base, at.x, step, signs, 1.0)


def _curvature(z: Tensor) -> tuple[Tensor, Tensor]:
    """Return c = sqrt(z) coth sqrt(z) = C(z) / S(z), and k = (c - 1) / z."""
    near = z.abs() < 0.5
    cosine, sine, _ = geodesic_coefficients(z, torch.ones_like(z))
    c = cosine / sine
    series = polynomial(torch.where(near, z, 0.0), COSINE) / sine
    return c, torch.where(near, series, (c - 1) / torch.where(near, 1.0, z))


def _attached(at: _Field, points: Tensor, weights: Tensor, signature: Signature) -> Tensor:
    """Return the mean plus a Newton step of length 0, whose derivative is that of the mean."""
    if not (points.requires_grad or weights.requires_grad):
        return at.x
    signs = signature.vector(at.x)
    total = (weights * log_at(at.x.unsqueeze(-2), points, signs, 1.0)).sum(dim=-2)
    moved = transport_at(at.x, at.base, total - total.detach(), signs, 1.0)
    step = _newton_step(at, moved, signs)
    attached: Tensor = _FrechetMean.apply(at.x + step)  # type: ignore[no-untyped-call]
    return attached


class _FrechetMean(torch.autograd.Function):
    """The identity, which refuses second derivatives."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    @first_derivatives_only
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient
