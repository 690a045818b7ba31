"""Points times matrices that an index chooses, without a copy of a matrix for each point."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from jorth.derivatives import first_derivatives_only
from jorth.kge.products.moving_on_device import multiply_on_device, runs_on_device


def multiply(matrices: Tensor, index: Tensor, points: Tensor) -> Tensor:
    """``matrices[index] @ points`` (..., n) for matrices (m, n, n), index (...), points (..., n).

    On the CPU it is compiled, on CUDA it is done by Triton; elsewhere the chosen matrices
    (..., n, n) are gathered.
    """
    flat = index.reshape(-1)
    x = points.reshape(-1, points.shape[-1])
    if x.device.type == "cpu" and x.dtype in (torch.float32, torch.float64):
        product: Tensor = _Product.apply(matrices, flat, x)  # type: ignore[no-untyped-call]
    elif runs_on_device(x):
        product = multiply_on_device(matrices, flat, x)
    else:  # index_select, whose gradient is summed without sorting the index first
        product = (matrices.index_select(0, flat) @ x[..., None]).squeeze(-1)
    return product.reshape(points.shape)


class _Product(torch.autograd.Function):
    """Compiled products, and their slopes in the matrices and in the points."""

    @staticmethod
    def forward(ctx: Any, matrices: Tensor, index: Tensor, points: Tensor) -> Tensor:
        from jorth.kge.products.moving_compiled import multiply  # loads numba

        matrices, index, points = (part.contiguous() for part in (matrices, index, points))
        ctx.save_for_backward(matrices, index, points)
        product = torch.empty_like(points)
        multiply(*(part.detach().numpy() for part in (matrices, index, points, product)))
        return product

    @staticmethod
    @first_derivatives_only
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, Tensor]:
        from jorth.kge.products.moving_compiled import multiply_back

        matrices, index, points = (part.detach() for part in ctx.saved_tensors)
        slopes = (torch.zeros_like(points), torch.zeros_like(matrices))
        parts = (matrices, index, points, gradient.contiguous(), *slopes)
        multiply_back(*(part.numpy() for part in parts))
        return slopes[1], None, slopes[0]
