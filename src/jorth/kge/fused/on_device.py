"""The fused loss on a CUDA device: products by cuBLAS, everything between them by Triton.

Nothing waits for the device and all shapes are those of the arguments, so that a step can be
captured in a CUDA graph.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from jorth.kernels.arcs import LARGE
from jorth.kge.fused.gradients import Gradients
from jorth.kge.fused.left_out import LeftOut

MOST_BYTES = 2**30
"""The most inner products that are held at a time, in bytes."""
MARK = {torch.float32: 2.0**127, torch.float64: 2.0**1023}
"""What stands for an inner product whose column does not compete."""
SUMMED, WEIGHED = 256, 512
"""The columns that a program of `row_sums` and one of `row_weights` has at a time."""
ENOUGH_PROGRAMS = 4096
"""Programs of `row_weights`: they have several rows where there would be more."""


def by_triton(  # what the loss depends on
    signed: Tensor,
    candidates: Tensor,
    bias: Tensor,
    truth: Tensor,
    area: Tensor,
    smoothing: float,
    left_out: LeftOut | None,
) -> tuple[Tensor, Gradients]:
    """The loss of `jorth.kge.fused.distance_softmax` and its gradients, in chunks of rows."""
    B, k = len(signed), len(candidates)
    shared = _Shared(candidates.contiguous(), bias.contiguous(), area, smoothing, B)
    size = max(1, MOST_BYTES // (max(k, 1) * signed.element_size()))
    losses, parts = [], []
    for start in range(0, B, size):
        rows = slice(start, start + size)
        own = None if left_out is None else left_out._replace(
            first=left_out.first[rows], last=left_out.last[rows]
        )  # fmt: skip
        loss, gradients = _chunk(signed[rows], truth[rows].contiguous(), shared, own)
        losses.append(loss)
        parts.append(gradients)
    if len(parts) == 1:
        return losses[0], parts[0]
    return torch.stack(losses).sum(), Gradients(
        torch.cat([part.signed for part in parts]),
        torch.stack([part.candidates for part in parts]).sum(0),
        torch.stack([part.bias for part in parts]).sum(0),
        torch.cat([part.truth for part in parts]),
        torch.stack([part.area for part in parts]).sum(),
    )


class _Shared(NamedTuple):
    """What all chunks of a batch of ``total`` rows share."""

    candidates: Tensor
    bias: Tensor
    area: Tensor
    smoothing: float
    total: int


def _chunk(
    signed: Tensor, truth: Tensor, shared: _Shared, left_out: LeftOut | None
) -> tuple[Tensor, Gradients]:
    """The share of some rows in the loss, and its gradients."""
    from jorth.kge.fused.triton_rows import row_sums, row_weights

    g = signed @ shared.candidates.mT
    rows, k = g.shape
    constants = {"MARK": MARK[g.dtype], "LARGE": LARGE[g.dtype]}
    loss, log_sum, flat, d_truth = g.new_empty((4, rows)).unbind()
    lists = [truth] * 4 if left_out is None else [part.contiguous() for part in left_out]
    row_sums[(rows,)](
        g, shared.bias, truth, shared.area, *lists, loss, log_sum, flat, d_truth,
        shared.total, k, SMOOTHING=shared.smoothing, LEAVES_OUT=left_out is not None,
        BLOCK=SUMMED, num_warps=2, **constants,
    )  # fmt: skip
    across = max(1, -(-k // WEIGHED))
    size = max(1, rows * across // ENOUGH_PROGRAMS)
    parts = -(-rows // size)
    d_bias, d_area = g.new_empty((parts, k)), g.new_empty((parts * across,))
    row_weights[(parts, across)](
        g, shared.bias, truth, shared.area, log_sum, flat, d_bias, d_area, rows, shared.total, k,
        size, BLOCK=WEIGHED, num_warps=4, **constants,
    )  # fmt: skip
    gradients = Gradients(
        g @ shared.candidates, g.mT @ signed, d_bias.sum(0), d_truth, d_area.sum()
    )
    return loss.sum(), gradients
