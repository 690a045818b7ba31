"""`jorth kge` from outside."""

import csv
import json
import os
import re
import signal
import sys

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from jorth.cli import main
from jorth.kge import evaluate, hierarchy_with_cycles, load_model, load_triples, predict
from jorth.kge.tables import ProgressBar

SETTINGS = "p=8 lr=0.05 relation_lr=0.03 epochs=30 negatives=all batch_size=32 seed=0"


def chosen(files, text=SETTINGS):
    """A graph and settings as options of `jorth kge train`."""
    changes = (word for setting in text.split() for word in ("--set", setting))
    return ["train", "--data", files / "graph", *changes]


def kge(*arguments):
    return CliRunner().invoke(main, ["kge", *map(str, arguments)])


@pytest.fixture
def files(tmp_path):
    """A graph and its settings."""
    graph = hierarchy_with_cycles(branching=3, depth=2)
    (tmp_path / "graph").mkdir()
    for part in ("train", "valid", "test"):
        lines = [
            f"{graph.entities[h]}\t{graph.relations[r]}\t{graph.entities[t]}\n"
            for h, r, t in getattr(graph, part)
        ]
        (tmp_path / "graph" / f"{part}.txt").write_text("".join(lines))
    return tmp_path


def test_default_run(tmp_path):
    result = kge("train", "-o", tmp_path, "--epochs", 4)
    assert result.exit_code == 0, result.output
    assert re.search(r"\nepoch 4/4  loss \S+  MRR \S+  \S+ s, 0 s left\n", result.output)
    assert "All 4 epochs are done. The model is from epoch " in result.output
    with (tmp_path / "history.csv").open() as stream:
        assert [row["epoch"] for row in csv.DictReader(stream)] == ["1", "2", "3", "4"]
    assert "test triples" in kge("evaluate", "-m", tmp_path).output


def test_train_evaluate_predict(files):
    output = files / "out"
    result = kge(*chosen(files), "-o", output)
    assert result.exit_code == 0, result.output
    figures = json.loads((output / "test.json").read_text())
    assert set(figures) == {"standard", "irreflexive"}
    parts = {"both", "head", "tail", "relations"}
    for own in figures.values():
        assert set(own) == parts | {"frequencies"}
        assert set(own["frequencies"]) == parts
    again = json.loads(kge("evaluate", "-m", output, "--json").output)
    assert again == figures
    elsewhere = json.loads(
        kge("evaluate", "-m", output, "--data", files / "graph", "--json").output
    )
    assert elsewhere == figures
    training = json.loads(kge("evaluate", "-m", output, "--part", "train", "--json").output)
    model, graph = load_model(output), load_triples(files / "graph")
    assert torch.equal(model.irreflexive, graph.irreflexive)
    assert graph.irreflexive.all()
    assert model.frequencies.tolist() == torch.bincount(graph.train[:, 1]).tolist()
    found = evaluate(model, graph.train, graph.known).mrr
    assert training["standard"]["both"]["realistic"]["mrr"] == pytest.approx(found, rel=1e-12)
    lines = kge("predict", "0.1.2", "parent", "?", "-m", output, "-k", 3).output.splitlines()
    assert lines[0].split() == ["score", "probability", "tail"]
    expected = predict(model, "0.1.2", "parent", k=3)
    assert [line.split()[2] for line in lines[1:]] == [answer.entity for answer in expected]
    scores = [float(line.split()[0]) for line in lines[1:]]
    assert scores == pytest.approx([answer.score for answer in expected], abs=1e-3)
    heads = kge("predict", "?", "parent", "0.1", "-m", output, "-k", 4).output.splitlines()
    expected = predict(model, relation="parent", tail="0.1", k=4)
    assert [line.split()[2] for line in heads[1:]] == [answer.entity for answer in expected]
    # a second call finds the finished run and repeats its result
    assert kge(*chosen(files), "-o", output).exit_code == 0
    assert json.loads((output / "test.json").read_text()) == figures


def test_another_run_in_the_same_folder(files):
    train = ["train", "-o", files / "out", "--epochs", 1]
    assert kge(*train, "--data", files / "graph").exit_code == 0
    model = (files / "out" / "model.safetensors").read_bytes()
    for changed, what in (
        ([], "graph is"),
        (["--data", files / "graph", "--seed", 3], "seed is 0 there and 3 here"),
    ):
        other = kge(*train, *changed)
        assert other.exit_code == 1
        assert f"belongs to another run: {what}" in " ".join(other.output.split())
        assert "choose another folder or remove this one" in " ".join(other.output.split())
    assert (files / "out" / "model.safetensors").read_bytes() == model


def test_ctrl_c_keeps_the_best_model(files, monkeypatch, ctrl_c_is_heard):
    settings = chosen(files, "p=4 epochs=5 evaluate_every=2")
    output = files / "out"

    def until(last):
        def update(bar, row):
            if row["epoch"] == last:
                os.kill(os.getpid(), signal.SIGINT)

        monkeypatch.setattr(ProgressBar, "__call__", update)
        monkeypatch.setattr(sys, "argv", ["/bin/jorth", "kge", "train", "--set", "p=4"])
        return kge(*settings, "-o", output)

    early = until(1)
    assert early.exit_code == 130
    told = "Interrupted in epoch 2. The model as it was then, not yet evaluated, is in"
    assert told in early.output
    later = until(3)
    assert later.exit_code == 130
    mrr = float(np.nanmax(np.genfromtxt(output / "history.csv", delimiter=",", names=True)["mrr"]))
    told = f"Interrupted in epoch 4. The best model so far (epoch 2, validation MRR {mrr:.3f}) is"
    assert told in later.output
    assert "\nGo on:  jorth kge train --set p=4\n" in later.output
    assert '\nUse it: jorth kge predict HEAD RELATION "?" -m ' in later.output
    assert not (output / "test.json").exists()
    about = json.loads((output / "model.json").read_text())["about"]
    assert about["message"] == "interrupted in epoch 4"
    assert len(kge("predict", "0.1", "parent", "-m", output, "-k", 2).output.splitlines()) == 3
    assert until(None).exit_code == 0
    other = files / "whole"
    assert kge(*settings, "-o", other).exit_code == 0
    for name in ("model.safetensors", "test.json"):
        assert (other / name).read_bytes() == (output / name).read_bytes()
