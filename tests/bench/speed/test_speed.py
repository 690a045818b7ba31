"""`jorth bench speed`: the peers are right and reach the optimum, the harness counts and resumes,
the table divides."""

import math
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import jorth
from jorth.bench import read_rows, run_cells
from jorth.bench.core import runs
from jorth.bench.core.records import append_row, remaining
from jorth.bench.matrices.problems import BenchProblem
from jorth.bench.speed import runner
from jorth.bench.speed.cells import (
    BETAS,
    BUDGETS,
    CDOPT,
    CHAIN,
    DATA_START,
    SPEED_METHODS,
    Plan,
    SpeedCell,
    budget,
    left_out,
)
from jorth.bench.speed.peers import (
    DenseProcrustes,
    Ended,
    PullbackHessian,
    Trace,
    cdopt_problem,
    pymanopt_problem,
)
from jorth.bench.speed.runner import equal_threads
from jorth.bench.speed.table import entries, goal, markdown
from jorth.cli.bench_speed import speed as bench_speed
from jorth.clock import Clock
from tests.bench.test_commands import jorth as command

SIGNATURE = jorth.Signature.of([1, -1, 1, 1, -1, 1, -1, 1])


def planted(signature=SIGNATURE, seed=3):
    source, target, _ = jorth.datasets.planted_procrustes(
        2 * signature.n, signature, noise=0.1, seed=seed
    )
    objective = jorth.Procrustes(source, target)
    return objective, DenseProcrustes(objective)


def run_cell(of, rows=()):
    return runs.run_cell(runner.KIND, of, None, rows)


def skew(seed, n=SIGNATURE.n):
    M = np.random.default_rng(seed).standard_normal((n, n))
    return M - M.T


def cell(method="GS-JOBCD", **fields):
    given = dict(
        n=10,
        p=5,
        condition=3.0,
        threads=1,
        seed=0,
        max_time=5.0,
        beta=10.0 if method == CDOPT else None,
    )
    return SpeedCell(method=method, **given | fields)


# -- the peers


def test_the_dense_objective_is_procrustes():
    objective, dense = planted()
    X = jorth.random_point(SIGNATURE, seed=1)
    value, gradient = objective.value_and_gradient(torch.from_numpy(X))
    assert dense.value(X) == pytest.approx(value.item(), rel=1e-14)
    np.testing.assert_allclose(dense.gradient(X), gradient.numpy(), rtol=1e-12, atol=1e-13)
    V = np.random.default_rng(0).standard_normal(X.shape)
    along = (dense.gradient(X + V) - dense.gradient(X - V)) / 2
    np.testing.assert_allclose(dense.curvature() @ V, along, atol=1e-12)


def test_pymanopts_gradient_and_hessian_are_those_of_the_pullback():
    """against central differences of t -> f(R(t S) X), with errors of order h^2 and u / h^2."""
    _, dense = planted()
    problem = pymanopt_problem(dense, SIGNATURE)
    X, S, h = jorth.random_point(SIGNATURE, seed=1), skew(5) / 5, 1e-4
    at = [problem.cost(problem.manifold.retraction(X, t * S)) for t in (-h, 0.0, h)]
    slope = problem.manifold.inner_product(X, problem.riemannian_gradient(X), S)
    bend = problem.manifold.inner_product(X, problem.riemannian_hessian(X, S), S)
    assert slope == pytest.approx((at[2] - at[0]) / (2 * h), rel=1e-5)
    assert bend == pytest.approx((at[2] - 2 * at[1] + at[0]) / h**2, rel=1e-5)


def test_the_hessian_is_symmetric_and_follows_the_point():
    _, dense = planted()
    hessian = PullbackHessian(dense, SIGNATURE)
    S, T = skew(5), skew(6)
    for seed in (1, 2):
        X = jorth.random_point(SIGNATURE, seed=seed)
        assert np.vdot(hessian(X, S), T) == pytest.approx(np.vdot(S, hessian(X, T)), rel=1e-11)
        np.testing.assert_array_equal(hessian(X, S), PullbackHessian(dense, SIGNATURE)(X, S))


