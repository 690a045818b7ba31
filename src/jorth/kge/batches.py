"""Queries, false answers to them, and the loss of a batch of both."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from jorth.kge.graph import Known, both_directions
from jorth.kge.loss import Exclusions, distance_softmax, logistic, softmax
from jorth.kge.model import UltraE


class Queries:
    """The queries (anchor, code, answer) of an epoch, in random order.

    Args:
        triples: The training triples (N, 3).
        relations: The number of relations; code r + ``relations`` asks for the head.
        sides: "both" asks for both ends of every triple, "uniform" for one of them at random.
    """

    def __init__(self, triples: Tensor, relations: int, sides: str) -> None:
        self._both = both_directions(triples, relations)
        self._sides = sides

    def epoch(self, generator: torch.Generator) -> Tensor:
        """Return the queries in a new order: (2 N, 3) for both ends, otherwise (N, 3)."""
        device = self._both.device
        if self._sides == "both":
            return self._both[torch.randperm(len(self._both), generator=generator, device=device)]
        count = len(self._both) // 2
        tail = torch.rand(count, generator=generator, device=device) < 0.5
        order = torch.randperm(count, generator=generator, device=device)
        return self._both[order + count * (~tail[order])]


@dataclass(frozen=True, eq=False)
class Batch:
    """What one step is about. All that is random in a step is in here.

    Attributes:
        queries: (B, 3): anchor, code and answer.
        candidates: The false answers: (k,) shared by the queries, (B, k), or None for all entities.
    """

    queries: Tensor
    candidates: Tensor | None


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

    def epoch(self, generator: torch.Generator) -> NegativeSampler:
        """Return the negatives of one epoch."""
        return NegativeSampler(self, generator)

    def excluded(self, queries: Tensor, candidates: Tensor | None) -> Exclusions:
        """Return what does not compete with the answers among candidates (k,) or all entities."""
        anchor, code, answer = queries.unbind(-1)
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

    def exclude(self, scores: Tensor, queries: Tensor, candidates: Tensor | None) -> Tensor:
        """Return the scores (B, k) with -inf, which adds nothing to a loss, where excluded."""
        anchor, code, answer = queries.unbind(-1)
        if candidates is None or candidates.ndim == 1:
            places = self.excluded(queries, candidates).places()
            return scores.index_put(places, scores.new_tensor(-torch.inf))
        known = candidates == answer[:, None]
        if self.known is not None:
            known = known | self.known.contains(anchor, code, candidates)
        return scores.masked_fill(known, -torch.inf)


class NegativeSampler:
    """The negatives of one epoch, batch by batch.

    Shared ones are taken from a permutation of all entities, so that no batch has one twice; it is
    drawn anew when too few are left. The others are drawn with repetition from all entities but the
    answer. Nothing here waits for a device.
    """

    def __init__(self, negatives: Negatives, generator: torch.Generator) -> None:
        self._negatives = negatives
        self._generator = generator
        self._permutation = torch.empty(0, dtype=torch.int64)

    def next(self, queries: Tensor) -> Tensor | None:
        """Return candidates (k,) shared by the queries or (B, k); None stands for all entities."""
        entities, count = self._negatives.entities, self._negatives.count
        if count is None or (self._negatives.shared and count >= entities):
            return None
        random, device = self._generator, queries.device
        if not self._negatives.shared:
            size = (len(queries), count)
            drawn = torch.randint(entities - 1, size, generator=random, device=device)
            return drawn.add_(drawn >= queries[:, 2:])  # all entities but the answer
        if len(self._permutation) < count:
            self._permutation = torch.randperm(entities, generator=random, device=device)
        taken, self._permutation = self._permutation[:count], self._permutation[count:]
        return taken


@dataclass(frozen=True, eq=False)
class BatchLoss:
    """The loss of a batch of queries, with the settings of a `jorth.kge.Config`."""

    model: UltraE
    negatives: Negatives
    loss: str
    smoothing: float
    regularisation: float

    @property
    def stays_on_device(self) -> bool:
        """Return whether nothing is read back from a CUDA device on the way to the loss."""
        return self.loss == "softmax" and (self.negatives.shared or self.negatives.count is None)

    def __call__(self, batch: Batch) -> Tensor:
        """Return the mean loss of the queries."""
        anchor, code, answer = batch.queries.unbind(-1)
        model = self.model
        if batch.candidates is None:
            E: Tensor = model.embeddings()
            bias: Tensor = model.bias
            (x, x_bias), (y, y_bias) = (
                (E.index_select(0, end), bias.index_select(0, end)) for end in (anchor, answer)
            )
        else:
            (x, x_bias), (y, y_bias), (E, bias) = model.gather(anchor, answer, batch.candidates)
        images = model.apply_relations(x, code)
        if self.loss == "softmax" and E.ndim == 2:  # the biases of anchors and delta cancel
            signed = model.signed(images)
            value = distance_softmax(
                signed,
                E,
                bias,
                model.score_products((signed * y).sum(-1), y_bias),
                area=model.alpha**2,
                smoothing=self.smoothing,
                excluded=self.negatives.excluded(batch.queries, batch.candidates),
            )
        else:
            positive = model.score_points(images, x_bias, y[:, None], y_bias[:, None])[:, 0]
            scores = model.score_points(images, x_bias, E, bias)
            negative = self.negatives.exclude(scores, batch.queries, batch.candidates)
            if self.loss == "softmax":
                value = softmax(positive, negative, self.smoothing)
            else:
                value = logistic(positive, negative)
        if self.regularisation:
            s = torch.cat([x, y]).index_select(1, model.plus)
            value = value + self.regularisation * s.square().sum(-1).mean()
        return value
