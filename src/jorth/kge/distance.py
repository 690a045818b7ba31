"""The squared geodesic distance on the pseudo-hyperboloid as a function of the inner product, for all pairs at once."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def squared_arc(g: Tensor) -> Tensor:
    """acosh(|g|)^2 where |g| >= 1, acos(|g|)^2 elsewhere; times alpha^2 it is d^2 of points with <x, y>_J = alpha^2 g.

    Unlike d itself it has bounded slopes: +-2 on the two sides of |g| = 1, where 0 is returned. g carries an error of
    u |x| |y| / alpha^2, and so does the result.
    """
    arc: Tensor = _SquaredArc.apply(g)  # type: ignore[no-untyped-call]
    return arc


def _arc(e: Tensor) -> Tensor:
    half = (e.abs() / 2).sqrt()
    return 2 * torch.where(e >= 0, half.asinh(), half.asin())  # NaN on the side not taken


class _SquaredArc(torch.autograd.Function):
    """With e = |g| - 1: the derivative in g is 2 sign(g) sign(e) arc / sqrt(|e| (2 + e))."""

    @staticmethod
    def forward(ctx: Any, g: Tensor) -> Tensor:
        ctx.save_for_backward(g)
        return _arc(g.abs() - 1).square()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (g,) = ctx.saved_tensors
        e = g.abs() - 1
        sine = (e.abs() * (2 + e)).sqrt()
        ratio = torch.where(sine > 0, _arc(e) / sine, 1.0)
        slope: Tensor = 2 * g.sign() * e.sign() * ratio
        return gradient * slope
