"""Matrices of .npz files, dense and sparse, and what is checked of any. No pickle is loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

# a NumPy array or a scipy.sparse.csr_array; scipy carries no types
Matrix: TypeAlias = Any


def variables(path: Path) -> dict[str, Matrix]:
    """Return the arrays of a .npz file by name; that of scipy.sparse.save_npz is called X."""
    with path.open("rb") as stream:  # np.load of a path leaves a broken file open
        with np.lib.npyio.NpzFile(stream, allow_pickle=False) as arrays:
            if not {"format", "shape", "data"} <= set(arrays.files):
                return dict(arrays)
        stream.seek(0)
        matrix = scipy.sparse.load_npz(stream)
    if matrix.format in ("csr", "csc"):  # SciPy follows wherever wrong indices point
        matrix.check_format(full_check=True)
    return {"X": scipy.sparse.csr_array(matrix)}


def entries(matrix: Matrix) -> NDArray[Any]:
    """Return the stored entries: all of a dense matrix, or those of a sparse one's pattern."""
    return np.asarray(matrix.data if scipy.sparse.issparse(matrix) else matrix)


def check_matrix(matrix: Matrix, label: str, *, finite: bool = True) -> None:
    """Check that an array is a real, finite, non-empty matrix; errors begin with ``label``."""
    values = entries(matrix)
    if matrix.ndim != 2 or 0 in matrix.shape or values.dtype.kind not in "fiub":
        found = f"{values.dtype} of shape {matrix.shape}"
        raise ValueError(f"{label} must hold a real matrix (m, n), got {found}")
    bad = np.argwhere(finite & ~np.isfinite(values))
    if len(bad):
        where = "" if values.ndim == 1 else f", the first in row {bad[0, 0] + 1}"
        raise ValueError(f"{label} must be finite, got {len(bad)} NaN or infinite entries{where}")
