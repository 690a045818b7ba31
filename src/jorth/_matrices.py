"""Matrices in files: .npy, .npz and text. No pickle is ever loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from jorth._files import reading, replacing

# a NumPy array or a scipy.sparse.csr_array; scipy carries no types
Matrix: TypeAlias = Any

WRITABLE = (".npy", ".csv")


def read(path: Path, *, key: str | None = None) -> Matrix:
    """Return the matrix (m, n) in a file as float64, dense or CSR: real, finite, not empty.

    ``key`` is the variable of a .npz file; it may be omitted if there is only one. Text has one row
    per line, with entries separated by semicolons, tabs, commas or white space. A first line that
    does not begin with a number has the names of the columns. What follows a # is left out.
    """
    ending, known = path.suffix.lower(), (".npy", ".npz", ".csv", ".tsv", ".txt")
    if ending not in known:
        raise ValueError(f"{path} must end in {', '.join(known)}, got {path.suffix!r}")
    with reading(str(path)):
        if ending == ".npz":
            found = variables(path)
            name = next(iter(found)) if key is None and len(found) == 1 else key
            if name not in found:
                names = ", ".join(found)[:120] or "nothing"
                raise ValueError(f"--key must name one; it holds {names}")
            matrix = found[name]
        elif ending == ".npy":
            with path.open("rb") as stream:
                matrix = np.lib.format.read_array(stream, allow_pickle=False)
        else:
            matrix = _read_text(path)
    check_matrix(matrix, str(path))
    sparse = scipy.sparse.issparse(matrix)
    return matrix.astype(float) if sparse else np.array(matrix, dtype=float, order="C")


def _read_text(path: Path) -> NDArray[np.float64]:
    # names may be in another encoding; numbers are the same in all of them
    text = path.read_text(encoding="utf-8-sig", errors="replace")
    lines = [line for line in text.splitlines() if line.partition("#")[0].strip()]
    if not lines:
        raise ValueError("there are no numbers in it")
    mark = next((mark for mark in ";\t," if mark in lines[0]), None)
    first = lines[0].split(mark)[0].strip(' \t"')
    try:
        float(first)
    except ValueError:
        if first in ("", "Unnamed: 0"):
            raise ValueError("a column has no name, as an index; write it without") from None
        del lines[0]
    return np.loadtxt(lines, delimiter=mark, quotechar='"', ndmin=2)


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


def check_matrix(matrix: Matrix, label: str) -> None:
    """Check that an array is a real, finite, non-empty matrix; errors begin with ``label``."""
    values = entries(matrix)
    if matrix.ndim != 2 or 0 in matrix.shape or values.dtype.kind not in "fiub":
        found = f"{values.dtype} of shape {matrix.shape}"
        raise ValueError(f"{label} must hold a real matrix (m, n), got {found}")
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        where = "" if values.ndim == 1 else f", the first in row {bad[0, 0] + 1}"
        raise ValueError(f"{label} must be finite, got {len(bad)} NaN or infinite entries{where}")


def write(path: Path, array: NDArray[np.floating]) -> None:
    """Write a matrix, or a vector as a column, without loss: text has 17 digits."""
    with replacing(path) as stream:
        if path.suffix.lower() == ".npy":
            np.save(stream, array, allow_pickle=False)
        else:
            np.savetxt(stream, array, fmt="%.17g", delimiter=",")
