"""The Frechet mean of points of U, by Newton's method, with its derivative."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from jorth import _inputs
from jorth._inputs import ArrayT, Convertible, like_input, unit_roundoff
from jorth.derivatives import first_derivatives_only
from jorth.signature import Signature
from jorth.ultrahyperbolic.entire import polynomial
from jorth.ultrahyperbolic.maps import exp_at, log_at, project_tangent_at, transport_at
from jorth.ultrahyperbolic.means import centroid_at, points_and_weights
from jorth.ultrahyperbolic.points import lift_at, membership

MAX_STEPS = 50
HALVINGS = 12
NEAR = 0.5
"""Below this |z| the series of (c - 1) / z is summed; its terms fall as (z / pi^2)^k."""


def _coth_coefficients(count: int) -> tuple[float, ...]:
    """Those of sqrt(z) coth sqrt(z) = 1 + z/3 - z^2/45 + ...: cosh divided by sinhc."""
    found: list[float] = []
    for k in range(count):
        known = sum(one / math.factorial(2 * (k - j) + 1) for j, one in enumerate(found))
        found.append(1 / math.factorial(2 * k) - known)
    return tuple(found)


COTH = _coth_coefficients(14)[1:]


def frechet_mean(
    points: ArrayT | Convertible, signature: Signature, *, weights: Any = None, alpha: float = 1.0
) -> ArrayT:
    """The Frechet (Karcher) mean x (..., n) of points: sum w_i log(x, x_i) = 0.

    There sum w_i <v_i, v_i>_J, v_i = log(x, x_i), is stationary. With q = 1 and points on one sheet
    this is the sum of squared distances, and x its only minimiser. The same holds with p = 0 for
    points in a ball of radius below pi alpha / 2. Elsewhere x need not be the only stationary
    point, and a ValueError is raised where none is found that geodesics join to all points.
    Rounding grows like u |x| |x_i| / alpha^2. The `centroid`, from which the search starts, is
    cheaper; the two agree for two points of equal weight.

    Newton's method uses the exact derivative, with the factors r coth(r) across each geodesic, and
    for q = 1 it converges from any start. float32 is computed in float64. The first derivatives
    with respect to points and weights are those of the implicit function.

    Args:
        points: Points (..., m, n) of U.
        signature: The signs of J, q at least 1.
        weights: Weights (..., m) of at least 0, of any scale; equal ones if omitted.
        alpha: The radius of U.
    """
    x, w, radius = points_and_weights(points, signature, weights, alpha)
    _check_on_sheet(x.detach(), signature, radius)
    largest = w.detach().abs().amax(dim=-1, keepdim=True)
    w = w / torch.where(largest > 0, largest, 1.0)  # their sum would overflow
    total = w.sum(dim=-1, keepdim=True)
    if bool((w < 0).any()) or not bool((total > 0).all()):
        found = f"{int((w < 0).sum())} negative and {int((total <= 0).sum())} sums of 0 or less"
        raise ValueError(f"weights must be at least 0 with a positive sum, got {found}")
    unit = 2.0 ** math.floor(math.log2(radius))  # lengths in it neither overflow nor underflow
    cloud = _Cloud.of(x.double() / unit, (w / total).double(), signature, radius / unit)
    with torch.no_grad():
        at, left = _stationary(cloud)
    _check_found(at.x, left, x, signature)
    return like_input((unit * _attached(at, cloud)).to(x.dtype), points, weights)


class _Cloud(NamedTuple):
    """Points (..., m, n) with weights (..., m, 1) whose sum is 1, and the signs of J."""

    points: Tensor
    weights: Tensor
    signs: Tensor
    alpha: float
    plus: Tensor
    minus: Tensor

    @classmethod
    def of(cls, points: Tensor, w: Tensor, signature: Signature, alpha: float) -> _Cloud:
        shape = np.broadcast_shapes(w.shape, points.shape[:-1])
        points = points.expand(*shape, points.shape[-1])
        weights = w.expand(shape).unsqueeze(-1)
        return cls(points, weights, signature.vector(points), alpha, *signature.positions(w.device))


def _stationary(cloud: _Cloud) -> tuple[_Field, Tensor]:
    """The field at the mean, and its length there over that of its terms (..., 1).

    A step is halved where it does not decrease the length; for q = 1 it is a direction of descent.
    """
    at = _field(_start(cloud), cloud)
    for _ in range(MAX_STEPS):
        step = _newton_step(at, at.total, cloud)
        x, done = at.x, at.size <= _rounding(at.x, cloud)
        settled = done
        share = torch.ones_like(at.size)
        for _ in range(HALVINGS):
            end = exp_at(at.x, share * step, cloud.signs, cloud.alpha)
            trial = lift_at(end, cloud.plus, cloud.minus, cloud.alpha)
            shorter = ~settled & (_field(trial, cloud).size <= (1 - share / 4) * at.size)
            x = torch.where(shorter, trial, x)
            settled = settled | shorter
            if bool(settled.all()):
                break
            share = torch.where(settled, share, share / 2)
        if bool((done | ~settled).all()):
            break
        at = _field(x, cloud)
    return at, at.size / torch.maximum(at.terms, 1e8 * _rounding(at.x, cloud))


def _start(cloud: _Cloud) -> Tensor:
    """The centroid, or the point of the largest weight where there is none."""
    heaviest = cloud.weights.argmax(dim=-2, keepdim=True)
    heaviest = cloud.points.take_along_dim(heaviest, dim=-2).squeeze(-2)
    start = centroid_at(cloud.points, cloud.weights.squeeze(-1), cloud.signs, cloud.alpha)
    joined = log_at(start.unsqueeze(-2), cloud.points, cloud.signs, cloud.alpha).isfinite()
    return torch.where(joined.all(dim=-2).all(dim=-1, keepdim=True), start, heaviest)


def _rounding(x: Tensor, cloud: _Cloud) -> Tensor:
    """The rounding error of a length at x (..., 1): a few n u |x|^2 / alpha."""
    square = (x / cloud.alpha).square().sum(dim=-1, keepdim=True)
    return 4 * x.shape[-1] * unit_roundoff(x) * cloud.alpha * square


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


def _field(x: Tensor, cloud: _Cloud) -> _Field:
    """The field at x (..., n).

    Along a tangent vector h the derivative of v_i = log(x, x_i) is -c h + k <v_i, h> v_i / alpha^2
    where c = sqrt(z) coth sqrt(z), z = <v_i, v_i> / alpha^2 and k = (c - 1) / z.
    """
    signs, alpha = cloud.signs, cloud.alpha
    base = x.clone()
    base[..., cloud.plus] = 0
    base = lift_at(base, cloud.plus, cloud.minus, alpha)
    ends = x.unsqueeze(-2), base.unsqueeze(-2)
    v = transport_at(*ends, log_at(ends[0], cloud.points, signs, alpha), signs, alpha)
    unit = v / alpha
    c, k = _curvature((unit.square() * signs).sum(dim=-1, keepdim=True))
    across = (cloud.weights * k * unit).mT @ (unit * signs)
    slope = torch.diag_embed((cloud.weights * c).sum(dim=-2).expand_as(x)) - across
    total = project_tangent_at(base, (cloud.weights * v).sum(dim=-2), signs, alpha)
    size = torch.linalg.vector_norm(total, dim=-1, keepdim=True)
    terms = (cloud.weights * torch.linalg.vector_norm(v, dim=-1, keepdim=True)).sum(dim=-2)
    return _Field(x, base, total, slope, torch.where(size.isnan(), torch.inf, size), terms)


def _newton_step(at: _Field, total: Tensor, cloud: _Cloud) -> Tensor:
    """The tangent vector at x that solves slope h = total, both at the base."""
    found, _ = torch.linalg.solve_ex(at.slope, total.unsqueeze(-1))
    step = project_tangent_at(at.base, found.squeeze(-1), cloud.signs, cloud.alpha)
    return transport_at(at.base, at.x, step, cloud.signs, cloud.alpha)


def _curvature(z: Tensor) -> tuple[Tensor, Tensor]:
    """c = sqrt(z) coth sqrt(z), or the cotangent for z < 0, and k = (c - 1) / z."""
    near = z.abs() < NEAR
    series = polynomial(torch.where(near, z, 0.0), COTH)
    r = torch.where(near, 1.0, z).abs().sqrt()
    c = torch.where(near, 1 + z * series, torch.where(z > 0, r / r.tanh(), r / r.tan()))
    return c, torch.where(near, series, (c - 1) / torch.where(near, 1.0, z))


def _check_on_sheet(x: Tensor, signature: Signature, alpha: float) -> None:
    """Raise a ValueError for points that are not on U: log means nothing for them."""
    off = float(torch.as_tensor(membership(x, signature, alpha=alpha)).max()) if x.numel() else 0.0
    if off > unit_roundoff(x) ** 0.5:
        expected = "such that <x, x> = -alpha^2"
        found = f"a scaled residual of {off:.3g}"
        raise ValueError(f"points, signature and alpha must be {expected}, got {found}")


def _check_found(mean: Tensor, left: Tensor, points: Tensor, signature: Signature) -> None:
    lost = int((~(left.nan_to_num(torch.inf) <= unit_roundoff(points) ** 0.5)).sum())
    if lost:
        sheet = "on one sheet and " if signature.q == 1 else ""
        expected = f"{sheet}near each other"
        found = f"{lost} of {left.numel()} sets without a point that geodesics join to all of them"
        raise ValueError(f"points must be {expected} to have a mean, got {found}")
    _inputs.check_overflow(mean, "points and alpha", "the mean")


def _attached(at: _Field, cloud: _Cloud) -> Tensor:
    """The mean plus a Newton step of length 0, whose derivative is that of the mean."""
    if not (cloud.points.requires_grad or cloud.weights.requires_grad):
        return at.x
    total = (cloud.weights * log_at(at.x.unsqueeze(-2), cloud.points, *cloud[2:4])).sum(dim=-2)
    moved = transport_at(at.x, at.base, total - total.detach(), cloud.signs, cloud.alpha)
    step = _newton_step(at, moved, cloud)
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
