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


class _SquaredArc(torch.autograd.Function):
    """With e = |g| - 1 and the sine sqrt(|e| (2 + e)), hyperbolic or not: log1p(e + sine) or atan2(sine, |g|), squared.

    The derivative in g is 2 sign(g) sign(e) arc / sine; it shares all that is dear with the value.
    """

    @staticmethod
    def forward(ctx: Any, g: Tensor) -> Tensor:
        size = g.abs()
        e = size - 1
        sine = e.abs().sqrt() * (size + 1).sqrt()  # in two roots, so that nothing overflows
        arc = torch.where(e >= 0, torch.log1p(e + sine), torch.atan2(sine, size))
        if ctx.needs_input_grad[0]:
            ctx.save_for_backward(2 * g.sign() * e.sign() * torch.where(sine > 0, arc / sine, 1.0))
        return arc.square()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (slope,) = ctx.saved_tensors
        scaled: Tensor = gradient * slope
        return scaled
