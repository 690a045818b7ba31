"""Labels in files, and depths in a hierarchy."""

import pytest
import torch

from jorth.kge import Triples, depths, hierarchy_with_cycles
from jorth.kge.use.files import read_labels, read_queries


def test_depths_of_the_generated_tree():
    graph = hierarchy_with_cycles(branching=3, depth=3)
    assert depths(graph, "parent") == {name: name.count(".") for name in graph.entities}
    assert depths(graph, graph.relations.index("next")) == {}  # cycles have no root


def test_depths_where_ways_differ():
    names = tuple("abcdefgh")
    edges = [(1, 0, 0), (2, 0, 1), (2, 0, 0), (3, 0, 2), (4, 0, 5), (5, 0, 4), (6, 1, 0), (5, 0, 3)]
    train = torch.tensor(edges)
    graph = Triples(names, ("up", "else"), train, train[:1], train[:1])
    found = depths(graph, "up")
    assert found == {"a": 0, "b": 1, "c": 1, "d": 2, "f": 3, "e": 4}
    with pytest.raises(ValueError, match="relation: there is no relation 'upp'; the nearest"):
        depths(graph, "upp")
    with pytest.raises(ValueError, match="relation must be one relation, got 2"):
        depths(graph, [0, 1])
    with pytest.raises(TypeError, match=r"graph must be a jorth\.kge\.Triples"):
        depths(train, 0)


def test_labels(tmp_path):
    path = tmp_path / "labels.tsv"
    path.write_text("\ufeffa\tplant\n\nb\t 3 \n")
    assert read_labels(path) == {"a": "plant", "b": "3"}
    path.write_text("a\t1\nb\t2.5\n")
    assert read_labels(path) == {"a": 1.0, "b": 2.5}
    path.write_text("a\n")
    with pytest.raises(ValueError, match="line 1: expected an entity and its label"):
        read_labels(path)


def test_queries(tmp_path):
    path = tmp_path / "queries.tsv"
    path.write_text("a\tr\t?\r\n?\tr\tb c\r\n")
    assert read_queries(path) == [("a", "r", "?"), ("?", "r", "b c")]
