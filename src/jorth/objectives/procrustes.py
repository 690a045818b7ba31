"""J-orthogonal Procrustes: align two clouds of points by an isometry of O(p, q)."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jorth._inputs import ArrayLike, check_finite, is_sparse, to_tensor
from jorth.objectives.base import (
    AbstractObjective,
    Product,
    QuadraticForm,
    hash_tensors,
    sparse_rows,
)

BLOCK = 4096


class Procrustes(AbstractObjective):
    """f(X) = 1/(2m) ||source X - target||_F^2, a finite sum over the m rows.

    The data are compressed once: with [source target] = Q [[R, T1], [0, R2]] (QR in blocks of
    rows), f(X) = (||R X - T1||^2 + ||R2||^2) / 2m. An evaluation then costs O(n^2 k) whatever m is,
    and no matrix is squared. With m < n rows, or a source of lower rank, f may fall towards an
    infimum that no X attains.

    Args:
        source: (m, n), dense or scipy.sparse. Source and target are copied.
        target: (m, k), dense.

    >>> sig = jorth.Signature(2, 1)
    >>> source, target, X = jorth.datasets.planted_procrustes(50, sig)
    >>> np.allclose(jorth.minimize(jorth.Procrustes(source, target), signature=sig).x, X)
    True
    """

    def __init__(self, source: ArrayLike, target: ArrayLike) -> None:
        self.speaks_torch = isinstance(target, Tensor)
        self._target = to_tensor(target, "target").detach().clone()
        self._sparse = is_sparse(source)
        self._source: Any
        if self._sparse:
            self._source = sparse_rows(source, "source")
        else:
            self._source = to_tensor(source, "source").detach().to(self._target, copy=True)
        if self._source.ndim != 2 or 0 in self._source.shape:
            found = tuple(self._source.shape)
            raise ValueError(f"source must have shape (m, n) with m at least 1, got {found}")
        m, n = self._source.shape
        if self._target.ndim != 2 or len(self._target) != m or not self._target.shape[1]:
            found = tuple(self._target.shape)
            raise ValueError(f"target must have shape ({m}, k) to go with source, got {found}")
        self.samples = int(m)
        self._n = int(n)
        k, stack = self._target.shape[1], self._target[:0]
        for start in range(0, m, BLOCK):
            rows = self._source[start : start + BLOCK]
            rows = torch.from_numpy(rows.toarray()).to(stack) if self._sparse else rows
            block = torch.cat([rows, self._target[start : start + BLOCK]], dim=1)
            block = torch.cat([stack, block]) if start else block
            stack = torch.linalg.qr(block, mode="r").R
        # f is a sum of squares: they must not over- or underflow, and neither must the norms
        size, limits = float(stack.abs().max()), torch.finfo(stack.dtype)
        if not size < math.inf:
            check_finite(self._target, "target")
            check_finite(torch.as_tensor(self._source.data), "source")
        if size != 0 and not limits.tiny**0.5 * 1e3 <= size <= limits.max**0.5 / 1e3:
            expected = f"squares in the range of {stack.dtype}"
            raise ValueError(f"source and target must have {expected}, got a size of {size:.3g}")
        if len(stack) < n:  # fewer rows than columns: R has rows of zeros, and f is not coercive
            stack = torch.cat([stack, stack.new_zeros((n - len(stack), n + k))])
        self.R = stack[:n, :n].contiguous()
        self.T1 = stack[:n, n:].contiguous()
        self.floor = stack[n:, n:].square().sum().item()

    @cached_property
    def _form(self) -> QuadraticForm:
        R, T1, m = self.R.double(), self.T1.double(), self.samples
        constant = (T1.square().sum().item() + self.floor) / (2 * m)
        return QuadraticForm(R.mT @ R / m, R.mT @ T1 / -m, None, constant)

    def _rows(self, index: Tensor) -> Tensor:
        if not self._sparse:
            found: Tensor = self._source[index]
            return found
        dense = np.asarray(self._source[index.cpu().numpy()].toarray())
        return torch.from_numpy(dense).to(self._target)

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return f and R^T (R X - T1) / m."""
        difference = torch.addmm(self.T1, self.R, X, beta=-1)
        value = (difference.square().sum() + self.floor) / (2 * self.samples)
        return value, self.R.mT @ difference / self.samples

    def sample_gradient(self, X: Tensor, index: Tensor) -> Tensor:
        """Return S_b^T (S_b X - T_b) / b."""
        S = self._rows(index)
        return S.mT @ (S @ X - self._target[index]) / len(index)

    def quadratic(self) -> QuadraticForm:
        """Return A = S^T S / m, C = -S^T T / m in float64: A is semidefinite to that rounding."""
        return self._form

    def hessian(self, X: Tensor) -> Product:
        """Return V -> R^T (R V) / m."""
        return lambda V: self.R.mT @ (self.R @ V) / self.samples

    def curvature(self) -> float:
        """Return ||S||_2^2 / m."""
        return float(torch.linalg.matrix_norm(self.R, ord=2)) ** 2 / self.samples

    def clouds(self) -> tuple[Any, Tensor]:
        """Return the source, a tensor or a scipy.sparse.csr_array, and the target."""
        return self._source, self._target

    def data(self) -> Tensor:
        return self._target

    def bounded_below(self) -> bool:
        return True

    def shape(self) -> tuple[int, int]:
        return self._n, self._target.shape[1]

    def fingerprint(self) -> str:
        return hash_tensors("Procrustes", self.R, self.T1)
