"""Running cells: resuming, failures, missing data, Ctrl-C, and scores that do not trust the
solver."""

import dataclasses
import re

import numpy as np
import pytest
import scipy.linalg

import jorth
from jorth.bench import read_rows, run_cells
from jorth.bench.core.runs import run_cell, run_unfinished, warm_up
from jorth.bench.matrices import runner as runner_module
from jorth.bench.matrices.cells import Crossing, hevp_cells, procrustes_cells
from jorth.bench.matrices.problems import prepare
from jorth.bench.matrices.scoring import CURVE_POINTS, epochs, thinned
from jorth.solvers import Status
from jorth.stopping import NormAbove, ValueBelow

CELLS = hevp_cells([("randn", 12, 8, 4)], Crossing(max_evaluations=6))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """All cells of a small grid in one go."""
    folder = tmp_path_factory.mktemp("run")
    summary = run_cells(CELLS, folder)
    assert (summary.total, summary.finished, summary.interrupted) == (len(CELLS), len(CELLS), False)
    return {row["key"]: row for row in read_rows(folder)}


def comparable(row):
    """What does not depend on the clock."""
    timed = {"date", "time", "wall", "prepared_in", "history", "stages", "reached"}
    values = row["history"]["value"] if "history" in row else None
    return {name: value for name, value in row.items() if name not in timed} | {"values": values}


def test_every_cell_has_a_row(finished):
    assert list(finished) == [cell.key for cell in CELLS]
    for row in finished.values():
        assert row["outcome"] == "done", row.get("error")
        assert {"jorth", "python", "torch", "numpy", "scipy"} <= row["versions"].keys()
        assert row["hardware"]["cpu"]
        assert row["hardware"]["threads"] >= 1
        assert re.match(r"\d{4}-\d\d-\d\dT", row["date"])
        assert row["options"]
        counted = {"value", "gradient", "sample_gradient", "pair_updates", "hessian"}
        assert set(row["counts"]) == counted
        assert len(row["history"]["time"]) >= 1
        # a line search is not cut short in the middle of one evaluation
        assert row["counts"]["gradient"] <= 8


def test_resume_runs_no_cell_twice_and_gives_the_same_rows(finished, tmp_path, monkeypatch):
    k, ran = 7, []

    def stop_after(row):
        ran.append(row["key"])
        if len(ran) == k:
            raise KeyboardInterrupt

    first = run_cells(CELLS, tmp_path, on_row=stop_after)
    assert first.interrupted
    assert first.finished == len(read_rows(tmp_path)) == k
    second = run_cells(CELLS, tmp_path, on_row=lambda row: ran.append(row["key"]))
    assert not second.interrupted
    assert ran == [cell.key for cell in CELLS]
    rows = read_rows(tmp_path)
    assert len((tmp_path / "runs.jsonl").read_text().splitlines()) == len(CELLS)
    for row in rows:
        assert comparable(row) == comparable(finished[row["key"]])
    third = run_cells(CELLS, tmp_path, on_row=lambda row: pytest.fail("everything was done"))
    assert third.finished == len(CELLS)


def test_an_interrupted_run_leaves_no_row(tmp_path, monkeypatch, no_warm_up):
    real = runner_module.minimize
    calls = []

    def interrupted(*arguments, **options):
        result = real(*arguments, **options)
        calls.append(options["method"])
        return dataclasses.replace(result, status=Status.INTERRUPTED) if len(calls) == 2 else result

    monkeypatch.setattr(runner_module, "minimize", interrupted)
    summary = run_cells(CELLS[:4], tmp_path)
    assert summary.interrupted
    assert [row["key"] for row in read_rows(tmp_path)] == [CELLS[0].key]


def test_a_failed_run_is_kept_with_its_error(tmp_path, monkeypatch):
    real = runner_module.minimize

    def fragile(*arguments, **options):
        if options["method"] == "admm":
            raise RuntimeError("the factor does not exist")
        return real(*arguments, **options)

    monkeypatch.setattr(runner_module, "minimize", fragile)
    run_cells(CELLS[:3], tmp_path)
    rows = read_rows(tmp_path)
    assert [row["outcome"] for row in rows] == ["done", "failed", "done"]
    assert rows[1]["error"] == "RuntimeError: the factor does not exist"
    assert "fragile" in rows[1]["traceback"]
    assert rows[1]["versions"] == rows[0]["versions"]
    monkeypatch.setattr(runner_module, "minimize", real)
    assert run_cells(CELLS[:3], tmp_path, on_row=lambda row: pytest.fail("kept")).finished == 3
    run_cells(CELLS[:3], tmp_path, retry_failed=True)
    assert [row["outcome"] for row in read_rows(tmp_path)] == ["done"] * 3


