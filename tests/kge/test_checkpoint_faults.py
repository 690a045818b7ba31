"""Training with a failing disk, two runs in one folder, other layouts, and a stray bit."""

import os
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch

from jorth.kge import Config, hierarchy_with_cycles, train

GRAPH = hierarchy_with_cycles(branching=3, depth=2)
QUICK = Config(
    p=3, q=2, lr=0.02, relation_lr=0.01, epochs=4, evaluate_every=2, batch_size=32, negatives=5
)
FILE = "state.safetensors"


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
    calls = []

    def pressed(handle):
        calls.append(handle)
        if len(calls) == 3:  # the first two write problem.json
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", pressed)
    assert train(GRAPH, QUICK, checkpoint=tmp_path).interrupted
    assert (tmp_path / FILE).read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["problem.json", FILE]
    monkeypatch.undo()
    assert_same(train(GRAPH, QUICK, checkpoint=tmp_path), whole)


def test_flipped_bits_are_refused(tmp_path):
    train(GRAPH, replace(QUICK, epochs=2), checkpoint=tmp_path)
    path = tmp_path / FILE
    good = path.read_bytes()
    header = 8 + int.from_bytes(good[:8], "little")
    rng = np.random.default_rng(2)
    places = np.concatenate(
        [rng.integers(8 * header, 8 * len(good), size=20), rng.integers(64, size=5)]
    )
    for place in places:
        data = bytearray(good)
        data[place // 8] ^= 1 << (place % 8)
        path.write_bytes(data)
        with pytest.raises(
            ValueError, match=rf"checkpoint .*{FILE} cannot be read .*; remove it to start anew"
        ):
            train(GRAPH, replace(QUICK, epochs=2), checkpoint=tmp_path)


SECOND_RUN = """
import sys
from tests.kge.test_checkpoint_faults import GRAPH, QUICK, train
try:
    train(GRAPH, QUICK, checkpoint=sys.argv[1])
except RuntimeError as error:
    print(error)
"""


def test_two_runs_do_not_share_a_folder(tmp_path):
    """Neither of one process nor of two; the folder is free after the run."""

    def others(row):
        if row["epoch"] == 1:
            with pytest.raises(RuntimeError, match="is in use by another run"):
                train(GRAPH, QUICK, checkpoint=tmp_path)
            command = [sys.executable, "-c", SECOND_RUN, str(tmp_path)]
            told = subprocess.run(command, capture_output=True, text=True, check=True)
            assert f"checkpoint {tmp_path} is in use by another run" in told.stdout
        raise ZeroDivisionError

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            train(GRAPH, QUICK, checkpoint=tmp_path, callback=others)
    train(GRAPH, QUICK, checkpoint=tmp_path)
