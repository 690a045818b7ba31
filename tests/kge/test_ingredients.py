"""Averages, predictions by both directions, limits of the relations; runs resume exactly."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch

import jorth
from jorth.kge import Config, NamedModel, Triples, evaluate, load_model, save_model, train, training
from jorth.kge.training import _Run
from tests.kge.test_training import GRAPH, METHODS, QUICK, interrupt_at, same

EVERYTHING = replace(
    QUICK, smoothing=0.1, averaging=0.5, reject=True, regularisation=0.05, final_rate=0.0,
    reciprocal=True, warmup=1,
)  # fmt: skip


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("method", METHODS)
def test_resumed_run_with_everything_equals_the_uninterrupted_one(method, dtype, tmp_path):
    config = replace(EVERYTHING, method=method, dtype=dtype)
    whole = train(GRAPH, config)
    assert train(GRAPH, config, checkpoint=tmp_path, callback=interrupt_at(5)).interrupted
    resumed = train(GRAPH, config, checkpoint=tmp_path)
    assert same(whole.model, resumed.model)
    for name in ("loss", "mrr", "queries"):
        assert np.array_equal(whole.history[name], resumed.history[name], equal_nan=True)
    assert whole.model.points.dtype == getattr(torch, dtype)
    R = whole.model.relations.detach()
    u = torch.finfo(R.dtype).eps / 2
    # some ten steps for each of six epochs, each of rounding n u ||R||^2
    assert torch.as_tensor(jorth.residual(R, config.signature)).max() < 100 * len(R[0]) * u


def test_validation_and_test_triples_have_no_part_in_training():
    """Other held-out triples give the same losses and the same last model, bit for bit."""
    random = torch.Generator().manual_seed(5)
    sizes = torch.tensor([len(GRAPH.entities), len(GRAPH.relations), len(GRAPH.entities)])
    others = [
        (torch.rand(count, 3, generator=random) * sizes).to(torch.int64) for count in (40, 70)
    ]
    changed = Triples(GRAPH.entities, GRAPH.relations, GRAPH.train, *others)
    for method in METHODS:
        config = replace(EVERYTHING, method=method, epochs=3, evaluate_every=1)
        runs = [_Run(graph, config) for graph in (GRAPH, changed)]
        rows = [[run.epoch() for _ in range(3)] for run in runs]
        losses = [[row["loss"] for row in own] for own in rows]
        assert losses[0] == losses[1]
        assert same(runs[0].model, runs[1].model)
        assert same(runs[0].evaluated, runs[1].evaluated)
        assert rows[0][-1]["mrr"] != rows[1][-1]["mrr"]  # they are different triples


@pytest.mark.parametrize("method", METHODS)
def test_the_average_is_that_of_the_last_epochs(method):
    """Before, the plain model is evaluated; all parameters but the relations have their mean."""
    config = replace(EVERYTHING, method=method, epochs=7, averaging=0.4, evaluate_every=1)
    assert config.averaged_from == 5
    run, models = _Run(GRAPH, config), []
    for number in range(1, 8):
        mrr = run.epoch()["mrr"]
        models.append({name: w.detach().clone() for name, w in run.model.weights().items()})
        assert (run.evaluated is run.model) == (number < 5)
        assert mrr == evaluate(run.evaluated, GRAPH.valid, GRAPH.known).mrr
    found = run.evaluated.weights()
    for name in set(found) - {"relations"}:
        mean = torch.stack([model[name] for model in models[4:]]).mean(dim=0)
        assert torch.allclose(found[name], mean, rtol=1e-12, atol=1e-14)
    last = [model["relations"] for model in models[4:]]
    relations = found["relations"].detach()
    assert jorth.residual(relations, config.signature).max() < 1e-13
    # on the group the mean of near points is the plain mean to second order
    spread = max((one - last[0]).norm() for one in last)
    assert 0 < (relations - torch.stack(last).mean(dim=0)).norm() < 0.5 * spread


def jump(model):
    """Move a relation to another component of the group."""
    with torch.no_grad():
        model.relations[0, :, int(model.plus[0])] *= -1


@pytest.mark.parametrize("resumed", [False, True])
def test_a_run_goes_on_without_an_average_where_there_is_none(resumed, monkeypatch, tmp_path):
    config = replace(QUICK, averaging=0.7, epochs=6, evaluate_every=1)
    steps = _Run.steps

    def jumps(self, number):
        found = steps(self, number)
        if number == 4:
            jump(self.model)
        return found

    monkeypatch.setattr(_Run, "steps", jumps)
    stop = {"callback": lambda row: row["epoch"] == 5} if resumed else {}
    with pytest.warns(RuntimeWarning, match="no average: relations must lie in the component"):
        train(GRAPH, config, checkpoint=tmp_path, **stop)
    averaged = train(GRAPH, config, checkpoint=tmp_path)
    assert averaged.message.startswith("all 6 epochs are done; no average: relations must lie in")
    assert averaged.message.endswith("in epoch 4")
    plain = train(GRAPH, replace(config, averaging=0.0))
    for name in ("loss", "mrr"):  # from epoch 4 on the model itself is evaluated again
        assert np.array_equal(averaged.history[name][3:], plain.history[name][3:])


def test_the_weight_of_the_other_direction_is_exported_and_not_trained(tmp_path):
    config = replace(QUICK, reciprocal=True, epochs=3)
    plain, both = (train(GRAPH, replace(config, reverse_weight=w)) for w in (0.0, 0.6))
    assert np.array_equal(plain.history["loss"], both.history["loss"])
    assert not np.array_equal(plain.history["mrr"], both.history["mrr"], equal_nan=True)
    save_model(tmp_path, NamedModel(both.model, GRAPH.entities, GRAPH.relations))
    named = load_model(tmp_path)
    assert named.model.reverse_weight == 0.6
    assert torch.equal(named.model(GRAPH.test), both.model(GRAPH.test))


def test_a_limit_of_the_relations_is_met_without_a_warning(monkeypatch):
    config = Config(p=4, epochs=2, relation_lr=3.0, relation_options={"max_norm": 1.0001})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        R = train(GRAPH, config).model.relations.detach()
    norms = torch.linalg.matrix_norm(R, 2)
    assert norms.max() <= 1.0001 * (1 + 1e-12)
    monkeypatch.setattr(training, "largest_relation", lambda config: None)
    with pytest.warns(RuntimeWarning, match="a step would end beyond"):
        train(GRAPH, config)
