"""Labels in files, and depths in a hierarchy."""

import pytest
import torch

from jorth.kge import Triples, depths, hierarchy_with_cycles, load_triples
from jorth.kge.tables import read_labels, read_queries


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


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\u0085", "\x0b", "\x0c", "\x1c", "\r"])
def test_names_with_breaks_that_graphs_may_have(mark, tmp_path):
    name = f"a{mark}b"
    for part in ("train", "valid", "test"):
        (tmp_path / f"{part}.txt").write_bytes(f"{name}\tr\tc\r\nc\tr\t{name}\n".encode())
    assert load_triples(tmp_path).entities == (name, "c")
    path = tmp_path / "lines.tsv"
    path.write_bytes(f"{name}\tr\t?\r\n\r\n?\tr\t{name}".encode())
    assert read_queries(path) == [(name, "r", "?"), ("?", "r", name)]
    path.write_bytes(f"{name}\t1\r\nc\t2\r\n".encode())
    assert read_labels(path) == {name: 1.0, "c": 2.0}
    path.write_bytes(f"{name}\t1\nc\n".encode())
    with pytest.raises(ValueError, match="line 2: expected an entity and its label"):
        read_labels(path)
