"""`jorth kge predict`, `nearest`, `explain` and `draw` from outside, on an untrained model."""

import json
import sys
from dataclasses import replace

import pytest
import torch
from click.testing import CliRunner

import jorth
from jorth.cli import main
from jorth.kge import (
    Frequencies,
    NamedModel,
    evaluate,
    explain,
    hierarchy_with_cycles,
    nearest,
    predict,
    save_model,
)
from tests.kge.models import SIGNATURE, scattered

GRAPH = hierarchy_with_cycles(branching=3, depth=2)
HYPERBOLIC = jorth.Signature(4, 1)


def kge(*arguments):
    return CliRunner().invoke(main, ["kge", *map(str, arguments)])


def printed(*arguments):
    result = kge(*arguments)
    assert result.exit_code == 0, result.output
    return result.output


def named(signature=HYPERBOLIC):
    model = scattered(len(GRAPH.entities), len(GRAPH.relations), signature=signature)
    return NamedModel(model, GRAPH.entities, GRAPH.relations, {"config": {"seed": 0}})


@pytest.fixture
def model(tmp_path):
    """A model in a folder, and its graph in another."""
    data = tmp_path / "graph"
    data.mkdir()
    for part in ("train", "valid", "test"):
        names = (
            (GRAPH.entities[h], GRAPH.relations[r], GRAPH.entities[t])
            for h, r, t in getattr(GRAPH, part).tolist()
        )
        (data / f"{part}.txt").write_text("".join("\t".join(row) + "\n" for row in names))
    own = named()
    own.about["data"] = str(data)
    save_model(tmp_path / "model", own)
    return tmp_path / "model"


def test_predict_prints_what_the_function_finds(model):
    wanted = predict(named(), "0.1", "next", k=4)
    found = json.loads(printed("predict", "0.1", "next", "-m", model, "-k", 4, "--json"))
    answers = [answer._asdict() for answer in wanted]
    assert found == {"head": "0.1", "relation": "next", "tail": "?", "answers": answers}
    lines = printed("predict", "0.1", "next", "-m", model, "-k", 4).splitlines()
    assert [line.split()[2] for line in lines[1:]] == [answer.entity for answer in wanted]
    shares = [float(line.split()[1]) for line in lines[1:]]
    assert shares == pytest.approx([answer.probability for answer in wanted], rel=5e-3)


def test_relations_and_triples(model):
    wanted = [link._asdict() for link in predict(named(), "0.1", None, "0", k=3)]
    found = json.loads(printed("predict", "0.1", "?", "0", "-m", model, "-k", 3, "--json"))
    assert found == {"head": "0.1", "relation": "?", "tail": "0", "answers": wanted}
    lines = printed("predict", "0.1", "?", "0", "-m", model).splitlines()
    assert lines[0].split() == ["score", "probability", "relation"]
    assert [line.split()[2] for line in lines[1:4]] == [link["relation"] for link in wanted]
    fact = predict(named(), "0.1", "parent", "0")
    found = json.loads(printed("predict", "0.1", "parent", "0", "-m", model, "--json"))
    assert found == {"head": "0.1", "relation": "parent", "tail": "0"} | fact._asdict()
    text = printed("predict", "0.1", "parent", "0", "-m", model)
    assert f"score {fact.score:.3f}, rank {fact.head_rank:g} of the head" in text


def test_new_answers_are_not_in_training(model):
    every = json.loads(printed("predict", "0.1", "parent", "-m", model, "-k", 99, "--json"))
    new = json.loads(printed("predict", "0.1", "parent", "-m", model, "-k", 99, "--json", "--new"))
    number = GRAPH.entities.index("0.1"), GRAPH.relations.index("parent")
    told = {GRAPH.entities[t] for h, r, t in GRAPH.train.tolist() if (h, r) == number}
    assert told == {"0"}
    left = [answer for answer in every["answers"] if answer["entity"] not in told]
    assert new["answers"] == left


def test_nearest(model, tmp_path):
    wanted = nearest(named(), "0.1", 3)
    found = json.loads(printed("nearest", "0.1", "-m", model, "-k", 3, "--json"))
    assert found == [neighbour._asdict() for neighbour in wanted]
    lines = printed("nearest", "0.1", "-m", model, "-k", 3).splitlines()
    assert [line.split()[1] for line in lines] == [neighbour.entity for neighbour in wanted]
    save_model(tmp_path / "other", named(SIGNATURE))
    kinds = {
        line.split()[1] for line in printed("nearest", "0", "-m", tmp_path / "other").splitlines()
    }
    assert kinds <= {"spacelike", "timelike"}


