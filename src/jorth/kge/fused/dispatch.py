"""`distance_softmax`: the loss by Triton on CUDA, compiled on the CPU, else by torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from jorth.derivatives import first_derivatives_only
from jorth.kernels.available import runs_triton
from jorth.kge.fused.gradients import Gradients
from jorth.kge.fused.left_out import LeftOut
from jorth.kge.fused.reference import by_torch

Backend = Callable[
    [Tensor, Tensor, Tensor, Tensor, Tensor, float, LeftOut | None], tuple[Tensor, Gradients]
]
"""A function of signed, candidates, bias, truth, area (a scalar tensor), smoothing and left_out
that returns the loss and its gradients, both from one pass."""


def distance_softmax(
    signed: Tensor,
    candidates: Tensor,
    bias: Tensor,
    truth: Tensor,
    *,
    area: float | Tensor,
    smoothing: float = 0.0,
    left_out: LeftOut | None = None,
) -> Tensor:
    """The mean cross-entropy of true scores among those of shared candidates, label smoothing e.

    The candidates of row i have the scores s_ij = bias_j - area arc(signed_i . candidates_j)^2, the
    arc that of `jorth.kge.model.squared_arc`. With k_i candidates not left out, the loss of
    the row is log(exp(truth_i) + sum_j exp(s_ij)) less the mean of the scores under the weights
    1 - e + e / (k_i + 1) of the true one and e / (k_i + 1) of all others.

    Args:
        signed: (B, n), the moved anchors, times the signs of J and 1 / alpha^2.
        candidates: (k, n), the points of different entities.
        bias: (k,), their biases.
        truth: (B,), the scores of the true answers.
        area: The factor of the squared arcs, a number or a scalar tensor.
        smoothing: e, from 0 to below 1.
        left_out: The candidates that do not compete in each row, the true answer among them.

    Returns:
        The mean over the rows, with gradients for all tensors.
    """
    backend = backend_for(signed)
    if backend is None:
        return by_torch(signed, candidates, bias, truth, area, smoothing, left_out)
    area = area if isinstance(area, Tensor) else truth.new_full((), area)
    loss: Tensor = _InOnePass.apply(  # type: ignore[no-untyped-call]
        signed, candidates, bias, truth, area, smoothing, left_out, backend
    )
    return loss


def backend_for(signed: Tensor) -> Backend | None:
    """The fastest backend for tensors of this kind, None for torch's own operations."""
    if runs_triton(signed.device) and signed.dtype in (torch.float32, torch.float64):
        from jorth.kge.fused.on_device import by_triton

        return by_triton
    if signed.device.type == "cpu" and signed.dtype in (torch.float32, torch.float64):
        from jorth.kge.fused.compiled.blocks import by_blocks  # loads numba

        return by_blocks
    return None


class _InOnePass(torch.autograd.Function):
    """The loss of a backend, whose gradients are computed together with it."""

    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> Tensor:
        *given, backend = arguments
        loss, gradients = backend(*given)
        ctx.save_for_backward(*gradients)
        return loss  # type: ignore[no-any-return]

    @staticmethod
    @first_derivatives_only
    def backward(ctx: Any, factor: Tensor) -> tuple[Tensor | None, ...]:
        return *(factor * gradient for gradient in ctx.saved_tensors), None, None, None
