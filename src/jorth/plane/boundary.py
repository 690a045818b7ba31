"""Floats, NumPy arrays and tensors in; tensors inside; the same kind out."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jorth._inputs import carries_floats, describe, is_number, rounded_to, tensor_alike, to_tensor


def in_double(**arguments: Any) -> tuple[list[Tensor], torch.dtype, Callable[[Tensor], Any]]:
    """The arguments as float64 tensors of one shape, their own dtype, and the way back to it.

    Python numbers, lists and integers take the dtype of the first array of floats, and its device;
    numbers alone are float64.
    """
    given = {name: value for name, value in arguments.items() if not is_number(value)}
    floats = [name for name, value in given.items() if carries_floats(value)]
    first = next(iter([*floats, *given]), "")
    none = torch.zeros((), dtype=torch.float64)
    like = to_tensor(given[first], first).detach() if given else none
    full = []
    for name, value in arguments.items():
        full.append(tensor_like(value, name, like, first))
        in_range = name in given or math.isfinite(rounded_to(like.dtype, float(value)))
        if not in_range and math.isfinite(value):
            raise ValueError(f"{name} must be in the range of {like.dtype}, got {value!r}")
    try:
        shape = np.broadcast_shapes(*(tensor.shape for tensor in full))
    except ValueError as error:
        pairs = zip(arguments, full, strict=True)
        shapes = ", ".join(f"{name} {tuple(tensor.shape)}" for name, tensor in pairs)
        raise ValueError(f"shapes must broadcast against each other, got {shapes}") from error
    as_tensor = any(isinstance(value, Tensor) for value in arguments.values())

    def restore(result: Tensor) -> Any:
        rounded = result.to(like.dtype) if result.is_floating_point() else result
        if not given:
            return rounded.item()
        return rounded if as_tensor else rounded.numpy()

    return [tensor.expand(shape).double() for tensor in full], like.dtype, restore


def tensor_like(
    value: Any, name: str, like: Tensor, like_name: str, *, meta: bool = False
) -> Tensor:
    """A number or an array as a tensor with the dtype and device of ``like``."""
    if is_number(value):  # a fill, not a transfer
        number = rounded_to(like.dtype, float(value))
        return torch.full((), number, dtype=like.dtype, device=like.device)
    if value is None or isinstance(value, str):
        raise TypeError(f"{name} must be a number or an array, got {describe(value)}")
    return tensor_alike(value, name, like, like_name, meta=meta).detach()
