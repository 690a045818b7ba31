import os
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch

import jorth
from jorth.kge import (
    Config,
    NamedModel,
    evaluate,
    hierarchy_with_cycles,
    load_model,
    save_model,
    train,
)
from jorth.kge.batches import Batch
from jorth.kge.training import _Run

GRAPH = hierarchy_with_cycles(branching=3, depth=2)
QUICK = Config(
    p=5, q=2, reciprocal=False, lr=0.02, relation_lr=0.01, final_rate=1.0, epochs=6,
    evaluate_every=2, batch_size=32, large_batch=80, smoothing=0.0, negatives=10,
    regularisation=0.0, seed=3,
)  # fmt: skip
PAPER_STEP = dict(metric="embedding", rounds_per_gradient=1, components="all")
"""The options of JOBCD that make its step that of J-JOBCD as printed."""
METHODS = ("j-jobcd", "vr-j-jobcd", "csdm")


def same(one, other):
    return all(
        torch.equal(a, b)
        for a, b in zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    )


@pytest.mark.parametrize("candidates", [[2, 7, 5], None])
def test_the_loss_of_a_batch_is_that_of_its_triples_one_by_one(candidates):
    run = _Run(GRAPH, replace(QUICK, regularisation=0.3, alpha=1.3, negatives="all"))
    model, random = run.model, torch.Generator().manual_seed(0)
    with torch.no_grad():
        for part in (model.points, model.bias):
            part += 0.5 * torch.randn(part.shape, generator=random, dtype=part.dtype)
    few = None if candidates is None else torch.tensor(candidates)
    queries = torch.stack([GRAPH.train[0], GRAPH.train[5]])
    expected = []
    for anchor, code, answer in queries.tolist():
        false = [k for k in candidates or range(len(GRAPH.entities)) if k != answer]
        true, *rest = (model(torch.tensor([anchor, code, k])).item() for k in [answer, *false])
        expected.append(np.log(np.exp([true, *rest]).sum()) - true)
    s = model.points.detach()[queries[:, (0, 2)]][..., : model.signature.p]
    whole = np.mean(expected) + 0.3 * float(s.square().sum(-1).mean())
    assert run.loss(Batch(queries, few)).item() == pytest.approx(whole, rel=1e-12)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("reciprocal", [False, True])
def test_loss_falls_and_relations_stay_j_orthogonal(method, reciprocal):
    config = replace(QUICK, method=method, reciprocal=reciprocal, epochs=10, lr=0.05)
    result = train(GRAPH, config)
    history = result.history
    assert history["loss"][-1] < 0.97 * history["loss"][0]  # measured, 9 seeds: 0.39 to 0.91
    assert ",".join(history) == "epoch,time,queries,loss,mrr,hits@1,hits@3,hits@10"
    assert all(len(column) == 10 for column in history.values())
    assert np.array_equal(np.flatnonzero(np.isfinite(history["mrr"])), [1, 3, 5, 7, 9])
    assert (np.diff(history["time"]) > 0).all()
    if method != "vr-j-jobcd":
        assert np.array_equal(history["queries"], 2 * len(GRAPH.train) * np.arange(1, 11))
    # some ten steps for each of ten epochs, each of rounding n u ||R||^2
    R = result.model.relations.detach()
    assert jorth.residual(R, config.signature).max() < 100 * config.signature.n * 2.0**-53
    moved = train(GRAPH, replace(config, epochs=1)).model.relations
    assert not torch.equal(R, moved)


def test_the_best_model_is_returned():
    result = train(GRAPH, replace(QUICK, epochs=8, evaluate_every=1, lr=0.1))
    mrr = result.history["mrr"]
    assert result.best_epoch == 1 + mrr.argmax()
    assert evaluate(result.model, GRAPH.valid, GRAPH.known).mrr == mrr.max()


def test_early_stopping():
    result = train(
        GRAPH, replace(QUICK, lr=0.0, relation_lr=0.0, epochs=50, evaluate_every=2, patience=3)
    )
    assert len(result.history["epoch"]) == 8  # the first evaluation is the best, then three in vain
    assert result.message == "no better validation MRR in 3 evaluations"


def test_limits_and_callback():
    assert train(GRAPH, QUICK).message == "all 6 epochs are done"
    timed = train(GRAPH, replace(QUICK, max_time=1e-9))
    assert timed.message == "stopped after max_time, 1e-09 s"
    assert np.isfinite(timed.history["mrr"]).all()  # the last model is evaluated
    rows = []
    stopped = train(GRAPH, QUICK, callback=lambda row: rows.append(row) or row["epoch"] == 3)
    assert stopped.message == "stopped by the callback"
    assert [row["epoch"] for row in rows] == [1, 2, 3]
    assert np.array_equal([row["loss"] for row in rows], stopped.history["loss"])
    late = replace(QUICK, evaluate_every=5, averaging=0.2)
    stopped = train(GRAPH, late, callback=lambda row: np.float64(row["epoch"]) >= 2)
    assert stopped.best_epoch == 2
    assert stopped.message.endswith("the model is no average: averages begin with epoch 6")


def test_seeds():
    one, again, other = (train(GRAPH, replace(QUICK, epochs=2, seed=seed)) for seed in (0, 0, 1))
    assert same(one.model, again.model)
    assert not same(one.model, other.model)


