"""`load`: a data set of the paper from a folder, as a matrix."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal, NamedTuple, overload

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from jorth.arrays import check_flag, describe
from jorth.datasets import files
from jorth.datasets.registry import DataSet, lookup
from jorth.datasets.subset import take
from jorth.storage.expansion import dense, most_bytes
from jorth.storage.matrices import Matrix, entries, reading

VARIABLE = "JORTH_DATA"
NEEDS_POOCH = "this needs the package pooch: pip install 'jorth[data]'"


@overload
def load(
    name: str,
    m: int | None = ...,
    n: int | None = ...,
    *,
    subset: Literal["random", "first"] = ...,
    seed: int | np.random.Generator = ...,
    sparse: Literal[False] = ...,
    folder: str | os.PathLike[str] | None = ...,
    max_bytes: int | None = ...,
) -> NDArray[np.float64]: ...
@overload
def load(
    name: str,
    m: int | None = ...,
    n: int | None = ...,
    *,
    subset: Literal["random", "first"] = ...,
    seed: int | np.random.Generator = ...,
    sparse: Literal[True],
    folder: str | os.PathLike[str] | None = ...,
    max_bytes: int | None = ...,
) -> scipy.sparse.csr_array: ...
def load(
    name: str,
    m: int | None = None,
    n: int | None = None,
    *,
    subset: Literal["random", "first"] = "random",
    seed: int | np.random.Generator = 0,
    sparse: bool = False,
    folder: str | os.PathLike[str] | None = None,
    max_bytes: int | None = None,
) -> NDArray[np.float64] | scipy.sparse.csr_array:
    """A data set of the paper, samples in rows, as float64 (m, n).

    The first file that is there decides, in this order: ``NAME.npz`` (key X); ``NAME_csr.npz`` (scipy.sparse); LIBSVM
    text ``NAME``, ``NAME.txt``, ``NAME.libsvm`` or ``NAME.svm``, each also with ``.bz2``, ``.gz`` or ``.xz``;
    ``NAME.mat`` (key X, x, fea or data). With ``sparse`` the dense ``NAME.npz`` comes last.

    subset="random" draws m rows without replacement, in random order, then drops the columns that are all zero on
    these rows, then draws n of the others in the same way, all from ``numpy.random.default_rng(seed)``.
    subset="first" takes the first m rows and the first n columns and drops nothing. Without m all rows stay, in order;
    without n all columns, zero ones too.

    mnist is divided by 255 where it comes as whole numbers up to 255, as in the paper. Nothing else is normalised, and
    nothing is centred.

    Args:
        name: One of `REGISTRY`.
        m: The number of rows, None for all.
        n: The number of columns, None for all.
        subset: "random" or "first".
        seed: An integer or a NumPy generator.
        sparse: Return a CSR array, and look for sparse files first.
        folder: Where to look. Default: the environment variable JORTH_DATA, else the cache that `fetch` fills.
        max_bytes: What the file may expand to, and a dense copy of a sparse matrix may take. Default: the environment
            variable JORTH_MAX_BYTES, else 2^31.

    Raises:
        ValueError: The file is damaged, or too large.
        FileNotFoundError: No file of the set is in the folder; the message says how to get one.
    """
    entry = lookup(name)
    check_flag(sparse, "sparse")
    limit = most_bytes(max_bytes)
    found = open_set(entry, data_folder(folder), sparse_first=sparse, max_bytes=limit)
    source = f"data set {entry.name} ({found.path})"
    matrix = take(found.matrix, m, n, subset=subset, seed=seed, source=source)
    if sparse:
        result = scipy.sparse.csr_array(matrix, dtype=np.float64)
        result.data /= found.divisor  # scipy's own division multiplies by the rounded reciprocal
        return result
    if scipy.sparse.issparse(matrix):
        with reading(source):
            matrix = dense(matrix.astype(np.float64), limit)
    return np.divide(matrix, found.divisor, dtype=np.float64)


def data_folder(folder: str | os.PathLike[str] | None = None) -> Path:
    """The folder of the data: the argument, else JORTH_DATA, else the cache of jorth that pooch names."""
    chosen = folder if folder is not None else os.environ.get(VARIABLE)
    if chosen is not None and not isinstance(chosen, (str, os.PathLike)):
        raise TypeError(f"folder must be a path, got {describe(chosen)}")
    if chosen:
        return Path(chosen).expanduser()
    try:
        import pooch
    except ImportError as error:
        raise ImportError(f"{NEEDS_POOCH}; or name a folder by folder= or {VARIABLE}") from error
    return Path(pooch.os_cache("jorth"))


class OpenSet(NamedTuple):
    """A file, the matrix in it as it is stored, and what `load` divides it by."""

    path: Path
    matrix: Matrix
    divisor: float


def open_set(
    entry: DataSet, folder: Path, *, sparse_first: bool = False, max_bytes: int | None = None
) -> OpenSet:
    """Read the file of a set in the folder."""
    path = _locate(entry, folder, sparse_first)
    matrix = files.read(entry, path, max_bytes=max_bytes)
    # the whole file decides about the scale: a subset of bytes may happen to be 0 and 1 only
    divisor = entry.scale if entry.scale is not None and _has_bytes(matrix, entry.scale) else 1.0
    return OpenSet(path, matrix, divisor)


def _locate(entry: DataSet, folder: Path, sparse_first: bool) -> Path:
    """The file of a set in the folder, or a FileNotFoundError that says how to get one."""
    path = files.find(entry, folder, sparse_first=sparse_first) if os.path.isdir(folder) else None
    if path is None:
        how = (
            f"`jorth data fetch {entry.name}` downloads it"
            if entry.url
            else "it has no public address known here"
        )
        raise FileNotFoundError(
            f"data set {entry.name} is not in {folder!s:.80} (as {entry.name}.npz, {entry.name}_csr.npz, "
            f"LIBSVM text or {entry.name}.mat): {how}; or put a file there, or name another folder "
            f"by folder= or {VARIABLE}"
        )
    return path


def _has_bytes(matrix: Matrix, largest: float) -> bool:
    """Whether a matrix holds whole numbers from 0 to ``largest``, some above 1: images not yet scaled."""
    values = entries(matrix)
    return bool(
        values.size
        and values.min() >= 0
        and 1 < values.max() <= largest
        and (values == np.rint(values)).all()
    )
