"""An index of known triples: the answers of a query, and whether a triple is known. No host synchronisation but one."""

from __future__ import annotations

import torch
from torch import Tensor

from jorth.kge.triples import both_directions


class Known:
    """Known answers of the queries (anchor, code): code r asks for tails, code r + relations for heads.

    Args:
        triples: (N, 3) heads, relations, tails.
        entities: How many there are.
        relations: How many there are, not counting the other direction.
    """

    def __init__(self, triples: Tensor, entities: int, relations: int) -> None:
        anchor, code, answer = both_directions(triples, relations).unbind(-1)
        self._entities, self._codes = entities, 2 * relations
        self._keys = torch.unique(self._query(anchor, code) * entities + answer)

    def contains(self, anchor: Tensor, code: Tensor, candidates: Tensor) -> Tensor:
        """Whether ``candidates`` (B, k) or (k,) are known answers of the queries (B,): a mask (B, k)."""
        keys = (self._query(anchor, code) * self._entities)[:, None] + candidates
        places = torch.searchsorted(self._keys, keys).clamp(max=len(self._keys) - 1)
        found: Tensor = self._keys[places] == keys
        return found

    def answers(self, anchor: Tensor, code: Tensor) -> tuple[Tensor, Tensor]:
        """All known answers of the queries (B,): rows and entities, one pair for each answer."""
        first = self._query(anchor, code) * self._entities
        start = torch.searchsorted(self._keys, first)
        count = torch.searchsorted(self._keys, first + self._entities) - start
        rows = torch.repeat_interleave(torch.arange(len(first), device=first.device), count)
        within = torch.arange(len(rows), device=rows.device) - (count.cumsum(0) - count)[rows]
        return rows, self._keys[start[rows] + within] % self._entities

    def _query(self, anchor: Tensor, code: Tensor) -> Tensor:
        return anchor * self._codes + code
