"""The rule by which m rows and n columns are taken from a data set."""

from __future__ import annotations

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from jorth.arrays import check_choice, generator, whole_number
from jorth.storage.matrices import Matrix


def take(
    matrix: Matrix,
    m: int | None,
    n: int | None,
    *,
    subset: str,
    seed: int | np.random.Generator,
    source: str,
) -> Matrix:
    """M rows and n columns of a matrix (M, N), dense or CSR, by the rule that `load` documents.

    ``source`` says in the error messages what the matrix is.
    """
    check_choice(subset, "subset", ("random", "first"))
    rng = generator(seed)
    for name, wanted, available in (("m", m, matrix.shape[0]), ("n", n, matrix.shape[1])):
        if wanted is not None and whole_number(wanted, name, 1) > available:
            raise ValueError(
                f"{name} must be at most {available}: {source} has shape {matrix.shape}, got {wanted}"
            )
    return matrix[:m, :n] if subset == "first" else _take_random(matrix, m, n, rng, source)


def _take_random(
    matrix: Matrix, m: int | None, n: int | None, rng: np.random.Generator, source: str
) -> Matrix:
    if m is not None:
        matrix = matrix[rng.choice(matrix.shape[0], m, replace=False)]
    if n is None:
        return matrix
    used = np.flatnonzero(_has_nonzero(matrix))
    if n > len(used):
        raise ValueError(
            f"n must be at most {len(used)}: that many of the {matrix.shape[1]} columns of {source} are not all zero "
            f'on the {matrix.shape[0]} rows drawn, got {n}; subset="first" drops no column'
        )
    return matrix[:, rng.choice(used, n, replace=False)]


def _has_nonzero(matrix: Matrix) -> NDArray[np.bool_]:
    """Which columns have an entry that is not zero; a CSR matrix may store zeros."""
    if not scipy.sparse.issparse(matrix):
        return np.asarray(matrix.any(axis=0))
    mask = np.zeros(matrix.shape[1], dtype=bool)
    mask[matrix.indices[matrix.data != 0]] = True
    return mask
