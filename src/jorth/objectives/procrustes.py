"""J-orthogonal Procrustes: align two clouds of points by an isometry of O(p, q)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from jorth._inputs import ArrayLike, check_finite
from jorth.objectives.base import AbstractObjective, Product, QuadraticForm, hash_tensors
from jorth.objectives.rows import blocks, dense_rows, own_rows, read_rows, shape_of

MOST_LIGHT = 8192
"""The most entries for which LAPACK's plain QR is as fast as MKL's, which wakes threads."""


class Procrustes(AbstractObjective):
    """f(X) = 1/(2m) ||source X - target||_F^2, a finite sum over the m rows.

    The data are compressed once: with [source target] = Q [[R, T1], [0, R2]] (QR in blocks of
    rows), f(X) = (||R X - T1||^2 + ||R2||^2) / 2m. An evaluation then costs O(n^2 k) whatever m is,
    and no matrix is squared. With m < n rows, or a source of lower rank, f may fall towards an
    infimum that no X attains.

    Source and target are copied. If they are stored in files, see `FiniteSum`, they are read in
    blocks of rows instead, and left there.

    Args:
        source: (m, n), dense or scipy.sparse.
        target: (m, k).

    >>> sig = jorth.Signature(2, 1)
    >>> source, target, X = jorth.datasets.planted_procrustes(50, sig)
    >>> np.allclose(jorth.minimize(jorth.Procrustes(source, target), signature=sig).x, X)
    True
    """

    def __init__(self, source: ArrayLike, target: ArrayLike) -> None:
        self.speaks_torch = isinstance(target, Tensor)
        self._source, self._target = own_rows(source, "source"), own_rows(target, "target")
        shape = shape_of(self._source)
        if len(shape) != 2 or 0 in shape:
            raise ValueError(f"source must have shape (m, n) with m at least 1, got {shape}")
        m, n = shape
        shape = shape_of(self._target)
        if len(shape) != 2 or shape[0] != m or not shape[1]:
            raise ValueError(f"target must have shape ({m}, k) to go with source, got {shape}")
        self.samples, k = m, shape[1]
        self._like = dense_rows(self._target[:1], "target")
        stack = self._like[:0]
        for S, T in self._blocks():
            block = torch.cat([S.to(T), T], dim=1)
            block = torch.cat([stack, block]) if len(stack) else block
            if block.numel() <= MOST_LIGHT and not block.is_cuda:
                stack = torch.from_numpy(np.linalg.qr(block.numpy(), mode="r"))
            else:
                stack = torch.linalg.qr(block, mode="r").R
        # f is a sum of squares: they must not over- or underflow, and neither must the norms
        size, limits = float(stack.abs().max()), torch.finfo(stack.dtype)
        if not size < math.inf:
            for S, T in self._blocks():
                check_finite(T, "target")
                check_finite(S, "source")
        if size != 0 and not limits.tiny**0.5 * 1e3 <= size <= limits.max**0.5 / 1e3:
            expected = f"squares in the range of {stack.dtype}"
            raise ValueError(f"source and target must have {expected}, got a size of {size:.3g}")
        if len(stack) < n:  # fewer rows than columns: R has rows of zeros, and f is not coercive
            stack = torch.cat([stack, stack.new_zeros((n - len(stack), n + k))])
        self.R = stack[:n, :n].contiguous()
        self.T1 = stack[:n, n:].contiguous()
        self.floor = stack[n:, n:].square().sum().item()

    def _blocks(self) -> Iterator[tuple[Tensor, Tensor]]:
        return zip(blocks(self._source, "source"), blocks(self._target, "target"), strict=True)

    @cached_property
    def _form(self) -> QuadraticForm:
        R, T1, m = self.R.double(), self.T1.double(), self.samples
        constant = (T1.square().sum().item() + self.floor) / (2 * m)
        return QuadraticForm(R.mT @ R / m, R.mT @ T1 / -m, None, constant)

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return f and R^T (R X - T1) / m."""
        difference = torch.addmm(self.T1, self.R, X, beta=-1)
        value = (difference.square().sum() + self.floor) / (2 * self.samples)
        return value, self.R.mT @ difference / self.samples

    def sample_gradient(self, X: Tensor, index: Tensor) -> Tensor:
        """Return S_b^T (S_b X - T_b) / b."""
        rows = index.sort().values
        T = dense_rows(read_rows(self._target, rows), "target")
        S = dense_rows(read_rows(self._source, rows), "source").to(T)
        return S.mT @ (S @ X - T) / len(index)

    def quadratic(self) -> QuadraticForm:
        """Return A = S^T S / m, C = -S^T T / m in float64: A is semidefinite to that rounding."""
        return self._form

    def hessian(self, X: Tensor) -> Product:
        """Return V -> R^T (R V) / m."""
        return lambda V: self.R.mT @ (self.R @ V) / self.samples

    def curvature(self) -> float:
        """Return ||S||_2^2 / m."""
        return float(torch.linalg.matrix_norm(self.R, ord=2)) ** 2 / self.samples

    def data(self) -> Tensor:
        return self._like

    def bounded_below(self) -> bool:
        return True

    def shape(self) -> tuple[int, int]:
        return self.T1.shape[0], self.T1.shape[1]

    def fingerprint(self) -> str:
        return hash_tensors("Procrustes", self.R, self.T1)
