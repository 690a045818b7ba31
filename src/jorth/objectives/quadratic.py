"""f(X) = 1/2 tr(X^T A X D) + <C, X>."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from jorth.arrays import (
    Array,
    as_tensors,
    check_finite,
    check_symmetric,
    describe,
    small_as_numpy,
    to_tensor,
)
from jorth.objectives.base import AbstractObjective, QuadraticForm, hash_tensors
from jorth.objectives.definiteness import is_definite, is_semidefinite


class Quadratic(AbstractObjective):
    """f(X) = 1/2 tr(X^T A X D) + <C, X> for X (n, k).

    Args:
        A: (n, n) symmetric.
        C: (n, k), zero when omitted.
        D: (k, k) symmetric, the identity when omitted.
    """

    def __init__(self, A: Array, C: Array | None = None, D: Array | None = None) -> None:
        self.speaks_torch = isinstance(A, Tensor)
        self.A = _symmetric(A, "A")
        self.C = None if C is None else to_tensor(C, "C").detach().to(self.A, copy=True)
        self.D = None if D is None else _symmetric(D, "D").to(self.A)
        if self.C is not None:
            n = len(self.A)
            check_finite(self.C, "C")
            if self.C.ndim != 2 or len(self.C) != n:
                raise ValueError(f"C must have shape ({n}, k) to go with A, got {describe(C)}")
            k = self.C.shape[1]
            if self.D is not None and len(self.D) != k:
                raise ValueError(f"D must have shape {(k, k)} to go with C, got {describe(D)}")

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """f and A X D + C."""
        point, A, C, D = small_as_numpy(X, self.A, self.C, self.D)
        with np.errstate(over="ignore", invalid="ignore"):
            product = A @ point if D is None else A @ point @ D
            value = (point * product).sum() / 2
            if C is None:
                return as_tensors(value, product)
            return as_tensors(value + (C * point).sum(), product + C)

    def quadratic(self) -> QuadraticForm:
        return QuadraticForm(self.A, self.C, self.D)

    def curvature(self) -> float:
        """||A||_2 ||D||_2."""
        norm = float(torch.linalg.matrix_norm(self.A, ord=2))
        return norm if self.D is None else norm * float(torch.linalg.matrix_norm(self.D, ord=2))

    def bounded_below(self) -> bool:
        """Whether A (x) D is positive semidefinite up to rounding; with C, positive definite."""
        enough = is_semidefinite if self.C is None else is_definite
        if self.D is None:
            return enough(self.A)
        return any(enough(sign * self.A) and enough(sign * self.D) for sign in (1, -1))

    def data(self) -> Tensor:
        return self.A

    def shape(self) -> tuple[int, int | None]:
        columns = self.C if self.C is not None else self.D
        return len(self.A), None if columns is None else columns.shape[1]

    def fingerprint(self) -> str:
        return hash_tensors("Quadratic", self.A, self.C, self.D)


def _symmetric(value: Array, name: str) -> Tensor:
    matrix = to_tensor(value, name)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not len(matrix):
        raise ValueError(f"{name} must have shape (n, n), got {describe(value)}")
    check_finite(matrix, name)
    check_symmetric(matrix, name)
    return (matrix + matrix.mT).detach() / 2
