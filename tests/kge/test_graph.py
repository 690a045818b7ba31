from collections import Counter

import numpy as np
import pytest
import torch

from jorth.kge import Triples, depths, hierarchy_with_cycles
from jorth.kge.graph import Known, hold_out
from tests.kge.models import random_triples


def together(*parts):
    return Counter(tuple(triple) for part in parts for triple in part.tolist())


@pytest.mark.parametrize("share", [0.1, 0.5])
@pytest.mark.parametrize("seed", range(5))
def test_identical_triples_are_held_out_together(seed, share):
    """Every triple once, twice or three times, mixed."""
    once = torch.unique(random_triples(100, 12, 3, seed=seed), dim=0)
    copies = torch.from_numpy(np.random.default_rng(seed).integers(1, 4, size=len(once)))
    train = once.repeat_interleave(copies, dim=0)
    train = train[torch.from_numpy(np.random.default_rng(seed + 1).permutation(len(train)))]
    kept, held = hold_out(train, share=share, seed=seed)
    assert not set(together(kept)) & set(together(held))
    assert together(kept, held) == together(train)
    assert 0 <= round(share * len(train)) - len(held) < 3  # copies of a triple that did not fit
    assert set(kept[:, 1].tolist()) == set(train[:, 1].tolist())


SMALL = {
    "entities": ("a", "b", "c"),
    "relations": ("r",),
    "train": torch.tensor([[0, 0, 1], [1, 0, 2], [2, 0, 2]]),
    "valid": torch.tensor([[0, 0, 1]]),
    "test": torch.tensor([[1, 0, 0], [2, 0, 1], [0, 0, 2], [2, 0, 2]]),
}


@pytest.mark.parametrize(
    ("part", "value", "error", "message"),
    [
        ("train", SMALL["train"].int(), TypeError, r"train must be an int64 tensor \(N, 3\), got"),
        ("train", torch.tensor([[0, 0, 3]]), ValueError, "entities of train must be from 0 to 2"),
        ("valid", torch.tensor([[0, 1, 1]]), ValueError, "relations of valid must be .*got 1 to 1"),
        ("train", SMALL["train"][:0], ValueError, "train must hold at least one triple, got none"),
        ("entities", ("a", "b", "a"), ValueError, "entities must have distinct .*got 'a' 2 times"),
        ("relations", (1,), TypeError, "relations must be names, strings, got"),
        ("relations", "r", TypeError, "relations must be a sequence of names, got 'r'"),
    ],
)  # fmt: skip
def test_graphs_are_checked(part, value, error, message):
    with pytest.raises(error, match=message):
        Triples(**SMALL | {part: value})


def test_validation_and_test_may_be_empty():
    triples = Triples(**SMALL | {"valid": SMALL["valid"][:0]})
    triples.require("train", "test")
    with pytest.raises(ValueError, match="valid must hold at least one triple, got none"):
        triples.require("train", "valid")


def test_generated_graph():
    graph = hierarchy_with_cycles(branching=3, depth=3, seed=0)
    names = {
        (graph.entities[h], graph.relations[r], graph.entities[t])
        for h, r, t in graph.known.tolist()
    }
    assert len(graph.entities) == 1 + 3 + 9 + 27
    assert len(names) == len(graph.known)
    assert ("0.1.2", "parent", "0.1") in names
    assert ("0.1.2", "ancestor", "0") in names
    assert ("0.1.2", "ancestor", "0.1") not in names
    assert ("0.1.2", "next", "0.2.0") in names
    assert ("0.2.2", "next", "0.0.0") in names
    assert ("0.1.2", "second_next", "0.2.1") in names
    inferred = {graph.relations.index("ancestor"), graph.relations.index("second_next")}
    assert set(torch.cat([graph.valid, graph.test])[:, 1].tolist()) <= inferred
    # a tenth of 9 + 2 * 27 ancestors and 39 second neighbours
    assert len(graph.valid) == len(graph.test) == 10
    again, other = (
        hierarchy_with_cycles(branching=3, depth=3),
        hierarchy_with_cycles(branching=3, depth=3, seed=1),
    )
    assert torch.equal(again.test, graph.test)
    assert not torch.equal(other.test, graph.test)


def test_known_answers_by_brute_force():
    triples = random_triples(80, 9, 4)
    known = Known(triples, 9, 4)
    facts = {tuple(row) for row in triples.tolist()}
    anchor, code = (
        grid.ravel() for grid in torch.meshgrid(torch.arange(9), torch.arange(8), indexing="ij")
    )
    queries = torch.stack([anchor, code], dim=1).tolist()
    expected = torch.tensor(
        [[(a, c, x) in facts or (x, c - 4, a) in facts for x in range(9)] for a, c in queries]
    )
    found = torch.zeros_like(expected)
    rows, answers = known.answers(anchor, code)
    found[rows, answers] = True
    assert torch.equal(found, expected)
    assert len(rows) == expected.sum()


def test_too_few_triples_to_hold_out():
    once = torch.stack([torch.arange(20), torch.zeros(20, dtype=torch.int64), torch.arange(20)], 1)
    # the only triple of its relation stays, however often it comes
    with pytest.raises(ValueError, match="40 triples, too few to hold 39 out and keep every"):
        hold_out(torch.cat([once, once]), share=0.97)
    with pytest.raises(ValueError, match="train has 0 triples, too few"):
        hold_out(once[:0])


def test_depths_of_the_generated_tree():
    graph = hierarchy_with_cycles(branching=3, depth=3)
    assert depths(graph, "parent") == {name: name.count(".") for name in graph.entities}
    assert depths(graph, graph.relations.index("next")) == {}  # cycles have no root


def test_depths_where_ways_differ():
    names = tuple("abcdefgh")
    edges = [(1, 0, 0), (2, 0, 1), (2, 0, 0), (3, 0, 2), (4, 0, 5), (5, 0, 4), (6, 1, 0), (5, 0, 3)]
    train = torch.tensor(edges)
    graph = Triples(names, ("up", "else"), train, train[:1], train[:1])
    assert depths(graph, "up") == {"a": 0, "b": 1, "c": 1, "d": 2, "f": 3, "e": 4}
    with pytest.raises(ValueError, match="relation must be one relation, got 2"):
        depths(graph, [0, 1])
