"""Floats, NumPy arrays and tensors in; tensors inside; the same kind out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jorth.arrays import describe, is_number, rounded_to, to_tensor


def common_tensors(arguments: Mapping[str, Any]) -> tuple[list[Tensor], type]:
    """The arguments as float tensors of one shape and dtype, and the kind of array to give back.

    Python numbers take the dtype and device of the arrays; numbers alone are float64.
    """
    arrays = {
        name: value for name, value in arguments.items() if isinstance(value, (np.ndarray, Tensor))
    }
    tensors = {name: to_tensor(value, name).detach() for name, value in arrays.items()}
    kind: type = (
        Tensor if any(isinstance(value, Tensor) for value in arrays.values()) else np.ndarray
    )
    if not arrays:
        kind = float
    for name, value in arguments.items():
        if name not in arrays and not is_number(value):
            raise TypeError(
                f"{name} must be a number, a NumPy array or a tensor, got {describe(value)}"
            )
    first = next(iter(tensors.values()), torch.zeros((), dtype=torch.float64))
    for name, tensor in tensors.items():
        if tensor.dtype != first.dtype or tensor.device != first.device:
            raise TypeError(
                f"{name} must have the dtype and device of the other arrays "
                f"({next(iter(tensors))} has {first.dtype}, {first.device}), got ({tensor.dtype}, {tensor.device})"
            )
    full = [
        tensors[name] if name in tensors else _filled(float(value), name, first)
        for name, value in arguments.items()
    ]
    try:
        shape = np.broadcast_shapes(*(tensor.shape for tensor in full))
    except ValueError as error:
        shapes = ", ".join(
            f"{name} {tuple(t.shape)}" for name, t in zip(arguments, full, strict=True)
        )
        raise ValueError(f"shapes must broadcast against each other, got {shapes}") from error
    return [tensor.expand(shape) for tensor in full], kind


def _filled(number: float, name: str, like: Tensor) -> Tensor:
    """A number as a tensor of no dimensions: a fill, not a transfer."""
    rounded = rounded_to(like.dtype, number)
    if math.isfinite(number) and not math.isfinite(rounded):
        raise ValueError(
            f"{name} must be in the range of the other arrays, {like.dtype}, got {number!r}"
        )
    return torch.full((), rounded, dtype=like.dtype, device=like.device)


def restore(tensor: Tensor, kind: type) -> Any:
    """The tensor as a number, an array or itself."""
    if kind is float:
        return tensor.item()
    return tensor.cpu().numpy() if kind is np.ndarray else tensor
