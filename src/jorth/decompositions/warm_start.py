"""A start for J-Jacobi on large matrices: most of the work done by a symmetric eigenvalue solver."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from jorth.decompositions.batch import Floats
from jorth.group.polishing import PolishError, orthogonal_factor
from jorth.signature import Signature

SMALLEST = 64
"""Below this size the sweeps take a few milliseconds."""
GRADING = 10.0
"""Columns further apart in length than this are left to J-Jacobi alone: the product R X would blur the short ones.

A grading of the rows does no harm: every row of R X has an error in proportion to that row of R.
"""


def nearly_orthogonal(R: Floats, signs: NDArray[np.int8]) -> Floats | None:
    """A J-orthogonal X for which the columns of R X are orthogonal but for rounding in R J R^T, or None.

    R J R^T = U (J S^2) U^T gives X = J R^T U S^-1. That X is feasible to u cond(R)^2 only, so its J-orthogonal polar
    factor is taken; J-Jacobi on R X then finishes in two or three sweeps.
    """
    if len(R) < SMALLEST:
        return None
    R = R / np.abs(R).max()
    lengths = np.linalg.norm(R, axis=0)
    if lengths.max() > GRADING * lengths.min():
        return None
    squares, U = np.linalg.eigh((R * signs) @ R.T)
    if not np.all(squares) or np.count_nonzero(squares > 0) != np.count_nonzero(signs > 0):
        return None
    order = np.empty(len(signs), dtype=np.intp)
    order[signs > 0], order[signs < 0] = np.flatnonzero(squares > 0), np.flatnonzero(squares < 0)
    X = signs[:, None] * (R.T @ U[:, order]) / np.sqrt(np.abs(squares[order]))
    try:
        X = orthogonal_factor(torch.from_numpy(X), Signature.of(signs), "X").numpy()
    except PolishError:
        return None
    # the factor is feasible to 4 n u; one more Schulz step takes it to rounding level
    polished: Floats = 1.5 * X - 0.5 * X @ (signs[:, None] * (X.T @ (signs[:, None] * X)))
    return polished
