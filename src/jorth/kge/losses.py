"""Losses of the scores of true answers (B,) and of false ones (B, k), -inf if left out."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid


def logistic(positive: Tensor, negative: Tensor) -> Tensor:
    """The mean of -log s(positive) - sum log(1 - s(negative)), s logistic: the paper's loss."""
    return -(logsigmoid(positive) + logsigmoid(-negative).sum(dim=-1)).mean()


def self_adversarial(positive: Tensor, negative: Tensor, temperature: float = 1.0) -> Tensor:
    """The mean of -log s(positive) - sum w log(1 - s(negative)).

    The weights w = softmax(temperature negative) carry no gradient.
    """
    weights = torch.softmax(temperature * negative.detach(), dim=-1)
    weights = weights.nan_to_num(0.0)  # NaN where all candidates are left out
    return -(logsigmoid(positive) + (weights * logsigmoid(-negative)).sum(dim=-1)).mean()


def softmax(positive: Tensor, negative: Tensor, smoothing: float = 0.0) -> Tensor:
    """The mean of -log(e^positive / (e^positive + sum e^negative)), the cross-entropy.

    With label smoothing e and k false answers that are not left out, the weight of the true one is
    1 - e + e / (k + 1) and that of each false one e / (k + 1), as in
    `jorth.kge.fused.distance_softmax`.
    """
    both = torch.cat([positive[..., None], negative], dim=-1)
    loss = torch.logsumexp(both, dim=-1) - (1 - smoothing) * positive
    if smoothing:
        competes = both > -torch.inf
        mean = torch.where(competes, both, 0.0).sum(dim=-1) / competes.sum(dim=-1)
        loss = loss - smoothing * mean
    return loss.mean()


LOSSES: dict[str, Callable[..., Tensor]] = {
    "logistic": logistic,
    "self-adversarial": self_adversarial,
    "softmax": softmax,
}
"""Functions of the two kinds of scores, and of a setting of their own if they have one."""
