"""Data files: their folder, their names, and how each format is read (no pickle)."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import scipy.sparse

from jorth.arrays import describe
from jorth.datasets.registry import DataSet
from jorth.extras import needs
from jorth.storage.checks import check_stream, most_bytes
from jorth.storage.matrices import Matrix, complaint, reading, rows_of, variables

VARIABLE = "JORTH_DATA"
OPENERS: dict[str, Callable[..., Any]] = {".bz2": bz2.open, ".gz": gzip.open, ".xz": lzma.open}
LIBSVM_ENDINGS = tuple(
    kind + packing
    for kind in ("", ".txt", ".libsvm", ".svm")
    for packing in ("", ".bz2", ".gz", ".xz")
)
# what may follow the name of a set, in the order in which files are searched for
ENDINGS = (".npz", "_csr.npz", *LIBSVM_ENDINGS, ".mat")
SPARSE_FIRST = ("_csr.npz", *LIBSVM_ENDINGS, ".mat", ".npz")
KEYS = {".npz": ("X",), ".mat": ("X", "x", "fea", "data")}
"""The names that the data may have in a container."""


def data_folder(folder: str | os.PathLike[str] | None = None) -> Path:
    """The folder of the data: the argument, else JORTH_DATA, else the cache that pooch names."""
    chosen = folder if folder is not None else os.environ.get(VARIABLE)
    if chosen is not None and not isinstance(chosen, (str, os.PathLike)):
        raise TypeError(f"folder must be a path, got {describe(chosen)}")
    if chosen:
        return Path(chosen).expanduser()
    with needs("the cache of data", "pooch", otherwise=f"name a folder by folder= or {VARIABLE}"):
        import pooch
    return Path(pooch.os_cache("jorth"))


def find(entry: DataSet, folder: Path, *, sparse_first: bool = False) -> Path | None:
    """The first file of a set in a folder, in the order of ENDINGS, or None."""
    endings = SPARSE_FIRST if sparse_first else ENDINGS
    paths = (folder / f"{entry.name}{ending}" for ending in endings)
    return next((path for path in paths if path.is_file()), None)


def locate(entry: DataSet, folder: Path, *, sparse_first: bool = False) -> Path:
    """The same as `find`, but raises a FileNotFoundError that says how to get a file."""
    path = find(entry, folder, sparse_first=sparse_first) if os.path.isdir(folder) else None
    if path is not None:
        return path
    raise FileNotFoundError(
        f"data set {entry.name} is not in {folder!s:.80} (as {names_of(entry)}): "
        f"{entry.how_to_get}; or put a file there, or name another folder by folder= or {VARIABLE}"
    )


def names_of(entry: DataSet) -> str:
    """The names that the file of a set may have, for messages."""
    return f"{entry.name}.npz, {entry.name}_csr.npz, LIBSVM text or {entry.name}.mat"


def ending_of(name: str) -> str:
    """The longest of ENDINGS that a name ends with; "" stands for plain LIBSVM text."""
    return max((ending for ending in ENDINGS if name.endswith(ending)), key=len)


def read(entry: DataSet, path: Path, *, max_bytes: int | None = None) -> Matrix:
    """The matrix in a file as it is stored, dense or CSR; it must be real and finite."""
    limit = most_bytes(max_bytes)
    label = f"data set {entry.name}: {path}"
    with reading(label, "; remove it and put or fetch a complete one there"):
        matrix = _read(path, limit)
    wrong = complaint(matrix)
    if wrong:
        raise ValueError(f"{label} {wrong}")
    return matrix


def _read(path: Path, limit: int) -> Matrix:
    keys = KEYS.get(path.suffix)
    if keys is None:
        return _read_libsvm(path, limit)
    found = variables(path, limit)
    for key in keys:
        if key in found:
            return found[key]
    raise ValueError(f"it must hold {' or '.join(keys)}, it holds {', '.join(found) or 'nothing'}")


def _read_libsvm(path: Path, limit: int) -> scipy.sparse.csr_array:
    """A matrix from LIBSVM text, whose largest index gives the number of columns."""
    with needs(f"the LIBSVM text {path.name}", "sklearn"):
        from sklearn.datasets import load_svmlight_file

    opened = OPENERS.get(path.suffix, open)
    with opened(path, "rb") as stream:
        check_stream(stream, limit)
    with opened(path, "rb") as stream:
        matrix, _ = load_svmlight_file(stream)
    return rows_of(matrix, limit)
