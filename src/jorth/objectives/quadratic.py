"""f(X) = 1/2 tr(X^T A X D) + <C, X>, and the hyperbolic eigenvalue problem among them."""

from __future__ import annotations

from typing import Any, Literal

import torch
from scipy.linalg.lapack import dpotrf
from torch import Tensor

from jorth._inputs import (
    ArrayLike,
    check_choice,
    check_finite,
    check_symmetric,
    describe,
    frobenius,
    is_sparse,
    to_tensor,
)
from jorth.objectives.base import AbstractObjective, QuadraticForm, hash_tensors
from jorth.objectives.rows import blocks, is_stored, shape_of, sparse_rows


class Quadratic(AbstractObjective):
    """f(X) = 1/2 tr(X^T A X D) + <C, X> for X (n, k).

    A and C (B, n, n) are B problems, which `jorth.minimize` solves at once; one of the two may be
    (n, n) and the same for all of them. Problems whose data are not finite end as NON_FINITE.

    Args:
        A: (n, n) symmetric, or (B, n, n).
        C: (n, k), or (B, n, n); zero when omitted.
        D: (k, k) symmetric, the identity when omitted; not for B problems.

    >>> sig = jorth.Signature(2, 1)
    >>> f = jorth.Quadratic(np.diag([1.0, 2.0, 3.0]))
    >>> round(jorth.minimize(f, jorth.random_point(sig), signature=sig).value, 6)
    3.0
    """

    D: Tensor | None

    def __init__(
        self, A: ArrayLike, C: ArrayLike | None = None, D: ArrayLike | None = None
    ) -> None:
        self.speaks_torch = isinstance(A, Tensor)
        matrix = to_tensor(A, "A").detach()
        n = matrix.shape[-1] if matrix.ndim else 0
        if matrix.ndim not in (2, 3) or matrix.shape[-2:] != (n, n) or not matrix.numel():
            wanted = "(n, n) or (B, n, n) with B and n at least 1"
            raise ValueError(f"A must have shape {wanted}, got {describe(A)}")
        linear = None if C is None else to_tensor(C, "C").detach().to(matrix, copy=True)
        parts = (part for part in (matrix, linear) if part is not None and part.ndim == 3)
        self.batch = next(map(len, parts), 0)
        self.A, self.C, self.D = _symmetric(matrix, "A", finite=not self.batch), linear, None
        if linear is not None:
            wanted = f"({n}, {n}) or ({self.batch}, {n}, {n})" if self.batch else f"({n}, k)"
            columns = (n,) if self.batch else linear.shape[-1:]
            fits = linear.shape in ((n, *columns), (self.batch, n, *columns))
            if not fits or not linear.numel():
                raise ValueError(f"C must have shape {wanted} to go with A, got {describe(C)}")
            if not self.batch:
                check_finite(linear, "C")
        if D is not None:
            weight = to_tensor(D, "D").detach().to(matrix)
            if self.batch:
                given = f"A {tuple(matrix.shape)}, C {describe(C)} and D {describe(D)}"
                raise ValueError(f"D must be omitted for a batch of problems, got {given}")
            k = weight.shape[0] if linear is None and weight.numel() else self.shape()[1]
            if weight.shape != (k, k):
                size = f"({k or 'k'}, {k or 'k'}), k as in C"
                raise ValueError(f"D must have shape {size}, got {describe(D)}")
            self.D = _symmetric(weight, "D")

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return f and A X D + C."""
        product = self.A @ X if self.D is None else self.A @ X @ self.D
        value = (X * product).sum((-2, -1)) / 2
        if self.C is None:
            return value, product
        return value + (self.C * X).sum((-2, -1)), product + self.C

    def quadratic(self) -> QuadraticForm:
        return QuadraticForm(self.A, self.C, self.D)

    def curvature(self) -> float:
        """Return ||A||_2 ||D||_2."""
        norm = float(torch.linalg.matrix_norm(self.A, ord=2))
        return norm if self.D is None else norm * float(torch.linalg.matrix_norm(self.D, ord=2))

    def bounded_below(self) -> bool:
        """Tell whether A (x) D is positive semidefinite to rounding; with C, positive definite."""
        enough = is_semidefinite if self.C is None else is_definite
        if self.D is None:
            return enough(self.A)
        return any(enough(sign * self.A) and enough(sign * self.D) for sign in (1, -1))

    def data(self) -> Tensor:
        return self.A

    def shape(self) -> tuple[int, int | None]:
        columns = self.C if self.C is not None else self.D
        return self.A.shape[-1], None if columns is None else columns.shape[-1]

    def fingerprint(self) -> str:
        return hash_tensors("Quadratic", self.A, self.C, self.D)


class HyperbolicEigenvalue(Quadratic):
    """f(X) = tr(X^T A X), or minus that.

    With ``sense="min"`` and A positive definite the minimum over X^T J X = J is the sum of |lambda|
    over the eigenvalues of A x = lambda J x, which `jorth.eigh` finds directly. With
    ``sense="max"``, the paper's -tr(X^T A X), the problem is unbounded below whenever p, q > 0:
    along a boost f falls like -e^(2 mu). Runs then end as UNBOUNDED, unless
    ``on_unbounded="continue"`` lets them go on.

    Args:
        A: (n, n) symmetric.
        data: (m, n), dense or scipy.sparse, which stands for A = data^T data.
        sense: "min" for tr(X^T A X), "max" for the paper's -tr(X^T A X).

    >>> sig = jorth.Signature(2, 1)
    >>> f = jorth.HyperbolicEigenvalue(np.diag([1.0, 2.0, 3.0]))
    >>> round(jorth.minimize(f, jorth.random_point(sig), signature=sig).value, 6)
    6.0
    """

    def __init__(
        self, A: ArrayLike | None = None, *, data: Any = None, sense: Literal["min", "max"] = "min"
    ) -> None:
        if (A is None) == (data is None):
            given = "both" if A is not None else "neither"
            raise ValueError(f"one of A and data must be given, got {given}")
        check_choice(sense, "sense", ("min", "max"))
        matrix = to_tensor(A, "A") if A is not None else _gram(data)
        super().__init__((2.0 if sense == "min" else -2.0) * matrix)
        self.sense = sense
        self._positive = A is None and sense == "min"
        self.speaks_torch = isinstance(A if A is not None else data, Tensor)

    def bounded_below(self) -> bool:
        return self._positive or super().bounded_below()


def _gram(data: Any) -> Tensor:
    """Return data^T data, dense."""
    if is_sparse(data):
        rows = sparse_rows(data, "data")
    else:
        rows = data if is_stored(data) else to_tensor(data, "data").detach()
    shape = shape_of(rows)
    if len(shape) != 2 or 0 in shape:
        raise ValueError(f"data must have shape (m, n) with m at least 1, got {describe(data)}")
    if is_sparse(rows):
        matrix = torch.from_numpy((rows.T @ rows).toarray())
    else:
        matrix = sum((part.mT @ part for part in blocks(rows, "data")), torch.zeros(()))
    check_finite(matrix, "data")
    return matrix


def _symmetric(matrix: Tensor, name: str, *, finite: bool = True) -> Tensor:
    """Return an exactly symmetric copy, or raise an error."""
    if finite:
        check_finite(matrix, name)
    check_symmetric(matrix.nan_to_num(0.0, 0.0, 0.0), name)
    return (matrix + matrix.mT) / 2


def is_semidefinite(A: Tensor) -> bool:
    """Check that A has no eigenvalue below minus its rounding."""
    return not bool(A.any()) or _has_cholesky_factor(A, 1)


def is_definite(A: Tensor) -> bool:
    """Check that A has all eigenvalues above its rounding."""
    return _has_cholesky_factor(A, -1)


def square_root(A: Tensor) -> Tensor:
    """Return F (n, n) with F^T F = A for a semidefinite A; negative rounding counts as 0.

    ||F z||^2 is off by a few u ||A|| ||z||^2. For z the difference of two columns, that is small
    relative to the difference and not only to the columns.
    """
    values, vectors = torch.linalg.eigh(A)
    root: Tensor = values.clamp(min=0).sqrt()[:, None] * vectors.mT
    return root


def _has_cholesky_factor(A: Tensor, roundings: int) -> bool:
    """Check A + t I for ``roundings`` +-1 times t = 16 eps ||A||_F.

    Entries, and so by Weyl's theorem eigenvalues, are off by a few eps ||A||_F. Only the rounding
    of A itself counts, as single precision is factored in double.
    """
    shifted = A.detach().to("cpu", torch.float64, copy=True)
    shifted.diagonal().add_(roundings * 16 * torch.finfo(A.dtype).eps * frobenius(A))
    info: int = dpotrf(shifted.numpy(), lower=1)[1]
    return info == 0
