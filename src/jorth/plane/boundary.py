"""Floats, NumPy arrays and tensors in; tensors inside; the same kind out."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jorth.arrays import check_alike, describe, is_number, rounded_to, to_tensor


def in_double(**arguments: Any) -> tuple[list[Tensor], torch.dtype, Callable[[Tensor], Any]]:
    """The arguments as float64 tensors of one shape, their own dtype, and the way back to it.

    Python numbers take the dtype and device of the arrays; numbers alone are float64.
    """
    tensors = {
        name: to_tensor(value, name).detach()
        for name, value in arguments.items()
        if isinstance(value, (np.ndarray, Tensor))
    }
    first, like = next(iter(tensors.items()), ("", torch.zeros((), dtype=torch.float64)))
    full = []
    for name, value in arguments.items():
        if name in tensors:
            check_alike(tensors[name], name, like, first)
        elif not is_number(value):
            raise TypeError(
                f"{name} must be a number, a NumPy array or a tensor, got {describe(value)}"
            )
        full.append(tensors[name] if name in tensors else _filled(float(value), name, like))
    try:
        shape = np.broadcast_shapes(*(tensor.shape for tensor in full))
    except ValueError as error:
        pairs = zip(arguments, full, strict=True)
        shapes = ", ".join(f"{name} {tuple(tensor.shape)}" for name, tensor in pairs)
        raise ValueError(f"shapes must broadcast against each other, got {shapes}") from error
    as_tensor = any(isinstance(value, Tensor) for value in arguments.values())

    def restore(result: Tensor) -> Any:
        rounded = result.to(like.dtype) if result.is_floating_point() else result
        if not tensors:
            return rounded.item()
        return rounded if as_tensor else rounded.numpy()

    return [tensor.expand(shape).double() for tensor in full], like.dtype, restore


def _filled(number: float, name: str, like: Tensor) -> Tensor:
    """A number as a tensor of no dimensions: a fill, not a transfer."""
    rounded = rounded_to(like.dtype, number)
    if math.isfinite(number) and not math.isfinite(rounded):
        raise ValueError(
            f"{name} must be in the range of the other arrays, {like.dtype}, got {number!r}"
        )
    return torch.full((), rounded, dtype=like.dtype, device=like.device)


def check_symmetric(matrices: Tensor, name: str) -> None:
    """A ValueError unless all matrices (..., n, n) are symmetric up to rounding."""
    bad = ~is_symmetric(matrices)
    if bool(bad.any()):
        defect = (matrices - matrices.mT).abs().amax().item()
        count = f" in {int(bad.sum())} of {bad.numel()} matrices" if bad.ndim else ""
        raise ValueError(
            f"{name} must be symmetric, got max |{name} - {name}^T| = {defect:.3g}{count}"
        )


def is_symmetric(matrices: Tensor) -> Tensor:
    """Whether each matrix is symmetric up to the rounding of its own formation."""
    defect = (matrices - matrices.mT).abs().amax(dim=(-2, -1))
    return defect <= 64 * torch.finfo(matrices.dtype).eps * matrices.abs().amax(dim=(-2, -1))
