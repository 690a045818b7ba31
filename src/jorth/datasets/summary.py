"""What a data file holds, in words."""

from __future__ import annotations

import os

import numpy as np
import scipy.sparse

from jorth.datasets.loading import data_folder, open_set
from jorth.datasets.registry import lookup
from jorth.storage.matrices import entries


def summarise(
    name: str, *, folder: str | os.PathLike[str] | None = None, sparse_first: bool = False
) -> dict[str, str]:
    """Shape, sparsity, range and norm of what `load` gives without m and n, and what is known of it, by label."""
    entry = lookup(name)
    path, matrix, divisor = open_set(entry, data_folder(folder), sparse_first=sparse_first)
    is_sparse = scipy.sparse.issparse(matrix)
    stored = entries(matrix).ravel().astype(np.float64) / divisor
    nonzeros = int(np.count_nonzero(stored))
    rows, columns = matrix.shape
    full = rows * columns
    # a sparse matrix with a hole in it also has the value zero
    low, high = (f(stored, initial=0.0) if nonzeros < full else f(stored) for f in (np.min, np.max))
    sizes = {"HEVP": entry.hevp, "HSPP": entry.hspp}
    return {
        "name": entry.name,
        "about": entry.description,
        "file": str(path),
        "stored as": f"{'CSR' if is_sparse else 'dense'} {matrix.dtype}",
        "shape": f"{rows} x {columns}",
        "non-zero": f"{nonzeros} of {full} ({nonzeros / full:.2%})",
        "range": f"{low:.4g} to {high:.4g}"
        + (f" (divided by {divisor:g})" if divisor != 1.0 else ""),
        "||D||_F^2": f"{float(stored @ stored):.4g}",
        "paper": ", ".join(
            f"{label} {size[0]} x {size[1]}" for label, size in sizes.items() if size
        ),
        "terms": entry.terms,
    }
