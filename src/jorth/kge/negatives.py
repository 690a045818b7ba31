"""Queries to train on, and false answers to tell the true ones from."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from jorth.kge.known import Known
from jorth.kge.triples import both_directions


class Queries:
    """The queries (anchor, code, answer) of an epoch, in random order.

    Args:
        triples: (N, 3).
        relations: How many there are; code r + ``relations`` asks for the head.
        sides: "both" ends of every triple, or one by chance: "uniform", or "bernoulli", the tail with probability
            t / (t + h), t the mean number of tails of a head under the relation, h that of heads of a tail. False
            answers are then drawn where there are many true ones, and are less often true.
    """

    def __init__(self, triples: Tensor, relations: int, sides: str) -> None:
        self._both = both_directions(triples, relations)
        self._relation = triples[:, 1]
        self._tail_share = None if sides == "both" else _tail_shares(triples, relations, sides)

    def epoch(self, generator: torch.Generator) -> Tensor:
        """(2 N, 3) for both ends, else (N, 3)."""
        device = self._both.device
        count = len(self._relation)
        if self._tail_share is None:
            return self._both[torch.randperm(2 * count, generator=generator, device=device)]
        tail = (
            torch.rand(count, generator=generator, device=device) < self._tail_share[self._relation]
        )
        order = torch.randperm(count, generator=generator, device=device)
        return self._both[order + count * (~tail[order])]


def _tail_shares(triples: Tensor, relations: int, sides: str) -> Tensor:
    """The probability of asking for the tail, for each relation."""
    if sides == "uniform":
        return torch.full((relations,), 0.5, device=triples.device)
    triples = torch.unique(triples, dim=0)
    count = torch.bincount(triples[:, 1], minlength=relations)
    heads, tails = (
        torch.bincount(torch.unique(triples[:, ends], dim=0)[:, 0], minlength=relations)
        for ends in ((1, 0), (1, 2))
    )
    tails_of_a_head, heads_of_a_tail = count / heads.clamp(min=1), count / tails.clamp(min=1)
    return tails_of_a_head / (tails_of_a_head + heads_of_a_tail).clamp(min=1)


@dataclass(frozen=True, eq=False)
class Negatives:
    """False answers, drawn uniformly.

    Attributes:
        entities: How many there are.
        count: Negatives of a query; None for all entities.
        shared: Whether a batch has one set of them.
        known: Answers that are not false and are left out; None leaves in whatever is drawn.
    """

    entities: int
    count: int | None
    shared: bool
    known: Known | None

    def draw(self, queries: Tensor, generator: torch.Generator) -> Tensor | None:
        """Candidates (k,) for all queries, (B, k) for each, or None for all entities."""
        if self.count is None:
            return None
        shape = (self.count,) if self.shared else (len(queries), self.count)
        return torch.randint(self.entities, shape, generator=generator, device=queries.device)

    def leave_out(self, scores: Tensor, queries: Tensor, candidates: Tensor | None) -> Tensor:
        """The scores (B, k) with -inf for what is no negative: it then has no part in any loss.

        Of all entities the true answer is none; known answers are none where they are to be rejected.
        """
        anchor, code, answer = queries.unbind(-1)
        if candidates is None:
            scores = scores.scatter(1, answer[:, None], -torch.inf)
            if self.known is not None:
                scores = scores.index_put(
                    self.known.answers(anchor, code), scores.new_tensor(-torch.inf)
                )
        elif self.known is not None:
            scores = scores.masked_fill(self.known.contains(anchor, code, candidates), -torch.inf)
        return scores