def test_missing_data_are_rows_and_are_looked_for_again(tmp_path):
    cells = hevp_cells(
        [("sector", 20, 6, 3)], Crossing(max_evaluations=3, solvers=["UMCM"]), problems=["race"]
    )
    folder = tmp_path / "data"
    run_cells(cells, tmp_path / "run", data_dir=folder)
    (row,) = read_rows(tmp_path / "run")
    assert row["outcome"] == "missing"
    assert "data set sector is not at hand: `jorth data fetch sector`" in row["error"]
    assert str(tmp_path) not in row["error"]
    folder.mkdir()
    np.savez(folder / "sector.npz", X=np.random.default_rng(0).standard_normal((20, 6)))
    run_cells(cells, tmp_path / "run", data_dir=folder)
    (row,) = read_rows(tmp_path / "run")
    assert row["outcome"] == "done"
    assert row["notes"]["subset"] == "random"


def test_the_first_columns_where_too_few_are_not_zero(tmp_path):
    X = np.zeros((9, 6))
    X[:, :4] = np.random.default_rng(0).standard_normal((9, 4))
    np.savez(tmp_path / "w1a.npz", X=X)
    (cell,) = hevp_cells([("w1a", 8, 6, 3)], Crossing(solvers=["UMCM"]), problems=["trace"])
    problem = prepare(cell, tmp_path)
    assert problem.notes["subset"] == "first"
    assert problem.notes["data_norm_squared"] == pytest.approx(np.sum(X[:8] ** 2))


def test_scores_do_not_trust_the_solver(finished, tmp_path, monkeypatch):
    """A solver that claims a wonderful value, feasibility and all, at a point that has neither."""
    cell = next(c for c in CELLS if c.problem == "trace" and c.method == "GS-JOBCD")
    problem = prepare(cell)
    X = jorth.random_point(problem.signature, cond=9.0, seed=5)
    X[0, 0] += 0.25
    honest = runner_module.minimize(
        problem.objective, problem.x0, signature=problem.signature, max_iterations=1
    )
    lie = dataclasses.replace(honest, x=X, value=-1e9, residual=0.0, violation=0.0)
    monkeypatch.setattr(runner_module, "minimize", lambda *arguments, **options: lie)
    row = run_cell(runner_module.KIND, cell)
    D = jorth.datasets.randn(12, 8)
    A = D.T @ D + 0.01 * np.sum(D**2) / 8 * np.eye(8)
    J = np.diag(problem.signature.signs.astype(float))
    assert row["value"] == pytest.approx(np.trace(X.T @ A @ X), rel=1e-12)
    assert row["claimed"] == -1e9
    assert not row["claim_holds"]
    assert row["violation"] == pytest.approx(np.abs(X.T @ J @ X - J).sum(), rel=1e-12)
    assert row["violation"] > 0.5
    assert row["residual"] == pytest.approx(
        np.abs(X.T @ J @ X - J).max() / np.linalg.norm(X, 2) ** 2, rel=1e-12
    )
    assert row["norm"] == pytest.approx(np.linalg.norm(X, 2), rel=1e-12)
    assert all(r["claim_holds"] for r in finished.values())


def test_the_well_posed_optimum_is_scipys(finished):
    """An oracle of its own: sum |lambda| by scipy.linalg.eigh(J, A)."""
    D = jorth.datasets.randn(12, 8)
    A = D.T @ D + 0.01 * np.sum(D**2) / 8 * np.eye(8)
    J = np.diag([1.0] * 4 + [-1.0] * 4)
    optimum = np.abs(1 / scipy.linalg.eigh(J, A, eigvals_only=True)).sum()
    rows = [row for row in finished.values() if row["cell"]["problem"] == "trace"]
    for row in rows:
        assert row["optimum"] == pytest.approx(optimum, rel=1e-10)
        assert row["gap"] == pytest.approx(
            (row["value"] - optimum) / (row["start_value"] - optimum), rel=1e-6, abs=1e-9
        )
        assert row["gap"] > -1e-12
    assert min(row["gap"] for row in rows) < 1e-8


def test_the_race_is_minus_the_norm_of_DX_from_one_start_near_orthogonal(finished):
    D = jorth.datasets.randn(12, 8)
    rows = [row for row in finished.values() if row["cell"]["problem"] == "race"]
    assert len({row["start_value"] for row in rows}) == 1
    assert 1.01 <= -rows[0]["start_value"] / np.sum(D**2) <= 1.16
    assert rows[0]["notes"]["start_ratio"] == pytest.approx(-rows[0]["start_value"] / np.sum(D**2))
    for row in rows:
        assert row["value"] <= row["start_value"]
        assert row["optimum"] is None
        assert row["gap"] is None
    assert any(row["status"] == "UNBOUNDED" for row in rows)


