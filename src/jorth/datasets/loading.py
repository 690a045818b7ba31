"""`load`: a data set of the paper from a folder, as a matrix."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal, overload

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from jorth._files import reading
from jorth._inputs import check_choice, check_flag, generator, whole_number
from jorth._matrices import Matrix, check_matrix, entries, variables
from jorth.datasets.fetching import VARIABLE, data_folder, find, names_of
from jorth.datasets.registry import DataSet, lookup
from jorth.extras import needs


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
) -> NDArray[np.float64] | scipy.sparse.csr_array:
    """Return a data set of the paper, samples in rows, as float64 (m, n).

    The first of these files that exists is read: ``NAME.npz`` (key X); ``NAME_csr.npz``
    (scipy.sparse); LIBSVM text ``NAME``, ``NAME.txt``, ``NAME.bz2`` or ``NAME.gz``. With ``sparse``
    the dense ``NAME.npz`` comes last.

    subset="random" draws m rows without replacement, in random order, drops the columns that are
    zero on these rows, and draws n of the others in the same way, all from
    ``numpy.random.default_rng(seed)``. subset="first" takes the first m rows and the first n
    columns and drops nothing. Without m all rows are taken in order; without n all columns,
    including zero ones.

    As in the paper, mnist is divided by 255 if it consists of whole numbers up to 255. Nothing else
    is normalised, and nothing is centred.

    Args:
        name: One of `REGISTRY`.
        m: The number of rows, None for all.
        n: The number of columns, None for all.
        subset: "random" or "first".
        seed: An integer or a NumPy generator.
        sparse: Return a CSR array, and search for sparse files first.
        folder: Folder of the data. Default: the environment variable JORTH_DATA, else the cache
            that `fetch` fills.

    Raises:
        ValueError: The file is damaged.
        FileNotFoundError: No file of the set is in the folder; the message says how to get one.
    """
    entry = lookup(name)
    check_flag(sparse, "sparse")
    path = find(entry, data_folder(folder), sparse_first=sparse)
    if path is None:
        raise FileNotFoundError(
            f"data set {entry.name} is not in {data_folder(folder)!s:.80} (as {names_of(entry)}): "
            f"{entry.how_to_get}; or put a file there, or name another folder by folder= or "
            f"{VARIABLE}"
        )
    complete = _read(entry, path)
    # the complete file determines the scale, as a subset may happen to have only 0 and 1
    divisor = entry.scale if entry.scale and _has_bytes(complete, entry.scale) else 1.0
    matrix = _take(complete, m, n, subset, seed, f"data set {entry.name} ({path})")
    if sparse:
        result = scipy.sparse.csr_array(matrix, dtype=np.float64)
        result.data /= divisor  # SciPy's own division multiplies by the rounded reciprocal
        return result
    if scipy.sparse.issparse(matrix):
        matrix = matrix.toarray()
    return np.divide(matrix, divisor, dtype=np.float64)


def _read(entry: DataSet, path: Path) -> Matrix:
    """Return the matrix in a file as it is stored, dense or CSR; it must be real and finite."""
    label = f"data set {entry.name}: {path}"
    with reading(label, "; remove it and put or fetch a complete one there"):
        if path.suffix == ".npz":
            found = variables(path)
            if "X" not in found:
                raise ValueError(f"it must hold X, it holds {', '.join(found) or 'nothing'}")
            matrix = found["X"]
        else:
            with needs(f"the LIBSVM text {path.name}", "sklearn"):
                from sklearn.datasets import load_svmlight_file
            # the largest index gives the number of columns
            matrix = scipy.sparse.csr_array(load_svmlight_file(os.fspath(path))[0])
    check_matrix(matrix, label)
    return matrix


def _has_bytes(matrix: Matrix, largest: float) -> bool:
    """Return whether a matrix holds whole numbers from 0 to ``largest``, some above 1."""
    values = entries(matrix)
    return bool(
        values.size
        and values.min() >= 0
        and 1 < values.max() <= largest
        and (values == np.rint(values)).all()
    )


def _take(
    matrix: Matrix,
    m: int | None,
    n: int | None,
    subset: str,
    seed: int | np.random.Generator,
    source: str,
) -> Matrix:
    """Take m rows and n columns of a matrix by the rule that `load` documents."""
    check_choice(subset, "subset", ("random", "first"))
    rng = generator(seed)
    for name, wanted, available in (("m", m, matrix.shape[0]), ("n", n, matrix.shape[1])):
        if wanted is not None and whole_number(wanted, name, 1) > available:
            shape = f"{source} has shape {matrix.shape}"
            raise ValueError(f"{name} must be at most {available}: {shape}, got {wanted}")
    if subset == "first":
        return matrix[:m, :n]
    if m is not None:
        matrix = matrix[rng.choice(matrix.shape[0], m, replace=False)]
    if n is None:
        return matrix
    used = np.flatnonzero(_has_nonzero(matrix))
    if n > len(used):
        raise ValueError(
            f"n must be at most {len(used)}: that many of the {matrix.shape[1]} columns of "
            f"{source} are not all zero on the {matrix.shape[0]} rows drawn, got {n}; "
            'subset="first" drops no column'
        )
    return matrix[:, rng.choice(used, n, replace=False)]


def _has_nonzero(matrix: Matrix) -> NDArray[np.bool_]:
    """Return whether each column has a nonzero entry; a CSR matrix may store zeros."""
    if not scipy.sparse.issparse(matrix):
        return np.asarray(matrix.any(axis=0))
    mask = np.zeros(matrix.shape[1], dtype=bool)
    mask[matrix.indices[matrix.data != 0]] = True
    return mask
