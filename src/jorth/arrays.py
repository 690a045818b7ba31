"""The boundary: NumPy in, NumPy out; torch in, torch out. Inside there are tensors only.

Every public function validates here, so that an error names the argument, what it got and what it expects.
"""

from __future__ import annotations

import numbers
from typing import Any, TypeAlias, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth.signature import Signature

Array: TypeAlias = NDArray[np.floating] | Tensor
ArrayT = TypeVar("ArrayT", NDArray[np.floating], Tensor)

FLOATS = (torch.float64, torch.float32)
MOST = 2**31 - 1
"""The largest count that is taken: what it stands for would fill any memory, or run for years."""


def describe(value: object) -> str:
    """What an argument was, in words for an error message."""
    if isinstance(value, (np.ndarray, Tensor)):
        kind = "array" if isinstance(value, np.ndarray) else "tensor"
        return f"a {value.dtype} {kind} of shape {tuple(value.shape)}"
    return f"{type(value).__name__} {value!r}"


def to_tensor(value: object, name: str) -> Tensor:
    """A float64 or float32 tensor that shares memory with ``value``, or a TypeError."""
    if isinstance(value, np.ndarray):
        if value.dtype not in (np.float64, np.float32):
            raise TypeError(f"{name} must be float64 or float32, got {describe(value)}")
        # torch takes no read-only and no negatively strided arrays
        if not value.flags.writeable or any(stride < 0 for stride in value.strides):
            value = value.copy()
        return torch.from_numpy(value)
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a NumPy array or a torch tensor, got {describe(value)}")
    if value.dtype not in FLOATS:
        raise TypeError(f"{name} must be float64 or float32, got {describe(value)}")
    return value


def like_input(result: Tensor, value: ArrayT) -> ArrayT:
    """``result`` as the kind of array that ``value`` is."""
    return result.detach().cpu().numpy() if isinstance(value, np.ndarray) else result


def check_signature(signature: object) -> Signature:
    """``signature`` if it is one, else a TypeError."""
    if not isinstance(signature, Signature):
        raise TypeError(f"signature must be a jorth.Signature, got {describe(signature)}")
    return signature


def square_matrix(value: object, signature: Signature, name: str = "X") -> Tensor:
    """A tensor (..., n, n) that fits the signature."""
    matrix = to_tensor(value, name)
    n = check_signature(signature).n
    if matrix.ndim < 2 or matrix.shape[-2:] != (n, n):
        raise ValueError(f"{name} must have shape (..., {n}, {n}) for {signature} (p + q = {n}), got {describe(value)}")
    return matrix


def check_finite(tensor: Tensor, name: str) -> None:
    """A ValueError when the tensor holds NaN or infinity."""
    bad = int((~torch.isfinite(tensor)).sum())
    if bad:
        raise ValueError(f"{name} must be finite, got {bad} NaN or infinite of {tensor.numel()} entries")


def is_number(value: object) -> bool:
    """Whether a value is one real number, of Python or of NumPy."""
    return isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))


def whole_number(value: Any, name: str, least: int) -> int:
    """An integer from ``least`` to `MOST`, or an error that names the argument."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be an integer, got {describe(value)}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {describe(value)}")
    if value > MOST:
        raise ValueError(f"{name} must be at most 2^31 - 1, got {describe(value)}")
    return int(value)


def generator(seed: object) -> np.random.Generator:
    """The generator that a seed stands for. Randomness is by explicit seed only: None is refused."""
    if isinstance(seed, np.random.Generator):
        return seed
    if type(seed) is bool or not isinstance(seed, numbers.Integral) or int(seed) < 0:
        raise TypeError(f"seed must be an integer of at least 0 or a NumPy generator, got {describe(seed)}")
    return np.random.default_rng(int(seed))


def unit_roundoff(tensor: Tensor) -> float:
    """The unit roundoff u of the tensor's dtype: 2^-53 for float64."""
    return torch.finfo(tensor.dtype).eps / 2