def test_pymanopts_points_stay_on_the_constraint():
    _, dense = planted()
    manifold = pymanopt_problem(dense, SIGNATURE).manifold
    X = manifold.retraction(jorth.random_point(SIGNATURE, seed=1), skew(5) / 10)
    assert jorth.residual(X, SIGNATURE) < 1e-14


def test_cdopts_gradient_is_that_of_the_dissolved_function():
    pytest.importorskip("cdopt")
    _, dense = planted()
    problem = cdopt_problem(dense, SIGNATURE, beta=3.0)
    X = jorth.random_point(SIGNATURE, seed=1) + 0.05 * np.random.default_rng(2).standard_normal(
        (8, 8)
    )
    V, h = np.random.default_rng(3).standard_normal(64), 1e-5
    values = [problem.cdf_fun_vec_np(X.ravel() + t * V) for t in (-h, h)]
    assert problem.cdf_grad_vec_np(X.ravel()) @ V == pytest.approx(
        (values[1] - values[0]) / (2 * h), rel=1e-7
    )
    on = jorth.random_point(SIGNATURE, seed=1)
    assert problem.cdf_fun_vec_np(on.ravel()) == pytest.approx(
        dense.value(on), rel=1e-12
    )  # A(X) = X, C(X) = 0 there


@pytest.mark.parametrize("method", SPEED_METHODS)
def test_every_method_reaches_the_optimum(method):
    if method == CDOPT:
        pytest.importorskip("cdopt")
    row = run_cell(cell(method))
    assert row["outcome"] == "done", row
    assert row["status"] == "reached"
    assert list(row["reached"]) == ["0.01", "0.0001", "1e-08"]
    times = list(row["reached"].values())
    assert 0 < times[0] <= times[1] <= times[2] <= row["time"]
    assert abs(row["gap"]) <= 0.9e-8


# -- clocks and gaps


@pytest.mark.parametrize("method", ["Riemannian L-BFGS", CHAIN, "pymanopt TR"])
def test_a_start_from_the_data_is_lower_and_on_the_clock(method, monkeypatch):
    near, far = run_cell(cell(method + DATA_START)), run_cell(cell(method))
    assert near["status"] == far["status"] == "reached"
    assert near["steps"] < far["steps"]
    assert near["notes"]["start_value"] == far["notes"]["start_value"]  # gaps are of one scale
    first = next(iter(near["reached"].values()))

    real = runner.data_start

    def slowly(*arguments):
        began = time.process_time()
        while time.process_time() < began + 0.1:
            pass
        return real(*arguments)

    monkeypatch.setattr(runner, "data_start", slowly)
    slow = run_cell(cell(method + DATA_START))
    assert slow["reached"]["0.01"] > 0.1
    assert first < 0.1
    assert slow["time"] > 0.1


def test_gaps_are_relative_to_the_start():
    eleven = SimpleNamespace(value=lambda X: torch.tensor(11.0))
    problem = BenchProblem(eleven, SIGNATURE, np.eye(8), optimum=1.0, notes={})
    assert problem.gap(2.0) == pytest.approx(0.1)
    assert problem.value_at(0.9e-8) == pytest.approx(1.0 + 0.9e-8 * 10)
    assert problem.first_within([11.0, 1.09, math.nan, 1.0005, 1.5]) == {"0.01": 1, "0.0001": 3}


