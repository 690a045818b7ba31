"""Losses of a batch: scores of the true answers (B,), scores of the false ones (B, k), -inf for those left out."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid


def logistic(positive: Tensor, negative: Tensor) -> Tensor:
    """The mean of -log s(positive) - sum log(1 - s(negative)), s the logistic function: the paper's."""
    return -(logsigmoid(positive) + logsigmoid(-negative).sum(dim=-1)).mean()


def self_adversarial(positive: Tensor, negative: Tensor, temperature: float = 1.0) -> Tensor:
    """The mean of -log s(positive) - sum w log(1 - s(negative)), w = softmax(temperature negative) held fixed."""
    weights = torch.softmax(temperature * negative.detach(), dim=-1).nan_to_num(
        0.0
    )  # NaN: all are left out
    return -(logsigmoid(positive) + (weights * logsigmoid(-negative)).sum(dim=-1)).mean()


def softmax(positive: Tensor, negative: Tensor) -> Tensor:
    """The mean of -log(e^positive / (e^positive + sum e^negative)): cross-entropy among the candidates."""
    both = torch.cat([positive[..., None], negative], dim=-1)
    return (torch.logsumexp(both, dim=-1) - positive).mean()
