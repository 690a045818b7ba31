"""The hyperbolic eigenvalue problem: the trace of X^T A X."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor

from jorth._inputs import ArrayLike, check_choice, check_finite, describe, is_sparse, to_tensor
from jorth.objectives.base import sparse_rows
from jorth.objectives.quadratic import Quadratic


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
    rows = sparse_rows(data, "data") if is_sparse(data) else to_tensor(data, "data").detach()
    if rows.ndim != 2 or 0 in rows.shape:
        raise ValueError(f"data must have shape (m, n) with m at least 1, got {describe(data)}")
    product = rows.T @ rows
    matrix = product if isinstance(product, Tensor) else torch.from_numpy(product.toarray())
    check_finite(matrix, "data")
    return matrix