def test_recording_is_off_the_clock_and_ends_the_run(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(Clock, "now", lambda: now[0])

    def slow_value(X):
        now[0] += 100.0
        return X

    trace = Trace(slow_value, target=0.9e-8, max_time=2.5)
    for _ in range(2):
        now[0] += 1.0
        trace.record(0.5)
    now[0] += 1.0
    with pytest.raises(Ended):
        trace.record(lambda: 0.25)
    assert trace.records == [(1.0, 0.5), (2.0, 0.5), (3.0, 0.25)]
    early = Trace(slow_value, target=0.9e-8, max_time=2.5)
    with pytest.raises(Ended):
        early.record(0.0)


def test_threads_are_equal_for_all_and_set_back():
    from threadpoolctl import threadpool_info

    before = torch.get_num_threads(), [pool["num_threads"] for pool in threadpool_info()]
    with equal_threads(1):
        assert torch.get_num_threads() == 1
        assert {pool["num_threads"] for pool in threadpool_info()} == {1}
    assert (torch.get_num_threads(), [pool["num_threads"] for pool in threadpool_info()]) == before


def test_a_short_run_is_the_median_of_three():
    short, long = iter([("a", 0.3), ("b", 0.1), ("c", 0.2)]), iter([("d", 1.5)])
    assert runner._median_run(lambda: next(short)) == ("c", 0.2)
    assert runner._median_run(lambda: next(long)) == ("d", 1.5)


def test_one_thread_is_timed_by_the_processor():
    with runner.clock_for(1):
        clock = Clock()
        clock.start()
        time.sleep(0.2)
        clock.pause()
    assert clock.seconds < 0.1  # asleep
    with runner.clock_for(2):
        assert Clock.now is time.perf_counter
    assert Clock.now is time.perf_counter


# -- what is run


def test_the_plan():
    cells = Plan().cells()
    assert (
        len(cells) == len(set(cells)) == 2 * 4 * (3 * 3 + 2) * (len(SPEED_METHODS) - 1 + len(BETAS))
    )
    assert {(c.n, c.p) for c in cells} >= {(50, 25), (50, 45), (1000, 500), (1000, 900)}
    assert {c.seed for c in cells if c.n >= 500} == {0}
    first = cells[: len(SPEED_METHODS) - 1 + len(BETAS)]
    assert {(c.n, c.seed, c.threads) for c in first} == {(50, 0, 1)}
    assert [c.beta for c in first if c.method == CDOPT] == list(BETAS)
    assert [budget(n) for n in (10, 50, 51, 1000, 2000)] == [2.0, 2.0, 3.0, 40.0, 40.0]


def made(of, outcome="done", gap=1.0, **times):
    fields = {"key": of.key, "cell": of.__dict__, "outcome": outcome}
    reached_ = {name: times[name] for name in ("0.01", "0.0001", "1e-08") if name in times}
    return fields | (
        {"reached": reached_, "gap": gap, "time": of.max_time}
        if outcome == "done"
        else {"error": "why"}
    )


def test_methods_that_fell_short_are_left_out_at_the_next_size():
    large = cell("UMCM", n=1000, p=500)
    short = made(cell("UMCM", n=500, p=250), **{"0.01": 1.0})
    assert left_out(large, [short]) == "no run within 0.0001 at n = 500"
    assert (
        left_out(large, [made(cell("UMCM", n=500, p=250), **{"0.01": 1.0, "0.0001": 2.0})]) is None
    )
    assert left_out(large, []) is None
    others = [dict(p=450), dict(condition=30.0), dict(threads=2), dict(method="J-JOBCD")]
    for other in others:
        fields = dict(method="UMCM", n=500, p=250) | other
        assert left_out(large, [made(cell(**fields))]) is None
    assert (
        left_out(cell("UMCM", n=100, p=50), [made(cell("UMCM", n=50, p=25))]) is None
    )  # small ones are always run


def test_a_run_that_is_left_out_is_a_row_that_says_why():
    row = run_cell(cell("UMCM", n=1000, p=500), [made(cell("UMCM", n=500, p=250))])
    assert (row["outcome"], row["error"]) == ("left out", "no run within 0.0001 at n = 500")
    assert "reached" not in row


def test_penalties_are_tuned_on_the_first_seed():
    rows = [
        made(cell(CDOPT, beta=0.1), **{"0.01": 0.1}),
        made(cell(CDOPT, beta=1.0), **{"0.01": 1.0, "0.0001": 2.0}),
        made(cell(CDOPT, beta=10.0), **{"0.01": 0.5, "0.0001": 1.5}),
        made(cell(CDOPT, beta=100.0), outcome="failed"),
    ]
    assert left_out(cell(CDOPT, beta=10.0, seed=1), rows) is None
    assert left_out(cell(CDOPT, beta=1.0, seed=1), rows) == "beta 10 was better on the first seed"
    assert left_out(cell(CDOPT, beta=1.0), rows) is None  # the first seed tries all
    later = [
        *rows,
        made(cell(CDOPT, beta=1.0, seed=1), **{"0.01": 0.1, "0.0001": 0.2, "1e-08": 0.3}),
    ]
    assert left_out(cell(CDOPT, beta=10.0, seed=2), later) is None
    assert left_out(cell(CDOPT, n=500, p=250, beta=1.0), rows) == "beta 10 was better at n = 10"
    assert left_out(cell(CDOPT, n=500, p=250, beta=10.0), rows) is None


# -- rows


def test_a_missing_peer_is_a_row_that_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymanopt", None)
    monkeypatch.setitem(sys.modules, "pymanopt.optimizers", None)
    row = run_cell(cell("pymanopt CG"))
    assert row["outcome"] == "missing"
    assert row["error"] == "pymanopt.optimizers is not installed: pip install 'jorth[bench]'"
    assert run_cell(cell("GS-JOBCD"))["outcome"] == "done"


def test_a_failed_run_stays_in_the_table(monkeypatch, no_warm_up, tmp_path):
    def broken(*arguments, **options):
        raise FloatingPointError("lost")

    monkeypatch.setattr(runner, "run_pymanopt", broken)
    cells = [cell("pymanopt CG"), cell("pymanopt TR"), cell("Riemannian L-BFGS")]
    summary = run_cells(cells, tmp_path)
    assert (summary.finished, summary.total, summary.interrupted) == (3, 3, False)
    rows = read_rows(tmp_path)
    assert [row["outcome"] for row in rows] == ["failed", "failed", "done"]
    assert rows[0]["error"] == "FloatingPointError: lost"
    (entry,) = entries(rows)
    assert "failed" in markdown([entry])[2]
    assert entry.ratio("Riemannian L-BFGS", 1e-8) is None
    assert remaining(cells, summary.path) == []
    assert remaining(cells, summary.path, retry_failed=True) == cells[:2]


def test_ctrl_c_keeps_what_is_done_and_the_same_call_goes_on(monkeypatch, no_warm_up, tmp_path):
    cells = [cell(name, max_time=1.0) for name in ("GS-JOBCD", "UMCM", "Riemannian L-BFGS")]
    real, calls = runner.minimize, []

    def second_is_interrupted(*arguments, **options):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*arguments, **options)

    monkeypatch.setattr(runner, "SHORT_SECONDS", 0.0)
    monkeypatch.setattr(runner, "minimize", second_is_interrupted)
    summary = run_cells(cells, tmp_path)
    assert (summary.finished, summary.interrupted) == (1, True)
    first = (tmp_path / "runs.jsonl").read_text()
    summary = run_cells(cells, tmp_path)
    assert (summary.finished, summary.interrupted) == (3, False)
    assert (tmp_path / "runs.jsonl").read_text().startswith(first)
    assert [row["cell"]["method"] for row in read_rows(tmp_path)] == [
        "GS-JOBCD",
        "UMCM",
        "Riemannian L-BFGS",
    ]


