"""What the layers on points of the pseudo-hyperboloid share: signature, radius, checks, lifting."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from jorth import _inputs
from jorth._inputs import HALF
from jorth.signature import Signature
from jorth.ultrahyperbolic.points import (
    Radius,
    check_q,
    checked_radius,
    height,
    insert_time,
    lift_at,
    slices,
)


class OnPoints(nn.Module):
    """A layer on points (..., n) with <x, x>_J = -alpha^2; nothing in it touches the host.

    Args:
        signature: The signs of J, q at least 1.
        alpha: The radius of the points.
        device: The device of the parameters, to be checked.
    """

    def __init__(self, signature: Signature, alpha: float, device: Any) -> None:
        super().__init__()
        self.signature = check_q(signature)
        self.alpha = checked_radius(alpha)
        _inputs.check_device(device)

    @property
    def device(self) -> torch.device | None:
        """Return the device of the parameters; None if there are none: points may be anywhere."""
        first = next(self.parameters(), None)
        return None if first is None else first.device

    def radius(self, alpha: Radius | None) -> Radius:
        """Return the radius for one call: ``alpha`` if it is given, else the layer's own."""
        if alpha is None:
            return self.alpha
        if not isinstance(alpha, Tensor):
            return checked_radius(alpha)
        if alpha.ndim != 0:
            expected = "a number or a tensor of no dimension"
            raise ValueError(f"alpha must be {expected}, got {_inputs.describe(alpha)}")
        return self.check_floats(alpha, "alpha")

    def check_floats(self, value: Any, name: str) -> Tensor:
        """Return a tensor of floats on the device of the layer; half precision becomes float32."""
        place = self.device
        here = isinstance(value, Tensor) and place in (None, value.device)
        if not here or not value.is_floating_point():
            expected = "a tensor of floats" + ("" if place is None else f" on {place}")
            raise TypeError(f"{name} must be {expected}, got {_inputs.describe(value)}")
        floats: Tensor = value
        return floats.float() if floats.dtype in HALF else floats

    def check_points(
        self, value: Any, name: str, *, dimensions: int = 1, like: Tensor | None = None
    ) -> Tensor:
        """Return a float tensor (..., n) on the device of the layer.

        It has at least so many dimensions and the dtype of ``like``.
        """
        x = self.check_floats(value, name)
        if like is not None and x.dtype != like.dtype:
            expected = f"the layer's dtype {like.dtype}"
            raise TypeError(f"{name} must have {expected}, got {_inputs.describe(x)}")
        n = self.signature.n
        if x.ndim < dimensions or x.shape[-1] != n:
            shape = ", ".join(["...", *"m" * (dimensions - 1), str(n)])
            raise ValueError(f"{name} must have shape ({shape}), got {_inputs.describe(x)}")
        return x

    def extra_repr(self) -> str:
        return f"{self.signature}, alpha={self.alpha:g}"


def split(x: Tensor, signature: Signature) -> tuple[Tensor, Tensor]:
    """Return the coordinates s (..., p) of space and t (..., q) of time."""
    plus, minus = slices(signature) or signature.positions(x.device)
    return x[..., plus], x[..., minus]


def join(s: Tensor, t: Tensor, signature: Signature) -> Tensor:
    """Return the vectors (..., n) of coordinates s (..., p) and t (..., q)."""
    if signature.q == 1:
        return insert_time(s, signature, t)
    order = torch.cat(signature.positions(s.device)).argsort()
    return torch.cat([s, t], dim=-1)[..., order]


def lifted(x: Tensor, signature: Signature, alpha: Radius) -> Tensor:
    """Return the points of vectors (..., n) or coordinates (..., n - 1), in float32 at least.

    With q = 1 only the coordinates of space matter, and time is positive; else this is `lift`.
    """
    x = x.float() if x.dtype in HALF else x
    is_vector = x.shape[-1] == signature.n
    if signature.q == 1:
        s = split(x, signature)[0] if is_vector else x
        return insert_time(s, signature, height(s, alpha))
    plus, minus = slices(signature) or signature.positions(x.device)
    return lift_at(x if is_vector else insert_time(x, signature, alpha), plus, minus, alpha)
