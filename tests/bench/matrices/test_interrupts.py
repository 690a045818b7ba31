"""Ctrl-C in the run that finds the optimum of a problem ends the benchmark, and is no result."""

from dataclasses import replace

from jorth import Status, minimize
from jorth.bench import read_rows, run_cells
from jorth.bench.matrices import problems
from jorth.bench.matrices.cells import Crossing, procrustes_cells


def test_the_reference_run_of_a_problem(tmp_path, monkeypatch):
    calls = []

    def interrupted_at_the_third(*arguments, **options):
        calls.append(options["method"])
        found = minimize(*arguments, **options)
        return replace(found, status=Status.INTERRUPTED) if len(calls) == 3 else found

    monkeypatch.setattr(problems, "minimize", interrupted_at_the_third)
    crossing = Crossing(solvers=["GS-JOBCD"], max_evaluations=5, seeds=(0, 1, 2))
    summary = run_cells(procrustes_cells([8], [0.5], [10.0], crossing), tmp_path)
    assert summary.interrupted
    assert [row["outcome"] for row in read_rows(tmp_path)] == ["done"]
