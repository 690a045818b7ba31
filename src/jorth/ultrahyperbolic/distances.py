"""Geodesic distances, with full relative accuracy for near points and finite derivatives."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from jorth import arrays
from jorth.arrays import ArrayLike
from jorth.signature import Signature
from jorth.suggestions import explained
from jorth.ultrahyperbolic.boundary import like, several_points

SLOPE_FLOOR = 1e-15
"""The least |e| (2 + e), e = |g| - 1, in a derivative 1 / sqrt(|e| (2 + e)): at most 3.2e7."""


@explained
def distance(x: ArrayLike, y: ArrayLike, signature: Signature, *, alpha: float = 1.0) -> Any:
    """The distance of points of U: alpha acosh|g| where |g| >= 1, alpha acos|g| elsewhere.

    Here g = <x, y>_J / alpha^2; x and y (..., n) broadcast. It is computed from
    e = |g| - 1 = <x -+ y, x -+ y>_J / (2 alpha^2), minus for g < 0, as 2 alpha asinh sqrt(e / 2) or
    2 alpha asin sqrt(-e / 2), which has full relative accuracy for near points, too.

    The derivative in e is +-alpha / sqrt(|e| (2 + e)), infinite at e = 0 (the same point,
    antipodes, points joined by a null geodesic). Zero is returned there, and at most 3.2e7 alpha
    nearby.

    Whether x and y lie on U is not checked, and the distance of other vectors means nothing:
    `membership` tells how far off they are.

    Args:
        x: Points (..., n) of U.
        y: Points (..., n) of U.
        signature: The signs of J, q at least 1.
        alpha: The radius of U.
    """
    a, b = several_points(signature, x=x, y=y)
    radius = arrays.positive_number(alpha, "alpha", a.dtype)
    s = signature.vector(a)
    with torch.no_grad():
        same_side = ((a * b * s).sum(dim=-1, keepdim=True) <= 0).to(a.dtype)
    difference = a - b * (2 * same_side - 1)
    e = ((difference / radius).square() * s).sum(dim=-1) / 2
    distances: Tensor = radius * _Arc.apply(e)  # type: ignore[no-untyped-call]
    arrays.check_overflow(distances, "x, y and alpha", "<x - y, x - y> / alpha^2")
    return like(distances, x)


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