def test_left_out_rows_are_over(tmp_path):
    cells = [cell("UMCM", n=500, p=250), cell("UMCM", n=1000, p=500)]
    append_row(tmp_path / "runs.jsonl", made(cells[0]))
    append_row(tmp_path / "runs.jsonl", made(cells[1], outcome="left out"))
    assert remaining(cells, tmp_path / "runs.jsonl", retry_failed=True) == []


def test_the_command_offers_what_the_plan_has():
    text = " ".join(command("bench", "speed", "--help").output.split())
    assert "Default: 50, 100, 200, 500 and 1000." in text
    assert "Default: 3 and 30." in text
    assert f"{min(BUDGETS.values()):g} to {max(BUDGETS.values()):g}, by size" in text
    (option,) = [option for option in bench_speed.params if option.name == "methods"]
    assert list(option.type.choices) == list(SPEED_METHODS)


# -- the table


def test_ratios_are_the_best_peers_time_over_ours():
    rows = [
        made(cell("GS-JOBCD", seed=0), **{"0.01": 1.0, "1e-08": 8.0}),
        made(cell("GS-JOBCD", seed=1), **{"0.01": 3.0, "1e-08": 2.0}),
        made(cell("GS-JOBCD", seed=2), **{"0.01": 2.0}),
        made(cell("J-JOBCD"), **{"0.01": 1.0}),
        made(cell(CHAIN), outcome="left out"),
        made(cell("pymanopt CG"), **{"0.01": 4.0, "0.0001": 5.0, "1e-08": 20.0}),
        made(cell("pymanopt TR"), **{"0.01": 6.0, "0.0001": 7.0, "1e-08": 16.0}),
        made(cell(CDOPT, beta=0.1), **{"0.01": 0.5}),
        made(cell(CDOPT, beta=1.0), **{"0.01": 5.0, "0.0001": 9.0}),
        made(
            cell("pymanopt TR" + DATA_START), **{"0.01": 0.1, "0.0001": 0.1, "1e-08": 32.0}
        ),  # helped: no peer
    ]
    (entry,) = entries(rows)
    assert (
        entry.ratio("GS-JOBCD", 1e-2).value == 4.0 / 2.0
    )  # the median over the seeds; beta 1 came deeper than 0.1
    assert (
        entry.ratio("GS-JOBCD", 1e-8).value == 16.0 / 8.0
    )  # a run that did not get there is infinite
    assert entry.ratio("GS-JOBCD", 1e-4) is None
    assert entry.ratio("pymanopt TR", 1e-8).value == 1.0
    assert entry.best_peer(1e-8) == ("pymanopt TR", 16.0)
    assert entry.beta == 1.0
    assert entry.fastest(1e-8) == "GS-JOBCD"
    line = markdown([entry])[2]
    assert line.replace("\u2013", "no") == (
        "| 10, 5 | 3 | 1 | 2 / no / 2 | 4 / no / no | left out | not run | not run | not run | "
        "not run |"
        " 1 / 1 / 0.8 | 0.67 / 0.71 / 1 | 0.8 / 0.56 / no (β 1) | 40 / 50 / 0.5 | 4 / 5 / 16 |"
    )
    assert (
        "GS-JOBCD 2 times (the best peer is pymanopt TR), goal 5: not met; first of all: GS-JOBCD"
        in entry.verdict()
    )


