"""Queries, false answers to them, and the loss of a batch of both."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from jorth.kge.graph import Known, both_directions
from jorth.kge.loss import LOSSES, LeftOut, distance_softmax
from jorth.kge.model import UltraE

SIDES = ("both", "uniform", "bernoulli")


class Queries:
    """The queries (anchor, code, answer) of an epoch, in random order.

    Args:
        triples: The training triples (N, 3).
        relations: The number of relations; code r + ``relations`` asks for the head.
        sides: "both" asks for both ends of every triple. Otherwise one end is drawn, either
            "uniform" or "bernoulli": the tail with probability h / (t + h), where t is the mean
            number of tails per head of the relation and h that of heads per tail. The end with
            fewer true answers is then asked for more often, so that fewer negatives are true
            (Wang et al. 2014, TransH).
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
    return heads_per_tail / (tails_per_head + heads_per_tail).clamp(min=1)


@dataclass(frozen=True, eq=False)
class Batch:
    """What one step is about. All that is random in a step is in here.

    Attributes:
        queries: (B, 3): anchor, code and answer.
        candidates: The false answers: (k,) shared by the queries, (B, k), or None for all entities.
        kept: (B, p), by which the positive coordinates of the anchors are multiplied, or None.
    """

    queries: Tensor
    candidates: Tensor | None
    kept: Tensor | None = None

    def part(self, own: Tensor) -> Batch:
        """The queries with the given numbers."""
        candidates, kept = self.candidates, self.kept
        if candidates is not None and candidates.ndim == 2:
            candidates = candidates[own]
        return Batch(self.queries[own], candidates, None if kept is None else kept[own])


@dataclass(frozen=True, eq=False)
class Negatives:
    """False answers, drawn uniformly, and what must not compete with a true one.

    Attributes:
        entities: The number of entities.
        count: The number of negatives per query; None stands for all entities, and so does a number
            of shared negatives that is not below theirs.
        shared: Whether all queries of a batch have the same negatives, all of them different.
        known: True answers to leave out beside the one that is asked for, or None.
    """

    entities: int
    count: int | None
    shared: bool
    known: Known | None

    def epoch(self, generator: torch.Generator) -> Deal:
        """The negatives of one epoch."""
        return Deal(self, generator)

    def left_out(self, queries: Tensor, candidates: Tensor | None) -> LeftOut:
        """What does not compete with the answers (B,) among candidates (k,) or all entities."""
        anchor, code, answer = queries.unbind(-1)
        if candidates is None:
            column = torch.arange(self.entities, device=answer.device)
        else:
            places = torch.arange(len(candidates), device=answer.device)
            column = answer.new_full((self.entities,), -1).scatter_(0, candidates, places)
        if self.known is None:
            first = torch.arange(len(answer), device=answer.device)
            return LeftOut(first, first + 1, answer, column)
        first, last = self.known.spans(anchor, code)
        return LeftOut(first, last, self.known.listed, column)

    def leave_out(self, scores: Tensor, queries: Tensor, candidates: Tensor | None) -> Tensor:
        """The scores (B, k) with -inf, which adds nothing to a loss, for what does not compete."""
        anchor, code, answer = queries.unbind(-1)
        if candidates is None or candidates.ndim == 1:
            places = self.left_out(queries, candidates).places()
            return scores.index_put(places, scores.new_tensor(-torch.inf))
        known = candidates == answer[:, None]
        if self.known is not None:
            known = known | self.known.contains(anchor, code, candidates)
        return scores.masked_fill(known, -torch.inf)


class Deal:
    """The negatives of one epoch, batch by batch.

    Shared ones are dealt from a shuffled deck of all entities, so that no batch has one twice; the
    deck is shuffled anew when too few are left. The others are drawn with repetition from all
    entities but the answer. Nothing here waits for a device.
    """

    def __init__(self, negatives: Negatives, generator: torch.Generator) -> None:
        self._negatives = negatives
        self._generator = generator
        self._deck = torch.empty(0, dtype=torch.int64)

    def next(self, queries: Tensor) -> Tensor | None:
        """Candidates (k,) shared by the queries or (B, k); None stands for all entities."""
        entities, count = self._negatives.entities, self._negatives.count
        if count is None or (self._negatives.shared and count >= entities):
            return None
        random, device = self._generator, queries.device
        if not self._negatives.shared:
            size = (len(queries), count)
            drawn = torch.randint(entities - 1, size, generator=random, device=device)
            return drawn.add_(drawn >= queries[:, 2:])  # all entities but the answer
        if len(self._deck) < count:
            self._deck = torch.randperm(entities, generator=random, device=device)
        dealt, self._deck = self._deck[:count], self._deck[count:]
        return dealt


@dataclass(frozen=True, eq=False)
class BatchLoss:
    """The loss of a batch of queries, with the settings of a `jorth.kge.Config`."""

    model: UltraE
    negatives: Negatives
    loss: str
    temperature: float
    smoothing: float
    regularisation: float

    @property
    def stays_on_device(self) -> bool:
        """Whether nothing is read back from a CUDA device on the way to the loss."""
        return self.loss == "softmax" and (self.negatives.shared or self.negatives.count is None)

    def __call__(self, batch: Batch) -> Tensor:
        """The mean loss of the queries."""
        anchor, code, answer = batch.queries.unbind(-1)
        model = self.model
        if batch.candidates is None:
            E: Tensor = model.embeddings()
            bias: Tensor = model.bias
            (x, x_bias), (y, y_bias) = (
                (E.index_select(0, end), bias.index_select(0, end)) for end in (anchor, answer)
            )
        else:
            (x, x_bias), (y, y_bias), (E, bias) = model.read(anchor, answer, batch.candidates)
        moved = model.move(x, code, batch.kept)
        if self.loss == "softmax" and E.ndim == 2:
            value = self._fused(moved, (y, y_bias), (E, bias), batch)
        else:
            positive = model.score_points(moved, x_bias, y[:, None], y_bias[:, None])[:, 0]
            scores = model.score_points(moved, x_bias, E, bias)
            value = self._of_scores(positive, scores, batch)
        if self.regularisation:
            s = torch.cat([x, y]).index_select(1, model.plus)
            value = value + self.regularisation * s.square().sum(-1).mean()
        return value

    def _fused(
        self,
        moved: Tensor,
        answers: tuple[Tensor, Tensor],
        candidates: tuple[Tensor, Tensor],
        batch: Batch,
    ) -> Tensor:
        """The loss "softmax" with common candidates: the biases of anchors and delta cancel."""
        y, y_bias = answers
        signed = self.model.signed(moved)
        truth = self.model.score_products((signed * y).sum(-1), y_bias)
        return distance_softmax(
            signed,
            *candidates,
            truth,
            area=self.model.area,
            smoothing=self.smoothing,
            left_out=self.negatives.left_out(batch.queries, batch.candidates),
        )

    def _of_scores(self, positive: Tensor, scores: Tensor, batch: Batch) -> Tensor:
        negative = self.negatives.leave_out(scores, batch.queries, batch.candidates)
        own = {"self-adversarial": (self.temperature,), "softmax": (self.smoothing,)}
        return LOSSES[self.loss](positive, negative, *own.get(self.loss, ()))
