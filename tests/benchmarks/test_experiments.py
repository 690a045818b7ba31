"""The experiments: the objective scores by itself, tables rank as the paper, UltraE learns."""

import importlib
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import jorth
from benchmarks.paper import table, ultrae
from jorth import kge

ROOT = Path(__file__).resolve().parents[2]
PAPER = ROOT / "benchmarks" / "paper"


@pytest.fixture
def load(monkeypatch):
    """Import a module of a benchmark as benchopt does: its folder comes first."""
    pytest.importorskip("benchopt")

    def import_from(folder, name):
        for module in ("benchmark_utils", "objective", "shared"):
            monkeypatch.delitem(sys.modules, module, raising=False)
        monkeypatch.syspath_prepend(str(folder))
        return importlib.import_module(name)

    return import_from


def test_hevp_scores_a_point_by_itself(load):
    """Value, violation and gap against plain formulas, at a point that is not feasible."""
    objective = load(PAPER / "hevp", "objective").Objective.get_instance(sense="min", seed=3)
    signature = jorth.Signature(3, 2)
    D = np.random.default_rng(0).standard_normal((12, 5))
    objective.set_data(D, signature)
    X = np.random.default_rng(1).standard_normal((5, 5))
    row = objective.evaluate_result(X=X)
    A = D.T @ D + 0.01 * np.trace(D.T @ D) / 5 * np.eye(5)
    J = np.diag([1.0, 1, 1, -1, -1])
    assert row["value"] == pytest.approx(np.trace(X.T @ A @ X))
    assert row["violation"] == pytest.approx(np.abs(X.T @ J @ X - J).sum())
    optimum = np.abs(1 / np.linalg.eigvals(np.linalg.solve(A, J))).sum()
    first = np.trace(objective.x0.T @ A @ objective.x0)
    assert row["gap"] == pytest.approx((row["value"] - optimum) / (first - optimum))
    race = type(objective).get_instance(sense="max")
    race.set_data(D, signature)
    assert race.evaluate_result(X=X)["value"] == pytest.approx(-np.square(D @ X).sum())


def test_the_tasks_of_speed_have_the_derivatives_of_their_torch_functions(load):
    speed = load(ROOT / "benchmarks" / "speed", "benchmark_utils")
    rng = np.random.default_rng(0)
    source, target, X, V = (rng.standard_normal(s) for s in ((9, 4), (9, 4), (4, 4), (4, 4)))
    tasks = (
        speed.Procrustes(source, target),
        speed.Trace(source.T @ source),
        speed.Robust(source, target, 0.7),
    )
    for task in tasks:
        by_autograd = speed.ByAutograd(task)
        assert task.value(X) == pytest.approx(by_autograd.value(X))
        np.testing.assert_allclose(task.gradient(X), by_autograd.gradient(X), rtol=1e-10)
        np.testing.assert_allclose(task.hessian(X, V), by_autograd.hessian(X, V), rtol=1e-9)


def test_agreements_count_strict_pairs_alone():
    ours = {"UMCM": -1.0, "ADMM": -2.0, "CSDM": -math.inf, "J-JOBCD": -math.inf}
    theirs = {"UMCM": -1.0, "ADMM": -1.0, "CSDM": -3.0, "J-JOBCD": -2.0}
    # equal on a side: UMCM and ADMM in the paper, the last two here
    assert table.agreements(ours, theirs) == (4, 4)
    assert table.agreements(ours | {"CSDM": -0.5}, theirs) == (2, 5)


def test_a_run_of_benchopt_and_its_table(tmp_path):
    pytest.importorskip("benchopt")
    path = tmp_path / "race.parquet"
    command = [sys.executable, "-m", "benchopt", "run", str(PAPER / "hevp"), "--no-cache"]
    command += ["-o", "HEVP[seconds=0.2]", "-d", "randn[size=randn-10-10-5]", "--no-plot"]
    command += ["-s", "UMCM", "-s", "J-JOBCD", "-s", "Newton", "--output", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert path.exists(), done.stdout + done.stderr
    text = table.tables([path])
    assert "| randn-10-10-5 |" in text
    assert "| *printed* | *1.29e+02* |" in text
    last = table.final_points([path])
    assert last[last["p_obj_sense"] == "min"]["objective_gap"].max() < 1e-6


def test_the_reduced_form_is_on_the_group():
    form = ultrae.ReducedCS()
    a, b, mu, c, d = form.right_inverse(torch.zeros(4, 12, 12, dtype=torch.float64))
    X = form(a, b, mu + torch.rand(4, 6, dtype=torch.float64), c, d)
    assert torch.as_tensor(jorth.residual(X, jorth.Signature(6, 6))).max() < 1e-14


@pytest.mark.parametrize("method", ultrae.METHODS)
def test_ultrae_learns(method):
    """The loss falls, and relations stay J-orthogonal."""
    triples = kge.hierarchy_with_cycles(branching=3, depth=2)
    run = ultrae.Run("generated", method, 0.03, 0, 6)
    record = ultrae.train(run, triples, signature=jorth.Signature(4, 4), negatives=10)
    assert record["losses"][-1] < record["losses"][0]
    assert 0 <= record["mrr"] <= 1
    assert record["graph"] == "generated"
