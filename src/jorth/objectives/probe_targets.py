"""The distances that a structural probe is to match: of the data, from a matrix, or from a function of (i, j)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor

from jorth.arrays import check_finite, describe, real_numbers, to_tensor
from jorth.objectives.base import hash_tensors

KEPT = 1 << 29
"""Bytes of Euclidean distances that are kept between evaluations; beyond, they are computed each time."""


class Targets(Protocol):
    """Distances between the rows ``rows`` (a,) and ``columns`` (b,): (a, b)."""

    def __call__(self, rows: Tensor, columns: Tensor) -> Tensor:
        """The block."""

    def fingerprint(self) -> str:
        """By what a checkpoint knows them."""


class EuclideanTargets:
    """|d_i - d_j|. Blocks are kept up to half a gigabyte."""

    def __init__(self, data: Tensor) -> None:
        self._data = data - data.mean(dim=0)  # less cancellation in |a|^2 + |b|^2 - 2 <a, b>
        self._squares = self._data.square().sum(dim=1)
        self._kept: dict[tuple[int, int, int, int], Tensor] = {}
        self._room = KEPT

    def __call__(self, rows: Tensor, columns: Tensor) -> Tensor:
        """The block, from the store if it is a range that was asked for before."""
        if not _is_range(rows) or not _is_range(columns) or len(columns) == len(self._data):
            return self._block(rows, columns)
        key = (int(rows[0]), len(rows), int(columns[0]), len(columns))
        if key not in self._kept:
            block = self._block(rows, columns)
            if block.nbytes > self._room:
                return block
            self._kept[key] = block
            self._room -= block.nbytes
        return self._kept[key]

    def _block(self, rows: Tensor, columns: Tensor) -> Tensor:
        a, b = self._data[rows], self._data[columns]
        squares = torch.addmm(self._squares[columns].expand(len(rows), -1), a, b.mT, alpha=-2.0)
        return squares.add_(self._squares[rows, None]).clamp_(min=0.0).sqrt_()

    def fingerprint(self) -> str:
        """The data say the rest."""
        return "euclidean"


class MatrixTargets:
    """A symmetric matrix of distances, none negative."""

    def __init__(self, distances: Any, data: Tensor) -> None:
        matrix = to_tensor(distances, "distances").detach().to(data, copy=True)
        m = len(data)
        if tuple(matrix.shape) != (m, m):
            raise ValueError(
                f"distances must have shape ({m}, {m}) to go with data, got {describe(distances)}"
            )
        check_finite(matrix, "distances")
        if bool((matrix < 0).any()):
            raise ValueError(f"distances must not be negative, got {matrix.min().item():.3g}")
        defect, size = (matrix - matrix.mT).abs().max().item(), matrix.abs().max().item()
        if defect > 64 * torch.finfo(matrix.dtype).eps * size:
            raise ValueError(f"distances must be symmetric, got max |T - T^T| = {defect:.3g}")
        self._matrix = matrix

    def __call__(self, rows: Tensor, columns: Tensor) -> Tensor:
        """The block."""
        if _is_range(rows) and _is_range(columns):
            at, to = int(rows[0]), int(columns[0])
            return self._matrix[at : at + len(rows), to : to + len(columns)].contiguous()
        return self._matrix[rows[:, None], columns]

    def fingerprint(self) -> str:
        """A hash of the matrix."""
        return hash_tensors("matrix", self._matrix)


class FunctionTargets:
    """Distances from a function of two index tensors; nothing is kept."""

    def __init__(self, function: Callable[[Tensor, Tensor], Tensor], data: Tensor) -> None:
        self._function, self._like = function, data
        self(
            torch.arange(min(2, len(data)), device=data.device), torch.arange(1, device=data.device)
        )

    def __call__(self, rows: Tensor, columns: Tensor) -> Tensor:
        """The block, checked for its shape."""
        found = self._function(rows, columns)
        block = real_numbers(
            found, "distances", "a function that returns numbers", self._like.device
        ).to(self._like)
        if tuple(block.shape) != (len(rows), len(columns)):
            raise ValueError(
                f"distances must return shape {(len(rows), len(columns))} for that many rows and columns, "
                f"got {tuple(block.shape)}"
            )
        return block.contiguous()

    def fingerprint(self) -> str:
        """A function has none."""
        return "function"


def _is_range(index: Tensor) -> bool:
    return int(index[-1]) - int(index[0]) == len(index) - 1 and bool((index.diff() == 1).all())
