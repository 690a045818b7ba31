"""Points of U: lifting onto it, its origin, the inner product, and how far a point is from it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

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
from jorth.signature import Signature

Place = Tensor | slice
"""Where some coordinates are: an index, or a slice."""
Radius = float | Tensor
"""A radius alpha of U: a number, or a tensor of no dimension if it is learned."""
AnyT = TypeVar("AnyT")


def check_q(signature: object) -> Signature:
    """Return the signature that the argument stands for, which has negative signs, or no U."""
    found = _inputs.check_signature(signature)
    if found.q == 0:
        expected = "q of at least 1 for points with <x, x> = -alpha^2"
        raise ValueError(f"signature must have {expected}, got {found}")
    return found


def checked_radius(value: Any, dtype: torch.dtype = torch.float32) -> float:
    """Return a positive number whose square and its inverse a dtype can hold."""
    largest = torch.finfo(dtype).max / 16
    radius = _inputs.positive_number(value, "alpha")
    if not 1 / largest < radius * radius < largest:
        expected = f"a number whose square and its inverse are in the range of {dtype}"
        raise ValueError(f"alpha must be {expected}, got {describe(value)}")
    return radius


def radius_of(alpha: Any, dtype: torch.dtype) -> Radius:
    """Return a radius: a number, or a tensor of no dimension, which may require a gradient."""
    if not isinstance(alpha, Tensor):
        return checked_radius(alpha, dtype)
    if alpha.ndim != 0 or not alpha.is_floating_point():
        expected = "a positive number or a tensor of floats of no dimension"
        raise ValueError(f"alpha must be {expected}, got {describe(alpha)}")
    if _inputs.is_readable(alpha):
        checked_radius(alpha.item(), dtype)
    return alpha


def points_of(
    value: Any,
    signature: Signature,
    name: str,
    *,
    like: Tensor | None = None,
    sizes: tuple[int, ...] = (),
) -> Tensor:
    """Return a finite tensor (..., n), or of another of the sizes.

    Lists take their dtype from ``like``.
    """
    points = to_tensor(value, name) if like is None else tensor_after(value, name, like)
    sizes = sizes or (_inputs.check_signature(signature).n,)
    if points.ndim < 1 or points.shape[-1] not in sizes:
        expected = " or ".join(f"(..., {size})" for size in sizes)
        raise ValueError(
            f"{name} must have shape {expected} for {signature}, got {describe(value)}"
        )
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
        if not _inputs.broadcast(tensor.shape, tensors[0].shape):
            found = f"{describe(values[name])} and {describe(values[names[0]])}"
            raise ValueError(f"{name} must broadcast against {names[0]}, got {found}")
    return tensors


def evaluate(
    formula: Callable[..., Tensor],
    signature: Signature,
    alpha: Any,
    what: str,
    *,
    defined: str = "",
    **values: Any,
) -> AnyT:  # type: ignore[type-var]
    """Return formula(*values, signs, alpha), checked and like the values.

    A NaN means that values are not as the formula is ``defined`` for; infinity is overflow.
    """
    check_q(signature)
    points = several_points(signature, **values)
    radius = radius_of(alpha, points[0].dtype)
    found = formula(*points, signature.vector(points[0]), radius)
    if defined and _inputs.is_readable(found):
        lost = int(found.isnan().any(dim=-1).sum())
        if lost:
            raise ValueError(f"{defined}, for {signature}, got {lost} that are not")
    _inputs.check_overflow(found, f"{', '.join(values)} and alpha", what)
    result: AnyT = numbers_like(found, *values.values(), alpha)
    return result


def without_autocast(tensor: Tensor) -> AbstractContextManager[Any]:
    """Return a context that keeps the digits of products on the device of a tensor.

    Rounded to bfloat16, a point x is off U by 2^-8 ||x||^2, and X off the group by 2^-8 ||X||^2.
    """
    kind = tensor.device.type
    # torch 2.4 cannot trace the question, whose answer is known for most
    available = kind in ("cpu", "cuda") or torch.amp.is_autocast_available(kind)
    if not available or not torch.is_autocast_enabled(kind):
        return nullcontext()
    return torch.autocast(kind, enabled=False)


def insert_time(v: Tensor, signature: Signature, value: Radius) -> Tensor:
    """Return v (..., n - 1) with a value, one or (..., 1), inserted at the first negative sign."""
    at = [*signature].index(-1)
    time = value
    if not isinstance(time, Tensor) or time.ndim == 0:
        time = v.new_ones((*v.shape[:-1], 1)) * time
    if 0 < at < v.shape[-1]:
        return torch.cat([v[..., :at], time, v[..., at:]], dim=-1)
    return torch.cat([v, time] if at else [time, v], dim=-1)  # slices would cost as much as all


def lift(x: ArrayT | Convertible, signature: Signature, *, alpha: Radius = 1.0) -> ArrayT:
    """Return the double projection phi(x) = (s, sqrt(alpha^2 + |s|^2) t / |t|) of x onto U.

    It depends on t only through its direction; t = 0 has none and raises a ValueError. Near t = 0
    the derivative in t is large but finite, of size sqrt(alpha^2 + |s|^2) / |t|.

    Coordinates (..., n - 1), with q = 1 those of space alone, stand for origin + x: the time that
    makes a point of U of them is found.

    Args:
        x: Vectors (..., n) with t != 0, or coordinates (..., n - 1) at the origin.
        signature: The signs of J, q at least 1.
        alpha: The radius of U.

    Returns:
        Points (..., n) of U, like x.

    >>> jorth.ultrahyperbolic.lift(np.array([0.75]), jorth.Signature.lorentz(2))
    array([1.25, 0.75])
    """
    n = check_q(signature).n
    vectors: Tensor = points_of(x, signature, "x", sizes=(n, n - 1))
    radius = radius_of(alpha, vectors.dtype)
    if vectors.shape[-1] < n:
        vectors = insert_time(vectors, signature, radius)
    plus, minus = slices(signature) or signature.positions(vectors.device)
    without_direction = (vectors[..., minus] == 0).all(dim=-1).sum()
    if _inputs.is_readable(without_direction) and without_direction > 0:
        found = f"{int(without_direction)} with t = 0; t is what lies at the negative signs"
        raise ValueError(f"x must have t != 0 in every row, got {found}")
    lifted = lift_at(vectors, plus, minus, radius)
    _inputs.check_overflow(lifted, "x and alpha", "the point on the pseudo-hyperboloid")
    return like_input(lifted, x, alpha)


def lift_at(x: Tensor, plus: Place, minus: Place, alpha: Radius) -> Tensor:
    """Compute `lift` without its checks, for given positions of the signs: NaN where t = 0.

    Slices, where `slices` has them, are several times faster than indices.
    """
    h = height(x[..., plus], alpha)
    lifted = x * torch.ones_like(h)  # a clone would not be batched where only alpha is
    lifted[..., minus] = h * polar(x[..., minus])[1]
    return lifted


def slices(signature: Signature) -> tuple[slice, slice] | None:
    """Return the positions of +1 and of -1 if those of each follow one another, else None."""
    signs = [*signature]
    first = signature.p if signs[0] > 0 else signature.q
    if len({*signs[:first]}) > 1:
        return None
    one, other = slice(0, first), slice(first, signature.n)
    return (one, other) if signs[0] > 0 else (other, one)


def polar(t: Tensor) -> tuple[Tensor, Tensor]:
    """Return |t| (..., 1) and t / |t|, free of overflow and underflow."""
    size = t.detach().abs().amax(dim=-1, keepdim=True)
    scaled = t / size
    length = torch.linalg.vector_norm(scaled, dim=-1, keepdim=True)
    return size * length, scaled / length


def height(s: Tensor, alpha: Radius) -> Tensor:
    """Return sqrt(alpha^2 + |s|^2) (..., 1), the length of (s, alpha): smooth at s = 0 as well."""
    time = s.new_ones((*s.shape[:-1], 1)) * alpha
    both = torch.cat([s, time], dim=-1)
    length: Tensor = torch.linalg.vector_norm(both, dim=-1, keepdim=True)
    return length


def origin(
    signature: Signature,
    *,
    alpha: Radius = 1.0,
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
        A tensor if a dtype, a device or a tensor alpha is given, else a NumPy array.

    >>> jorth.ultrahyperbolic.origin(jorth.Signature.lorentz(3))
    array([1., 0., 0.])
    """
    check_q(signature)
    _inputs.check_dtype(dtype, optional=True)
    _inputs.check_device(device)
    zeros = torch.zeros(signature.n - 1, dtype=dtype or torch.float64, device=device)
    point = insert_time(zeros, signature, radius_of(alpha, zeros.dtype))
    return point if (dtype, device) != (None, None) else numbers_like(point, alpha)


