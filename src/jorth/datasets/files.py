"""Data files: under which names a set may lie in a folder, and how each format is read. No pickle is ever loaded."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import scipy.sparse

from jorth.datasets.registry import DataSet
from jorth.storage.expansion import check_stream, most_bytes
from jorth.storage.matrices import Matrix, complaint, reading, rows_of, variables

OPENERS: dict[str, Callable[..., Any]] = {".bz2": bz2.open, ".gz": gzip.open, ".xz": lzma.open}
LIBSVM_ENDINGS = tuple(
    kind + packing
    for kind in ("", ".txt", ".libsvm", ".svm")
    for packing in ("", ".bz2", ".gz", ".xz")
)
# what may follow the name of a set, in the order in which files are looked for
ENDINGS = (".npz", "_csr.npz", *LIBSVM_ENDINGS, ".mat")
SPARSE_FIRST = ("_csr.npz", *LIBSVM_ENDINGS, ".mat", ".npz")
MAT_KEYS = ("X", "x", "fea", "data")


def find(entry: DataSet, folder: Path, *, sparse_first: bool = False) -> Path | None:
    """The file of a set in a folder, or None: the first of ENDINGS that is there."""
    paths = (
        folder / f"{entry.name}{ending}" for ending in (SPARSE_FIRST if sparse_first else ENDINGS)
    )
    return next((path for path in paths if path.is_file()), None)


def ending_of(name: str) -> str:
    """The longest of ENDINGS with which a file name or an address ends; "" stands for plain LIBSVM text."""
    return max((ending for ending in ENDINGS if name.endswith(ending)), key=len)


def read(entry: DataSet, path: Path, *, max_bytes: int | None = None) -> Matrix:
    """The matrix in a file as it is stored, dense or CSR, checked to be real, finite and of two dimensions."""
    limit = most_bytes(max_bytes)
    label = f"data set {entry.name}: {path}"
    with reading(label, "; remove it and put or fetch a whole one there"):
        matrix = _read(path, limit)
    wrong = complaint(matrix)
    if wrong:
        raise ValueError(f"{label} {wrong}")
    return matrix


def _read(path: Path, limit: int) -> Matrix:
    if path.suffix == ".npz":
        return _pick(variables(path, limit), ("X",))
    if path.suffix == ".mat":
        return _pick(variables(path, limit), MAT_KEYS)
    return _read_libsvm(path, limit)


def _pick(arrays: dict[str, Matrix], keys: tuple[str, ...]) -> Matrix:
    """The first of the keys that is there."""
    for key in keys:
        if key in arrays:
            return arrays[key]
    raise ValueError(f"it must hold {' or '.join(keys)}, it holds {', '.join(arrays) or 'nothing'}")


def _read_libsvm(path: Path, limit: int) -> scipy.sparse.csr_array:
    """LIBSVM text; it has as many columns as its largest index says."""
    from sklearn.datasets import load_svmlight_file

    opened = OPENERS.get(path.suffix, open)
    with opened(path, "rb") as stream:
        check_stream(stream, limit)
    with opened(path, "rb") as stream:
        matrix, _ = load_svmlight_file(stream)
    return rows_of(matrix, limit)
