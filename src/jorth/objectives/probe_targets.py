"""The distances that a structural probe matches: those of the data, a matrix, or a function."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from jorth._inputs import check_finite, check_symmetric, describe, real_numbers, to_tensor
from jorth.objectives.base import hash_tensors

CACHE_BYTES = 1 << 29
"""Euclidean distances beyond this size are computed anew in every evaluation."""


class Targets(ABC):
    """The distances (a, b) between the rows numbered ``rows`` (a,) and ``columns`` (b,)."""

    @abstractmethod
    def __call__(self, rows: Tensor, columns: Tensor) -> Tensor: ...

    @abstractmethod
    def fingerprint(self) -> str:
        """What tells these targets from others for the same data."""


def make_targets(distances: Any, data: Tensor) -> Targets:
    """The targets that the argument ``distances`` of a probe stands for."""
    if isinstance(distances, str):
        if distances != "euclidean":
            expected = '"euclidean", a matrix or a function'
            raise ValueError(f"distances must be {expected}, got {describe(distances)}")
        return EuclideanTargets(data)
    if callable(distances) and not isinstance(distances, Tensor):
        return FunctionTargets(distances, data)
    return MatrixTargets(distances, data)


class EuclideanTargets(Targets):
    """|d_i - d_j|, with a cache of blocks."""

    def __init__(self, data: Tensor) -> None:
        self._data = data - data.mean(dim=0)  # less cancellation in |a|^2 + |b|^2 - 2 <a, b>
        self._squares = self._data.square().sum(dim=1)
        self._cache: dict[tuple[int, int, int, int], Tensor] = {}
        self._bytes_left = CACHE_BYTES

    def __call__(self, rows: Tensor, columns: Tensor) -> Tensor:
        if not _is_range(rows) or not _is_range(columns) or len(columns) == len(self._data):
            return self._block(rows, columns)
        key = (int(rows[0]), len(rows), int(columns[0]), len(columns))
        if key not in self._cache:
            block = self._block(rows, columns)
            if block.nbytes > self._bytes_left:
                return block
            self._cache[key] = block
            self._bytes_left -= block.nbytes
        return self._cache[key]

    def _block(self, rows: Tensor, columns: Tensor) -> Tensor:
        a, b = self._data[rows], self._data[columns]
        squares = torch.addmm(self._squares[columns].expand(len(rows), -1), a, b.mT, alpha=-2.0)
        return squares.add_(self._squares[rows, None]).clamp_(min=0.0).sqrt_()

    def fingerprint(self) -> str:
        return "euclidean"


class MatrixTargets(Targets):
    """A symmetric matrix of distances, none negative."""

    def __init__(self, distances: Any, data: Tensor) -> None:
        matrix = to_tensor(distances, "distances").detach().to(data, copy=True)
        m = len(data)
        if tuple(matrix.shape) != (m, m):
            expected = f"shape ({m}, {m}) to go with data"
            raise ValueError(f"distances must have {expected}, got {describe(distances)}")
        check_finite(matrix, "distances")
        if bool((matrix < 0).any()):
            raise ValueError(f"distances must not be negative, got {matrix.min().item():.3g}")
        check_symmetric(matrix, "distances")
        self._matrix = matrix

    def __call__(self, rows: Tensor, columns: Tensor) -> Tensor:
        if _is_range(rows) and _is_range(columns):
            at, to = int(rows[0]), int(columns[0])
            return self._matrix[at : at + len(rows), to : to + len(columns)].contiguous()
        return self._matrix[rows[:, None], columns]

    def fingerprint(self) -> str:
        return hash_tensors("matrix", self._matrix)


class FunctionTargets(Targets):
    """Distances from a function of two index tensors, called anew for every block."""

    def __init__(self, function: Callable[[Tensor, Tensor], Tensor], data: Tensor) -> None:
        self._function = function
        self._like = data
        few = torch.arange(min(2, len(data)), device=data.device)
        self(few, few[:1])  # an error in the function shows at once

    def __call__(self, rows: Tensor, columns: Tensor) -> Tensor:
        found = self._function(rows, columns)
        expected = "a function that returns numbers"
        block = real_numbers(found, "distances", expected, self._like.device).to(self._like)
        shape = (len(rows), len(columns))
        if tuple(block.shape) != shape:
            expected = f"shape {shape} for that many rows and columns"
            raise ValueError(f"distances must return {expected}, got {tuple(block.shape)}")
        return block.contiguous()

    def fingerprint(self) -> str:
        return "function"


def _is_range(index: Tensor) -> bool:
    return int(index[-1]) - int(index[0]) == len(index) - 1 and bool((index.diff() == 1).all())
