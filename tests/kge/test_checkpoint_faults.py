"""Training with a failing disk, and Ctrl-C while it writes."""

import os
import shutil

import numpy as np
import pytest
import torch

from jorth.kge import Config, hierarchy_with_cycles, train

GRAPH = hierarchy_with_cycles(branching=3, depth=2)
QUICK = Config(
    p=3, q=2, lr=0.02, relation_lr=0.01, epochs=4, evaluate_every=2, batch_size=32, negatives=5
)
FILE = "state.checkpoint"


def assert_same(one, other):
    for name, value in one.model.state_dict().items():
        assert torch.equal(value, other.model.state_dict()[name])
    for name in one.history.keys() - {"time"}:
        np.testing.assert_array_equal(one.history[name], other.history[name])


def test_a_folder_that_is_gone_costs_the_checkpoint_alone(tmp_path):
    folder = tmp_path / "saved"

    def harm(row):
        if row["epoch"] == 3:
            shutil.rmtree(folder)
            folder.write_text("not a folder")

    with pytest.warns(
        UserWarning, match=r"the checkpoint in .*saved could not be written: "
    ) as caught:
        found = train(GRAPH, QUICK, checkpoint=folder, callback=harm)
    assert len(caught) == 1
    assert_same(found, train(GRAPH, QUICK))


def test_ctrl_c_while_it_is_written_leaves_the_one_before(tmp_path, monkeypatch):
    whole = train(GRAPH, QUICK)
    train(GRAPH, QUICK, checkpoint=tmp_path, callback=lambda row: row["epoch"] == 2)
    before = (tmp_path / FILE).read_bytes()

    def pressed(handle):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", pressed)
    assert train(GRAPH, QUICK, checkpoint=tmp_path).interrupted
    assert (tmp_path / FILE).read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == [FILE]
    monkeypatch.undo()
    assert_same(train(GRAPH, QUICK, checkpoint=tmp_path), whole)
