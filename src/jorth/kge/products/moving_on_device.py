"""Points times matrices that an index chooses on a CUDA device, by Triton."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from jorth.derivatives import first_derivatives_only
from jorth.kernels.available import has_triton
from jorth.kernels.device_turns import rows_of_tile

MOST_ROWS = 64
"""The largest matrix that one program reads."""
BLOCK = 32
ENOUGH_PROGRAMS = 2048
"""Points are split, for sums of outer products, unless there are so many matrices."""


def runs_on_device(points: Tensor) -> bool:
    """Whether `multiply_on_device` is for these points (..., n)."""
    fits = 2 <= points.shape[-1] <= MOST_ROWS and points.numel() > 0
    real = points.dtype in (torch.float32, torch.float64)
    return points.is_cuda and fits and real and has_triton()


def multiply_on_device(matrices: Tensor, index: Tensor, points: Tensor) -> Tensor:
    """``matrices[index] @ points`` for matrices (m, n, n), index (B,) and points (B, n)."""
    product: Tensor = _Product.apply(matrices, index, points)  # type: ignore[no-untyped-call]
    return product


class _Product(torch.autograd.Function):
    """Products, and their slopes in the matrices and in the points."""

    @staticmethod
    def forward(ctx: Any, *given: Tensor) -> Tensor:
        matrices, index, points = (part.contiguous() for part in given)
        ctx.save_for_backward(matrices, index, points)
        return moved(matrices, index, points, transposed=False)

    @staticmethod
    @first_derivatives_only
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, None, Tensor | None]:
        matrices, index, points = (part.detach() for part in ctx.saved_tensors)
        gradient = gradient.contiguous()
        of_matrices = of_points = None
        if ctx.needs_input_grad[0]:
            of_matrices = outer_products(index, gradient, points, len(matrices))
        if ctx.needs_input_grad[2]:
            of_points = moved(matrices, index, gradient, transposed=True)
        return of_matrices, None, of_points


def moved(matrices: Tensor, index: Tensor, points: Tensor, *, transposed: bool) -> Tensor:
    """The products (B, n) with the chosen matrices or with their transposes."""
    from jorth.kge.products.moving_by_triton import move_points

    B, n = points.shape
    product, rows = torch.empty_like(points), rows_of_tile(n)
    move_points[(B,)](
        matrices, index, points, product, n,
        TRANSPOSED=transposed, N=rows, num_warps=max(1, rows // 16),
    )  # fmt: skip
    return product


def outer_products(index: Tensor, left: Tensor, right: Tensor, count: int) -> Tensor:
    """The sums (count, n, n) of left_i right_i^T over the points i of each matrix."""
    from jorth.kge.products.moving_by_triton import sum_outer_products

    B, n = left.shape
    parts = max(1, min(ENOUGH_PROGRAMS // count, -(-B // (4 * BLOCK))))
    sums = left.new_empty((parts, count, n, n))
    sum_outer_products[(count, parts)](
        index, left, right, sums, B, -(-B // parts), n,
        N=max(rows_of_tile(n), 16), BLOCK=BLOCK, num_warps=4,
    )  # fmt: skip
    return sums.sum(0)
