"""The squared geodesic distance on the pseudo-hyperboloid as a function of the inner product, for all pairs at once."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

CHUNK = 2**15
"""Numbers at a time on a CPU: what is computed on the way to the result then stays in the cache."""


def squared_arc(g: Tensor) -> Tensor:
    """acosh(|g|)^2 where |g| >= 1, acos(|g|)^2 elsewhere; times alpha^2 it is d^2 of points with <x, y>_J = alpha^2 g.

    Unlike d itself it has bounded slopes: +-2 on the two sides of |g| = 1, where 0 is returned. g carries an error of
    u |x| |y| / alpha^2, and so does the result.
    """
    arc: Tensor = _SquaredArc.apply(g)  # type: ignore[no-untyped-call]
    return arc


class _SquaredArc(torch.autograd.Function):
    """The value and, where it will be asked for, the derivative, which shares all that is dear with it."""

    @staticmethod
    def forward(ctx: Any, g: Tensor) -> Tensor:
        flat = g.reshape(-1)
        square, slope = (
            torch.empty_like(flat),
            torch.empty_like(flat) if ctx.needs_input_grad[0] else None,
        )
        size = CHUNK if g.device.type == "cpu" else max(1, flat.numel())
        for start in range(0, flat.numel(), size):
            part = slice(start, start + size)
            _square_and_slope(flat[part], square[part], None if slope is None else slope[part])
        if slope is not None:
            ctx.save_for_backward(slope.view(g.shape))
        return square.view(g.shape)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (slope,) = ctx.saved_tensors
        scaled: Tensor = gradient * slope
        return scaled


def _square_and_slope(g: Tensor, square: Tensor, slope: Tensor | None) -> None:
    """Write arc^2, and its derivative 2 sign(g) sign(e) arc / sine.

    With e = |g| - 1 and the sine sqrt(|e| (2 + e)), hyperbolic or not, the arc is log1p(e + sine) or atan2(sine, |g|).
    """
    size = g.abs()
    e = size - 1
    sine = e.abs().sqrt_().mul_((size + 1).sqrt_())  # in two roots, so that nothing overflows
    if g.device.type == "cpu" and bool((e >= 0).all()):  # as all are for q = 1
        arc = torch.log1p(e + sine)
    else:
        arc = torch.where(e >= 0, torch.log1p(e + sine), torch.atan2(sine, size))
    torch.mul(arc, arc, out=square)
    if slope is not None:
        ratio = torch.where(sine > 0, arc / sine, 1.0)
        torch.mul(ratio.mul_(2).mul_(g.sign()), e.sign(), out=slope)
