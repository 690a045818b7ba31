"""Matrices in files: .npy, .npz and text. No pickle is ever loaded."""

from __future__ import annotations

import gzip
import hashlib
import warnings
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from jorth._files import reading, replacing

# a NumPy array or a scipy.sparse.csr_array; scipy carries no types
Matrix: TypeAlias = Any

TEXT = (".csv", ".tsv", ".txt")
READABLE = (".npy", ".npz", *TEXT)
WRITABLE = (".npy", ".csv")
ADVICE = "; save it by numpy.save, or as CSV"
OTHERS = {
    **dict.fromkeys((".xlsx", ".xls", ".ods"), "; save the sheet as CSV"),
    ".mat": "; save it by numpy.save after scipy.io.loadmat",
    **dict.fromkeys((".parquet", ".pkl", ".pickle", ".h5", ".hdf5", ".json", ".pt"), ADVICE),
}
"""How to save what is in files of other formats, by their endings."""
SPARSE_NPZ = {"format", "shape", "data"}  # names that are in every file of scipy.sparse.save_npz


def read(path: Path, *, key: str | None = None, key_option: str = "--key") -> Matrix:
    """Return the matrix (m, n) in a file as it is stored, dense or CSR: real, finite, not empty.

    Text has one row per line, with entries separated by semicolons, tabs, commas or white space. A
    first line without any number has the names of the columns. What follows a # is left out.

    Args:
        path: Its ending, one of READABLE, gives the format; text may end in .gz after it.
        key: The variable of a .npz file; it may be omitted if there is only one.
        key_option: What messages call ``key``.

    Raises:
        ValueError: The message names the file and what is wrong with it.
    """
    matrix = stored(path, key=key, key_option=key_option)
    wrong = complaint(matrix)
    if wrong:
        raise ValueError(f"{path} {wrong}")
    return matrix


def stored(path: Path, *, key: str | None = None, key_option: str = "--key") -> Matrix:
    """Return the array in a file as `read` does, but of any shape and kind."""
    ending = ending_of(path)
    if ending not in READABLE:
        got = repr(path.suffix or "no ending")
        raise ValueError(f"{path} must end in {', '.join(READABLE)}, got {got}{advice_for(path)}")
    with reading(str(path)):
        if ending == ".npz":
            return _choose(variables(path), key, key_option)
        if ending == ".npy":
            with path.open("rb") as stream:
                return np.lib.format.read_array(stream, allow_pickle=False)
        return _read_text(path)


def ending_of(path: Path) -> str:
    """Return the ending that gives the format: .csv for both A.CSV and A.csv.gz."""
    ending = path.suffix.lower()
    inner = path.with_suffix("").suffix.lower()
    return inner if ending == ".gz" and inner in TEXT else ending


def advice_for(path: Path) -> str:
    """Return how to save what is in a file of another format, as the end of a message."""
    return OTHERS.get(path.suffix.lower(), "")


def _read_text(path: Path) -> NDArray[np.float64]:
    opened = gzip.open if path.suffix.lower() == ".gz" else open
    # names may be in another encoding; numbers are the same in all of them
    with opened(path, "rt", encoding="utf-8-sig", errors="replace") as stream:
        lines = [line.partition("#")[0].strip(" \r\n") for line in stream]
    lines = [line for line in lines if line.strip()]
    top = lines[0] if lines else ""
    mark = next((mark for mark in ";\t," if mark in top), None)
    first = [cell.strip().strip('"') for cell in top.split(mark)]
    if not any(map(_is_number, first)):
        lines = lines[1:]
        if not lines:
            raise ValueError("there are no numbers in it")
        if first[0] in ("", "Unnamed: 0") or len(first) < len(lines[0].split(mark)):
            raise ValueError("a column has no name, as an index; write the table without it")
    elif len(first) > 2 and first == [str(number) for number in range(len(first))]:
        warnings.warn(f"{path}: line 1 (0,1,2,...) is read as data, not as names", stacklevel=2)
    return np.loadtxt(lines, delimiter=mark, quotechar='"', ndmin=2, comments=None)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def variables(path: Path) -> dict[str, Matrix]:
    """Return the arrays of a .npz file by name; that of scipy.sparse.save_npz is called X."""
    with path.open("rb") as stream:  # np.load of a path leaves a broken file open
        with np.lib.npyio.NpzFile(stream, allow_pickle=False) as arrays:
            if not set(arrays.files) >= SPARSE_NPZ:
                return dict(arrays)
        stream.seek(0)
        return {"X": _rows_of(scipy.sparse.load_npz(stream))}


def _rows_of(matrix: Matrix) -> scipy.sparse.csr_array:
    """Return a sparse matrix as CSR.

    SciPy reads and writes wherever the indices of a damaged file point, so they are checked first;
    those of COO it checks itself.
    """
    if matrix.format in ("csr", "csc"):
        matrix.check_format(full_check=True)
        # check_format misses this if there are no entries or the differences overflow
        if np.any(matrix.indptr[1:] < matrix.indptr[:-1]):
            raise ValueError("indptr must be a non-decreasing sequence")
    elif matrix.format != "coo":
        raise ValueError(f"a sparse matrix must be stored as CSR, CSC or COO, got {matrix.format}")
    return scipy.sparse.csr_array(matrix)


def entries(matrix: Matrix) -> NDArray[Any]:
    """Return the stored entries: all of a dense matrix, or those of a sparse one's pattern."""
    return np.asarray(matrix.data if scipy.sparse.issparse(matrix) else matrix)


def complaint(matrix: Matrix) -> str | None:
    """Return why an array is not a real, finite, non-empty matrix; None if it is one."""
    values = entries(matrix)
    if matrix.ndim != 2 or 0 in matrix.shape or values.dtype.kind not in "fiub":
        return f"must hold a real matrix (m, n), got {values.dtype} of shape {matrix.shape}"
    bad = np.flatnonzero(~np.isfinite(values))
    if not len(bad):
        return None
    if scipy.sparse.issparse(matrix):
        triples = matrix.tocoo()  # in the order of the stored entries
        row, column = triples.row[bad[0]], triples.col[bad[0]]
    else:
        row, column = np.unravel_index(bad[0], matrix.shape)
    where = f"the first in row {row + 1}, column {column + 1}"
    return f"must be finite, got NaN or infinite entries: {len(bad)}, {where}"


def checksum(path: Path) -> str:
    """Return the sha256 of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def write(path: Path, array: NDArray[np.floating]) -> None:
    """Write a matrix, or a vector as a column, without loss: text has 17 digits."""
    with replacing(path) as stream:
        if path.suffix.lower() == ".npy":
            np.save(stream, array, allow_pickle=False)
        else:
            np.savetxt(stream, array, fmt="%.17g", delimiter=",")


def _choose(found: dict[str, Matrix], key: str | None, option: str) -> Matrix:
    """Return the variable called ``key``, or the only one."""
    names = ", ".join(found)[:120] or "nothing"
    if key is not None and key not in found:
        raise ValueError(f"{option} must name a variable of it, got {key:.40}; it holds {names}")
    if key is None and len(found) != 1:
        raise ValueError(f"it must hold one variable, or {option} must name one; it holds {names}")
    return next(iter(found.values())) if key is None else found[key]