def test_what_minimize_is_told(monkeypatch):
    """Seed, limits and start of the cell; a race goes on where others stop, and ends when ||X||
    runs away."""
    told = {}

    def listen(objective, x0, **options):
        told.update(options, x0=x0)
        raise RuntimeError("heard")

    monkeypatch.setattr(runner_module, "minimize", listen)
    crossing = Crossing(seeds=(0, 4), max_time=2.5, max_evaluations=6, solvers=["J-JOBCD"])
    starts = {}
    for cell in hevp_cells([("randn", 12, 8, 4)], crossing):
        run_cell(runner_module.KIND, cell)
        race = cell.problem == "race"
        assert told["seed"] == cell.seed
        assert (told["max_time"], told["max_evaluations"], told["gradient_tolerance"]) == (
            2.5,
            6,
            0.0,
        )
        assert told["on_unbounded"] == ("continue" if race else "stop")
        assert told["stop"] == NormAbove(1e6) if race else isinstance(told["stop"], ValueBelow)
        starts.setdefault(cell.seed, []).append(told["x0"])
    (race, trace), (other, _) = starts.values()
    assert (race == trace).all()
    assert np.abs(race - other).max() > 0.01


def test_procrustes_reaches_its_gaps():
    cells = procrustes_cells(
        [6],
        [0.5],
        [3.0],
        Crossing(max_evaluations=200, solvers=["riemannian l-bfgs", "vr-j-jobcd"]),
    )
    variance_reduced, quasi_newton = (run_cell(runner_module.KIND, cell) for cell in cells)
    reached = quasi_newton["reached"]
    assert list(reached) == ["0.01", "0.0001", "1e-08"]
    assert (
        reached["0.01"]["time"]
        <= reached["0.0001"]["time"]
        <= reached["1e-08"]["time"]
        <= quasi_newton["time"]
    )
    assert reached["1e-08"]["gradients"] <= quasi_newton["counts"]["gradient"]
    # the curve is in full gradients, not in samples; beyond the limit go one step and the score of
    # the last point
    assert max(variance_reduced["history"]["gradients"]) <= 203


def test_epochs_are_full_gradients():
    """Of a sum of m terms m sample gradients are one; values cost nothing."""
    history = {
        "value_evaluations": np.array([1.0, 9.0]),
        "gradient_evaluations": np.array([1.0, 2.0]),
        "sample_gradient_evaluations": np.array([12.0, 30.0]),
    }
    assert epochs(prepare(CELLS[0]), history).tolist() == [1.0, 2.0]
    (cell,) = procrustes_cells([6], [0.5], [3.0], Crossing(solvers=["UMCM"]))
    assert cell.m == 12
    assert epochs(prepare(cell), history).tolist() == [1.0, 2.5]


def test_warm_up_runs_each_method_once():
    seen = []

    def measure(cell, *rest):
        seen.append(cell)

    warm_up(dataclasses.replace(runner_module.KIND, measure=measure), CELLS + CELLS)
    assert len(seen) == len({(cell.problem, cell.method) for cell in seen}) == len(CELLS)
    assert max(cell.n for cell in seen) <= 6


def test_nothing_is_compiled_for_data_that_are_missing(tmp_path):
    seen = []

    def measure(cell, *rest):
        seen.append(cell)

    kind = dataclasses.replace(runner_module.KIND, measure=measure)
    absent = dataclasses.replace(CELLS[0], data="w1a")
    run_unfinished(kind, [absent], tmp_path / "none", data_dir=tmp_path)
    assert [cell.data for cell in seen] == ["w1a"]
    (tmp_path / "w1a.npz").touch()
    run_unfinished(kind, [absent], tmp_path / "there", data_dir=tmp_path)
    assert [cell.data for cell in seen] == ["w1a", "randn", "w1a"]


def test_thinning_keeps_the_ends():
    for length in (1, CURVE_POINTS, CURVE_POINTS + 1, 10_000):
        kept = thinned(length)
        assert len(kept) <= CURVE_POINTS
        assert kept[0] == 0
        assert kept[-1] == length - 1
        assert (np.diff(kept) > 0).all()
    assert (thinned(CURVE_POINTS) == np.arange(CURVE_POINTS)).all()
    assert np.diff(thinned(10_000)).max() + 100 > 9_999 * 0.01  # even at the far end
