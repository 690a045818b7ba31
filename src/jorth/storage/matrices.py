"""Matrices in files: .npy, .npz, .mat and text. No pickle is ever loaded."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from jorth.messages import cut
from jorth.storage.atomic import replacing
from jorth.storage.checks import check_npy, check_npz, check_sparse, most_bytes, numbers_in_mat
from jorth.storage.text_matrices import AUTO, Layout, Tell, read_text_matrix, silent

# a NumPy array or a scipy.sparse.csr_array; scipy carries no types
Matrix: TypeAlias = Any

TEXT = (".csv", ".tsv", ".txt")
CONTAINERS = (".npz", ".mat")
READABLE = (".npy", *CONTAINERS, *TEXT)
WRITABLE = (".npy", ".csv", ".mat")
SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".xlsb", ".ods", ".numbers")
TABLES = (".parquet", ".feather", ".pkl", ".pickle", ".h5", ".hdf5", ".json", ".pt", ".rds")
SPARSE_NPZ = {"format", "shape", "data"}  # names that are in every file of scipy.sparse.save_npz


def read(
    path: Path,
    *,
    key: str | None = None,
    max_bytes: int | None = None,
    layout: Layout = AUTO,
    tell: Tell = silent,
    key_option: str = "--key",
) -> Matrix:
    """The matrix (m, n) in a file as it is stored, dense or CSR: real, finite, not empty.

    Text has one row per line, with entries separated by semicolons, tabs, commas or white space.
    Blank lines and what follows a # are skipped. For header and index see
    `jorth.storage.text_matrices`.

    Args:
        path: Its ending, one of READABLE, gives the format; text may end in .gz after it.
        key: The variable of a .npz or .mat file; it may be omitted if there is only one. Text,
            cells and structures in a .mat file are ignored.
        max_bytes: The most bytes that a .npz or .mat file may expand to. Default: the environment
            variable JORTH_MAX_BYTES, else 2^31.
        layout: Whether text has a header and an index.
        tell: Called with one line for each decision about text that may be wrong.
        key_option: What messages call ``key``.

    Raises:
        ValueError: The message names the file and what is wrong with it.
    """
    matrix = stored(
        path, key=key, max_bytes=max_bytes, layout=layout, tell=tell, key_option=key_option
    )
    wrong = complaint(matrix)
    if wrong:
        raise ValueError(f"{path} {wrong}")
    return matrix


def stored(
    path: Path,
    *,
    key: str | None = None,
    max_bytes: int | None = None,
    layout: Layout = AUTO,
    tell: Tell = silent,
    key_option: str = "--key",
) -> Matrix:
    """The same as `read`, for arrays of any shape and kind."""
    ending = ending_of(path)
    if ending not in READABLE:
        got = repr(path.suffix or "no ending")
        raise ValueError(f"{path} must end in {', '.join(READABLE)}, got {got}{advice_for(path)}")
    with reading(str(path)):
        if ending in CONTAINERS:
            return _choose(variables(path, max_bytes), key, key_option)
        if ending == ".npy":
            with path.open("rb") as stream:
                check_npy(stream, path.stat().st_size)
                stream.seek(0)
                return np.load(stream, allow_pickle=False)
        return read_text_matrix(
            path, most_bytes(max_bytes), layout, lambda note: tell(f"{path}: {note}")
        )


def ending_of(path: Path) -> str:
    """The ending that gives the format: .csv for both A.CSV and A.csv.gz."""
    ending = path.suffix.lower()
    inner = path.with_suffix("").suffix.lower()
    return inner if ending == ".gz" and inner in TEXT else ending


def advice_for(path: Path) -> str:
    """How to save what is in a file of another format, as the end of a message."""
    ending = path.suffix.lower()
    if ending in SPREADSHEETS:
        return "; save the sheet as CSV"
    return "; save it by numpy.save, or as CSV" if ending in TABLES else ""


@contextmanager
def reading(label: str, advice: str = "") -> Iterator[None]:
    """Turn a library's error about a broken file into a ValueError that begins with ``label``."""
    try:
        yield
    except ImportError:  # an optional package is missing: the file is not to blame
        raise
    except NotImplementedError as error:  # what scipy.io.loadmat says to HDF5
        raise ValueError(f"{label} is a MATLAB 7.3 file; save it with -v7") from error
    except Exception as error:  # each library has its own errors for broken files
        raise ValueError(f"{label} cannot be read ({error}){advice}") from error


