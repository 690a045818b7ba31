"""Which runs are made, and which are left out."""

from dataclasses import replace

from benchmarks.speed import parts
from jorth.bench.speed.cells import BETAS, BUDGETS, SIZES, TASKS, Plan, budget, left_out
from jorth.bench.speed.methods import (
    BATCH_METHODS,
    CDOPT,
    DATA_START,
    GROUPS,
    LBFGS,
    SPEED_METHODS,
    methods_for,
)
from jorth.cli.bench_speed import chosen_plan
from jorth.cli.bench_speed import speed as bench_speed
from tests.bench.speed.made import cell, made, run_cell
from tests.bench.test_commands import jorth as command


def test_the_plan():
    cells = Plan().cells()
    assert len(cells) == len(set(cells))
    assert {(c.task, c.n) for c in cells} == {(task, n) for task in TASKS for n in SIZES[task]}
    assert {(c.n, c.p) for c in cells} >= {(4, 2), (4, 3), (50, 45), (1000, 500), (1000, 900)}
    assert {c.seed for c in cells if c.n >= 500} == {0}
    first = cells[: len(methods_for("procrustes")) - 1 + len(BETAS)]
    assert {(c.task, c.n, c.seed, c.threads) for c in first} == {("procrustes", 4, 0, 1)}
    assert {c.method for c in first} == set(methods_for("procrustes"))
    assert [c.beta for c in first if c.method == CDOPT] == list(BETAS)
    assert [budget(n) for n in (10, 50, 51, 1000, 2000)] == [1.0, 2.0, 3.0, 40.0, 40.0]


def test_tasks_have_the_methods_that_fit_them():
    assert set().union(*map(methods_for, TASKS)) == set(SPEED_METHODS)
    assert set(methods_for("batch")) == set(BATCH_METHODS)
    for task in ("trace", "robust"):
        names = methods_for(task)
        assert {"GS-JOBCD", LBFGS, "pymanopt CG", "pymanopt TR"} <= set(names)
        assert not {name for name in names if name.endswith(DATA_START)} | {CDOPT} & set(names)


def test_the_short_plan_leaves_out_what_cannot_be_the_fastest():
    plan = Plan(tasks=("procrustes",), sizes=(200, 500), shares=(0.5,), conditions=(3.0,))
    names = {n: {c.method for c in plan.cells() if c.n == n} for n in (200, 500)}
    short = {n: {c.method for c in replace(plan, short=True).cells() if c.n == n} for n in names}
    assert names[200] - short[200] == {"UMCM"}
    assert names[500] - short[500] == {"UMCM", CDOPT, *GROUPS["plain"]}


def test_the_processes_of_the_script_cover_the_plan():
    plan = Plan(short=True, seeds=(3, 4))
    found = []
    for options, threads in parts(plan):
        given = bench_speed.make_context("speed", [*options, "--short"]).params
        cells = chosen_plan(given.pop("quick"), given).cells()
        assert {cell.threads for cell in cells} == {threads}
        found += cells
    assert len(found) == len(set(found))
    assert set(found) == set(plan.cells())


def test_the_command_offers_what_the_plan_has():
    text = " ".join(command("bench", "speed", "--help").output.split())
    assert "Default: 4 to 1000, by task." in text
    assert "Default: procrustes, trace, robust and batch." in text
    assert "Default: 3 and 30." in text
    assert f"{min(BUDGETS.values()):g} to {max(BUDGETS.values()):g}, by size" in text
    (option,) = [option for option in bench_speed.params if option.name == "methods"]
    assert list(option.type.choices) == list(SPEED_METHODS)


def test_methods_that_fell_short_are_left_out_at_the_next_size():
    large = cell("UMCM", n=1000, p=500)
    short = made(cell("UMCM", n=500, p=250), **{"0.01": 1.0})
    assert left_out(large, [short]) == "no run within 0.0001 at n = 500"
    assert (
        left_out(large, [made(cell("UMCM", n=500, p=250), **{"0.01": 1.0, "0.0001": 2.0})]) is None
    )
    assert left_out(large, []) is None
    others = [
        dict(p=450),
        dict(condition=30.0),
        dict(threads=2),
        dict(method="J-JOBCD"),
        dict(task="trace"),
    ]
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
