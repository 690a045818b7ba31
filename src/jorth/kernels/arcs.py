"""Squared arcs of inner products: by Triton on CUDA, compiled on the CPU, with their slopes."""

from __future__ import annotations

import torch
from torch import Tensor

from jorth.kernels.available import runs_triton

LARGE = {torch.float32: 2.0**60, torch.float64: 2.0**500}
"""A size whose square is finite and next to which 1 is nothing."""
BLOCK = 512


def runs_on_device(g: Tensor) -> bool:
    """Whether `write_squared_arcs` is for numbers like these."""
    return runs_triton(g.device) and g.dtype in LARGE


def write_squared_arcs(g: Tensor, square: Tensor, slope: Tensor | None) -> None:
    """Write arc^2, and its derivative if wanted, for contiguous g (count,).

    The formulas are those of `jorth.kge.model.squared_arc`.
    """
    from jorth.kernels.by_triton.arcs import square_and_slope

    square_and_slope[(-(-g.numel() // BLOCK),)](
        g, square, square if slope is None else slope, g.numel(),
        HAS_SLOPE=slope is not None, LARGE=LARGE[g.dtype], BLOCK=BLOCK, num_warps=4,
    )  # fmt: skip


def runs_compiled(g: Tensor) -> bool:
    """Whether `write_compiled` is for numbers like these."""
    return g.device.type == "cpu" and g.dtype in LARGE


def write_compiled(g: Tensor, square: Tensor, slope: Tensor | None) -> None:
    """`write_squared_arcs` on the CPU."""
    from jorth.kernels.compiled.arcs import square_and_slope  # loads numba

    slope = torch.empty_like(square) if slope is None else slope
    square_and_slope(*(part.detach().numpy() for part in (g, square, slope)))
