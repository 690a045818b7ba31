"""A finished run that is given more epochs or more time."""

from dataclasses import replace

import numpy as np
import pytest

import jorth
from jorth.kge import Config, hierarchy_with_cycles, train
from tests.kge.test_training import same

GRAPH = hierarchy_with_cycles(branching=3, depth=2)
QUICK = Config(
    p=5, q=2, lr=0.02, schedule="constant", relation_lr=0.01, epochs=7, evaluate_every=3,
    batch_size=16, large_batch=40, loss="softmax", negatives=10, seed=3,
)  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [{}, {"method": "vr-j-jobcd"}, {"method": "csdm", "warmup": 9}, {"lr": 0.5, "patience": 2}],
)
def test_a_longer_run_is_as_if_it_had_never_ended(change, tmp_path):
    short = replace(QUICK, **change)
    longer = replace(short, epochs=14)
    whole = train(GRAPH, longer)
    first = train(GRAPH, short, checkpoint=tmp_path)
    rows = []
    continued = train(GRAPH, longer, checkpoint=tmp_path, callback=rows.append)
    assert rows[0]["epoch"] == len(first.history["epoch"]) + 1
    assert same(whole.model, continued.model)
    assert (continued.message, continued.best_epoch) == (whole.message, whole.best_epoch)
    for name in ("loss", "queries", "mrr", "hits@10"):
        assert np.array_equal(whole.history[name], continued.history[name], equal_nan=True)
    assert same(first.model, train(GRAPH, short).model)


@pytest.mark.parametrize("schedule", ["constant", "linear"])
def test_more_time(schedule, tmp_path):
    config = replace(QUICK, schedule=schedule)
    stopped = train(GRAPH, replace(config, max_time=1e-9), checkpoint=tmp_path)
    assert stopped.message == "max_time of 1e-09 s is over"
    assert same(train(GRAPH, config).model, train(GRAPH, config, checkpoint=tmp_path).model)


@pytest.mark.parametrize("change", [{"schedule": "linear"}, {"averaging": 0.5}])
def test_what_depends_on_the_end_is_not_continued(change, tmp_path):
    config = replace(QUICK, **change)
    train(GRAPH, config, checkpoint=tmp_path)
    with pytest.raises(jorth.CheckpointMismatch) as caught:
        train(GRAPH, replace(config, epochs=9), checkpoint=tmp_path)
    message = str(caught.value)
    assert "epochs is 7 there and 9 here; nothing was overwritten" in message
    assert "cannot be continued as a longer one: train anew in another folder" in message


def test_fewer_epochs_than_are_done(tmp_path):
    train(GRAPH, QUICK, checkpoint=tmp_path)
    with pytest.raises(jorth.CheckpointMismatch, match="epochs is 7, done, there and 5 here"):
        train(GRAPH, replace(QUICK, epochs=5), checkpoint=tmp_path)


def test_a_run_that_is_stopped_before_an_evaluation_names_its_epoch():
    stopped = train(
        GRAPH,
        replace(QUICK, evaluate_every=5, averaging=0.3),
        callback=lambda row: np.float64(row["epoch"]) >= 2,  # NumPy's True
    )
    assert stopped.best_epoch == 2 == len(stopped.history["loss"])
    assert stopped.message == (
        "stopped by the callback; the model is no average: averages begin with epoch 6"
    )