@pytest.mark.parametrize(
    "change",
    [
        {"negatives": "all"}, {"negatives": 8}, {"reject": True}, {"smoothing": 0.2},
        {"regularisation": 1.0}, {"final_rate": 0.0}, {"warmup": 3},
        {"alpha": 2.0}, {"dtype": "float32"}, {"lr": 0.0}, {"relation_lr": 0.0},
        {"relation_options": {"momentum": 0.5}}, {"relation_options": PAPER_STEP},
    ],
)  # fmt: skip
def test_every_setting_matters(change):
    changed = train(GRAPH, replace(QUICK, epochs=2, **change)).history["loss"]
    assert np.isfinite(changed).all()
    assert changed[-1] != plain_loss()


@cache
def plain_loss():
    return train(GRAPH, replace(QUICK, epochs=2)).history["loss"][-1]


def test_rates():
    config = Config(epochs=10, warmup=4)
    assert [config.rate(epoch) for epoch in (0, 5, 10)] == [1 / 5, 0.5, 0.0]
    assert Config(epochs=10, final_rate=1.0).rate(7.3) == 1.0
    config = Config(epochs=10, final_rate=0.1)
    assert [config.rate(epoch) for epoch in (0, 5, 10, 11)] == pytest.approx([1.0, 0.55, 0.1, 0.1])


@pytest.mark.filterwarnings("ignore:a gradient is not finite")
def test_a_loss_that_is_not_finite_is_an_error(monkeypatch):
    no_number = lambda signed, *_, **rest: signed.sum() * torch.nan  # noqa: E731
    monkeypatch.setattr("jorth.kge.batches.distance_softmax", no_number)
    with pytest.raises(
        FloatingPointError, match="the loss is nan in epoch 1; a smaller lr or relation_lr may help"
    ):
        train(GRAPH, QUICK)


@pytest.mark.parametrize("what", ["loss", "model"])
def test_a_run_that_breaks_late_keeps_its_best_model(monkeypatch, what):
    config = replace(QUICK, evaluate_every=2, epochs=9)
    good = train(GRAPH, config, callback=lambda row: row["epoch"] == 4)
    steps = _Run.steps

    def breaks(self, number):
        loss, seen = steps(self, number)
        if number == 5 and what == "model":
            self.model.points.data[0, 0] = torch.inf
        return (torch.nan if number == 5 and what == "loss" else loss), seen

    monkeypatch.setattr(_Run, "steps", breaks)
    result = train(GRAPH, config)
    assert f"the {what} is n" in result.message
    assert "in epoch 5; a smaller lr or relation_lr may help" in result.message
    assert len(result.history["loss"]) == 5
    assert result.best_epoch == good.best_epoch
    assert torch.equal(result.model.points, good.model.points)


@pytest.mark.parametrize("method", METHODS)
def test_resumed_run_equals_the_uninterrupted_one(method, tmp_path):
    config = replace(QUICK, method=method, final_rate=0.0)
    if method != "csdm":
        config = replace(config, relation_options={"momentum": 0.8})
    whole = train(GRAPH, config)
    stopped = train(
        GRAPH, config, checkpoint=tmp_path / "stopped", callback=lambda row: row["epoch"] == 3
    )
    assert stopped.message == "stopped by the callback"
    assert same(whole.model, train(GRAPH, config, checkpoint=tmp_path / "stopped").model)
    rows = []
    assert same(
        whole.model,
        train(GRAPH, config, checkpoint=tmp_path / "stopped", callback=rows.append).model,
    )
    assert not rows  # a finished run is not run again


def interrupt_at(epoch):
    def callback(row):
        if row["epoch"] == epoch:
            raise KeyboardInterrupt

    return callback


def test_checkpoint_of_another_run_is_refused(tmp_path):
    train(GRAPH, QUICK, checkpoint=tmp_path)
    with pytest.raises(jorth.CheckpointMismatch, match=r"lr is 0.02 there and 0.01 here"):
        train(GRAPH, replace(QUICK, lr=0.01), checkpoint=tmp_path)
    with pytest.raises(jorth.CheckpointMismatch, match="another run: graph is"):
        train(hierarchy_with_cycles(branching=3, depth=2, seed=1), QUICK, checkpoint=tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError, match=r"checkpoint: the folder .* cannot be made"):
        train(GRAPH, QUICK, checkpoint=tmp_path / "file")


@pytest.mark.parametrize("method", METHODS)
def test_exported_model_scores_the_same(method, tmp_path):
    config = replace(QUICK, method=method, reciprocal=True, alpha=1.5, dtype="float32", epochs=2)
    model = train(GRAPH, config).model
    save_model(tmp_path, NamedModel(model, GRAPH.entities, GRAPH.relations, {"note": "caf\u00e9"}))
    named = load_model(tmp_path)
    assert same(model, named.model)
    assert torch.equal(named.model(GRAPH.test), model(GRAPH.test))
    assert (tuple(named.entities), tuple(named.relations)) == (GRAPH.entities, GRAPH.relations)
    assert named.about == {"note": "caf\u00e9"}
    assert sorted(os.listdir(tmp_path)) == ["model.json", "model.safetensors"]
