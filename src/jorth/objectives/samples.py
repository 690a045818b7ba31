"""Data as an objective keeps them: real, detached from any graph, and its own copy."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from jorth.arrays import to_tensor


def is_sparse(value: Any) -> bool:
    """Whether it is a matrix or an array of scipy.sparse."""
    return hasattr(value, "tocsr")


def sparse_rows(value: Any, name: str) -> Any:
    """A copy of a scipy.sparse matrix as CSR in float64."""
    if value.dtype.kind not in "fiub":
        shape = tuple(value.shape)
        raise TypeError(f"{name} must be real, got a sparse {value.dtype} matrix of shape {shape}")
    return value.tocsr().astype(np.float64, copy=True)


def dense_rows(value: Any, name: str) -> Tensor:
    """A copy of a float array or tensor, without a graph."""
    return to_tensor(value, name).detach().clone()
