"""Data files: under which names a set may lie in a folder, and how each format is read. No pickle is ever loaded."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from jorth.datasets.registry import DataSet

# a NumPy array or a scipy.sparse.csr_array; scipy carries no types
Matrix: TypeAlias = Any

OPENERS: dict[str, Callable[..., Any]] = {".bz2": bz2.open, ".gz": gzip.open, ".xz": lzma.open}
LIBSVM_ENDINGS = tuple(
    kind + packing for kind in ("", ".txt", ".libsvm", ".svm") for packing in ("", ".bz2", ".gz", ".xz")
)
# what may follow the name of a set, in the order in which files are looked for
ENDINGS = (".npz", "_csr.npz", *LIBSVM_ENDINGS, ".mat")
SPARSE_FIRST = ("_csr.npz", *LIBSVM_ENDINGS, ".mat", ".npz")
MAT_KEYS = ("X", "x", "fea", "data")


def find(entry: DataSet, folder: Path, *, sparse_first: bool = False) -> Path | None:
    """The file of a set in a folder, or None: the first of ENDINGS that is there."""
    paths = (folder / f"{entry.name}{ending}" for ending in (SPARSE_FIRST if sparse_first else ENDINGS))
    return next((path for path in paths if path.is_file()), None)


def ending_of(name: str) -> str:
    """The longest of ENDINGS with which a file name or an address ends; "" stands for plain LIBSVM text."""
    return max((ending for ending in ENDINGS if name.endswith(ending)), key=len)


def read(entry: DataSet, path: Path) -> Matrix:
    """The matrix in a file as it is stored, dense or CSR, checked to be real, finite and of two dimensions."""
    try:
        matrix = _read(path)
    except NotImplementedError as error:  # what scipy.io.loadmat says to HDF5
        raise ValueError(f"data set {entry.name}: {path} is a MATLAB 7.3 file; save it with -v7") from error
    except Exception as error:  # each library has its own errors for broken files
        raise ValueError(
            f"data set {entry.name}: {path} cannot be read ({error}); remove it and put or fetch a whole one there"
        ) from error
    _check(entry, path, matrix)
    return matrix


def entries(matrix: Matrix) -> NDArray[Any]:
    """The stored entries of a matrix: all of a dense one, those of the pattern of a sparse one."""
    return np.asarray(matrix.data if scipy.sparse.issparse(matrix) else matrix)


def _read(path: Path) -> Matrix:
    if path.name.endswith("_csr.npz"):
        with path.open("rb") as stream:  # np.load leaves a broken file open when it opens it itself
            return scipy.sparse.csr_array(scipy.sparse.load_npz(stream))
    if path.suffix == ".npz":
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            return _pick(dict(arrays), ("X",))
    if path.suffix == ".mat":
        from scipy.io import loadmat

        return _pick(loadmat(path), MAT_KEYS)
    return _read_libsvm(path)


def _pick(arrays: dict[str, Any], keys: tuple[str, ...]) -> Matrix:
    """The first of the keys that is there."""
    for key in keys:
        if key in arrays:
            value = arrays[key]
            return scipy.sparse.csr_array(value) if scipy.sparse.issparse(value) else np.asarray(value)
    found = [key for key in arrays if not key.startswith("__")]
    raise ValueError(f"it must hold {' or '.join(keys)}, it holds {', '.join(found) or 'nothing'}")


def _read_libsvm(path: Path) -> scipy.sparse.csr_array:
    """LIBSVM text; it has as many columns as its largest index says."""
    from sklearn.datasets import load_svmlight_file

    with OPENERS.get(path.suffix, open)(path, "rb") as stream:
        matrix, _ = load_svmlight_file(stream)
    return scipy.sparse.csr_array(matrix)


def _check(entry: DataSet, path: Path, matrix: Matrix) -> None:
    values = entries(matrix)
    if matrix.ndim != 2 or 0 in matrix.shape or values.dtype.kind not in "fiub":
        raise ValueError(
            f"data set {entry.name}: {path} must hold a real matrix (m, n), got {values.dtype} of shape {matrix.shape}"
        )
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise ValueError(f"data set {entry.name}: {path} must be finite, got NaN or infinite entries")