def test_where_no_peer_got_there_the_ratio_is_a_bound():
    rows = [
        made(cell("J-JOBCD"), **{"1e-08": 0.5}),
        made(cell("pymanopt CG", max_time=4.0), **{"0.01": 1.0}),
    ]
    (entry,) = entries(rows)
    ratio = entry.ratio("J-JOBCD", 1e-8)
    assert (ratio.value, ratio.bound, str(ratio)) == (8.0, True, "> 8")
    assert "no peer got there in its budget" in entry.verdict()
    assert "goal 5: met" in entry.verdict()


def test_goals_and_order():
    assert [goal(n) for n in (50, 200, 201, 1000, 1001)] == [5.0, 5.0, 3.0, 3.0, None]
    rows = [made(cell(n=n, p=n // 2, threads=t)) for t, n in ((2, 10), (1, 20), (1, 10))]
    assert [(e.cell.threads, e.cell.n) for e in entries(rows)] == [(1, 10), (1, 20), (2, 10)]
    assert [e.verdict().endswith("no ratio at 1e-08") for e in entries(rows)] == [True] * 3


def test_quick_run_table_picture_and_page(tmp_path):
    arguments = ("bench", "speed", "--quick", "--n", 8, "-o", tmp_path)
    result = command(*arguments)
    assert result.exit_code == 0, result.output
    rows = read_rows(tmp_path)
    assert {row["cell"]["method"] for row in rows} == set(SPEED_METHODS)
    table = (tmp_path / "speed.md").read_text()
    assert table in result.output
    assert table.startswith("| n, p | condition | threads | GS-JOBCD |")
    assert (tmp_path / "speed.png").read_bytes()[:4] == b"\x89PNG"
    content = (tmp_path / "runs.jsonl").read_text()
    again = command(*arguments)
    assert again.output.endswith(table)
    if all(row["outcome"] == "done" for row in rows):
        assert (tmp_path / "runs.jsonl").read_text() == content
    page = command("report", tmp_path)
    assert page.exit_code == 0, page.output
    html = (tmp_path / "report" / "index.html").read_text()
    assert "<h2>Speed</h2>" in html
    assert (tmp_path / "report" / "speed.png").exists()
    assert html.count("first of all") == 1
