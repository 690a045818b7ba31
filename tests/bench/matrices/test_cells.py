"""Which cells a grid has."""

import pytest

from jorth.bench.core.cells import plus_signs
from jorth.bench.matrices.cells import (
    Crossing,
    MatrixCell,
    hevp_cells,
    paper_sizes,
    procrustes_cells,
)
from jorth.bench.matrices.methods import METHOD_NAMES, METHODS_OF_PROBLEM, method_of, table_name
from jorth.bench.matrices.own import OwnData
from jorth.bench.matrices.paper import PAPER_METHODS
from jorth.datasets import REGISTRY
from jorth.solvers import CSDM, METHODS, GaussSeidel, Jacobi

TRACE = METHODS_OF_PROBLEM["trace"]
PROCRUSTES = METHODS_OF_PROBLEM["procrustes"]
SIZES = [("randn", 12, 8, 4), ("digits", 30, 6, 2)]


def test_everything_is_crossed_once():
    cells = hevp_cells(SIZES, Crossing(seeds=(0, 1), thetas=(1.0, 2.0, 5.0), max_time=1.0))
    assert len(cells) == len(set(cells)) == len({cell.key for cell in cells})
    # a race: three methods without theta and three with three of them; the well-posed problem has
    # none
    assert len(cells) == 2 * 2 * (3 + 3 * 3 + len(TRACE))
    for cell in cells:
        assert (cell.theta is not None) == (cell.problem == "race" and "JOBCD" in cell.method)
        assert (cell.ridge is not None) == (cell.problem == "trace")
        assert cell.max_time == 1.0
    for data, m, n, p in SIZES:
        for seed in (0, 1):
            here = [c for c in cells if (c.data, c.m, c.n, c.p, c.seed) == (data, m, n, p, seed)]
            assert {c.method for c in here if c.problem == "race"} == set(PAPER_METHODS)
            assert {c.theta for c in here if c.method == "J-JOBCD" and c.problem == "race"} == {
                1.0,
                2.0,
                5.0,
            }
            assert [c.method for c in here if c.problem == "trace"] == list(TRACE)


def test_solvers_may_be_chosen_in_any_case():
    cells = hevp_cells(SIZES[:1], Crossing(solvers=("gs-jobcd", "UMCM")))
    assert [(c.problem, c.method) for c in cells] == [
        ("race", "UMCM"),
        ("race", "GS-JOBCD"),
        ("trace", "UMCM"),
        ("trace", "GS-JOBCD"),
    ]
    with pytest.raises(ValueError, match=r"solver must be one of UMCM, .*; got 'sgd'"):
        table_name("sgd")


def test_methods_have_their_names_in_minimize():
    """By a name of `minimize`, in any case, the tables' method is that one."""
    for name, solver in METHODS.items():
        chosen = method_of(table_name(name.upper()), "procrustes")
        assert chosen in (name, solver())
    assert METHOD_NAMES[: len(PAPER_METHODS)] == PAPER_METHODS
    assert set().union(*METHODS_OF_PROBLEM.values()) == set(METHOD_NAMES)


def test_cells_of_a_problem_stand_together():
    """The problem is prepared once for them."""
    keys = [
        cell.shared_problem for cell in hevp_cells(SIZES, Crossing(seeds=(0, 1), thetas=(1.0, 2.0)))
    ]
    runs = [key for key, before in zip(keys, [None, *keys], strict=False) if key != before]
    assert len(runs) == len(set(runs)) == 2 * 2 * 2


def test_the_papers_grid():
    sizes = paper_sizes()
    assert len(sizes) == 10
    assert ("w1a", 2470, 290, 145) in sizes
    for data, m, n, p in sizes:
        assert p == n // 2
        assert data == "randn" or REGISTRY[data].hevp == (m, n)
    assert len(hevp_cells(sizes, Crossing())) == 10 * (len(PAPER_METHODS) + len(TRACE))
    assert paper_sizes(only=["mnist"]) == [("mnist", 1000, 780, 390)]


def test_the_papers_appendix():
    """p = 0.5 n, 0.7 n, 0.9 n, but for mnist and w1a, as the captions of its figures say."""
    p = {}
    for data, _, n, plus in paper_sizes(appendix=True):
        p.setdefault((data, n), []).append(plus)
    assert p["cifar", 100] == [50, 70, 90]
    assert p["randn", 10] == [5, 7, 9]
    assert p["mnist", 780] == [390, 500, 650]
    assert p["w1a", 290] == [145, 200, 250]
    assert all(len(found) == 3 for found in p.values())
    assert len(p) == 10


def test_shares_keep_both_signs():
    assert [plus_signs(4, share) for share in (0.01, 0.5, 0.99)] == [1, 2, 3]


def test_procrustes_cells():
    cells = procrustes_cells([6, 8], [0.5], [2.0, 50.0], Crossing(max_evaluations=3))
    assert len(set(cells)) == len(cells) == 4 * len(PROCRUSTES)
    assert {(c.n, c.m, c.p, c.condition) for c in cells} == {
        (6, 12, 3, 2.0),
        (6, 12, 3, 50.0),
        (8, 16, 4, 2.0),
        (8, 16, 4, 50.0),
    }


def test_a_key_tells_every_field():
    cell = MatrixCell(problem="race", data="randn", m=4, n=4, p=2, method="UMCM")
    changed = dict(
        problem="trace",
        data="digits",
        m=5,
        n=5,
        p=3,
        method="ADMM",
        seed=1,
        theta=2.0,
        ridge=0.1,
        condition=3.0,
        alpha=2.0,
        scale="fit",
        max_time=1.0,
        max_evaluations=7,
        own=OwnData("0" * 64),
    )
    fields = cell.__dict__
    assert set(changed) == set(fields)
    others = {name: MatrixCell(**(fields | {name: value})) for name, value in changed.items()}
    assert len({other.key for other in others.values()} | {cell.key}) == len(changed) + 1
    # the same matrix, start and optimum: only these may differ
    same = {name for name, other in others.items() if other.shared_problem == cell.shared_problem}
    assert same == {"method", "theta", "max_time", "max_evaluations"}


def test_methods():
    """In a race theta is in units of the curvature; elsewhere it is left alone."""
    assert method_of("GS-JOBCD", "race", 3.0, 10.0) == GaussSeidel(theta=30.0)
    assert method_of("CSDM+GS-JOBCD", "race", 3.0, 10.0) == [
        (CSDM(optimizer="adam"), {}),
        (GaussSeidel(theta=30.0), {}),
    ]
    race = method_of("J-JOBCD", "race", 3.0, 10.0)
    assert race.theta == 30.0
    assert race.curvature < 1e-6
    assert method_of("J-JOBCD", "trace") == Jacobi()
    assert method_of("GS-JOBCD right", "trace") == GaussSeidel(side="right")
    for name in METHOD_NAMES:
        assert method_of(name, "procrustes") is not None
