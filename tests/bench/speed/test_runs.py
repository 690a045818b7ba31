"""`jorth bench speed`: every method gets there, clocks and gaps are right, the harness resumes."""

import math
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import jorth
from jorth.bench import read_rows, run_cells
from jorth.bench.core.records import append_row, remaining
from jorth.bench.matrices.problems import BenchProblem
from jorth.bench.speed import batches, ours, problems, runner, theirs
from jorth.bench.speed.dense import DenseProcrustes
from jorth.bench.speed.methods import (
    BATCH_METHODS,
    CDOPT,
    CHAIN,
    DATA_START,
    LBFGS,
    ONE_CALL,
    methods_for,
)
from jorth.bench.speed.peers import Countdown, Ended, Timed, Trace
from jorth.bench.speed.problems import problem_of
from jorth.bench.speed.runner import equal_threads
from jorth.bench.speed.table import entries
from jorth.clock import Clock
from tests.bench.speed.made import cell, made, run_cell


def needed_for(method):
    if method == CDOPT:
        pytest.importorskip("cdopt")


@pytest.mark.parametrize(
    ("task", "method"), [(t, m) for t in ("procrustes", "trace") for m in methods_for(t)]
)
def test_every_method_reaches_the_optimum(task, method):
    needed_for(method)
    row = run_cell(cell(method, task=task))
    assert row["outcome"] == "done", row
    assert row["status"] == "reached"
    assert list(row["reached"]) == ["0.01", "0.0001", "1e-08"]
    times = list(row["reached"].values())
    assert 0 < times[0] <= times[1] <= times[2] <= row["time"]
    assert abs(row["gap"]) <= 0.9e-8
    assert list(row["calls"]) == list(row["reached"])  # n is small
    curve = row["curve"]
    assert len(curve["time"]) == len(curve["gap"]) <= runner.CURVE_POINTS
    assert curve["time"] == sorted(curve["time"])
    assert curve["gap"] == sorted(curve["gap"], reverse=True)
    assert curve["gap"][-1] == pytest.approx(row["gap"])


@pytest.mark.parametrize("method", [LBFGS, "pymanopt CG", "pymanopt TR"])
def test_the_robust_task_is_solved(method):
    row = run_cell(cell(method, task="robust"))
    assert row["status"] == "reached", row


@pytest.mark.parametrize("method", BATCH_METHODS)
def test_batches(method, monkeypatch):
    monkeypatch.setattr(batches, "BATCH", 30)
    monkeypatch.setattr(batches, "TIMES", 1)
    row = run_cell(cell(method, task="batch", n=4, p=3))
    if row["outcome"] == "missing":
        pytest.skip(row["error"])
    assert row["outcome"] == "done", row
    assert row["status"] == "reached"
    assert row["problems"] == (30 if method == ONE_CALL else batches.SAMPLE)
    assert list(row["reached"]) == ["1e-08"]
    assert 0 < row["reached"]["1e-08"] == row["time"]


# -- clocks and gaps


@pytest.mark.parametrize("method", ["Riemannian L-BFGS", CHAIN, "pymanopt TR"])
def test_a_start_from_the_data_is_lower_and_on_the_clock(method, monkeypatch):
    monkeypatch.setattr(runner, "SMALL", 0)
    near, far = run_cell(cell(method + DATA_START)), run_cell(cell(method))
    assert near["status"] == far["status"] == "reached"
    assert near["steps"] < far["steps"]
    assert near["notes"]["start_value"] == far["notes"]["start_value"]  # gaps are of one scale
    first = next(iter(near["reached"].values()))

    real = ours.data_start

    def slowly(*arguments):
        began = time.process_time()
        while time.process_time() < began + 0.1:
            pass
        return real(*arguments)

    monkeypatch.setattr(ours, "data_start", slowly)
    slow = run_cell(cell(method + DATA_START))
    assert slow["reached"]["0.01"] > 0.1
    assert first < 0.1
    assert slow["time"] > 0.1


def test_gaps_are_relative_to_the_start():
    eleven = SimpleNamespace(value=lambda X: torch.tensor(11.0))
    problem = BenchProblem(eleven, jorth.Signature(5, 3), np.eye(8), optimum=1.0, notes={})
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


def test_a_countdown_ends_the_run_before_a_gradient():
    countdown = Countdown(2)
    countdown.record(None)
    countdown.record(None)
    with pytest.raises(Ended):
        countdown.record(None)


