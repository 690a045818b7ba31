"""False answers to queries, and the loss of a batch of both."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from jorth.kge.graph import Known
from jorth.kge.loss import Exclusions, distance_softmax
from jorth.kge.model import UltraE


@dataclass(frozen=True, eq=False)
class Batch:
    """What one step is about. All that is random in a step is in here.

    Attributes:
        queries: (B, 3): anchor, code and answer.
        candidates: The false answers (k,), shared by the queries; None stands for all entities.
    """

    queries: Tensor
    candidates: Tensor | None


@dataclass(frozen=True, eq=False)
class Negatives:
    """False answers, drawn uniformly: ``count`` of them per batch, or all entities if it is None.

    ``known`` are true answers to leave out beside the one that is asked for, or None.
    """

    entities: int
    count: int | None
    known: Known | None

    def epoch(self, generator: torch.Generator) -> NegativeSampler:
        """Return the negatives of one epoch."""
        return NegativeSampler(self, generator)

    def all_compete(self, candidates: Tensor | None) -> bool:
        """Return whether all entities but the true one are false answers.

        Then the loss trains the score of the query's own entity, which is excluded from the others.
        """
        return candidates is None and self.known is None

    def excluded(self, queries: Tensor, candidates: Tensor | None) -> Exclusions:
        """Return what does not compete with the answers among candidates (k,) or all entities."""
        anchor, code, answer = queries.unbind(-1)
        if self.all_compete(candidates):
            both = torch.stack([answer, anchor], dim=1).flatten()
            first = 2 * torch.arange(len(answer), device=answer.device)
            last = first + 2 - (anchor == answer).long()
            return Exclusions(first, last, both, torch.arange(self.entities, device=answer.device))
        if candidates is None:
            column = torch.arange(self.entities, device=answer.device)
        else:
            places = torch.arange(len(candidates), device=answer.device)
            column = answer.new_full((self.entities,), -1).scatter_(0, candidates, places)
        if self.known is None:
            first = torch.arange(len(answer), device=answer.device)
            return Exclusions(first, first + 1, answer, column)
        first, last = self.known.spans(anchor, code)
        return Exclusions(first, last, self.known.listed, column)


class NegativeSampler:
    """The negatives of one epoch, batch by batch.

    They are taken from a permutation of all entities, so that no batch has one twice; it is drawn
    anew when too few are left. Nothing here waits for a device.
    """

    def __init__(self, negatives: Negatives, generator: torch.Generator) -> None:
        self._negatives = negatives
        self._generator = generator
        self._permutation = torch.empty(0, dtype=torch.int64)

    def next(self, queries: Tensor) -> Tensor | None:
        """Return candidates (k,) on the device of the queries; None stands for all entities."""
        entities, count = self._negatives.entities, self._negatives.count
        if count is None or count >= entities:
            return None
        if len(self._permutation) < count:
            device = queries.device
            self._permutation = torch.randperm(entities, generator=self._generator, device=device)
        taken, self._permutation = self._permutation[:count], self._permutation[count:]
        return taken


@dataclass(frozen=True, eq=False)
class BatchLoss:
    """The loss of a batch of queries, with the settings of a `jorth.kge.Config`."""

    model: UltraE
    negatives: Negatives
    smoothing: float
    regularisation: float

    def __call__(self, batch: Batch) -> Tensor:
        """Return the mean loss of the queries."""
        anchor, code, answer = batch.queries.unbind(-1)
        model = self.model
        if batch.candidates is None:
            E: Tensor = model.embeddings()
            bias: Tensor = model.bias
            x, y = (E.index_select(0, end) for end in (anchor, answer))
            y_bias = bias.index_select(0, answer)
        else:
            (x, _), (y, y_bias), (E, bias) = model.gather(anchor, answer, batch.candidates)
        signed = model.signed(model.apply_relations(x, code))
        # the biases of anchors and delta cancel
        truth = first = model.score_products((signed * y).sum(-1), y_bias)
        excluded = self.negatives.excluded(batch.queries, batch.candidates)
        if self.negatives.all_compete(batch.candidates):
            loop, is_loop = model.loops.index_select(0, code), anchor == answer
            own = model.score_products((signed * x).sum(-1), bias.index_select(0, anchor)) + loop
            truth = truth + torch.where(is_loop, loop, 0.0)
            first = torch.logaddexp(truth, own.masked_fill(is_loop, -torch.inf))
        value = distance_softmax(
            signed, E, bias, first, area=model.alpha**2, smoothing=self.smoothing, excluded=excluded
        )
        if first is not truth:  # the loss of the true answer alone, not of both
            others = (len(E) - (excluded.last - excluded.first)).to(truth.dtype)
            share = self.smoothing / (others + 1)  # of the true answer and the own entity, halved
            moved = torch.where(is_loop, 0.0, share / 2 * (truth - own))
            value = value + ((1 - self.smoothing + share) * (first - truth) + moved).mean()
        if self.regularisation:
            s = torch.cat([x, y]).index_select(1, model.plus)
            value = value + self.regularisation * s.square().sum(-1).mean()
        return value
