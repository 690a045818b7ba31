"""Sparse data of objectives."""

from __future__ import annotations

from typing import Any

import numpy as np

from jorth._inputs import describe


def sparse_rows(value: Any, name: str) -> Any:
    """A copy of a scipy.sparse matrix as CSR in float64."""
    if value.dtype.kind not in "fiu":
        raise TypeError(f"{name} must hold real numbers, got {describe(value)}")
    return value.tocsr().astype(np.float64, copy=True)
