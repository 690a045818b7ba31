"""`benchmarks/training.py`: tasks, tiny runs of every method, what the records say."""

import json
import math
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

import jorth
from benchmarks import training, training_tasks
from benchmarks.training import Run, best, frame, loss_at, measure, tables
from benchmarks.training_tasks import METHODS, TASKS, Boosts, Method, Tree


@pytest.mark.parametrize("name", TASKS)
def test_tasks(name):
    """J-orthogonal starts, minibatches that are not all data, and gradients that are not zero."""
    task = TASKS[name](3, 2)
    assert all(torch.as_tensor(jorth.residual(x, task.signature)).max() < 1e-5 for x in task.start)
    X = [x.clone().requires_grad_() for x in task.start]
    losses = [task.loss(X, step, task.others) for step in (0, 1, None)]
    assert len({loss.item() for loss in losses}) == (1 if name in ("tree", "boosts") else 3)
    losses[0].backward()
    assert all(x.grad.isfinite().all() and x.grad.abs().max() > 0 for x in X)
    assert all(torch.equal(a, b) for a, b in zip(task.start, TASKS[name](3, 2).start, strict=True))


def test_maps_of_the_hyperboloid():
    origin, far = torch.zeros(3), torch.tensor([-math.sinh(2.0), 0.0, 0.0])
    origin, far = training_tasks.lift(origin), training_tasks.lift(far)
    assert training_tasks.distances(origin, far).item() == pytest.approx(2.0, rel=1e-6)
    assert training_tasks.distances(-jorth.Signature(3, 1).vector(far) * far, far).item() == (
        pytest.approx(4.0, rel=1e-6)
    )
    x = training_tasks.lift(torch.tensor([[0.3, 0.0, 2.0], [0.3, -1.0, 2.0], [-1.0, -2.0, 0.0]]))
    found = training_tasks.activate(x)
    assert torch.allclose(found[0], x[0])
    assert torch.allclose(found[2], origin, atol=1e-5)
    length = math.asinh(math.sqrt(5.09)) * math.sqrt(4.09 / 5.09)  # what relu leaves
    assert found[1, 3].item() == pytest.approx(math.cosh(length), rel=1e-5)


def test_the_loss_of_the_tree_node_by_node():
    task = Tree(2, 1)
    edges = task.start[0].double()
    places = [torch.eye(8, dtype=torch.float64)]
    for node in range(1, 63):
        places.append(places[(node - 1) // 2] @ edges[node - 1])
    signs = torch.tensor([1.0] * 7 + [-1.0], dtype=torch.float64)
    x = torch.stack([place[:, 7] for place in places])
    found = torch.arccosh(-(x * signs) @ x.mT)[task.first, task.second]
    expected = (found / task.lengths.double() - 1).square().mean().item()
    assert task.loss(task.start, None, ()).item() == pytest.approx(expected, rel=1e-4)


def test_the_loss_of_a_planted_matrix_is_that_of_the_noise():
    task = Boosts(4, 1)
    source, target = task.source.double(), task.target.double() / task.inverse_scale.double()
    found = torch.linalg.lstsq(source.mT, target.mT).solution.mT
    assert 1e-5 < task.loss([found.float()], None, ()).item() < 1.1e-4


@pytest.mark.parametrize("method", METHODS)
def test_a_tiny_run(method):
    record = json.loads(json.dumps(measure(Run("tree", method, 0.01, 7), 5)))
    assert record["failed"] is None
    assert record["steps"] == [0, 1, 2, 3, 4, 5]
    assert record["ms"] == sorted(record["ms"])
    assert record["loss"][-1] < record["loss"][0]
    assert (record["residual"] < 1e-5) == METHODS[method].feasible
    assert record["norm"] >= 1


def test_runs_that_fail_are_records(monkeypatch):
    def broken(start, signature, lr):
        raise RuntimeError("no such thing")

    monkeypatch.setitem(METHODS, "broken", Method(broken))
    assert measure(Run("boosts", "broken", 0.1, 7), 3)["failed"] == "RuntimeError: no such thing"
    record = measure(Run("boosts", "Adam, unconstrained", 1e30, 7), 5)
    assert "not finite" in record["failed"]
    assert loss_at(record, 0) == math.inf


def made_up(run, steps=None):
    """Best at 0.1 for JOBCD and at 0.3 for the others, which are better there; 2 ms a step."""
    sharpest, lowest = (0.1, 0.2) if run.method == "JOBCD" else (0.3, 0.1)
    end = lowest * (1 + abs(math.log10(run.lr / sharpest)))
    curves = dict(steps=[0, 5, 10], loss=[1.0, math.sqrt(end), end], ms=[0.0, 10.0, 20.0])
    return run._asdict() | curves | dict(failed=None, residual=1e-7, norm=2.0)


def test_losses_between_scores():
    record = made_up(Run("tree", "JOBCD", 0.01, 0))
    for ms, expected in ((0, 1.0), (5, 0.4**0.25), (10, 0.4**0.5), (20, 0.4), (30, 0.4)):
        assert loss_at(record, ms) == pytest.approx(expected)


def test_the_tables_have_the_best_rates():
    records = [made_up(run) for run in training.plan([0, 1])]
    failed = next(one for one in records if one["lr"] == 0.3 and one["task"] == "align")
    failed["failed"] = "one seed of the best rate"
    found = frame(records)
    assert best(found).loc[("align", failed["method"]), "lr"] in (0.1, 1.0)
    text = tables(found)
    assert "### tree" in text
    assert "| CS form + Adam | 0.3 | 0.1 ± 0 | 1.00 | 2.00 | 1e-07 | 2 | 0 of 16 |" in text
    assert "| JOBCD, default | 0.01 | 0.4 ± 0 | 4.00 | 2.00 | 1e-07 | 2 | 0 of 2 |" in text
    of = 2 * len(METHODS[failed["method"]].rates)
    assert f"1 of {of}" in text.partition("### align")[2]
    assert "| tree, 0.02 s |" in text


def test_a_run_goes_on_where_it_was_interrupted(tmp_path, monkeypatch):
    monkeypatch.setattr(training, "ProcessPoolExecutor", lambda workers, _: ThreadPoolExecutor(1))
    monkeypatch.setattr(training, "measure", made_up)
    path, runs = tmp_path / "records.jsonl", training.plan([0])[:5]
    training.run_all(runs[:3], path, 1, None)
    path.write_text(path.read_text()[:-5])  # interrupted while it was written
    monkeypatch.setattr(training, "measure", lambda run, steps: made_up(run) | {"norm": 3.0})
    found = training.run_all(runs, path, 1, None)
    assert [record["norm"] for record in found] == [2, 2, 3, 3, 3]
    assert training.read(path) == found
