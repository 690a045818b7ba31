"""Batches of matrices: checks, and a NumPy routine for one matrix applied to all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth._inputs import check_finite

Floats: TypeAlias = NDArray[np.float64]


def check_matrices(matrices: Tensor, name: str) -> None:
    """Raise a ValueError unless there is at least one matrix and all are finite."""
    check_finite(matrices, name)
    if not matrices.numel():
        raise ValueError(f"{name} must hold at least one matrix, got shape {tuple(matrices.shape)}")


def flatten_batch(matrices: Tensor) -> Floats:
    """Return the matrices (..., m, n) as an array (b, m, n) in float64 on the CPU, no gradient."""
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
