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
    competing = scores.new_full((len(scores),), scores.shape[1])
    summed = scores
    if left_out is not None:
        rows, columns = left_out.places()
        summed = scores.index_put((rows, columns), scores.new_zeros(()))
        scores = scores.index_put((rows, columns), scores.new_tensor(-torch.inf))
        competing = competing - torch.bincount(rows, minlength=len(scores))
    normaliser = torch.logsumexp(torch.cat([truth[:, None], scores], dim=1), dim=1)
    loss = normaliser - (1 - smoothing) * truth
    if smoothing:
        loss = loss - smoothing * (truth + summed.sum(dim=1)) / (competing + 1)
    return loss.mean()
