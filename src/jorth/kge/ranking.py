"""Filtered ranking of the true answers among all entities: MRR and Hits, ties counted openly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth.arrays import check_choice, whole_number
from jorth.kge.known import Known
from jorth.kge.triples import check_triples

Side = Literal["head", "tail", "both"]
Ties = Literal["realistic", "optimistic", "pessimistic"]
SIDES = ("head", "tail", "both")
TIES = ("realistic", "optimistic", "pessimistic")
HITS = (1, 3, 10)
CELLS, CPU_CELLS = 2**23, 2**21
"""Scores held at once: 64 MiB in float64, and a few times that on the way; on a CPU less, for the cache."""


class Scorer(Protocol):
    """What `evaluate` asks of a model."""

    n_entities: int
    n_relations: int

    def score_tails(self, head: Tensor, relation: Tensor) -> Tensor:
        """Scores (B, entities) of all tails."""

    def score_heads(self, relation: Tensor, tail: Tensor) -> Tensor:
        """Scores (B, entities) of all heads."""


@dataclass(frozen=True, eq=False)
class Ranking:
    """The ranks of N triples among all candidates, from both ends; 1 is best.

    Attributes:
        triples: (N, 3), what was ranked.
        optimistic: (N, 2), the rank of the true head and of the true tail if it comes first among equal scores.
        pessimistic: (N, 2), the same if it comes last.
    """

    triples: NDArray[np.int64]
    optimistic: NDArray[np.int64]
    pessimistic: NDArray[np.int64]

    def ranks(self, side: Side = "both", ties: Ties = "realistic") -> NDArray[np.float64]:
        """The ranks (N,) of one side, (2 N,) of both. Realistic is the mean of optimistic and pessimistic."""
        check_choice(side, "side", SIDES)
        check_choice(ties, "ties", TIES)
        found = (
            (self.optimistic + self.pessimistic) / 2 if ties == "realistic" else getattr(self, ties)
        )
        chosen = found if side == "both" else found[:, SIDES.index(side)]
        return np.asarray(chosen.T.ravel(), dtype=np.float64)

    @property
    def mrr(self) -> float:
        """The mean reciprocal of the realistic ranks of both sides."""
        return float((1 / self.ranks()).mean())

    def hits(self, k: int) -> float:
        """The share of realistic ranks of both sides that are at most k."""
        return float((self.ranks() <= whole_number(k, "k", 1)).mean())

    def metrics(self, side: Side = "both", ties: Ties = "realistic") -> dict[str, float]:
        """The figures ``mrr``, ``mean_rank``, ``hits@1``, ``hits@3``, ``hits@10`` and the number of ranks ``count``."""
        ranks = self.ranks(side, ties)
        found = {"mrr": float((1 / ranks).mean()), "mean_rank": float(ranks.mean())}
        return (
            found
            | {f"hits@{k}": float((ranks <= k).mean()) for k in HITS}
            | {"count": float(len(ranks))}
        )

    def by_relation(self, names: Sequence[str] | None = None) -> dict[Any, Ranking]:
        """The ranking of each relation on its own, under its number or its name in ``names``."""
        relation = self.triples[:, 1]
        return {
            (int(number) if names is None else names[number]): Ranking(
                self.triples[relation == number],
                self.optimistic[relation == number],
                self.pessimistic[relation == number],
            )
            for number in np.unique(relation)
        }


def evaluate(
    model: Scorer, triples: Tensor, known: Tensor | None = None, *, batch_size: int | None = None
) -> Ranking:
    """Rank the true head and the true tail of ``triples`` (N, 3) among all entities.

    Filtered: other answers that ``known`` (M, 3) or ``triples`` hold are no competitors. ``known=None`` counts all of
    them. The true score is read from the same row as its competitors', so that equal scores stay equal.

    Args:
        model: An `UltraE`, or anything with ``n_entities``, ``n_relations``, ``score_tails`` and ``score_heads``.
        triples: What to rank.
        known: All known triples.
        batch_size: Queries at a time; by default so many that 2^21 scores are held at once on a CPU, 2^23 elsewhere.
    """
    triples = _triples(triples, "triples", model)
    if batch_size is None:
        batch_size = max(
            1, (CPU_CELLS if triples.device.type == "cpu" else CELLS) // model.n_entities
        )
    batch_size = whole_number(batch_size, "batch_size", 1)
    index = None
    if known is not None:
        known = _triples(known, "known", model).to(triples.device)
        index = Known(torch.cat([known, triples]), model.n_entities, model.n_relations)
    with torch.no_grad():
        parts = [_rank(model, batch, index) for batch in torch.split(triples, batch_size)]
        better, equal = (torch.cat(counts).cpu().numpy() for counts in zip(*parts, strict=True))
    return Ranking(triples.cpu().numpy(), better + 1, better + equal)


def _rank(model: Scorer, triples: Tensor, known: Known | None) -> tuple[Tensor, Tensor]:
    """How many candidates score better than the truth, and how many as well (itself among them): (B, 2) each."""
    h, r, t = triples.unbind(-1)
    heads = _counts(model.score_heads(r, t), t, r + model.n_relations, h, known)
    tails = _counts(model.score_tails(h, r), h, r, t, known)
    return torch.stack([heads[0], tails[0]], dim=-1), torch.stack([heads[1], tails[1]], dim=-1)


def _counts(
    scores: Tensor, anchor: Tensor, code: Tensor, answer: Tensor, known: Known | None
) -> tuple[Tensor, Tensor]:
    if bool(scores.isnan().any()):
        raise ValueError(
            f"the scores of the model must be numbers, got {int(scores.isnan().sum())} NaN"
        )
    device = scores.device
    answer = answer.to(device)[:, None]
    truth = scores.gather(1, answer)
    if known is not None:
        rows, others = known.answers(anchor, code)
        scores = scores.index_put(
            (rows.to(device), others.to(device)), scores.new_tensor(-torch.inf)
        )
        scores = scores.scatter(1, answer, truth)
    return (scores > truth).sum(dim=1), (scores == truth).sum(dim=1)


def _triples(value: Any, name: str, model: Scorer) -> Tensor:
    check_triples(value, name)
    if len(value) == 0:
        raise ValueError(f"{name} must hold at least one triple, got none")
    entities, relations = value[:, (0, 2)], value[:, 1]
    if (
        int(value.min()) < 0
        or int(entities.max()) >= model.n_entities
        or int(relations.max()) >= model.n_relations
    ):
        raise ValueError(
            f"{name} must number entities below {model.n_entities} and relations below {model.n_relations}, "
            f"got entities up to {int(entities.max())}, relations up to {int(relations.max())}, from {int(value.min())}"
        )
    found: Tensor = value
    return found
