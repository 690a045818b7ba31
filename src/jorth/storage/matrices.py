"""Matrices in files: .npy, .npz, .mat, and text. No pickle is ever loaded; a file is replaced whole or not at all."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from jorth.storage.atomic import replacing as replacing
from jorth.storage.expansion import check_npy, check_npz, check_sparse, most_bytes, numbers_in_mat
from jorth.storage.sparse import check_structure

# a NumPy array or a scipy.sparse.csr_array; scipy carries no types
Matrix: TypeAlias = Any

TEXT = (".csv", ".tsv", ".txt")
CONTAINERS = (".npz", ".mat")
READABLE = (".npy", *CONTAINERS, *TEXT)
WRITABLE = (".npy", ".csv", ".mat")
SPARSE_NPZ = {"format", "shape", "data"}
"""Names that every file of scipy.sparse.save_npz has."""


def read(path: Path, *, key: str | None = None, max_bytes: int | None = None) -> Matrix:
    """The matrix (m, n) in a file as it is stored, dense or CSR: real, finite, not empty.

    Text has one row a line, entries separated by semicolons, else by commas, else by white space. Blank lines and what
    follows a # are skipped, and so is a first line without any number: a header.

    Args:
        path: Its ending, one of READABLE, says the format.
        key: The variable of a .npz or .mat file; it may be omitted where there is only one. Of a .mat file only the
            variables that are numbers count: text, cells and structures are passed over.
        max_bytes: What a .npz or .mat file may expand to. Default: the environment variable JORTH_MAX_BYTES, else 2^31.

    Raises:
        ValueError: The message names the file and what is wrong with it.
    """
    matrix = stored(path, key=key, max_bytes=max_bytes)
    wrong = complaint(matrix)
    if wrong:
        raise ValueError(f"{path} {wrong}")
    return matrix


def stored(path: Path, *, key: str | None = None, max_bytes: int | None = None) -> Matrix:
    """What `read` reads, of any shape and kind."""
    ending = path.suffix.lower()
    if ending not in READABLE:
        raise ValueError(
            f"{path} must end in {', '.join(READABLE)}, got {path.suffix or 'no ending'!r}"
        )
    with reading(str(path)):
        if ending in CONTAINERS:
            return _choose(variables(path, max_bytes), key)
        if ending == ".npy":
            with path.open("rb") as stream:
                check_npy(stream, path.stat().st_size)
                stream.seek(0)
                return np.load(stream, allow_pickle=False)
        return _read_text(path)


@contextmanager
def reading(label: str, advice: str = "") -> Iterator[None]:
    """Whatever a library says to a broken file becomes a ValueError that begins with ``label``."""
    try:
        yield
    except NotImplementedError as error:  # what scipy.io.loadmat says to HDF5
        raise ValueError(f"{label} is a MATLAB 7.3 file; save it with -v7") from error
    except Exception as error:  # each library has its own errors for broken files
        raise ValueError(f"{label} cannot be read ({error}){advice}") from error


def variables(path: Path, max_bytes: int | None = None) -> dict[str, Matrix]:
    """The arrays of a .npz file, and those of numbers of a .mat file, by name; that of scipy.sparse.save_npz is X."""
    limit = most_bytes(max_bytes)
    if path.suffix.lower() == ".mat":
        return _mat_variables(path, limit)
    with path.open("rb") as stream:  # np.load leaves a broken file open when it opens it itself
        check_npz(stream, limit)
        stream.seek(0)
        with np.load(stream, allow_pickle=False) as arrays:
            if not set(arrays.files) >= SPARSE_NPZ:
                return dict(arrays)
        stream.seek(0)
        return {"X": rows_of(scipy.sparse.load_npz(stream), limit)}


def _mat_variables(path: Path, limit: int) -> dict[str, Matrix]:
    from scipy.io import loadmat

    # scipy's default for sparse variables is about to change, of which it warns; older versions have no such word
    kind = {"spmatrix": False} if "spmatrix" in inspect.signature(loadmat).parameters else {}
    with path.open("rb") as stream:
        names = numbers_in_mat(stream, limit)
        stored = loadmat(stream, variable_names=names, **kind)
        found = {name: value for name, value in stored.items() if not name.startswith("__")}
    return {name: rows_of(v, limit) if scipy.sparse.issparse(v) else v for name, v in found.items()}


def rows_of(matrix: Matrix, limit: int) -> scipy.sparse.csr_array:
    """A sparse matrix as CSR, if its rows and columns are not too many and hold all of its entries."""
    check_sparse(matrix, limit)
    check_structure(matrix)
    return scipy.sparse.csr_array(matrix)


def entries(matrix: Matrix) -> NDArray[Any]:
    """The stored entries of a matrix: all of a dense one, those of the pattern of a sparse one."""
    return np.asarray(matrix.data if scipy.sparse.issparse(matrix) else matrix)


def complaint(matrix: Matrix) -> str | None:
    """What keeps an array from being a real, finite matrix that is not empty; None where nothing does."""
    values = entries(matrix)
    if matrix.ndim != 2 or 0 in matrix.shape or values.dtype.kind not in "fiub":
        return f"must hold a real matrix (m, n), got {values.dtype} of shape {matrix.shape}"
    bad = np.flatnonzero(~np.isfinite(values))
    if not len(bad):
        return None
    if scipy.sparse.issparse(matrix):
        triples = matrix.tocoo()  # in the order of the stored entries
        row, column = int(triples.row[bad[0]]), int(triples.col[bad[0]])
    else:
        row, column = (int(index) for index in np.unravel_index(bad[0], matrix.shape))
    return f"must be finite, got NaN or infinite entries: {len(bad)}, the first in row {row + 1}, column {column + 1}"


def checksum(path: Path) -> str:
    """The sha256 of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def write(path: Path, array: NDArray[np.floating], *, name: str = "X") -> None:
    """Write a matrix, or a vector as a column, bit for bit: text with 17 digits. ``name`` is that in a .mat file."""
    writers: dict[str, Callable[[IO[bytes]], None]] = {
        ".npy": lambda stream: np.save(stream, array, allow_pickle=False),
        ".csv": lambda stream: np.savetxt(stream, array, fmt="%.17g", delimiter=","),
        ".mat": lambda stream: _write_mat(stream, array, name),
    }
    with replacing(path) as stream:
        writers[path.suffix.lower()](stream)


