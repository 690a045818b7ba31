"""The cross-entropy of true answers among shared candidates, from distances in one pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from jorth._triton import runs_triton
from jorth.derivatives import first_derivatives_only
from jorth.kge.graph import expand_spans
from jorth.kge.model import squared_arc


class Exclusions(NamedTuple):
    """Row i must not compete with the entities ``answers[first[i] : last[i]]``, all different.

    ``column`` (entities,) is the column of each entity among the candidates, -1 if it is none.
    """

    first: Tensor
    last: Tensor
    answers: Tensor
    column: Tensor

    def places(self) -> tuple[Tensor, Tensor]:
        """Return rows and columns of all excluded scores; the host waits for their number."""
        rows, places = expand_spans(self.first, self.last)
        columns = self.column[self.answers[places]]
        candidates = columns >= 0
        return rows[candidates], columns[candidates]


Backend = Callable[..., tuple[Tensor, tuple[Tensor, ...]]]
"""A function of signed, candidates, bias, truth, area, smoothing and excluded that returns the loss
and its gradients in the four tensors, both from one pass."""


def distance_softmax(
    signed: Tensor,
    candidates: Tensor,
    bias: Tensor,
    truth: Tensor,
    *,
    area: float,
    smoothing: float = 0.0,
    excluded: Exclusions | None = None,
) -> Tensor:
    """Return the mean cross-entropy of true scores among those of candidates, label smoothing e.

    The candidates of row i have the scores s_ij = bias_j - area arc(signed_i . candidates_j)^2, the
    arc that of `jorth.kge.model.squared_arc`. With k_i candidates not left out, the loss of
    the row is log(exp(truth_i) + sum_j exp(s_ij)) less the mean of the scores under the weights
    1 - e + e / (k_i + 1) of the true one and e / (k_i + 1) of all others.

    Args:
        signed: (B, n), the images of the anchors, times the signs of J and 1 / alpha^2.
        candidates: (k, n), the points of different entities.
        bias: (k,), their biases.
        truth: (B,), the scores of the true answers.
        area: The factor alpha^2 of the squared arcs.
        smoothing: e, from 0 to below 1.
        excluded: The candidates that do not compete in each row, the true answer among them.

    Returns:
        The mean over the rows, with gradients for all tensors.
    """
    backend = backend_for(signed)
    if backend is None:
        return by_torch(signed, candidates, bias, truth, area, smoothing, excluded)
    loss: Tensor = _InOnePass.apply(  # type: ignore[no-untyped-call]
        signed, candidates, bias, truth, area, smoothing, excluded, backend
    )
    return loss


def backend_for(signed: Tensor) -> Backend | None:
    """Return the fastest backend for tensors of this kind, None for torch's own operations."""
    if runs_triton(signed.device) and signed.dtype in (torch.float32, torch.float64):
        from jorth.kge._loss_triton import loss_and_gradients as by_triton

        return by_triton
    if signed.device.type == "cpu" and signed.dtype in (torch.float32, torch.float64):
        from jorth.kge._loss_numba import loss_and_gradients  # loads numba

        return loss_and_gradients
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
        return *(factor * gradient for gradient in ctx.saved_tensors), None, None, None, None


def by_torch(
    signed: Tensor,
    candidates: Tensor,
    bias: Tensor,
    truth: Tensor,
    area: float,
    smoothing: float,
    excluded: Exclusions | None,
) -> Tensor:
    """`distance_softmax`, differentiated by autograd."""
    scores = bias - area * squared_arc(signed @ candidates.mT)
    count: Tensor | int = 1 + scores.shape[1]
    competing = scores
    if excluded is not None:
        away = excluded.places()
        count = count - torch.bincount(away[0], minlength=len(scores))
        competing = scores.index_put(away, scores.new_zeros(()))
        scores = scores.index_put(away, scores.new_tensor(-torch.inf))
    mean = (truth + competing.sum(dim=1)) / count
    expected = (1 - smoothing) * truth + smoothing * mean
    return (torch.logaddexp(truth, torch.logsumexp(scores, dim=1)) - expected).mean()
