"""The pseudo-hyperboloid U = {x : <x, x>_J = -alpha^2}: lifting onto it, and distances along its geodesics.

Coordinates are x = (s, t), s at the positive and t at the negative signs of J. q = 1 is the hyperboloid model of
hyperbolic space, p = 0 the sphere. Everything is differentiable with finite derivatives, also where the formulas are
not: each docstring says what stands there.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from jorth.arrays import Array, ArrayT, check_finite, check_signature, describe, is_number, like_input, to_tensor
from jorth.signature import Signature

SLOPE_FLOOR = 1e-15
"""Under the root of a derivative 1 / sqrt(|e| (2 + e)), e = |g| - 1: it is never above 3.2e7."""


def lift(x: ArrayT, signature: Signature, *, alpha: float = 1.0) -> ArrayT:
    """The point phi(x) = (s, sqrt(alpha^2 + |s|^2) t / |t|) of U for x (..., n): the double projection.

    It depends on t only through its direction. At t = 0 there is none: a ValueError. Near t = 0 the derivative in t
    is that of a direction, of size sqrt(alpha^2 + |s|^2) / |t|: finite, and as large as that.
    """
    point = _points(x, signature, "x")
    _check_alpha(alpha)
    if signature.q == 0:
        raise ValueError(f"signature must have q of at least 1 for points with <x, x> = -alpha^2, got {signature}")
    _, minus = signature.positions(point.device)
    lost = (point[..., minus] == 0).all(dim=-1)
    if bool(lost.any()):
        raise ValueError(f"x must have t != 0 in every row, got {int(lost.sum())} with t = 0")
    return like_input(lift_rows(point, signature, alpha), x)


def lift_rows(x: Tensor, signature: Signature, alpha: float) -> Tensor:
    """`lift` without its checks: NaN where t = 0."""
    return lift_at(x, *signature.positions(x.device), alpha)


def lift_at(x: Tensor, plus: Tensor, minus: Tensor, alpha: float) -> Tensor:
    """`lift_rows` with the positions of the signs on the device already."""
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


def height(s: Tensor, alpha: float) -> Tensor:
    """Sqrt(alpha^2 + |s|^2) (..., 1), free of overflow."""
    return torch.hypot(
        torch.linalg.vector_norm(s, dim=-1, keepdim=True), torch.full_like(s[..., :1].sum(-1, True), alpha)
    )


def unlift(y: ArrayT, signature: Signature) -> ArrayT:
    """The x = (s, t / |t|) with lift(x) = y, for y (..., n) on U: the inverse of `lift` where t has length one."""
    point = _points(y, signature, "y")
    _, minus = signature.positions(point.device)
    t = point[..., minus]
    result = point.clone()
    result[..., minus] = t / torch.linalg.vector_norm(t, dim=-1, keepdim=True)
    return like_input(result, y)


def inner(x: ArrayT, y: ArrayT, signature: Signature) -> Any:
    """<x, y>_J = sum s_i x_i y_i over the last dimension, with broadcasting."""
    a, b = _points(x, signature, "x"), _points(y, signature, "y")
    return _out((a * b * signature.vector(a)).sum(dim=-1), x)


def membership(x: Array, signature: Signature, *, alpha: float = 1.0) -> Any:
    """How far points (..., n) are from U, scaled: |<x, x>_J + alpha^2| / max(alpha^2, |x|^2); rounding is a few u."""
    point = _points(x, signature, "x").to(torch.float64)
    _check_alpha(alpha)
    squares = point.square()
    defect = (squares * signature.vector(point)).sum(dim=-1) + alpha**2
    return _out(defect.abs() / squares.sum(dim=-1).clamp(min=alpha**2), x)


def distance(x: ArrayT, y: ArrayT, signature: Signature, *, alpha: float = 1.0) -> Any:
    """The distance alpha acosh|g| where |g| >= 1, alpha acos|g| elsewhere, g = <x, y>_J / alpha^2, for points of U.

    x and y (..., n) broadcast. It is computed from e = |g| - 1 = <x -+ y, x -+ y>_J / (2 alpha^2), minus for g < 0, as
    2 alpha asinh sqrt(e / 2) or 2 alpha asin sqrt(-e / 2): to full relative accuracy for near points too.

    The derivative in e is +-alpha / sqrt(|e| (2 + e)), infinite at e = 0 (the same point, antipodes, points joined by
    a null geodesic). What is returned there is zero, and never more than 3.2e7 alpha nearby.
    """
    a, b = _points(x, signature, "x"), _points(y, signature, "y")
    _check_alpha(alpha)
    s = signature.vector(a)
    with torch.no_grad():
        same_side = ((a * b * s).sum(dim=-1, keepdim=True) <= 0).to(a.dtype)
    difference = a - b * (2 * same_side - 1)
    e = (difference.square() * s).sum(dim=-1) / (2 * alpha**2)
    arc: Tensor = _Arc.apply(e)  # type: ignore[no-untyped-call]
    return _out(alpha * arc, x)


class _Arc(torch.autograd.Function):
    """The arc acosh(1 + e) for e >= 0, acos(1 + e) for e < 0, with a derivative that is finite at 0."""

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
    n = check_signature(signature).n
    if points.ndim < 1 or points.shape[-1] != n:
        raise ValueError(f"{name} must have shape (..., {n}) for {signature}, got {describe(value)}")
    check_finite(points, name)
    return points


def _check_alpha(alpha: object) -> None:
    if not (is_number(alpha) and 0 < alpha < math.inf):  # type: ignore[operator]
        raise ValueError(f"alpha must be a positive number, got {alpha!r}")


def _out(result: Tensor, like: Any) -> Any:
    if isinstance(like, Tensor):
        return result
    array = result.detach().cpu().numpy()
    return array if array.ndim else array.item()
