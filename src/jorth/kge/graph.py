"""Knowledge graphs: their triples, parts held out, a generated one, and known answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from jorth._inputs import (
    check_indices,
    describe,
    generator,
    index_tensor,
    real_number,
    whole_number,
)

PARTS = ("train", "valid", "test")
GENERATED_RELATIONS = ("ancestor", "next", "parent", "second_next")
MAX_LEAVES = 2**24
"""The largest generated tree: the triples of a larger one would take gigabytes."""


@dataclass(frozen=True, eq=False)
class Triples:
    """A knowledge graph in three parts, each an int64 tensor (N, 3) of head, relation and tail.

    Arrays, frames and lists of whole numbers become such tensors.

    Entity i is called ``entities[i]``, relation i ``relations[i]``. Entities that occur only in
    ``valid`` or ``test`` are numbered too, and keep their initial embedding. ``valid`` and ``test``
    may be empty. ``notes`` are what `load_triples` has found out about its files, a line each.

    Raises:
        TypeError: A part holds other than whole numbers (N, 3) or is on another device than
            ``train``, or the names are no strings.
        ValueError: A number has no name, two names are equal, or ``train`` is empty.
    """

    entities: tuple[str, ...]
    relations: tuple[str, ...]
    train: Tensor
    valid: Tensor
    test: Tensor
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for kind in ("entities", "relations"):
            object.__setattr__(self, kind, _names(getattr(self, kind), kind))
        for part in PARTS:
            triples = to_triples(getattr(self, part), part)
            object.__setattr__(self, part, triples)
            if triples.device != self.train.device:
                found = f"{part} on {triples.device} and train on {self.train.device}"
                raise TypeError(f"train, valid and test must be on one device, got {found}")
            check_numbers(triples, part, len(self.entities), len(self.relations))
        self.require("train")

    def require(self, *parts: str) -> None:
        """Raise a ValueError if one of the ``parts`` has no triples."""
        for part in parts:
            check_some(getattr(self, part), part)

    @property
    def known(self) -> Tensor:
        """All triples (N, 3): those that a filtered ranking must not count as wrong."""
        return torch.cat([self.train, self.valid, self.test])

    def leaks(self) -> dict[str, dict[str, int]]:
        """How many triples of ``valid`` and of ``test`` training tells.

        Returns:
            For "valid" and "test" the number of triples that are "identical" to one of ``train``,
            and of those that are "reversed": with (t, r, h) in ``train``.
        """
        return {
            part: {
                "identical": int(found_in(triples, self.train).sum()),
                "reversed": int(found_in(triples.flip(-1), self.train).sum()),
            }
            for part, triples in (("valid", self.valid), ("test", self.test))
        }

    def __repr__(self) -> str:
        parts = ", ".join(f"{len(getattr(self, part))} {part}" for part in PARTS)
        return f"Triples({len(self.entities)} entities, {len(self.relations)} relations: {parts})"


def _names(value: object, kind: str) -> tuple[str, ...]:
    """A tuple of distinct strings, or an error."""
    if not isinstance(value, (tuple, list)) or not all(isinstance(name, str) for name in value):
        raise TypeError(f"{kind} must be a tuple of names, got {describe(value)}")
    if len(set(value)) < len(value):
        ((name, count),) = Counter(value).most_common(1)
        raise ValueError(f"{kind} must have distinct names, got {name!r} {count} times")
    return tuple(value)


class Known:
    """The known answers of queries (anchor, code), according to ``triples`` (N, 3).

    Code r asks for tails, code r + ``relations`` for heads; ``entities`` and ``relations`` are
    their numbers. The index is searched on the device.
    """

    def __init__(self, triples: Tensor, entities: int, relations: int) -> None:
        anchor, code, answer = both_directions(triples, relations).unbind(-1)
        self._entities = entities
        self._codes = 2 * relations
        self._keys = torch.unique(self._query(anchor, code) * entities + answer)
        self.listed = self._keys % entities
        """The answers (M,) of all queries, one query after the other."""

    def contains(self, anchor: Tensor, code: Tensor, candidates: Tensor) -> Tensor:
        """A mask (B, k): which ``candidates`` (B, k) or (k,) are answers of the queries (B,)."""
        keys = (self._query(anchor, code) * self._entities)[:, None] + candidates
        places = torch.searchsorted(self._keys, keys).clamp(max=len(self._keys) - 1)
        found: Tensor = self._keys[places] == keys
        return found

    def answers(self, anchor: Tensor, code: Tensor) -> tuple[Tensor, Tensor]:
        """The known answers of the queries (B,), as pairs of a row and an entity."""
        first, last = self.spans(anchor, code)
        count = last - first
        rows = torch.repeat_interleave(torch.arange(len(first), device=first.device), count)
        within = torch.arange(len(rows), device=rows.device) - (count.cumsum(0) - count)[rows]
        return rows, self.listed[first[rows] + within]

    def spans(self, anchor: Tensor, code: Tensor) -> tuple[Tensor, Tensor]:
        """Where the answers of the queries (B,) start and end in ``listed``: (B,) and (B,)."""
        least = self._query(anchor, code) * self._entities
        first = torch.searchsorted(self._keys, least)
        return first, torch.searchsorted(self._keys, least + self._entities)

    def _query(self, anchor: Tensor, code: Tensor) -> Tensor:
        return anchor * self._codes + code


def both_directions(triples: Tensor, relations: int) -> Tensor:
    """All triples (h, r, t), then all of them from the other end: (t, r + ``relations``, h)."""
    h, r, t = triples.unbind(-1)
    return torch.cat([triples, torch.stack([t, r + relations, h], dim=-1)])


def found_in(triples: Tensor, others: Tensor) -> Tensor:
    """A mask (N,): which of the ``triples`` (N, 3) are among the ``others`` (M, 3)."""
    if not len(triples) or not len(others):
        return torch.zeros(len(triples), dtype=torch.bool, device=triples.device)
    h, r, t = torch.cat([triples, others]).unbind(-1)
    numbers = (h * (r.max() + 1) + r) * (t.max() + 1) + t
    return torch.isin(numbers[: len(triples)], numbers[len(triples) :])


def to_triples(value: object, name: str) -> Tensor:
    """An int64 tensor (N, 3) from a tensor, an array, a frame or lists, or a TypeError."""
    if isinstance(value, Triples):
        found = f"{describe(value)}; take one of its parts, such as graph.test"
        raise TypeError(f"{name} must be an int64 tensor (N, 3), got {found}")
    triples = index_tensor(value, name)
    if triples.shape == (0,):  # an empty list
        triples = triples.reshape(0, 3)
    if triples.is_meta or triples.dtype != torch.int64 or triples.shape[1:] != (3,):
        raise TypeError(f"{name} must be an int64 tensor (N, 3), got {describe(value)}")
    return triples


def check_some(triples: Tensor, name: str) -> None:
    """Raise a ValueError if there are no triples."""
    if len(triples) == 0:
        raise ValueError(f"{name} must hold at least one triple, got none")


def check_numbers(triples: Tensor, name: str, entities: int, relations: int) -> None:
    """Raise a ValueError unless heads, tails and relations are numbers of the graph."""
    if len(triples) == 0:
        return
    check_indices(triples[:, ::2], f"entities of {name}", entities, triples.device)
    check_indices(triples[:, 1], f"relations of {name}", relations, triples.device)


def hold_out(train: Tensor, *, share: float = 0.1, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Split training triples (N, 3) into those that stay and a random ``share``, in their order.

    Identical triples go to the same side, so that nothing held out is also trained on; a triple and
    its reverse (t, r, h) may part. At least one triple of every relation stays. The number held out
    is as near to the share as copies that stay together allow, and at least one.

    Args:
        train: The triples (N, 3).
        share: The share that is held out.
        seed: The seed of the draw.

    Returns:
        (those that stay, those held out).
    """
    train = to_triples(train, "train")
    share = real_number(share, "share", "a number above 0 and below 1", lambda x: 0 < x < 1)
    distinct: dict[tuple[int, ...], int] = {}
    own = [distinct.setdefault(tuple(triple), len(distinct)) for triple in train.tolist()]
    copies = np.bincount(own, minlength=len(distinct))
    order = generator(seed).permutation(len(distinct))
    relations = np.array([relation for _, relation, _ in distinct], dtype=np.int64)
    _, first = np.unique(relations[order], return_index=True)
    free = np.delete(order, first)
    count = max(1, round(share * len(train)))
    if copies[free].sum() < count:
        found = f"{len(train)} triples, too few to hold {count} out and keep every relation"
        raise ValueError(f"train has {found}")
    held = np.zeros(len(distinct), dtype=bool)
    held[_adding_up_to(count, free.tolist(), copies.tolist())] = True
    mask = torch.from_numpy(held[own]).to(train.device)
    return train[~mask], train[mask]