def inner(x: ArrayLike, y: ArrayLike, signature: Signature) -> Any:
    """Return <x, y>_J = sum s_i x_i y_i over the last dimension, with broadcasting.

    Args:
        x: Vectors (..., n).
        y: Vectors (..., n).
        signature: The signs of J.

    >>> x = np.array([1.25, 0.75])
    >>> float(jorth.ultrahyperbolic.inner(x, x, jorth.Signature.lorentz(2)))
    -1.0
    """
    a, b = several_points(signature, x=x, y=y)
    product = (a * b * signature.vector(a)).sum(dim=-1)
    _inputs.check_overflow(product, "x and y", "<x, y>")
    return numbers_like(product, x, y)


def membership(x: ArrayLike, signature: Signature, *, alpha: Radius = 1.0) -> Any:
    """Return the scaled distance |<x, x>_J + alpha^2| / max(alpha^2, |x|^2) of points from U.

    It is a few u for points of U.

    Args:
        x: Points (..., n).
        signature: The signs of J, q at least 1.
        alpha: The radius of U.

    >>> x = jorth.ultrahyperbolic.lift(np.array([0.75]), jorth.Signature.lorentz(2))
    >>> jorth.ultrahyperbolic.membership(x, jorth.Signature.lorentz(2)) < 1e-15
    True
    """
    point = points_of(x, signature, "x").to(torch.float64)
    radius = radius_of(alpha, point.dtype) * point.new_ones(())
    # no square overflows
    size = torch.maximum(point.detach().abs().amax(dim=-1, keepdim=True), radius.detach())
    squares = (point / size).square()
    alpha_squared = (radius / size[..., 0]).square()
    defect = (squares * signature.vector(point)).sum(dim=-1) + alpha_squared
    scaled = defect.abs() / torch.maximum(squares.sum(dim=-1), alpha_squared)
    return numbers_like(scaled, x, alpha)
