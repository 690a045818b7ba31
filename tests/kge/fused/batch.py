"""A batch for the fused loss, and its loss by torch's cross-entropy, row by row."""

from dataclasses import dataclass

import torch
from torch.nn.functional import cross_entropy

from jorth.kge.loss import Exclusions


@dataclass(frozen=True)
class Batch:
    """The arguments of `distance_softmax`, and the entities that each row leaves out."""

    tensors: dict[str, torch.Tensor]
    area: float
    smoothing: float
    excluded: Exclusions | None
    lists: list[set[int]]
    entities: torch.Tensor
    """The entity of each candidate."""


def random_batch(
    rows=7, k=11, n=4, *, smoothing=0.1, leave=True, dtype=torch.float64, device="cpu", seed=0
):
    """Points at all kinds of products, |<x, y>| below and above one; lists of 0 to k entities."""
    random = torch.Generator().manual_seed(seed)
    shapes = {"signed": (rows, n), "candidates": (k, n), "bias": (k,), "truth": (rows,)}
    tensors = {
        name: torch.randn(shape, generator=random, dtype=torch.float64)
        for name, shape in shapes.items()
    }
    area = 0.5 + float(torch.rand((), generator=random, dtype=torch.float64))
    everyone = torch.randperm(2 * k, generator=random)
    entities = everyone[:k]
    column = torch.full((2 * k,), -1)
    column[entities] = torch.arange(k)
    lists = [
        torch.randperm(2 * k, generator=random)[: (row * 2 * k) // max(1, rows - 1)]
        for row in range(rows)
    ]
    lists = lists if leave else [entities[:0] for _ in lists]
    last = torch.tensor([len(row) for row in lists]).cumsum(0)
    first = last - torch.tensor([len(row) for row in lists])
    excluded = Exclusions(first, last, torch.cat(lists), column) if leave else None
    if excluded is not None:
        excluded = Exclusions(*(part.to(device) for part in excluded))
    tensors = {name: value.to(device, dtype).requires_grad_() for name, value in tensors.items()}
    return Batch(tensors, area, smoothing, excluded, [set(row.tolist()) for row in lists], entities)


def loss_by_cross_entropy(batch):
    """Row by row, with the columns that are left out taken away."""
    signed, candidates, bias, truth = batch.tensors.values()
    losses = []
    for i, away in enumerate(batch.lists):
        kept = torch.tensor([e not in away for e in batch.entities.tolist()], device=signed.device)
        g = (candidates[kept] @ signed[i]).abs()
        far = g >= 1
        outside = torch.acosh(torch.where(far, g, 2.0))
        inside = torch.acos(torch.where(far, 0.5, g))
        scores = bias[kept] - batch.area * torch.where(far, outside, inside) ** 2
        row = torch.cat([truth[i : i + 1], scores])[None]
        zero = torch.zeros(1, dtype=torch.int64, device=signed.device)
        losses.append(cross_entropy(row, zero, label_smoothing=batch.smoothing))
    return torch.stack(losses).mean()


def value_and_gradients(function, batch):
    value = function(batch)
    return [value.detach(), *torch.autograd.grad(3 * value, list(batch.tensors.values()))]
