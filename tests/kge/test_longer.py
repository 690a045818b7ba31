"""A finished run that is given more epochs or more time."""

from dataclasses import replace

import numpy as np
import pytest

from jorth.kge import Config, hierarchy_with_cycles, train
from tests.kge.test_training import same

GRAPH = hierarchy_with_cycles(branching=3, depth=2)
QUICK = Config(
    p=5, q=2, lr=0.02, relation_lr=0.01, epochs=7, evaluate_every=3, batch_size=16, negatives=10,
    seed=3,
)  # fmt: skip


@pytest.mark.parametrize("final_rate", [0.0, 1.0])
def test_more_time(final_rate, tmp_path):
    config = replace(QUICK, final_rate=final_rate)
    stopped = train(GRAPH, replace(config, max_time=1e-9), checkpoint=tmp_path)
    assert stopped.message == "stopped after max_time, 1e-09 s"
    assert same(train(GRAPH, config).model, train(GRAPH, config, checkpoint=tmp_path).model)


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
