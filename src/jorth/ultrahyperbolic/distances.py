"""Geodesic distances, with full relative accuracy for near points and finite derivatives."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from jorth._inputs import ArrayLike
from jorth.signature import Signature
from jorth.ultrahyperbolic.maps import ROOT2, gap
from jorth.ultrahyperbolic.points import Radius, evaluate

SLOPE_FLOOR = 1e-15
"""The least |e| (2 + e), e = |g| - 1, in a derivative 1 / sqrt(|e| (2 + e)): at most 3.2e7."""


def distance(x: ArrayLike, y: ArrayLike, signature: Signature, *, alpha: Radius = 1.0) -> Any:
    """Return the distance of points of U: alpha acosh|g| where |g| >= 1, alpha acos|g| elsewhere.

    Here g = <x, y>_J / alpha^2; x and y (..., n) broadcast. With e = |g| - 1 it is
    2 alpha asinh sqrt(e / 2) or 2 alpha asin sqrt(-e / 2), and e is computed from
    <x -+ y, x -+ y>_J where that is short, so that near points keep full relative accuracy.

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
    return evaluate(distance_at, signature, alpha, "the distance", x=x, y=y)


def distance_at(x: Tensor, y: Tensor, signs: Tensor, alpha: Radius) -> Tensor:
    """Compute `distance` without its checks."""
    _, _, delta, root = gap(x, y, signs, alpha)
    e = torch.where(delta >= -1, delta, -2 - delta).squeeze(-1)
    far = e > 1e16  # there e is |delta| to rounding, and its square may overflow
    arc = _Arc.apply(torch.where(far, 0.0, e))  # type: ignore[no-untyped-call]
    far_root = torch.where(far, root.squeeze(-1), 1.0)
    return alpha * torch.where(far, 2 * torch.asinh(far_root / ROOT2), arc)


class _Arc(torch.autograd.Function):
    """acosh(1 + e) for e >= 0, acos(1 + e) for e < 0, with a derivative that is finite at 0."""

    generate_vmap_rule = True

    @staticmethod
    def forward(e: Tensor) -> Tensor:
        half = (e.abs() / 2).sqrt()
        return 2 * torch.where(e >= 0, half.asinh(), half.clamp(max=math.sqrt(0.5)).asin())

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (e,) = ctx.saved_tensors
        slope: Tensor = e.sign() / (e.abs() * (2 + e)).clamp(min=SLOPE_FLOOR).sqrt()
        return gradient * slope
