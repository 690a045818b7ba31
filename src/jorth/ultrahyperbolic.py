"""The pseudo-hyperboloid U = {x : <x, x>_J = -alpha^2}: lifting onto it, and geodesic distances.

A point is x = (s, t) with s at the positive and t at the negative signs of J. With q = 1 it is the
hyperboloid model of hyperbolic space, with p = 0 the sphere. All derivatives are finite, even where
those of the formulas are not: the docstrings say what is returned there.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jorth import arrays
from jorth.arrays import Array, ArrayT, describe, like_input, to_tensor
from jorth.signature import Signature

__all__ = ["distance", "inner", "lift", "membership"]

SLOPE_FLOOR = 1e-15
"""The least |e| (2 + e), e = |g| - 1, in a derivative 1 / sqrt(|e| (2 + e)): at most 3.2e7."""


def lift(x: ArrayT, signature: Signature, *, alpha: float = 1.0) -> ArrayT:
    """The double projection phi(x) = (s, sqrt(alpha^2 + |s|^2) t / |t|) of x (..., n) onto U.

    It depends on t only through its direction; t = 0 has none and raises a ValueError. Near t = 0
    the derivative in t is large but finite, of size sqrt(alpha^2 + |s|^2) / |t|.
    """
    point: Tensor = _points(x, signature, "x")
    radius = arrays.positive_number(alpha, "alpha", point.dtype)
    plus, minus = signature.positions(point.device)
    s, t = point[..., plus], point[..., minus]
    check_q(signature)
    without_direction = int((t == 0).all(dim=-1).sum())
    if without_direction:
        raise ValueError(f"x must have t != 0 in every row, got {without_direction} with t = 0")
    # phi is homogeneous in (s, alpha), so scaling by the largest avoids overflow and underflow
    radii = point.new_full((*point.shape[:-1], 1), radius)
    size = torch.cat([s.detach().abs(), radii], dim=-1).amax(dim=-1, keepdim=True)
    lifted = point.clone()
    lifted[..., minus] = size * height(s / size, radius / size) * polar(t)[1]
    arrays.check_overflow(lifted, "x and alpha", "the point on the pseudo-hyperboloid")
    return like_input(lifted, x)


def check_q(signature: Signature) -> None:
    """Raise a ValueError for a signature without negative signs, which has no U."""
    if signature.q == 0:
        expected = "q of at least 1 for points with <x, x> = -alpha^2"
        raise ValueError(f"signature must have {expected}, got {signature}")


def lift_at(x: Tensor, plus: Tensor, minus: Tensor, alpha: float) -> Tensor:
    """`lift` without its checks, for given positions of the signs: NaN where t = 0."""
    s = x[..., plus]
    lifted = torch.empty_like(x)
    lifted[..., plus] = s
    lifted[..., minus] = height(s, alpha) * polar(x[..., minus])[1]
    return lifted


def polar(t: Tensor) -> tuple[Tensor, Tensor]:
    """|t| (..., 1) and t / |t|, free of overflow and underflow."""
    size = t.abs().amax(dim=-1, keepdim=True)
    scaled = t / size
    length = torch.linalg.vector_norm(scaled, dim=-1, keepdim=True)
    return size * length, scaled / length


def height(s: Tensor, alpha: float | Tensor) -> Tensor:
    """sqrt(alpha^2 + |s|^2) (..., 1)."""
    length = torch.linalg.vector_norm(s, dim=-1, keepdim=True)
    radius = alpha if isinstance(alpha, Tensor) else torch.full_like(length, alpha)
    return torch.hypot(length, radius)


def inner(x: ArrayT, y: ArrayT, signature: Signature) -> Any:
    """<x, y>_J = sum s_i x_i y_i over the last dimension, with broadcasting."""
    a, b = _two_points(x, y, signature)
    product = (a * b * signature.vector(a)).sum(dim=-1)
    arrays.check_overflow(product, "x and y", "<x, y>")
    return _like(product, x)


def membership(x: Array, signature: Signature, *, alpha: float = 1.0) -> Any:
    """The scaled distance |<x, x>_J + alpha^2| / max(alpha^2, |x|^2) of points (..., n) from U.

    It is a few u for points of U.
    """
    point = _points(x, signature, "x").to(torch.float64)
    radius = arrays.positive_number(alpha, "alpha")
    size = point.detach().abs().amax(dim=-1, keepdim=True).clamp(min=radius)  # no square overflows
    squares = (point / size).square()
    alpha_squared = (radius / size[..., 0]).square()
    defect = (squares * signature.vector(point)).sum(dim=-1) + alpha_squared
    return _like(defect.abs() / torch.maximum(squares.sum(dim=-1), alpha_squared), x)


def distance(x: ArrayT, y: ArrayT, signature: Signature, *, alpha: float = 1.0) -> Any:
    """The distance of points of U: alpha acosh|g| where |g| >= 1, alpha acos|g| elsewhere.

    Here g = <x, y>_J / alpha^2; x and y (..., n) broadcast. It is computed from
    e = |g| - 1 = <x -+ y, x -+ y>_J / (2 alpha^2), minus for g < 0, as 2 alpha asinh sqrt(e / 2) or
    2 alpha asin sqrt(-e / 2), which has full relative accuracy for near points, too.

    The derivative in e is +-alpha / sqrt(|e| (2 + e)), infinite at e = 0 (the same point,
    antipodes, points joined by a null geodesic). Zero is returned there, and at most 3.2e7 alpha
    nearby.
    """
    a, b = _two_points(x, y, signature)
    radius = arrays.positive_number(alpha, "alpha", a.dtype)
    s = signature.vector(a)
    with torch.no_grad():
        same_side = ((a * b * s).sum(dim=-1, keepdim=True) <= 0).to(a.dtype)
    difference = a - b * (2 * same_side - 1)
    e = ((difference / radius).square() * s).sum(dim=-1) / 2
    distances: Tensor = radius * _Arc.apply(e)  # type: ignore[no-untyped-call]
    arrays.check_overflow(distances, "x, y and alpha", "<x - y, x - y> / alpha^2")
    return _like(distances, x)


class _Arc(torch.autograd.Function):
    """acosh(1 + e) for e >= 0, acos(1 + e) for e < 0, with a derivative that is finite at 0."""

    @staticmethod
    def forward(ctx: Any, e: Tensor) -> Tensor:
        ctx.save_for_backward(e)
        half = (e.abs() / 2).sqrt()
        return 2 * torch.where(e >= 0, half.asinh(), half.clamp(max=math.sqrt(0.5)).asin())

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (e,) = ctx.saved_tensors
        slope: Tensor = e.sign() / (e.abs() * (2 + e)).clamp(min=SLOPE_FLOOR).sqrt()
        return gradient * slope


def _points(value: Any, signature: Signature, name: str) -> Tensor:
    points = to_tensor(value, name)
    n = arrays.check_signature(signature).n
    if points.ndim < 1 or points.shape[-1] != n:
        expected = f"(..., {n}) for {signature}"
        raise ValueError(f"{name} must have shape {expected}, got {describe(value)}")
    arrays.check_finite(points, name)
    return points


def _two_points(x: Any, y: Any, signature: Signature) -> tuple[Tensor, Tensor]:
    a = _points(x, signature, "x")
    b = _points(y, signature, "y")
    if a.device != b.device:
        raise TypeError(f"y must be on the device of x, {a.device}, got {b.device}")
    try:
        np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        found = f"{describe(y)} and {describe(x)}"
        raise ValueError(f"y must broadcast against x, got {found}") from None
    return a, b


def _like(result: Tensor, value: Any) -> Any:
    """The result as the kind of array that ``value`` is; a number for one NumPy point."""
    if isinstance(value, Tensor):
        return result
    array = result.detach().cpu().numpy()
    return array if array.ndim else array.item()
