"""NumPy or torch in, the same out: checks of points and vectors (..., n)."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from jorth import arrays
from jorth.arrays import describe, tensor_after, to_tensor
from jorth.signature import Signature


def check_q(signature: object) -> Signature:
    """Return the signature that the argument stands for, which has negative signs, or no U."""
    found = arrays.check_signature(signature)
    if found.q == 0:
        expected = "q of at least 1 for points with <x, x> = -alpha^2"
        raise ValueError(f"signature must have {expected}, got {found}")
    return found


def points_of(value: Any, signature: Signature, name: str, *, like: Tensor | None = None) -> Tensor:
    """A finite tensor (..., n) that fits the signature; lists take their dtype from ``like``."""
    points = to_tensor(value, name) if like is None else tensor_after(value, name, like)
    n = arrays.check_signature(signature).n
    if points.ndim < 1 or points.shape[-1] != n:
        expected = f"(..., {n}) for {signature}"
        raise ValueError(f"{name} must have shape {expected}, got {describe(value)}")
    arrays.check_finite(points, name)
    return points


def several_points(signature: Signature, **values: Any) -> list[Tensor]:
    """Tensors (..., n) on one device that broadcast against the first of them."""
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
