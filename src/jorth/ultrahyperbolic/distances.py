"""Geodesic distances, with full relative accuracy for near points and finite derivatives."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from jorth import _inputs
from jorth._inputs import ArrayLike, describe, numbers_like, unit_roundoff
from jorth.signature import Signature
from jorth.ultrahyperbolic.maps import gap
from jorth.ultrahyperbolic.points import (
    Radius,
    check_q,
    evaluate,
    points_of,
    radius_of,
    without_autocast,
)

SLOPE_FLOOR = 1e-15
"""The least |e| (2 + e), e = |g| - 1, in a derivative 1 / sqrt(|e| (2 + e)): at most 3.2e7."""

MOST_PAIRS = 100_000
"""The most pairs that are computed at once one by one."""


def distance(x: ArrayLike, y: ArrayLike, signature: Signature, *, alpha: Radius = 1.0) -> Any:
    """Return the distance of points of U: alpha acosh|g| where |g| >= 1, alpha acos|g| elsewhere.

    Here g = <x, y>_J / alpha^2; x and y (..., n) broadcast. Near points keep full relative
    accuracy. Where |g| = 1 (the same point, antipodes, points joined by a null geodesic) the
    derivative is infinite, and zero is returned.

    Whether x and y lie on U is not checked: `membership` tells how far off they are.

    Args:
        x: Points (..., n) of U.
        y: Points (..., n) of U.
        signature: The signs of J, q at least 1.
        alpha: The radius of U.

    >>> sig = jorth.Signature.lorentz(2)
    >>> x, y = np.array([1.0, 0.0]), np.array([1.25, 0.75])
    >>> round(float(jorth.ultrahyperbolic.distance(x, y, sig)), 4)  # log(2)
    0.6931
    """
    return evaluate(distance_at, signature, alpha, "the distance", x=x, y=y)


def distance_at(x: Tensor, y: Tensor, signs: Tensor, alpha: Radius) -> Tensor:
    """Compute `distance` without its checks."""
    _, _, delta = gap(x, y, signs, alpha)
    e = torch.where(delta >= -1, delta, -2 - delta).squeeze(-1)
    arc: Tensor = _Arc.apply(e)  # type: ignore[no-untyped-call]
    return alpha * arc


def pairwise_distance(
    x: ArrayLike, y: ArrayLike, signature: Signature, *, alpha: Radius = 1.0
) -> Any:
    """Return the distances (..., a, b) of all x (..., a, n) from all y (..., b, n).

    They are those of `distance` by one matrix product, in the memory of a few answers. Pairs so
    near that the product has lost half of the digits of e are computed again one by one; where
    torch.compile or torch.func traces the call they are not, and distances below some u^(1/2) |x|
    are rounding.

    Args:
        x: Points (..., a, n) of U.
        y: Points (..., b, n) of U.
        signature: The signs of J, q at least 1.
        alpha: The radius of U.

    >>> sig = jorth.Signature.lorentz(2)
    >>> points = jorth.ultrahyperbolic.lift(np.array([[0.0], [0.75]]), sig)
    >>> np.round(jorth.ultrahyperbolic.pairwise_distance(points, points, sig), 4)
    array([[0.    , 0.6931],
           [0.6931, 0.    ]])
    """
    check_q(signature)
    points = [points_of(x, signature, "x")]
    points.append(points_of(y, signature, "y", like=points[0]))
    for name, given, point in zip("xy", (x, y), points, strict=True):
        if point.ndim < 2:
            raise ValueError(f"{name} must have shape (..., points, n), got {describe(given)}")
    both = torch.promote_types(points[0].dtype, points[1].dtype)
    radius, (a, b) = radius_of(alpha, both), (point.to(both) for point in points)
    signs = signature.vector(a)
    with without_autocast(a):
        e = ((a * (signs / radius)) @ (b / radius).mT).abs() - 1
    if signature.q == 1:  # less than 0 is rounding
        e = e.clamp(min=0.0)
    found = radius * _Arc.apply(e)  # type: ignore[no-untyped-call]
    if _inputs.is_readable(found):
        lengths = [torch.linalg.vector_norm((z / radius).detach(), dim=-1) for z in (a, b)]
        sizes = lengths[0][..., :, None] * lengths[1][..., None, :]
        lost = signature.n * unit_roundoff(a) ** 0.5  # the error of e is n u |x| |y|
        *batch, i, j = (e.detach().abs() <= lost * sizes).nonzero(as_tuple=True)
        a, b = a.expand(*found.shape[:-2], -1, -1), b.expand(*found.shape[:-2], -1, -1)
        near = [
            distance_at(a[(*at[:-2], at[-2])], b[(*at[:-2], at[-1])], signs, radius)
            for at in zip(*(index.split(MOST_PAIRS) for index in (*batch, i, j)), strict=True)
        ]
        if near:
            found = found.index_put((*batch, i, j), torch.cat(near))
    _inputs.check_overflow(found, "x, y and alpha", "the distance")
    return numbers_like(found, x, y, alpha)


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
        # two roots, as e^2 may overflow
        root = e.abs().clamp(min=SLOPE_FLOOR / 2).sqrt() * (2 + e).sqrt()
        slope: Tensor = e.sign() / root
        return gradient * slope
