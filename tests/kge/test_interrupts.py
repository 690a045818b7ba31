"""Ctrl-C while `train` runs: the best model so far is returned, and the run can go on."""

import os
import signal

import numpy as np
import pytest

from jorth.kge import load_model, predict, save_model, train, training
from jorth.kge.batches import NegativeSampler
from jorth.solvers.checkpoint import CheckpointFolder
from tests.kge.test_training import GRAPH, QUICK, same


@pytest.fixture(autouse=True)
def ctrl_c_is_heard():
    """A shell starts what runs in its background with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def press():
    os.kill(os.getpid(), signal.SIGINT)


def pressing(function, call, act=press):
    """The function, with Ctrl-C in the given call of it."""
    calls = []

    def pressed(*arguments, **options):
        calls.append(1)
        result = function(*arguments, **options)
        if len(calls) == call:
            act()
        return result

    return pressed


def interrupt():
    raise KeyboardInterrupt


STEPS = -(-2 * len(GRAPH.train) // QUICK.batch_size)
"""In an epoch."""
MOMENTS = {
    "in the middle of an epoch": (NegativeSampler, "next", 4 * STEPS + 2, 4, 5),
    "in an evaluation": (training, "evaluate", 2, 4, 5),
    "while saving": (CheckpointFolder, "save", 2, 4, 5),
    "in the last step of an epoch": (NegativeSampler, "next", 4 * STEPS, 2, 4),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_the_best_model_is_returned_and_the_run_goes_on(moment, tmp_path, monkeypatch):
    place, name, call, evaluated, epoch = MOMENTS[moment]
    whole = train(GRAPH, QUICK)
    before = train(GRAPH, QUICK, callback=lambda row: row["epoch"] == evaluated)
    monkeypatch.setattr(place, name, pressing(getattr(place, name), call))
    stopped = train(GRAPH, QUICK, checkpoint=tmp_path)
    monkeypatch.undo()
    assert stopped.interrupted
    assert stopped.message == f"interrupted in epoch {epoch}"
    assert same(stopped.model, before.model)
    assert stopped.best_epoch == before.best_epoch
    assert stopped.best_mrr == np.nanmax(before.history["mrr"])
    resumed = train(GRAPH, QUICK, checkpoint=tmp_path)
    assert same(resumed.model, whole.model)
    assert np.array_equal(resumed.history["loss"], whole.history["loss"])
    assert not resumed.interrupted


def test_before_the_first_evaluation_it_is_the_model_as_it_is(tmp_path, monkeypatch):
    whole = train(GRAPH, QUICK)
    monkeypatch.setattr(NegativeSampler, "next", pressing(NegativeSampler.next, 2))
    stopped = train(GRAPH, QUICK, checkpoint=tmp_path / "run")
    monkeypatch.undo()
    assert stopped.message == "interrupted in epoch 1"
    assert stopped.best_epoch == 0
    assert np.isnan(stopped.best_mrr)
    save_model(tmp_path / "model", stopped)
    assert predict(load_model(tmp_path / "model"), "0.1", "parent", k=1)
    assert same(train(GRAPH, QUICK, checkpoint=tmp_path / "run").model, whole.model)


def test_what_a_step_that_was_torn_leaves(monkeypatch):
    """As a second Ctrl-C does, which does not wait for the step."""
    before = train(GRAPH, QUICK, callback=lambda row: row["epoch"] == 4)
    torn = pressing(NegativeSampler.next, 4 * STEPS + 2, interrupt)
    monkeypatch.setattr(NegativeSampler, "next", torn)
    assert same(train(GRAPH, QUICK).model, before.model)
    monkeypatch.setattr(NegativeSampler, "next", pressing(NegativeSampler.next, 1, interrupt))
    with pytest.raises(KeyboardInterrupt):
        train(GRAPH, QUICK)
