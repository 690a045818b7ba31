"""Queries, false answers to them, and the loss of a batch of both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, logsigmoid

from jorth.kge.graph import Known, both_directions
from jorth.kge.model import UltraE

SIDES = ("both", "uniform", "bernoulli")


class Queries:
    """The queries (anchor, code, answer) of an epoch, in random order.

    Args:
        triples: The training triples (N, 3).
        relations: The number of relations; code r + ``relations`` asks for the head.
        sides: "both" asks for both ends of every triple. Otherwise one end is drawn, either
            "uniform" or "bernoulli": the tail with probability t / (t + h), where t is the mean
            number of tails per head of the relation and h that of heads per tail. The end with
            more true answers is then asked for more often.
    """

    def __init__(self, triples: Tensor, relations: int, sides: str) -> None:
        self._both = both_directions(triples, relations)
        self._relation = triples[:, 1]
        self._tail_share = None if sides == "both" else _tail_shares(triples, relations, sides)

    def epoch(self, generator: torch.Generator) -> Tensor:
        """The queries in a new order: (2 N, 3) for both ends, otherwise (N, 3)."""
        device = self._both.device
        count = len(self._relation)
        if self._tail_share is None:
            return self._both[torch.randperm(2 * count, generator=generator, device=device)]
        drawn = torch.rand(count, generator=generator, device=device)
        tail = drawn < self._tail_share[self._relation]
        order = torch.randperm(count, generator=generator, device=device)
        return self._both[order + count * (~tail[order])]


def _tail_shares(triples: Tensor, relations: int, sides: str) -> Tensor:
    """The probability, per relation, of asking for the tail."""
    if sides == "uniform":
        return torch.full((relations,), 0.5, device=triples.device)
    triples = torch.unique(triples, dim=0)
    count = torch.bincount(triples[:, 1], minlength=relations)
    heads, tails = (
        torch.bincount(torch.unique(triples[:, ends], dim=0)[:, 0], minlength=relations)
        for ends in ((1, 0), (1, 2))
    )
    tails_per_head = count / heads.clamp(min=1)
    heads_per_tail = count / tails.clamp(min=1)
    return tails_per_head / (tails_per_head + heads_per_tail).clamp(min=1)


@dataclass(frozen=True, eq=False)
class Negatives:
    """False answers, drawn uniformly.

    Attributes:
        entities: The number of entities.
        count: The number of negatives per query; None stands for all entities.
        shared: Whether all queries of a batch have the same negatives.
        known: True answers to leave out, or None to leave none out.
    """

    entities: int
    count: int | None
    shared: bool
    known: Known | None

    def draw(self, queries: Tensor, generator: torch.Generator) -> Tensor | None:
        """Candidates (k,) shared by the queries or (B, k); None stands for all entities."""
        if self.count is None:
            return None
        shape = (self.count,) if self.shared else (len(queries), self.count)
        return torch.randint(self.entities, shape, generator=generator, device=queries.device)

    def leave_out(self, scores: Tensor, queries: Tensor, candidates: Tensor | None) -> Tensor:
        """The scores (B, k) with -inf, which adds nothing to a loss, for known answers.

        If the candidates are all entities, the answers of the queries are left out too.
        """
        anchor, code, answer = queries.unbind(-1)
        if candidates is None:
            scores = scores.scatter(1, answer[:, None], -torch.inf)
        if self.known is None:
            return scores
        if candidates is None:
            return scores.index_put(self.known.answers(anchor, code), scores.new_tensor(-torch.inf))
        return scores.masked_fill(self.known.contains(anchor, code, candidates), -torch.inf)


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


def softmax(positive: Tensor, negative: Tensor) -> Tensor:
    """The mean of -log(e^positive / (e^positive + sum e^negative)), the cross-entropy."""
    both = torch.cat([positive[..., None], negative], dim=-1)
    return (torch.logsumexp(both, dim=-1) - positive).mean()


LOSSES: dict[str, Callable[..., Tensor]] = {
    "logistic": logistic,
    "self-adversarial": self_adversarial,
    "softmax": softmax,
}
"""Functions of the scores of true answers (B,) and false ones (B, k), -inf if left out."""


@dataclass(frozen=True, eq=False)
class BatchLoss:
    """The loss of a batch of queries, with the settings of a `jorth.kge.Config`."""

    model: UltraE
    negatives: Negatives
    loss: str
    temperature: float
    regularisation: float

    def __call__(self, queries: Tensor, candidates: Tensor | None) -> Tensor:
        """The mean loss of queries (B, 3) with the candidates of `Negatives.draw`."""
        anchor, code, answer = queries.unbind(-1)
        model = self.model
        if candidates is None:
            E = model.embeddings()
            x = E.index_select(0, anchor)
            y = E.index_select(0, answer)
            bias = model.bias.index_select(0, anchor)
            scores = model.score_points(model.move(x, code), bias, E, model.bias)
            positive = scores.gather(1, answer[:, None])[:, 0]
        else:
            (x, x_bias), (y, y_bias), (E, bias) = model.read(anchor, answer, candidates)
            moved = model.move(x, code)
            scores = model.score_points(moved, x_bias, E, bias)
            positive = model.score_points(moved, x_bias, y[:, None], y_bias[:, None])[:, 0]
        value = self._of_scores(positive, scores, queries, candidates)
        if self.regularisation:
            s = torch.cat([x, y]).index_select(1, model.plus)
            value = value + self.regularisation * s.square().sum(-1).mean()
        return value

    def _of_scores(
        self, positive: Tensor, scores: Tensor, queries: Tensor, candidates: Tensor | None
    ) -> Tensor:
        if candidates is None and self.loss == "softmax" and self.negatives.known is None:
            return cross_entropy(scores, queries[:, 2])  # the same with half the memory
        negative = self.negatives.leave_out(scores, queries, candidates)
        if self.loss == "self-adversarial":
            return self_adversarial(positive, negative, self.temperature)
        return LOSSES[self.loss](positive, negative)
