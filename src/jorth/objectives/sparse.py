"""Sparse data of objectives."""

from __future__ import annotations

from typing import Any

import numpy as np


def is_sparse(value: Any) -> bool:
    """Whether the value is a matrix or an array of scipy.sparse."""
    return hasattr(value, "tocsr")


def sparse_rows(value: Any, name: str) -> Any:
    """A copy of a scipy.sparse matrix as CSR in float64."""
    if value.dtype.kind not in "fiub":
        shape = tuple(value.shape)
        raise TypeError(f"{name} must be real, got a sparse {value.dtype} matrix of shape {shape}")
    return value.tocsr().astype(np.float64, copy=True)