def variables(path: Path, max_bytes: int | None = None) -> dict[str, Matrix]:
    """The arrays of a .npz file, or the numbers of a .mat file, by name.

    The matrix that scipy.sparse.save_npz has written is called X.
    """
    limit = most_bytes(max_bytes)
    if path.suffix.lower() == ".mat":
        return _mat_variables(path, limit)
    with path.open("rb") as stream:  # np.load of a path leaves a broken file open
        check_npz(stream, limit)
        stream.seek(0)
        with np.load(stream, allow_pickle=False) as arrays:
            if not set(arrays.files) >= SPARSE_NPZ:
                return dict(arrays)
        stream.seek(0)
        return {"X": rows_of(scipy.sparse.load_npz(stream), limit)}


def _mat_variables(path: Path, limit: int) -> dict[str, Matrix]:
    from scipy.io import loadmat

    # newer versions of SciPy warn unless the kind of sparse matrix is given
    kind = {"spmatrix": False} if "spmatrix" in inspect.signature(loadmat).parameters else {}
    with path.open("rb") as stream:
        names = numbers_in_mat(stream, limit)
        loaded = loadmat(stream, variable_names=names, **kind)
    return {
        name: rows_of(value, limit) if scipy.sparse.issparse(value) else value
        for name, value in loaded.items()
        if not name.startswith("__")
    }


def rows_of(matrix: Matrix, limit: int) -> scipy.sparse.csr_array:
    """A sparse matrix as CSR, after a check of its size and indices."""
    check_sparse(matrix, limit)
    return scipy.sparse.csr_array(matrix)


def entries(matrix: Matrix) -> NDArray[Any]:
    """The stored entries: all of a dense matrix, or those of the pattern of a sparse one."""
    return np.asarray(matrix.data if scipy.sparse.issparse(matrix) else matrix)


def complaint(matrix: Matrix) -> str | None:
    """Why an array is not a real, finite, non-empty matrix; None if it is one."""
    values = entries(matrix)
    if matrix.ndim != 2 or 0 in matrix.shape or values.dtype.kind not in "fiub":
        return f"must hold a real matrix (m, n), got {values.dtype} of shape {matrix.shape}"
    bad = np.flatnonzero(~np.isfinite(values))
    if not len(bad):
        return None
    if scipy.sparse.issparse(matrix):
        triples = matrix.tocoo()  # in the order of the stored entries
        row = triples.row[bad[0]]
        column = triples.col[bad[0]]
    else:
        row, column = np.unravel_index(bad[0], matrix.shape)
    return (
        f"must be finite, got NaN or infinite entries: {len(bad)}, "
        f"the first in row {row + 1}, column {column + 1}"
    )


def checksum(path: Path) -> str:
    """The sha256 of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def write(path: Path, array: NDArray[np.floating], *, name: str = "X") -> None:
    """Write a matrix, or a vector as a column, without loss: text has 17 digits.

    ``name`` is the variable of a .mat file.
    """
    ending = path.suffix.lower()
    with replacing(path) as stream:
        if ending == ".npy":
            np.save(stream, array, allow_pickle=False)
        elif ending == ".csv":
            np.savetxt(stream, array, fmt="%.17g", delimiter=",")
        else:
            from scipy.io import savemat

            savemat(stream, {name: array}, oned_as="column")


def _choose(found: dict[str, Matrix], key: str | None, option: str) -> Matrix:
    """The variable called ``key``, or the only one."""
    names = cut(", ".join(found), 120) or "nothing"
    if key is not None and key not in found:
        raise ValueError(f"{option} must name a variable of it, got {cut(key)}; it holds {names}")
    if key is None and len(found) != 1:
        raise ValueError(f"it must hold one variable, or {option} must name one; it holds {names}")
    return next(iter(found.values())) if key is None else found[key]
