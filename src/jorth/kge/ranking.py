"""Filtered ranks of the true answers among all entities, with an explicit rule for ties."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth._inputs import check_choice, describe, whole_number
from jorth.kge.graph import (
    Known,
    Triples,
    both_directions,
    check_numbers,
    check_per_relation,
    check_some,
    expand_spans,
    to_triples,
)

Side = Literal["head", "tail", "both"]
Ties = Literal["realistic", "optimistic", "pessimistic"]
SIDES: tuple[Side, ...] = ("head", "tail", "both")
TIES: tuple[Ties, ...] = ("realistic", "optimistic", "pessimistic")
SCORES_ON_CPU, SCORES_ON_DEVICE = 2**21, 2**23
"""How many scores are computed at a time: on a CPU few enough to stay in the cache."""


class Scorer(Protocol):
    """What `evaluate` needs of a model: scores (B, entities) of all tails and of all heads."""

    n_entities: int
    n_relations: int

    def score_tails(self, head: Tensor, relation: Tensor) -> Tensor: ...

    def score_heads(self, relation: Tensor, tail: Tensor) -> Tensor: ...


class Frequencies:
    """The baseline for `evaluate`: answers score by how often the relation has them in training.

    It knows nothing of the entity of a query: every (?, r, t) is answered by the most frequent
    heads of r, every (h, r, ?) by its most frequent tails.

    Args:
        graph: The graph, whose training triples are counted.

    >>> graph = jorth.kge.hierarchy_with_cycles(depth=2)
    >>> baseline = jorth.kge.evaluate(jorth.kge.Frequencies(graph), graph.test, graph.known).mrr
    """

    def __init__(self, graph: Triples) -> None:
        if not isinstance(graph, Triples):
            raise TypeError(f"graph must be a jorth.kge.Triples, got {describe(graph)}")
        self.n_entities, self.n_relations = len(graph.entities), len(graph.relations)
        _, code, answer = both_directions(graph.train, self.n_relations).unbind(-1)
        keys, self._counts = torch.unique(code * self.n_entities + answer, return_counts=True)
        self._answers = keys % self.n_entities
        codes = torch.arange(2 * self.n_relations + 1, device=keys.device)
        self._starts = torch.searchsorted(keys, codes * self.n_entities)

    def score_tails(self, head: Tensor, relation: Tensor) -> Tensor:
        """Return how often every entity is a tail of the relations (B,): (B, entities)."""
        return self._scores(relation)

    def score_heads(self, relation: Tensor, tail: Tensor) -> Tensor:
        """Return how often every entity is a head of the relations (B,): (B, entities)."""
        return self._scores(relation + self.n_relations)

    def _scores(self, code: Tensor) -> Tensor:
        code = code.to(self._starts.device)
        rows, places = expand_spans(self._starts[code], self._starts[code + 1])
        scores = torch.zeros(len(code), self.n_entities, device=code.device)
        scores[rows, self._answers[places]] = self._counts[places].to(scores.dtype)
        return scores


@dataclass(frozen=True, eq=False)
class Ranking:
    """The ranks of N triples among all candidates, from both ends; 1 is best.

    Attributes:
        triples: (N, 3), the triples that were ranked.
        optimistic: (N, 2), the ranks of the true head and of the true tail if they come first among
            equal scores.
        pessimistic: (N, 2), the same if they come last.
    """

    triples: NDArray[np.int64]
    optimistic: NDArray[np.int64]
    pessimistic: NDArray[np.int64]

    def ranks(self, side: Side = "both", ties: Ties = "realistic") -> NDArray[np.float64]:
        """Return the ranks (N,) of one side or (2 N,) of both.

        "realistic" is the mean of "optimistic" and "pessimistic".
        """
        check_choice(side, "side", SIDES)
        check_choice(ties, "ties", TIES)
        realistic = (self.optimistic + self.pessimistic) / 2
        found = realistic if ties == "realistic" else getattr(self, ties)
        chosen = found if side == "both" else found[:, SIDES.index(side)]
        return np.asarray(chosen.T.ravel(), dtype=np.float64)

    @property
    def mrr(self) -> float:
        """Return the mean reciprocal of the realistic ranks of both sides."""
        return self.metrics()["mrr"]

    def hits(self, k: int) -> float:
        """Return the share of realistic ranks of both sides that are at most k."""
        return float((self.ranks() <= whole_number(k, "k", 1)).mean())

    def metrics(self, side: Side = "both", ties: Ties = "realistic") -> dict[str, float]:
        """Return mrr, mean_rank, hits@1, hits@3, hits@10, and the number of ranks as count."""
        ranks = self.ranks(side, ties)
        hits = {f"hits@{k}": float((ranks <= k).mean()) for k in (1, 3, 10)}
        means = {"mrr": float((1 / ranks).mean()), "mean_rank": float(ranks.mean())}
        return means | hits | {"count": float(len(ranks))}

    def by_relation(self, names: Sequence[str] | None = None) -> dict[Any, Ranking]:
        """Return the ranking of each relation, under its number or its name in ``names``."""
        found: dict[Any, Ranking] = {}
        for number in np.unique(self.triples[:, 1]).tolist():
            own = self.triples[:, 1] == number
            part = Ranking(self.triples[own], self.optimistic[own], self.pessimistic[own])
            found[number if names is None else names[number]] = part
        return found


def evaluate(
    model: Any, triples: Tensor, known: Tensor | None = None, *, irreflexive: Tensor | None = None
) -> Ranking:
    """Rank the true head and the true tail of ``triples`` (N, 3) among all entities.

    The ranks are filtered: other answers in ``known`` (M, 3) or ``triples`` do not compete, unless
    ``known`` is None.

    Args:
        model: An `UltraE`, or anything with ``n_entities``, ``n_relations``, ``score_tails`` and
            ``score_heads``; or a `NamedModel`, a `Training` or another object with such a
            ``model``.
        triples: The triples to rank.
        known: All known triples; there may be none besides ``triples``.
        irreflexive: A bool tensor (relations,), such as ``graph.irreflexive``, which knows the
            training triples alone. For these relations the entity that a query starts from is no
            candidate; where it is the true answer after all, it ranks last. Such figures are not
            those of the standard protocol, which is the default and has every entity compete.

    >>> graph = jorth.kge.hierarchy_with_cycles(depth=2)
    >>> ranking = jorth.kge.evaluate(jorth.kge.Frequencies(graph), graph.test, graph.known)
    >>> 0 < ranking.mrr < 1
    True
    """
    model = _scorer(model)
    triples = to_triples(triples, "triples")
    check_some(triples, "triples")
    check_numbers(triples, "triples", model.n_entities, model.n_relations)
    if known is not None:
        known = torch.cat([to_triples(known, "known").to(triples.device), triples])
    queries = Queries.of(model, known, irreflexive, triples.device)
    counts: list[list[Tensor]] = [[], [], [], []]
    for h, r, t in queries.split(*triples.unbind(-1)):
        for place, (anchor, answer, tails) in enumerate(((t, h, False), (h, t, True))):
            found = ranks(*queries.scores(anchor, r, tails), answer)
            for part, one in zip(counts[place::2], found, strict=True):
                part.append(one)
    both = [torch.cat(part).cpu().numpy() for part in counts]
    return Ranking(triples.cpu().numpy(), np.stack(both[:2], axis=1), np.stack(both[2:], axis=1))


def _scorer(model: Any) -> Scorer:
    """Return what scores: the model itself, or the ``model`` in it."""
    names = ("n_entities", "n_relations", "score_tails", "score_heads")
    for found in (model, getattr(model, "model", None)):
        if not isinstance(found, type) and all(hasattr(found, name) for name in names):
            return cast(Scorer, found)
    expected = "a jorth.kge.UltraE, a NamedModel, a Training or anything with " + ", ".join(names)
    raise TypeError(f"model must be {expected}, got {describe(model)}")


@dataclass(frozen=True, eq=False)
class Queries:
    """What a model answers to queries, without the ``known`` true answers.

    For the relations in ``irreflexive`` the entity of the query is excluded too, and is no
    candidate.
    """

    model: Scorer
    known: Known | None
    irreflexive: Tensor | None

    @classmethod
    def of(
        cls, model: Scorer, known: Any, irreflexive: Tensor | None, device: torch.device
    ) -> Queries:
        """Return what triples ``known`` (M, 3) and a mask (relations,) exclude, both checked."""
        index = None
        if known is not None:
            known = to_triples(known, "known")
            check_numbers(known, "known", model.n_entities, model.n_relations)
            index = Known(known.to(device), model.n_entities, model.n_relations)
        if irreflexive is not None:
            check_per_relation(irreflexive, "irreflexive", model.n_relations)
            irreflexive = irreflexive.to(device)
        return cls(model, index, irreflexive)

    def split(self, *columns: Tensor) -> Iterator[tuple[Tensor, ...]]:
        """Return the columns (B,) of queries in parts, whose scores are few enough for a cache."""
        most = SCORES_ON_CPU if columns[0].device.type == "cpu" else SCORES_ON_DEVICE
        size = max(1, most // self.model.n_entities)
        return zip(*(torch.split(column, size) for column in columns), strict=True)

    @torch.no_grad()
    def scores(self, anchor: Tensor, relation: Tensor, tails: bool) -> tuple[Tensor, Tensor]:
        """Return scores (B, entities), -inf for what is no candidate, and what is excluded."""
        model = self.model
        scores = (
            model.score_tails(anchor, relation) if tails else model.score_heads(relation, anchor)
        ).to(anchor.device)
        undefined = int(scores.isnan().sum())
        if undefined:
            raise ValueError(f"the scores of the model must be numbers, got {undefined} NaN")
        excluded = torch.zeros_like(scores, dtype=torch.bool)
        if self.irreflexive is not None:
            rows = self.irreflexive[relation].nonzero().squeeze(1)
            own = rows, anchor[rows]
            excluded[own] = True
            scores = scores.index_put(own, scores.new_tensor(-torch.inf))
        if self.known is not None:
            code = relation if tails else relation + model.n_relations
            excluded[self.known.answers(anchor, code)] = True
        return scores, excluded


def ranks(scores: Tensor, excluded: Tensor, answer: Tensor) -> tuple[Tensor, Tensor]:
    """Return the ranks (B,) of answers that come first, and last, among equal scores (B, entities).

    What is excluded does not compete, except for the answers themselves.
    """
    own = answer[:, None]
    truth = scores.gather(1, own)
    # NaN is neither above nor equal to anything
    others = scores.masked_fill(excluded, torch.nan).scatter_(1, own, truth)
    return 1 + (others > truth).sum(dim=1), (others >= truth).sum(dim=1)
