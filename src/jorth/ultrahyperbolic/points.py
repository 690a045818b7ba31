"""Points of U: lifting onto it, its origin, the inner product, and how far a point is from it."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from jorth import _inputs
from jorth._inputs import (
    ArrayLike,
    ArrayT,
    Convertible,
    describe,
    like_input,
    numbers_like,
    tensor_after,
    to_tensor,
)
from jorth.derivatives import first_derivatives_only
from jorth.signature import Signature

Place = Tensor | slice
"""Where some coordinates are: an index, or a slice."""


def check_q(signature: object) -> Signature:
    """Return the signature that the argument stands for, which has negative signs, or no U."""
    found = _inputs.check_signature(signature)
    if found.q == 0:
        expected = "q of at least 1 for points with <x, x> = -alpha^2"
        raise ValueError(f"signature must have {expected}, got {found}")
    return found


def points_of(value: Any, signature: Signature, name: str, *, like: Tensor | None = None) -> Tensor:
    """Return a finite tensor (..., n); lists take their dtype from ``like``."""
    points = to_tensor(value, name) if like is None else tensor_after(value, name, like)
    n = _inputs.check_signature(signature).n
    if points.ndim < 1 or points.shape[-1] != n:
        expected = f"(..., {n}) for {signature}"
        raise ValueError(f"{name} must have shape {expected}, got {describe(value)}")
    _inputs.check_finite(points, name)
    return points


def several_points(signature: Signature, **values: Any) -> list[Tensor]:
    """Return tensors (..., n) on one device that broadcast against the first of them."""
    names = list(values)
    tensors = [points_of(values[names[0]], signature, names[0])]
    for name in names[1:]:
        tensor = points_of(values[name], signature, name, like=tensors[0])
        tensors.append(tensor)
        if tensor.device != tensors[0].device:
            expected = f"on the device of {names[0]}, {tensors[0].device}"
            raise TypeError(f"{name} must be {expected}, got {tensor.device}")
        try:
            np.broadcast_shapes(tensors[0].shape, tensor.shape)
        except ValueError:
            found = f"{describe(values[name])} and {describe(values[names[0]])}"
            raise ValueError(f"{name} must broadcast against {names[0]}, got {found}") from None
    return tensors


def lift(x: ArrayT | Convertible, signature: Signature, *, alpha: float = 1.0) -> ArrayT:
    """Return the double projection phi(x) = (s, sqrt(alpha^2 + |s|^2) t / |t|) of x onto U.

    It depends on t only through its direction; t = 0 has none and raises a ValueError. Near t = 0
    the derivative in t is large but finite, of size sqrt(alpha^2 + |s|^2) / |t|.

    Args:
        x: Vectors (..., n) with t != 0.
        signature: The signs of J, q at least 1.
        alpha: The radius of U.

    Returns:
        Points of U, like x.
    """
    point: Tensor = points_of(x, signature, "x")
    radius = _inputs.positive_number(alpha, "alpha")
    plus, minus = signature.positions(point.device)
    s, t = point[..., plus], point[..., minus]
    check_q(signature)
    without_direction = int((t == 0).all(dim=-1).sum())
    if without_direction:
        found = f"{without_direction} with t = 0; t is what lies at the negative signs"
        raise ValueError(f"x must have t != 0 in every row, got {found}")
    # phi is homogeneous in (s, alpha), so scaling by the largest avoids overflow and underflow
    radii = point.new_full((*point.shape[:-1], 1), radius)
    size = torch.cat([s.detach().abs(), radii], dim=-1).amax(dim=-1, keepdim=True)
    lifted = point.clone()
    lifted[..., minus] = size * height(s / size, radius / size) * polar(t)[1]
    _inputs.check_overflow(lifted, "x and alpha", "the point on the pseudo-hyperboloid")
    return like_input(lifted, x)


def lift_at(x: Tensor, plus: Place, minus: Place, alpha: float) -> Tensor:
    """Compute `lift` without its checks, for given positions of the signs: NaN where t = 0.

    Slices, where `slices` has them, are several times faster than indices.
    """
    lifted: Tensor = _Lift.apply(x, plus, minus, alpha)  # type: ignore[no-untyped-call]
    return lifted


def slices(signature: Signature) -> tuple[slice, slice] | None:
    """Return the positions of +1 and of -1 if those of each follow one another, else None."""
    positive, negative = (
        slice(int(at[0]), int(at[-1]) + 1) if len(at) else slice(0, 0)
        for at in (signature.positive, signature.negative)
    )
    followed = positive.stop - positive.start == signature.p
    return (
        (positive, negative) if followed and negative.stop - negative.start == signature.q else None
    )


class _Lift(torch.autograd.Function):
    """x = (s, t) to (s, h t / |t|) with h = sqrt(alpha^2 + |s|^2), and slopes back to x."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, plus: Place, minus: Place, alpha: float) -> Tensor:
        s = x[..., plus]
        h = height(s, alpha)
        length, direction = polar(x[..., minus])
        lifted = x.clone()
        lifted[..., minus] = h * direction
        ctx.places = plus, minus
        ctx.save_for_backward(s, h, length, direction)
        return lifted

    @staticmethod
    @first_derivatives_only
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        s, h, length, direction = ctx.saved_tensors
        plus, minus = ctx.places
        across = gradient[..., minus]
        along = (across * direction).sum(dim=-1, keepdim=True)
        slopes = gradient.clone()
        slopes[..., plus] += s * (along / h)
        slopes[..., minus] = (across - along * direction) * (h / length)
        return slopes, None, None, None


