"""Batches of matrices: checks, and a NumPy routine for one matrix applied to all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth._inputs import check_finite, describe, tensor_alike, to_tensor
from jorth.signature import Signature

Floats: TypeAlias = NDArray[np.float64]


def check_matrices(matrices: Tensor, name: str) -> None:
    """Raise a ValueError unless there is at least one matrix and all are finite."""
    check_finite(matrices, name)
    if not matrices.numel():
        raise ValueError(f"{name} must hold at least one matrix, got shape {tuple(matrices.shape)}")


def finite_values(value: object, name: str, length: int, signature: Signature) -> Tensor:
    """Return the values (..., length) of a decomposition."""
    tensor = to_tensor(value, name)
    if tensor.ndim < 1 or tensor.shape[-1] != length:
        expected = f"(..., {length}) for {signature}"
        raise ValueError(f"{name} must have shape {expected}, got {describe(value)}")
    check_finite(tensor, name)
    return tensor


def finite_factor(
    value: object, name: str, sizes: tuple[int | None, int], values: Tensor, values_name: str
) -> Tensor:
    """Return a factor (..., *sizes) that goes with the values of a decomposition; None is any."""
    tensor = tensor_alike(value, name, values, values_name)
    wanted = (*values.shape[:-1], *sizes)
    fits = len(wanted) == tensor.ndim
    if not fits or any(w not in (None, own) for w, own in zip(wanted, tensor.shape, strict=True)):
        shape = ", ".join("any" if size is None else str(size) for size in wanted)
        expected = f"({shape}) to go with {values_name} and signature"
        raise ValueError(f"{name} must have shape {expected}, got {describe(value)}")
    check_finite(tensor, name)
    return tensor


def map_batch(
    routine: Callable[[Floats], tuple[Floats, ...]], matrices: Tensor
) -> tuple[Tensor, ...]:
    """Call ``routine`` on every matrix of (..., m, n), at least one, in float64 on the CPU.

    The results are stacked, with the dtype and device of ``matrices``. No gradient is carried. An
    error in a batch says which matrix it is about.
    """
    work = flatten_batch(matrices)
    batch = matrices.shape[:-2]
    results = zip(*(call_on_matrix(routine, work, k, batch) for k in range(len(work))), strict=True)
    return restore_batch([np.stack(parts) for parts in results], matrices)


def flatten_batch(matrices: Tensor) -> Floats:
    """Return the matrices (..., m, n) as an array (b, m, n) in float64."""
    work = matrices.detach().to("cpu", torch.float64).reshape(-1, *matrices.shape[-2:])
    return work.numpy()


def restore_batch(results: Sequence[Floats], matrices: Tensor) -> tuple[Tensor, ...]:
    """Return arrays (b, ...) as tensors with the batch, dtype and device of the matrices."""
    batch = matrices.shape[:-2]
    tensors = (torch.from_numpy(part) for part in results)
    return tuple(part.reshape(*batch, *part.shape[1:]).to(matrices) for part in tensors)


def call_on_matrix(
    routine: Callable[[Floats], tuple[Floats, ...]], work: Floats, k: int, batch: tuple[int, ...]
) -> tuple[Floats, ...]:
    """Call ``routine`` on matrix k; the message of an error ends with its place in the batch."""
    try:
        return routine(work[k])
    except (ValueError, RuntimeError) as error:
        if batch and error.args:
            place = ", ".join(str(int(index)) for index in np.unravel_index(k, batch))
            error.args = (f"{error.args[0]} (matrix [{place}] of the batch)", *error.args[1:])
        raise
