"""Inner products and sums for pairs of rows that indices choose, without copies of the rows."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from jorth.derivatives import first_derivatives_only


def pair_terms(
    left: tuple[Tensor, Tensor], right: tuple[Tensor, Tensor], rows: Tensor, columns: Tensor
) -> tuple[Tensor, Tensor]:
    """The products x_i . y_j (N,) and the sums b_i + c_j (N,) for N pairs (i, j).

    On the CPU they are compiled; elsewhere the rows are gathered.

    Args:
        left: Vectors x (l, n) and numbers b (l,).
        right: Vectors y (m, n) and numbers c (m,).
        rows: The i (N,) of the pairs.
        columns: The j (N,) of the pairs.
    """
    x, b = left
    y, c = right
    if x.device.type == "cpu" and x.dtype in (torch.float32, torch.float64):
        products, sums = _PairTerms.apply(x, b, y, c, rows, columns)  # type: ignore[no-untyped-call]
        return products, sums
    products = (x.index_select(0, rows) * y.index_select(0, columns)).sum(dim=-1)
    return products, b.index_select(0, rows) + c.index_select(0, columns)


class _PairTerms(torch.autograd.Function):
    """Compiled products and sums, and their slopes."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, b: Tensor, y: Tensor, c: Tensor, rows: Tensor, columns: Tensor
    ) -> tuple[Tensor, Tensor]:
        from jorth.kge.products.pairs_compiled import terms  # loads numba

        given = [part.detach().contiguous() for part in (x, b, y, c, rows, columns)]
        products, sums = x.new_empty(len(rows)), x.new_empty(len(rows))
        terms(*(part.numpy() for part in (*given, products, sums)))
        ctx.save_for_backward(*given)
        return products, sums

    @staticmethod
    @first_derivatives_only
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        from jorth.kge.products.pairs_compiled import terms_back

        given = ctx.saved_tensors
        slopes = [torch.zeros_like(part) for part in given[:4]]
        x, _, y, _, rows, columns = given
        parts = [x, y, rows, columns, *(part.contiguous() for part in gradients), *slopes]
        terms_back(*(part.numpy() for part in parts))
        return *slopes, None, None