def polar(t: Tensor) -> tuple[Tensor, Tensor]:
    """Return |t| (..., 1) and t / |t|, free of overflow and underflow."""
    size = t.abs().amax(dim=-1, keepdim=True)
    scaled = t / size
    length = torch.linalg.vector_norm(scaled, dim=-1, keepdim=True)
    return size * length, scaled / length


def height(s: Tensor, alpha: float | Tensor) -> Tensor:
    """Return sqrt(alpha^2 + |s|^2) (..., 1)."""
    length = torch.linalg.vector_norm(s, dim=-1, keepdim=True)
    radius = alpha if isinstance(alpha, Tensor) else torch.full_like(length, alpha)
    return torch.hypot(length, radius)


def origin(
    signature: Signature,
    *,
    alpha: float = 1.0,
    dtype: torch.dtype | None = None,
    device: Any = None,
) -> Any:
    """Return the point (n,) with alpha at the first negative sign of J and zeros elsewhere.

    Args:
        signature: The signs of J, q at least 1.
        alpha: The radius of U.
        dtype: torch.float64 or torch.float32.
        device: A torch device.

    Returns:
        A tensor if a dtype or a device is given, else a NumPy array.
    """
    check_q(signature)
    _inputs.check_dtype(dtype, optional=True)
    _inputs.check_device(device)
    kept = torch.float64 if dtype is None else dtype
    point = torch.zeros(signature.n, dtype=kept, device=device)
    point[int(signature.negative[0])] = _inputs.positive_number(alpha, "alpha")
    return point.numpy() if dtype is None and device is None else point


def inner(x: ArrayLike, y: ArrayLike, signature: Signature) -> Any:
    """Return <x, y>_J = sum s_i x_i y_i over the last dimension, with broadcasting.

    Args:
        x: Vectors (..., n).
        y: Vectors (..., n).
        signature: The signs of J.
    """
    a, b = several_points(signature, x=x, y=y)
    product = (a * b * signature.vector(a)).sum(dim=-1)
    _inputs.check_overflow(product, "x and y", "<x, y>")
    return numbers_like(product, x, y)


def membership(x: ArrayLike, signature: Signature, *, alpha: float = 1.0) -> Any:
    """Return the scaled distance |<x, x>_J + alpha^2| / max(alpha^2, |x|^2) of points from U.

    It is a few u for points of U.

    Args:
        x: Points (..., n).
        signature: The signs of J, q at least 1.
        alpha: The radius of U.
    """
    point = points_of(x, signature, "x").to(torch.float64)
    radius = _inputs.positive_number(alpha, "alpha")
    size = point.detach().abs().amax(dim=-1, keepdim=True).clamp(min=radius)  # no square overflows
    squares = (point / size).square()
    alpha_squared = (radius / size[..., 0]).square()
    defect = (squares * signature.vector(point)).sum(dim=-1) + alpha_squared
    return numbers_like(defect.abs() / torch.maximum(squares.sum(dim=-1), alpha_squared), x)
