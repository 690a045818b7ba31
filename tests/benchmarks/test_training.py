"""`benchmarks/training.py`: tasks, tiny runs of every method, what the records say."""

import json
import math
from functools import partial

import pytest
import torch

import jorth
from benchmarks import training, training_methods, training_runs, training_tasks
from benchmarks.training_methods import METHODS
from benchmarks.training_results import Results, loss_at, tables
from benchmarks.training_runs import Run, measure
from benchmarks.training_tasks import TASKS, Boosts, Tree


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
    assert len(record["loss"]) == len(record["ms"]) == 6
    assert record["ms"] == sorted(record["ms"])
    assert record["loss"][-1] < record["loss"][0]
    assert (record["residual"] < 1e-5) == METHODS[method].feasible
    assert record["norm"] >= 1


def test_runs_that_fail_are_records(monkeypatch):
    def broken(start, signature, lr):
        raise RuntimeError("no such thing")

    monkeypatch.setitem(METHODS, "broken", training_methods.Method(broken))
    assert measure(Run("boosts", "broken", 0.1, 7), 3)["failed"] == "RuntimeError: no such thing"
    record = measure(Run("boosts", "Adam, unconstrained", 1e30, 7), 5)
    assert "finite" in record["failed"]
    assert None in record["loss"]


def made_up(run, losses=None, ms=2.0):
    """Losses that fall from 1 to one that depends on method and rate."""
    end = losses(run) if losses else 0.1
    return training_runs.blank(run) | {
        "steps": [0, 5, 10],
        "loss": [1.0, math.sqrt(end), end],
        "ms": [0.0, 5 * ms, 10 * ms],
        "ms_per_step": ms,
        "residual": 1e-7,
        "norm": 2.0,
    }


def test_losses_between_scores():
    record = made_up(Run("tree", "JOBCD", 0.01, 0))
    for ms, expected in ((0, 1.0), (5, 0.1**0.25), (10, 0.1**0.5), (20, 0.1), (30, 0.1)):
        assert loss_at(record, ms) == pytest.approx(expected)
    assert loss_at(record | {"failed": "why"}, 5) == math.inf


def lines_with(losses):
    return [made_up(run, losses) for run in training.plan((0, 1))]


def sharp(run):
    """Best at 0.1 for JOBCD and at 0.3 for the others, which are better there."""
    best = 0.1 if run.method == "JOBCD" else 0.3
    lowest = 0.2 if run.method == "JOBCD" else 0.1
    return lowest * (1 + abs(math.log10(run.lr / best)))


def test_best_rates_and_what_lies_around_them():
    lines = lines_with(sharp)
    failed = next(line for line in lines if line.get("lr") == 0.3 and line["task"] == "align")
    failed["failed"] = "one seed of the best rate"
    found = Results([*lines, made_up(Run("tree", "JOBCD", 0.01, 2))])
    assert found.seeds == [0, 1]  # the last one is incomplete
    assert found.best("tree", "CS form + Adam") == pytest.approx((0.1, 0.3))
    assert found.best("align", failed["method"]).lr in (0.1, 1.0)
    assert found.failed("align", failed["method"]) == (1, 2 * len(METHODS[failed["method"]].rates))


def test_the_tables_have_the_best_rates():
    text = tables(Results(lines_with(sharp)))
    assert "### tree" in text
    assert "| CS form + Adam | 0.3 | 0.1 ± 0 | 1.00 | 0 of 16 |" in text
    assert "| JOBCD | 0.1 | 0.2 ± 0 | 2.00 | 0 of 10 |" in text


def test_a_run_goes_on_where_it_was_interrupted(tmp_path, monkeypatch):
    called = []

    def in_this_process(runs, make, workers, seconds):
        called.append(len(runs))
        assert isinstance(make, partial)
        yield from (made_up(run) for run in runs[:3])

    monkeypatch.setattr(training, "results", in_this_process)
    path, runs = tmp_path / "records.jsonl", training.plan((0,))[:5]
    assert training.run_all(runs, path, 1, 60.0, None) == 2
    assert training.run_all(runs, path, 1, 60.0, None) == 0
    assert training.run_all(runs, path, 1, 60.0, None) == 0
    assert called == [5, 2, 0]
    records = [line for line in training.read(path) if "task" in line]
    assert [tuple(line[key] for key in Run._fields) for line in records] == [*map(tuple, runs)]
