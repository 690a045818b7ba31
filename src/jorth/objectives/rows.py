"""Samples in rows: tensors, sparse matrices, and arrays in files that are read in chunks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jorth._inputs import describe, is_sparse, to_array, to_tensor

BLOCK = 4096
"""The rows of a block where products of rows are summed."""


def is_stored(value: Any) -> bool:
    """Return whether an array is left in its file: a memory map, or what only has rows and a dtype.

    HDF5 and Zarr arrays are of the second kind.
    """
    if isinstance(value, (np.ndarray, Tensor)) or hasattr(value, "to_numpy") or is_sparse(value):
        return isinstance(value, np.memmap)
    return all(hasattr(value, name) for name in ("dtype", "__len__", "__getitem__"))


def own_rows(value: Any, name: str, *, whole: bool = False) -> Any:
    """Return a copy as a tensor, without a graph, or as CSR; of what is stored itself.

    Numbers become floats; ``whole`` ones, which may be labels, may stay whole.
    """
    if is_stored(value):
        return value
    return sparse_rows(value, name) if is_sparse(value) else dense_rows(value, name, whole).clone()


def read_rows(data: Any, rows: Tensor | slice) -> Any:
    """Return some rows of `own_rows`; an index is sorted and without repetitions."""
    if isinstance(rows, slice) or isinstance(data, Tensor):
        return data[rows]
    return data[rows.cpu().numpy()]


def dense_rows(value: Any, name: str, whole: bool = False) -> Tensor:
    """Return rows as a tensor, see `own_rows`; memory is shared if possible."""
    if whole and isinstance(value, Tensor) and not value.is_floating_point():
        return value.detach()
    if whole and not isinstance(value, Tensor):
        array = to_array(value, name)
        if array.dtype.kind in "iub":
            return torch.tensor(array)
    return to_tensor(value, name).detach()


def shape_of(data: Any) -> tuple[int, ...]:
    """Return the shape of `own_rows`, which may be known from a row only."""
    return tuple(data.shape) if hasattr(data, "shape") else (len(data), *np.shape(data[:1])[1:])


def blocks(data: Any, name: str, size: int = BLOCK, *, whole: bool = False) -> Iterator[Tensor]:
    """Yield all rows of `own_rows` in blocks."""
    m = shape_of(data)[0]
    for start in range(0, m, size):
        yield dense_rows(data[start : min(start + size, m)], name, whole)


def sparse_rows(value: Any, name: str) -> Any:
    """Return a copy of a scipy.sparse matrix as CSR in float64."""
    if value.dtype.kind not in "fiu":
        raise TypeError(f"{name} must hold real numbers, got {describe(value)}")
    return value.tocsr().astype(np.float64, copy=True)
