"""A Cholesky factor after rows were added to the data or dropped from it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jorth._inputs import (
    ArrayT,
    Convertible,
    check_finite,
    check_flag,
    check_overflow,
    describe,
    like_input,
    tensor_alike,
    to_tensor,
)
from jorth.linalg.batch import Floats


def cholesky_update(
    R: ArrayT | Convertible,
    *,
    add: ArrayT | Convertible | None = None,
    drop: ArrayT | Convertible | None = None,
    lower: bool = False,
) -> ArrayT:
    """Return the Cholesky factor of R^T R + add^T add - drop^T drop in O(n^2) per row.

    If R is the factor of a Gram matrix A^T A, or the R of a QR factorisation A = Q R, then ``add``
    holds new rows of A and ``drop`` old ones. Rows are added by Householder reflections and dropped
    by hyperbolic ones in mixed form; no product is formed.

    It is mixed stable: R' is within c n u ||[R; add]|| of the exact factor for R, ``add`` and
    ``drop`` that are perturbed by as much. Dropping may lose digits, up to half of them for an R'
    as small as sqrt(u) ||R||. The computation is in float64 on the CPU and carries no gradient.

    References: A. W. Bojanczyk, R. P. Brent, P. Van Dooren, F. R. de Hoog, SIAM J. Sci. Stat.
    Comput. 8 (1987); C. M. Rader, A. O. Steinhardt, IEEE Trans. Acoust. Speech Signal Processing 34
    (1986).

    Args:
        R: (..., n, n), upper triangular. It may be singular, even zero, if rows are only added.
        add: Rows to add, (..., k, n), or one row for each R, (..., n).
        drop: Rows to take out, (..., l, n) or (..., n).
        lower: Whether R is lower triangular: L with the result L' for L L^T + add^T add - drop^T
            drop.

    Returns:
        R', like R, with a diagonal that is not negative.

    Raises:
        ValueError: R^T R + add^T add - drop^T drop is not positive definite to rounding.

    >>> jorth.cholesky_update(np.array([[3.0]]), add=np.array([4.0]))
    array([[5.]])
    """
    from jorth.linalg._updating_numba import copy_triangle, reflect_rows

    check_flag(lower, "lower")
    matrix = to_tensor(R, "R")
    if matrix.ndim < 2 or matrix.shape[-1] != matrix.shape[-2]:
        raise ValueError(f"R must have shape (..., n, n), got {describe(R)}")
    if not matrix.numel():
        raise ValueError(f"R must hold at least one matrix, got shape {tuple(matrix.shape)}")
    added, dropped = _rows(add, "add", matrix), _rows(drop, "drop", matrix)
    if added is None and dropped is None:
        raise ValueError("add or drop must be rows to add to R^T R or to take out, got neither")
    given = _float64(matrix.mT if lower else matrix)
    factors = np.empty(given.shape)
    counts = np.array([copy_triangle(*pair) for pair in zip(given, factors, strict=True)])
    infinite, below = counts.sum(axis=0).tolist()
    if infinite:
        bad = f"{infinite} NaN or infinite of {given.size} entries"
        raise ValueError(f"R must be finite, got {bad}")
    if below:
        sides = ("lower", "above") if lower else ("upper", "below")
        bad = f"{below} nonzero entries {sides[1]} the diagonal"
        hint = f"(lower={not lower} is for the other triangle)"
        raise ValueError(f"R must be {sides[0]} triangular, got {bad} {hint}")
    least = matrix.shape[-1] * torch.finfo(matrix.dtype).eps
    for rows, adding in ((added, True), (dropped, False)):
        for factor, own in zip(factors, [] if rows is None else rows, strict=rows is not None):
            square = reflect_rows(factor, own, adding, least)
            if not adding and not square > least:
                raise ValueError(
                    "drop must be rows that leave R^T R + add^T add - drop^T drop positive "
                    "definite: the square of each new diagonal entry, relative to the one before, "
                    f"must be above {least:.2g}, got {square:.3g}"
                )
    # what overflows in a row of R' reaches the diagonal in a later one
    check_overflow(np.diagonal(factors, axis1=1, axis2=2), "R and add", "the new factor")
    found = torch.from_numpy(factors).reshape(matrix.shape).to(matrix)
    if found.dtype != torch.float64:
        check_overflow(found, "R and add", "the new factor")
    return like_input(found.mT if lower else found, R, add, drop)


def _rows(value: Any, name: str, R: Tensor) -> Floats | None:
    """Return a copy (batch, k, n) of the rows that go with R (..., n, n)."""
    if value is None:
        return None
    rows = tensor_alike(value, name, R, "R")
    batch, n = R.shape[:-2], R.shape[-1]
    single = rows.ndim == R.ndim - 1
    shape = rows[..., None, :].shape if single else rows.shape
    if len(shape) != R.ndim or (*shape[:-2], shape[-1]) != (*batch, n):
        before = "".join(f"{size}, " for size in batch)
        expected = f"({before}k, {n}) or ({before}{n}{'' if batch else ','}) to go with R"
        raise ValueError(f"{name} must have shape {expected}, got {describe(value)}")
    check_finite(rows, name)
    return _float64(rows.reshape(shape)).copy()


def _float64(matrices: Tensor) -> Floats:
    """Return (batch, m, n) in float64 on the CPU, contiguous; not always a copy."""
    work = matrices.detach().to("cpu", torch.float64).contiguous()
    count = math.prod(matrices.shape[:-2])
    return work.reshape(count, *matrices.shape[-2:]).numpy()