def test_a_whole_call_ends_where_the_gap_was_reached(monkeypatch):
    """A peer takes as many gradients as it took before, and ours stop by their value."""
    counted = []
    real = DenseProcrustes.gradient
    monkeypatch.setattr(
        DenseProcrustes, "gradient", lambda *given: counted.append(1) or real(*given)
    )
    peer = cell("pymanopt CG")
    theirs.call_peer(peer, problem_of(peer), 5)
    assert len(counted) == 5
    mine = cell(LBFGS)
    problem = problem_of(mine)
    for gap in (1e-2, 1e-8):
        value = ours.call_ours(mine, problem, gap)
        assert value <= problem.scale.value_at(gap)
    monkeypatch.setattr(
        ours,
        "minimize_in_turn",
        lambda *given, **options: SimpleNamespace(value=problem.scale.first, status=None),
    )
    assert ours.call_ours(mine, problem, 1e-2) is None


def test_a_whole_call_includes_building_the_problem(monkeypatch):
    def slowly(source, target):
        began = time.process_time()
        while time.process_time() < began + 0.02:
            pass
        return real(source, target)

    real = problems.Procrustes
    monkeypatch.setattr(problems, "Procrustes", slowly)
    row = run_cell(cell(LBFGS))
    assert min(row["calls"].values()) > 0.02 > row["reached"]["0.01"]


def test_threads_are_equal_for_all_and_set_back():
    from threadpoolctl import threadpool_info

    before = torch.get_num_threads(), [pool["num_threads"] for pool in threadpool_info()]
    with equal_threads(1):
        assert torch.get_num_threads() == 1
        assert {pool["num_threads"] for pool in threadpool_info()} == {1}
    assert (torch.get_num_threads(), [pool["num_threads"] for pool in threadpool_info()]) == before


def test_a_short_run_is_the_median_of_three():
    short, long = (iter([Timed([], time) for time in of]) for of in ([0.3, 0.1, 0.2], [1.5]))
    assert runner._median_run(lambda: next(short)).seconds == 0.2
    assert runner._median_run(lambda: next(long)).seconds == 1.5


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


# -- rows


def test_a_missing_peer_is_a_row_that_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymanopt", None)
    monkeypatch.setitem(sys.modules, "pymanopt.optimizers", None)
    row = run_cell(cell("pymanopt CG"))
    assert row["outcome"] == "missing"
    assert row["error"] == 'pymanopt CG needs pymanopt; install it with: pip install "jorth[bench]"'
    assert run_cell(cell("GS-JOBCD"))["outcome"] == "done"


def test_a_failed_run_stays_in_the_table(monkeypatch, no_warm_up, tmp_path):
    def broken(*arguments, **options):
        raise FloatingPointError("lost")

    monkeypatch.setattr(theirs, "run_pymanopt", broken)
    cells = [cell("pymanopt CG"), cell("pymanopt TR"), cell("Riemannian L-BFGS")]
    summary = run_cells(cells, tmp_path)
    assert (summary.finished, summary.total, summary.interrupted) == (3, 3, False)
    rows = read_rows(tmp_path)
    assert [row["outcome"] for row in rows] == ["failed", "failed", "done"]
    assert rows[0]["error"] == "FloatingPointError: lost"
    entry, _ = entries(rows)  # of solving and of whole calls
    assert "failed" in entry.texts(["pymanopt CG"])
    assert entry.ratio("Riemannian L-BFGS", 1e-8) is None
    assert remaining(cells, summary.path) == []
    assert remaining(cells, summary.path, retry_failed=True) == cells[:2]


def test_ctrl_c_keeps_what_is_done_and_the_same_call_goes_on(monkeypatch, no_warm_up, tmp_path):
    cells = [cell(name, max_time=1.0) for name in ("GS-JOBCD", "UMCM", "Riemannian L-BFGS")]
    real, calls = ours.minimize_in_turn, []

    def second_is_interrupted(*arguments, **options):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*arguments, **options)

    monkeypatch.setattr(runner, "SHORT_SECONDS", 0.0)
    monkeypatch.setattr(ours, "minimize_in_turn", second_is_interrupted)
    monkeypatch.setattr(runner, "warm_up", lambda *arguments: None)
    monkeypatch.setattr(runner, "SMALL", 0)
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
