"""`depths`: how far entities are below the roots of a hierarchy."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from jorth.arrays import describe
from jorth.kge.graph import Triples
from jorth.kge.use.naming import Names


def triples_of(graph: Triples, relation: Any) -> Tensor:
    """All triples (M, 3) of a relation, by name or number."""
    if not isinstance(graph, Triples):
        raise TypeError(f"graph must be a jorth.kge.Triples, got {describe(graph)}")
    names = Names("relation", len(graph.relations), graph.relations)
    numbers = names.numbers(relation, "relation")
    if len(numbers) != 1:
        raise ValueError(f"relation must be one relation, got {len(numbers)}")
    known = graph.known.cpu()
    return known[known[:, 1] == numbers[0]]


def depths(graph: Triples, relation: Any) -> dict[str, int]:
    """The number of steps from entities to the nearest root of the hierarchy of a relation.

    The relation leads upwards, as "parent" or "hypernym" do. A root is the tail of a triple and
    never a head. Entities that reach no root, and those without a triple, have no depth. All three
    parts of the graph count.

    Args:
        graph: The graph.
        relation: The name or the number of the relation.
    """
    below: dict[int, list[int]] = {}
    heads = set()
    for head, _, tail in triples_of(graph, relation).tolist():
        below.setdefault(tail, []).append(head)
        heads.add(head)
    level = sorted(set(below) - heads)
    found = dict.fromkeys(level, 0)
    depth = 0
    while level:
        depth += 1
        level = sorted({child for top in level for child in below.get(top, [])} - set(found))
        found |= dict.fromkeys(level, depth)
    return {graph.entities[number]: depth for number, depth in found.items()}