def _write_mat(stream: IO[bytes], array: NDArray[np.floating], name: str) -> None:
    from scipy.io import savemat

    savemat(stream, {name: array}, oned_as="column")


def _choose(found: dict[str, Matrix], key: str | None) -> Matrix:
    """The variable that is asked for, or the only one."""
    names = ", ".join(found) or "nothing"
    if key is not None and key not in found:
        raise ValueError(f"key must name a variable of it, got {key}; it holds {names}")
    if key is None and len(found) != 1:
        raise ValueError(f"it must hold one variable, or key must name one; it holds {names}")
    return next(iter(found.values())) if key is None else found[key]


def _read_text(path: Path) -> NDArray[np.float64]:
    lines = path.read_text(encoding="utf-8-sig").splitlines()
    bare = ((number, line.split("#", 1)[0].strip()) for number, line in enumerate(lines, 1))
    rows = [(number, line) for number, line in bare if line]
    mark = next((mark for mark in ";," if rows and mark in rows[0][1]), None)
    if rows and not any(_is_number(entry) for entry in rows[0][1].split(mark)):
        rows = rows[1:]
    if not rows:
        raise ValueError("there are no numbers in it")
    try:
        return np.loadtxt([line for _, line in rows], delimiter=mark, ndmin=2, comments=None)
    except ValueError as error:
        raise ValueError(_first_bad(rows, mark) or str(error)) from error


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def _first_bad(rows: list[tuple[int, str]], mark: str | None) -> str | None:
    """Where text stops to be a table of numbers, in words."""
    width = len(rows[0][1].split(mark))
    for number, line in rows:
        row = line.split(mark)
        for column, entry in enumerate(row, 1):
            if not _is_number(entry):
                return f"line {number}, column {column}: {entry.strip()!r} is not a number"
        if len(row) != width:
            return f"line {number} has {len(row)} entries, the lines before it {width}"
    return None
