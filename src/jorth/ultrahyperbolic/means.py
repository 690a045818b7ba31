"""The centroid of points: their weighted sum, scaled back onto U."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from jorth import _inputs
from jorth._inputs import ArrayT, Convertible, describe, like_input
from jorth.signature import Signature
from jorth.ultrahyperbolic.points import check_q, points_of


def centroid(
    points: ArrayT | Convertible, signature: Signature, *, weights: Any = None, alpha: float = 1.0
) -> ArrayT:
    """The Lorentzian centroid alpha s / sqrt(-<s, s>_J) (..., n), s = sum w_i x_i.

    It is the point of U at which sum w_i <x_i - c, x_i - c>_J is stationary (Law et al., Lorentzian
    distance learning, 2019). With q = 1, points on one sheet and weights of at least 0, s is always
    timelike; elsewhere it may not be, and a ValueError is raised where <s, s>_J >= 0.

    Args:
        points: Points (..., m, n) of U.
        signature: The signs of J, q at least 1.
        weights: Weights (..., m) of any scale; equal ones if omitted.
        alpha: The radius of U.
    """
    x, w, radius = points_and_weights(points, signature, weights, alpha)
    mean = centroid_at(x, w, signature.vector(x), radius)
    lost = int(mean.isnan().any(dim=-1).sum())
    if lost:
        names = "points, weights, signature and alpha"
        expected = "such that s = sum w_i x_i has <s, s> < 0"
        raise ValueError(f"{names} must be {expected}, got {lost} sums that have not")
    _inputs.check_overflow(mean, "points, weights and alpha", "the centroid")
    return like_input(mean, points, weights)


def points_and_weights(
    points: Any, signature: Signature, weights: Any, alpha: float
) -> tuple[Tensor, Tensor, float]:
    """Points (..., m, n), weights (..., m) and the radius, all checked."""
    check_q(signature)
    x = points_of(points, signature, "points")
    if x.ndim < 2 or x.shape[-2] == 0:
        expected = f"(..., m, {signature.n}) with m of at least 1"
        raise ValueError(f"points must have shape {expected}, got {describe(points)}")
    radius = _inputs.positive_number(alpha, "alpha", x.dtype)
    return x, x.new_ones(x.shape[-2]) if weights is None else _weights(weights, x), radius


def _weights(value: Any, points: Tensor) -> Tensor:
    weights = _inputs.tensor_alike(value, "weights", points, "points")
    _inputs.check_finite(weights, "weights")
    try:
        fits = weights.ndim >= 1 and weights.shape[-1] == points.shape[-2]
        torch.broadcast_shapes(weights.shape, points.shape[:-1])  # type: ignore[no-untyped-call]
    except RuntimeError:
        fits = False
    if not fits:
        expected = f"shape (..., {points.shape[-2]}) for points of shape {tuple(points.shape)}"
        raise ValueError(f"weights must have {expected}, got {describe(value)}")
    return weights


def centroid_at(points: Tensor, weights: Tensor, signs: Tensor, alpha: float | Tensor) -> Tensor:
    """`centroid` without its checks: NaN where the sum is not timelike.

    For points of U, with W = sum w_i, d_i = x_i - x_0 and d = sum w_i d_i, -<s, s> is
    alpha^2 W^2 + W sum w_i <d_i, d_i> - <d, d>, which keeps its digits where the x_i are far out
    but close together. x_0 is the point of the largest weight.
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
    return torch.where(timelike & _is_timelike(unit, signs), alpha * unit, torch.nan)


def _is_timelike(c: Tensor, signs: Tensor) -> Tensor:
    """Whether <c, c>_J is near -1 and not near 0, as for a sum that is zero but for rounding."""
    squares = c.detach().square()
    off = (squares * signs).sum(dim=-1, keepdim=True) + 1
    return off < (1 + squares.sum(dim=-1, keepdim=True)) / 4


def normalise_at(
    s: Tensor, signs: Tensor, alpha: float | Tensor, *, least: float | Tensor = 0.0
) -> Tensor:
    """The point alpha s / sqrt(-<s, s>_J) for timelike s (..., n), NaN for others.

    ``least`` is a lower bound of -<s, s> / alpha^2 that holds without rounding.
    """
    size = s.detach().abs().amax(dim=-1, keepdim=True)
    size = torch.where(size > 0, size, 1.0)
    unit = s / size
    square = -(unit.square() * signs).sum(dim=-1, keepdim=True)
    square = torch.maximum(square, least * (alpha / size).square())
    timelike = square > 0
    scale = alpha * torch.where(timelike, square, 1.0).rsqrt()
    return torch.where(timelike, scale * unit, torch.nan)
