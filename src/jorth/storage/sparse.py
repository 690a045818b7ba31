"""Sparse matrices from files: their indices are looked at before compiled code follows them."""

from __future__ import annotations

from typing import Any

import numpy as np


def check_structure(matrix: Any) -> None:
    """A ValueError where indices of a sparse matrix lead out of it.

    SciPy looks at the indices of COO when it makes one. For the other formats it leaves that to its
    users, and its conversions and products then read and write wherever the indices point.
    """
    if matrix.format in ("csr", "csc", "bsr"):
        matrix.check_format(full_check=True)
        # which passes over these where there are no entries, or where the differences overflow
        if np.any(matrix.indptr[1:] < matrix.indptr[:-1]):
            raise ValueError("indptr must be a non-decreasing sequence")
    if matrix.format == "bsr":
        _check_blocks(matrix.shape, matrix.blocksize)
    if matrix.format == "dia":
        _check_diagonals(matrix.shape, matrix.offsets)


def _check_blocks(shape: tuple[int, int], blocksize: tuple[int, int]) -> None:
    if shape[0] % blocksize[0] or shape[1] % blocksize[1]:
        raise ValueError(f"shape {shape} must be a multiple of the size {blocksize} of the blocks")


def _check_diagonals(shape: tuple[int, int], offsets: Any) -> None:
    rows, columns = shape
    if np.any((offsets <= -rows) | (offsets >= columns)):
        raise ValueError(f"offsets must be > {-rows} and < {columns}")
