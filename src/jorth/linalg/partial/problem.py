"""S x = (lambda - mu) J x with S = A - mu J positive definite, and what stands for S^-1."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from jorth.arrays import describe, is_sparse, to_tensor
from jorth.linalg.batch import Floats
from jorth.linalg.partial.davidson import Map
from jorth.linalg.partial.factors import NoDefiniteShift, definite_shift, shifted, solver
from jorth.linalg.partial.inner import inner_iterations
from jorth.linalg.partial.inputs import Matrix, is_operator
from jorth.linalg.partial.options import Subset
from jorth.signature import Signature


@dataclass(frozen=True)
class Problem:
    """The eigenproblem of S = A - mu J.

    Attributes:
        matrix: A.
        signs: (n,), those of J as floats.
        mu: The shift.
        inverse: S^-1, or what is used in its place.
        exact: Whether it is S^-1.
    """

    matrix: Matrix
    signs: Floats
    mu: float
    inverse: Map
    exact: bool

    def apply(self, W: Floats) -> Floats:
        """W S for rows W (b, n)."""
        return _minus_shift(self.matrix, self.signs, self.mu)(W)


def make_problem(
    matrix: Matrix, signature: Signature, wanted: Subset, shift: float | None
) -> Problem | None:
    """The problem, with a shift that is given or found; None if a dense A needs another method."""
    signs = signature.signs.astype(np.float64)
    mu = 0.0 if shift is None else shift / matrix.scale
    entries = matrix.entries
    if entries is None or wanted.preconditioner is not None:
        precondition = _preconditioning(wanted.preconditioner, signature.n, matrix.scale)
        apply = _minus_shift(matrix, signs, mu)
        return Problem(matrix, signs, mu, inner_iterations(apply, precondition), False)
    solve = solver(shifted(entries, signs, mu))
    if solve is None and isinstance(entries, np.ndarray):
        return None
    if solve is None and shift is not None:
        raise NoDefiniteShift(f"shift must make A - shift J definite, got {shift:.6g}")
    if solve is None:
        mu, solve = definite_shift(entries, signs, matrix.scale)
    return Problem(matrix, signs, mu, solve, True)


def _minus_shift(matrix: Matrix, signs: Floats, mu: float) -> Map:
    if mu == 0:
        return matrix.apply
    return lambda W: matrix.apply(W) - mu * (W * signs)


def _preconditioning(value: Any, n: int, scale: float) -> Map | None:
    """An approximation of (A / scale)^-1 from one of A^-1, as a map of rows."""
    if value is None:
        return None
    multiply = _multiplication(value, n)

    def apply(R: Floats) -> Floats:
        Z = np.asarray(multiply(np.ascontiguousarray(R.T)))
        if Z.shape != (n, len(R)) or Z.dtype.kind not in "fiu" or not np.isfinite(Z).all():
            expected = f"finite columns {(n, len(R))}"
            raise ValueError(f"preconditioner must give {expected}, got {describe(Z)}")
        Z = np.ascontiguousarray(Z.T, dtype=np.float64) * scale
        if (np.einsum("ij,ij->i", R, Z) < 0).any():
            raise ValueError("preconditioner must be positive definite, got r^T M r < 0")
        return Z

    return apply


def _multiplication(value: Any, n: int) -> Callable[[Floats], Any]:
    """Products with columns (n, b), by an operator, a matrix or a function."""
    if is_operator(value) or is_sparse(value):
        if tuple(value.shape) != (n, n):
            raise ValueError(f"preconditioner must have shape {(n, n)}, got {tuple(value.shape)}")
        return lambda W: value @ W
    if callable(value):
        return value  # type: ignore[no-any-return]
    entries = to_tensor(value, "preconditioner").detach().cpu().numpy()
    if entries.shape != (n, n):
        raise ValueError(f"preconditioner must have shape {(n, n)}, got {describe(value)}")
    return lambda W: entries @ W