def _adding_up_to(count: int, candidates: list[int], sizes: list[int]) -> list[int]:
    """At least one of the candidates, the first that fit, whose sizes add up to about ``count``."""
    chosen: list[int] = []
    others: list[int] = []
    room = count
    for candidate in candidates:
        fits = sizes[candidate] <= room
        (chosen if fits else others).append(candidate)
        room -= sizes[candidate] if fits else 0
    smallest = min(others, key=sizes.__getitem__, default=None)
    if smallest is not None and (not chosen or sizes[smallest] - room < room):
        chosen.append(smallest)
    return chosen


def hierarchy_with_cycles(
    *, branching: int = 3, depth: int = 4, share: float = 0.1, seed: int = 0
) -> Triples:
    """A tree in which the nodes of every level also form a cycle.

    ``parent`` leads from a node to its parent, ``ancestor`` to everything above the parent,
    ``next`` to the neighbour on the cycle of its level, and ``second_next`` to the one after that.
    Validation and test each hold a ``share`` of the triples of ``ancestor`` and ``second_next``,
    drawn by ``seed``; all of these follow from ``parent`` and ``next``.

    Args:
        branching: The number of children of every node.
        depth: The number of levels below the root.
        share: The share of the derived triples in validation, and in test.
        seed: The seed of the draw.
    """
    branching = whole_number(branching, "branching", 3)
    depth = min(whole_number(depth, "depth", 2), MAX_LEAVES)
    if branching**depth > MAX_LEAVES:
        expected = f"at most {MAX_LEAVES}"
        raise ValueError(f"branching ** depth must be {expected}, got {branching} ** {depth}")
    share = real_number(share, "share", "between 0 and 0.5", lambda x: 0 < x < 0.5)
    levels = [["0"]]
    for _ in range(depth):
        levels.append([f"{name}.{child}" for name in levels[-1] for child in range(branching)])
    entities = sorted(name for level in levels for name in level)
    numbers = {name: number for number, name in enumerate(entities)}
    named = list(_tree_triples(levels, branching))
    codes = {name: code for code, name in enumerate(GENERATED_RELATIONS)}
    coded = torch.tensor([(numbers[h], codes[r], numbers[t]) for h, r, t in named])
    inferred = np.flatnonzero([r in ("ancestor", "second_next") for _, r, _ in named])
    count = max(1, round(share * len(inferred)))
    held = generator(seed).permutation(inferred)[: 2 * count]
    train = torch.ones(len(named), dtype=torch.bool)
    train[held] = False
    parts = coded[train], coded[held[:count]], coded[held[count:]]
    return Triples(tuple(entities), GENERATED_RELATIONS, *parts)


def _tree_triples(levels: list[list[str]], branching: int) -> Iterator[tuple[str, str, str]]:
    for depth, level in enumerate(levels[1:], start=1):
        for place, name in enumerate(level):
            for up in range(1, depth + 1):
                above = levels[depth - up][place // branching**up]
                yield name, "parent" if up == 1 else "ancestor", above
            yield name, "next", level[(place + 1) % len(level)]
            yield name, "second_next", level[(place + 2) % len(level)]
