"""A knowledge graph from a seed: a hierarchy whose levels are cycles."""

from __future__ import annotations

import numpy as np
import torch

from jorth.arrays import generator, real_number, whole_number
from jorth.kge.triples import Triples

RELATIONS = ("ancestor", "next", "parent", "second_next")
INFERRED = ("ancestor", "second_next")
MOST_LEAVES = 2**24
"""Of the tree: their triples take gigabytes."""
Named = tuple[str, str, str]


def hierarchy_with_cycles(
    *, branching: int = 3, depth: int = 4, share: float = 0.1, seed: int = 0
) -> Triples:
    """A tree in which the nodes of every level also form a cycle: hyperbolic one way, circular the other.

    ``parent`` leads a node to its parent, ``ancestor`` to everything above that, ``next`` to its neighbour on the cycle
    of its level, ``second_next`` to the one after. Validation and test hold a ``share`` each of the triples of
    ``ancestor`` and ``second_next``, drawn by ``seed``: all follow from ``parent`` and ``next``.
    """
    branching = whole_number(branching, "branching", 3)
    depth = min(whole_number(depth, "depth", 2), MOST_LEAVES)
    if branching**depth > MOST_LEAVES:
        raise ValueError(
            f"branching ** depth must be at most {MOST_LEAVES}, got {branching} ** {depth}"
        )
    share = real_number(share, "share", "between 0 and 0.5", lambda number: 0 < number < 0.5)
    levels = _levels(branching, depth)
    entities = sorted(name for level in levels for name in level)
    numbers = {name: number for number, name in enumerate(entities)}
    named = _triples(levels)
    coded = torch.tensor([(numbers[h], RELATIONS.index(r), numbers[t]) for h, r, t in named])
    inferred = np.flatnonzero([r in INFERRED for _, r, _ in named])
    count = max(1, round(share * len(inferred)))
    held = generator(seed).permutation(inferred)[: 2 * count]
    train = torch.ones(len(named), dtype=torch.bool)
    train[held] = False
    return Triples(
        tuple(entities), RELATIONS, coded[train], coded[held[:count]], coded[held[count:]]
    )


def _levels(branching: int, depth: int) -> list[list[str]]:
    """The names by level: "0", then "0.0" to "0.b", ..."""
    levels = [["0"]]
    for _ in range(depth):
        levels.append([f"{name}.{child}" for name in levels[-1] for child in range(branching)])
    return levels


def _triples(levels: list[list[str]]) -> list[Named]:
    found: list[Named] = []
    for level in levels[1:]:
        for place, name in enumerate(level):
            parent, *higher = _above(name)
            found.append((name, "parent", parent))
            found += [(name, "ancestor", other) for other in higher]
            found.append((name, "next", level[(place + 1) % len(level)]))
            found.append((name, "second_next", level[(place + 2) % len(level)]))
    return found


def _above(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:length]) for length in range(len(parts) - 1, 0, -1)]
