"""What an argument stands for: the array of floats, or of whole numbers, that it is taken as."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor


def meaning(value: Any, right: Any) -> Any:
    """The array that a value stands for where ``right`` is a right one; else the value itself."""
    try:
        whole = right is not None and np.asarray(right).dtype.kind in "iu"
    except (TypeError, ValueError, RuntimeError):
        whole = False
    if isinstance(value, Tensor):
        return value if whole or value.is_meta else _of_tensor(value)
    array = _as_numpy(value)
    if array is None or array.dtype.kind not in "iuf" or array.dtype == np.longdouble:
        return value
    if whole and array.dtype.kind in "iu":
        return array
    listed = isinstance(value, (list, tuple))
    single = array.dtype.kind == "f" and array.dtype.itemsize < 8 and not listed
    return array.astype(np.float32 if single else np.float64)


def _of_tensor(value: Tensor) -> Tensor:
    if value.layout is not torch.strided:
        value = value.to_dense()
    if value.dtype in (torch.float16, torch.bfloat16):
        return value.float()
    whole = not value.is_floating_point() and not value.is_complex() and value.dtype != torch.bool
    return value.double() if whole else value


def _as_numpy(value: Any) -> Any:
    if scipy.sparse.issparse(value):
        return value.toarray()
    if isinstance(value, np.ma.MaskedArray):
        return value.data
    if hasattr(value, "to_numpy"):
        found = value.to_numpy()
        nullable = str(getattr(value, "dtypes", "")).find("Int64") >= 0
        return (
            value.to_numpy(dtype=float) if nullable and not value.isna().any(axis=None) else found
        )
    if isinstance(value, (np.ndarray, list, tuple)):
        try:
            return np.asarray(value)
        except (TypeError, ValueError, RuntimeError):
            return None
    return None
