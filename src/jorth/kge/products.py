"""Products with matrices, and inner products of rows, that indices choose, without copies."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from jorth._triton import has_triton
from jorth.derivatives import first_derivatives_only

MOST_ROWS = 64
"""The largest matrix that one program on a device reads."""


def multiply(matrices: Tensor, index: Tensor, points: Tensor) -> Tensor:
    """Return ``matrices[index] @ points`` (..., n).

    On the CPU it is compiled, on CUDA it is done by Triton; elsewhere the chosen matrices
    (..., n, n) are gathered.

    Args:
        matrices: (m, n, n).
        index: (...), the matrix of each point.
        points: (..., n).
    """
    flat = index.reshape(-1)
    x = points.reshape(-1, points.shape[-1])
    engine = _engine(x)
    if engine is not None:
        product: Tensor = _Product.apply(matrices, flat, x, engine)  # type: ignore[no-untyped-call]
    else:  # index_select, whose gradient is summed without sorting the index first
        product = (matrices.index_select(0, flat) @ x[..., None]).squeeze(-1)
    return product.reshape(points.shape)


def _engine(points: Tensor) -> ModuleType | None:
    """Return the module with `multiply` and `multiply_back` for these points, None for torch."""
    if points.dtype not in (torch.float32, torch.float64):
        return None
    if points.device.type == "cpu":
        from jorth.kge import _products_numba

        return _products_numba
    fits = 2 <= points.shape[-1] <= MOST_ROWS and points.numel() > 0
    if points.is_cuda and fits and has_triton():
        from jorth.kge import _products_triton

        return _products_triton
    return None


class _Product(torch.autograd.Function):
    """The products of an engine, and their slopes in the matrices and in the points."""

    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> Tensor:
        *given, ctx.engine = arguments
        matrices, index, points = (part.detach().contiguous() for part in given)
        ctx.save_for_backward(matrices, index, points)
        return ctx.engine.multiply(matrices, index, points)  # type: ignore[no-any-return]

    @staticmethod
    @first_derivatives_only
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, None, Tensor | None, None]:
        given = (part.detach() for part in ctx.saved_tensors)
        wanted = (ctx.needs_input_grad[0], ctx.needs_input_grad[2])
        of_matrices, of_points = ctx.engine.multiply_back(*given, gradient.contiguous(), wanted)
        return of_matrices, None, of_points, None


def pair_terms(
    left: tuple[Tensor, Tensor], right: tuple[Tensor, Tensor], rows: Tensor, columns: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the products x_i . y_j (N,) and the sums b_i + c_j (N,) for N pairs (i, j).

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
        from jorth.kge._products_numba import add_pair_terms

        given = [part.detach().contiguous() for part in (x, b, y, c, rows, columns)]
        products, sums = x.new_empty(len(rows)), x.new_empty(len(rows))
        add_pair_terms(*(part.numpy() for part in (*given, products, sums)))
        ctx.save_for_backward(*given)
        return products, sums

    @staticmethod
    @first_derivatives_only
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        from jorth.kge._products_numba import add_pair_slopes

        given = ctx.saved_tensors
        slopes = [torch.zeros_like(part) for part in given[:4]]
        x, _, y, _, rows, columns = given
        parts = [x, y, rows, columns, *(part.contiguous() for part in gradients), *slopes]
        add_pair_slopes(*(part.numpy() for part in parts))
        return *slopes, None, None
