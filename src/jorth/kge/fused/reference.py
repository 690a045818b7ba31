"""The fused loss in torch's own operations: it runs anywhere, and other backends must agree."""

from __future__ import annotations

import torch
from torch import Tensor

from jorth.kge.fused.left_out import LeftOut
from jorth.kge.model import squared_arc


def by_torch(
    signed: Tensor,
    candidates: Tensor,
    bias: Tensor,
    truth: Tensor,
    area: float | Tensor,
    smoothing: float,
    left_out: LeftOut | None,
) -> Tensor:
    """`jorth.kge.fused.distance_softmax`, differentiated by autograd."""
    scores = bias - area * squared_arc(signed @ candidates.mT)
    away = None if left_out is None else left_out.places()
    loss = -(1 - smoothing) * truth
    if smoothing:
        loss = loss - smoothing * _mean(truth, scores, away)
    if away is not None:
        scores = scores.index_put(away, scores.new_tensor(-torch.inf))
    return (loss + torch.logaddexp(truth, torch.logsumexp(scores, dim=1))).mean()


def _mean(truth: Tensor, scores: Tensor, away: tuple[Tensor, Tensor] | None) -> Tensor:
    """The mean (B,) of the true score and of those that compete with it."""
    count: Tensor | int = 1 + scores.shape[1]
    if away is not None:
        count = count - torch.bincount(away[0], minlength=len(scores))
        scores = scores.index_put(away, scores.new_zeros(()))
    return (truth + scores.sum(dim=1)) / count
