"""A NumPy routine for one matrix over a batch of tensors: float64 on the CPU inside, like the input outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Floats: TypeAlias = NDArray[np.float64]


def check_not_empty(matrices: Tensor) -> None:
    """A ValueError for a batch of no matrices."""
    if not matrices.numel():
        raise ValueError(f"the batch must hold at least one matrix, got shape {tuple(matrices.shape)}")


def over_batch(routine: Callable[[Floats], tuple[Floats, ...]], matrices: Tensor) -> tuple[Tensor, ...]:
    """``routine`` on every matrix of (..., m, n): its results stacked, with the dtype and device of ``matrices``.

    No gradient is carried.
    """
    check_not_empty(matrices)
    batch = matrices.shape[:-2]
    work = matrices.detach().to("cpu", torch.float64).reshape(-1, *matrices.shape[-2:]).numpy()
    results = zip(*(routine(matrix) for matrix in work), strict=True)
    stacked = [torch.from_numpy(np.stack(parts)) for parts in results]
    return tuple(part.reshape(*batch, *part.shape[1:]).to(matrices) for part in stacked)