def test_explain(model, tmp_path):
    wanted = explain(named(), ["next", "parent"])
    found = json.loads(printed("explain", "next", "parent", "-m", model, "--json"))
    assert [one["relation"] for one in found] == ["next", "parent"]
    assert found[0]["angles"] == wanted[0].angles.tolist()
    assert found[1]["inverse"] == wanted[1].inverse
    text = printed("explain", "-m", model)
    assert all(name in text for name in GRAPH.relations)
    lonely = NamedModel(scattered(5, 1), list("abcde"), ["r"])
    save_model(tmp_path / "lonely", lonely)
    (alone,) = json.loads(printed("explain", "-m", tmp_path / "lonely", "--json"))
    assert alone["from_inverse"] is None
    assert "nan" not in printed("explain", "-m", tmp_path / "lonely")


def test_draw(model, tmp_path, monkeypatch):
    for cutoff, hint in ((-1.0, False), (1.1, True)):  # no correlation, and any, is below it
        monkeypatch.setattr(sys.modules["jorth.cli.kge"], "FAITHFUL", cutoff)
        text = printed("draw", "-m", model)
        assert "rank correlation" in text
        assert (f"jorth kge train --data {tmp_path / 'graph'} --set p=2" in text) == hint
    seen = [(model / "entities.png").read_bytes()]
    labels = tmp_path / "labels.tsv"
    labels.write_text("0\troot\n0.1\tchild\n")
    for name, options in {
        "depth": ["--depth", "parent"],
        "colours": ["--colours", labels],
        "lines": ["--lines", "next"],
        "label": ["--label", "0.1", "--label", "0"],
    }.items():
        path = tmp_path / f"{name}.png"
        printed("draw", "-m", model, "-o", path, *options)
        seen.append(path.read_bytes())
    assert len(set(seen)) == 5
    generated = NamedModel(
        named().model, GRAPH.entities, GRAPH.relations, {"data": None, "config": {"seed": 0}}
    )
    save_model(tmp_path / "other", generated)
    result = kge("draw", "-m", tmp_path / "other")
    assert result.exit_code == 1
    assert "the graph must have the 13 entities of the model" in " ".join(result.output.split())


def test_both_protocols_of_a_ranking(model, tmp_path):
    figures = json.loads(printed("evaluate", "-m", model, "--json"))
    own, rule = named().model, GRAPH.irreflexive
    assert rule.all()
    for protocol, mask in (("standard", None), ("irreflexive", rule)):
        wanted = evaluate(own, GRAPH.test, GRAPH.known, irreflexive=mask)
        found = figures[protocol]
        assert found["both"]["realistic"] == wanted.metrics()
        assert found["head"]["pessimistic"] == wanted.metrics("head", "pessimistic")
        parts = wanted.by_relation(GRAPH.relations)
        assert found["relations"] == {name: part.metrics() for name, part in parts.items()}
        baseline = evaluate(Frequencies(GRAPH), GRAPH.test, GRAPH.known, irreflexive=mask)
        assert found["frequencies"]["tail"]["realistic"] == baseline.metrics("tail")
        text = printed("evaluate", "-m", model, *([] if mask is None else ["--irreflexive"]))
        assert f"{wanted.metrics()['mean_rank']:.1f}" in text
        assert f"  {baseline.mrr:.3f}\n" in text
        assert ("irreflexive" in text) == (mask is not None)
    # no test triple is a loop, so that the query's entity can only be in the way
    ranks = [found["both"]["realistic"]["mean_rank"] for found in figures.values()]
    assert ranks[1] < ranks[0]
    # the model's own rule, not that of the graph at hand
    without = replace(named(), irreflexive=torch.zeros_like(rule))
    save_model(tmp_path / "other", replace(without, about=named().about | {"data": None}))
    other = ("-m", tmp_path / "other", "--data", tmp_path / "graph", "--json")
    again = json.loads(printed("evaluate", *other))
    assert again["irreflexive"] == again["standard"] == figures["standard"]
