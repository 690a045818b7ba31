"""`jorth bench probe`: its cells, its problem, and what the report makes of several seeds."""

import math

import numpy as np
import pytest
import torch

import jorth
from jorth.bench import read_rows, run_cells, write_report
from jorth.bench.core.runs import run_cell
from jorth.bench.matrices import runner as runner_module
from jorth.bench.matrices.cells import Crossing, MatrixCell, probe_cells, probe_sizes
from jorth.bench.matrices.figures import on_grid, probe_convergence
from jorth.bench.matrices.groups import has_diverged
from jorth.bench.matrices.methods import METHODS_OF_PROBLEM, method_of
from jorth.bench.matrices.probe import (
    matches,
    matching_table,
    results_table,
    samples_to,
    seeded_runs,
    verdict,
)
from jorth.bench.matrices.problems import prepare
from jorth.bench.matrices.scoring import epochs
from jorth.datasets import REGISTRY
from jorth.stopping import NormAbove

PROBE = METHODS_OF_PROBLEM["probe"]
CELL = MatrixCell(
    problem="probe",
    data="randn",
    m=14,
    n=6,
    p=4,
    method="J-JOBCD",
    seed=3,
    alpha=2.0,
    scale="fit",
    ridge=0.5,
    max_evaluations=4,
)


def test_the_papers_grid():
    sizes = probe_sizes()
    assert len(sizes) == 10
    for size in (
        ("w1a", 2477, 100, 90),
        ("20news", 9423, 50, 45),
        ("mnist", 6000, 92, 85),
        ("e2006", 5000, 100, 90),
        ("randn", 10000, 50, 45),
        ("randn", 5000, 100, 85),
        ("cnncaltech", 3000, 96, 85),
    ):
        assert size in sizes
    for data, m, n, p in sizes:
        assert data == "randn" or REGISTRY[data].hspp == (m, n)
        assert 0.85 <= p / n <= 0.93
    assert {name for name, entry in REGISTRY.items() if entry.hspp} == {
        size[0] for size in sizes
    } - {"randn"}
    assert [size[0] for size in probe_sizes(["randn", "w1a"])] == ["randn", "randn", "w1a"]


def test_the_cells():
    cells = probe_cells(
        [("randn", 9, 6, 5), ("digits", 9, 6, 5)], Crossing(seeds=(0, 1), max_time=2.0), ridge=0.1
    )
    assert len(set(cells)) == len(cells) == 2 * 2 * len(PROBE)
    assert [cell.method for cell in cells[: len(PROBE)]] == list(PROBE)
    assert {(c.problem, c.alpha, c.scale, c.ridge, c.theta, c.max_time) for c in cells} == {
        ("probe", 1.0, 1.0, 0.1, None, 2.0)
    }
    assert len({cell.shared_problem for cell in cells}) == 4
    assert len({cell.over_seeds for cell in cells}) == 2


def test_csdm_is_the_papers_and_by_lbfgs_beside_it():
    assert method_of("CSDM", "probe").optimizer == "adam"
    assert method_of("CSDM L-BFGS", "probe").optimizer == "lbfgs"
    assert method_of("CSDM", "procrustes") == "csdm"
    assert method_of("VR-J-JOBCD", "probe") == "vr-j-jobcd"


def test_the_problem():
    """The loss by its formula, from the public pieces; one data set and another start for every
    seed."""
    problem = prepare(CELL)
    D = jorth.datasets.randn(14, 6, seed=0)
    sig = jorth.Signature(4, 2)
    X = jorth.random_point(sig, cond=1.5, seed=3)
    assert (problem.x0 == X).all()
    Q = jorth.ultrahyperbolic.lift(D @ X, sig, alpha=2.0)
    d = np.array([[jorth.ultrahyperbolic.distance(a, b, sig, alpha=2.0) for a in Q] for b in Q])
    np.fill_diagonal(d, 0.0)
    T = np.linalg.norm(D[:, None] - D, axis=2)
    c = (T * d).sum() / (d * d).sum()
    expected = ((T - c * d) ** 2).mean() + 0.25 * np.sum(X * X)
    assert problem.first == pytest.approx(expected, rel=1e-10)
    assert problem.optimum is None
    assert problem.notes["zero_rows"] == 0
    assert problem.notes["start_ratio"] == pytest.approx(np.sum((D @ X) ** 2) / np.sum(D * D))


def test_rows_of_zeros_are_counted_and_lifted(tmp_path):
    X = np.zeros((30, 8))
    X[:12] = np.random.default_rng(0).poisson(1.0, (12, 8))
    np.savez(tmp_path / "w1a.npz", X=X)
    (cell,) = probe_cells([("w1a", 30, 8, 7)], Crossing(solvers=["J-JOBCD"]))
    problem = prepare(cell, tmp_path)
    assert problem.notes["zero_rows"] == (~X.any(axis=1)).sum() >= 18
    assert math.isfinite(problem.first)


def test_mnist_is_in_the_unit_interval_and_drawn_at_random(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (40, 20))
    pixels[:, :9] = 0  # as the margin is
    np.savez(tmp_path / "mnist.npz", X=pixels)
    (cell,) = probe_cells([("mnist", 30, 8, 7)], Crossing(solvers=["J-JOBCD"]))
    problem = prepare(cell, tmp_path)
    assert problem.notes["subset"] == "random"
    data = problem.objective.data()
    assert 0.9 < data.max() <= 1.0
    assert bool(data.any(dim=0).all())


def test_a_value_alone_is_half_a_gradient():
    """Measured on the paper's sizes: 0.52 to 0.60."""
    history = {
        "value_evaluations": np.array([1.0, 9.0]),
        "gradient_evaluations": np.array([1.0, 2.0]),
        "sample_gradient_evaluations": np.array([14.0, 35.0]),
    }
    assert epochs(prepare(CELL), history).tolist() == [1.0, 2.5 + 7 / 2]


def test_a_run_that_leaves_ends_and_says_so(monkeypatch):
    assert runner_module.DIVERGED_NORM["probe"] == 1e4
    told = {}
    real = runner_module.minimize

    def listen(*arguments, **options):
        told.update(options)
        return real(*arguments, **options)

    monkeypatch.setattr(runner_module, "minimize", listen)
    monkeypatch.setitem(runner_module.DIVERGED_NORM, "probe", 1.0)
    row = run_cell(runner_module.KIND, CELL)
    assert told["stop"] == NormAbove(1.0)
    assert told["on_unbounded"] == "stop"
    assert row["status"] == "STALLED"  # a norm alone says nothing of f
    assert not has_diverged(
        row
    )  # that is for races: f of a probe is bounded below, and its value counts


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """All methods, two seeds, two problems, one data set that is not there and one cell that
    fails."""
    folder = tmp_path_factory.mktemp("probe")
    crossing = Crossing(seeds=(0, 1), max_evaluations=5)
    cells = probe_cells([("randn", 20, 6, 5)], crossing)
    cells += probe_cells([("digits", 20, 6, 5)], crossing, scale="fit", ridge=0.01)
    cells += probe_cells([("cifar", 30, 6, 5)], crossing)
    cells += probe_cells([("digits", 20, 70, 60)], Crossing(solvers=["ADMM"]))
    summary = run_cells(cells, folder, data_dir=folder / "nothing")
    assert summary.finished == len(cells) == 3 * 2 * len(PROBE) + 1
    ran = []
    again = run_cells(cells, folder, data_dir=folder / "nothing", on_row=ran.append)
    assert {row["outcome"] for row in ran} == {"missing"}
    assert again.finished == len(cells)
    return folder


def test_every_method_runs_and_lowers_f(run):
    rows = [row for row in read_rows(run) if row["outcome"] == "done"]
    assert len(rows) == 2 * 2 * len(PROBE)
    for row in rows:
        assert row["claim_holds"]
        assert row["residual"] < 1e-10
        assert len(row["history"]["samples"]) == len(row["history"]["value"])
        polished = row["cell"]["method"] in (
            "UMCM",
            "ADMM",
        )  # which are scored apart from their steps
        assert row["history"]["samples"][0] == 20 * (2 if polished else 1)
        assert row["history"]["value"][0] == pytest.approx(row["start_value"], rel=1e-6)
    assert sum(row["value"] < row["start_value"] for row in rows) > 0.5 * len(rows)
    one, other = (r for r in rows if r["cell"]["data"] == "randn" and r["cell"]["method"] == "UMCM")
    assert one["start_value"] != other["start_value"]
    assert one["notes"]["data_norm_squared"] == other["notes"]["data_norm_squared"]


def test_the_value_of_a_row_is_the_objectives(run):
    row = next(
        r
        for r in read_rows(run)
        if r["cell"]["data"] == "randn" and r["cell"]["method"] == "VR-J-JOBCD"
    )
    sig = jorth.Signature(5, 1)
    probe = jorth.StructuralProbe(jorth.datasets.randn(20, 6), signature=sig)
    again = jorth.minimize(
        probe,
        jorth.random_point(sig, cond=1.5, seed=0),
        method="vr-j-jobcd",
        max_evaluations=5,
        gradient_tolerance=0.0,
        seed=0,
    )
    assert row["value"] == pytest.approx(float(probe.value(torch.from_numpy(again.x))), rel=1e-12)


def test_the_page(run, tmp_path):
    page = write_report(run, tmp_path).read_text(encoding="utf-8")
    names = {path.name for path in tmp_path.glob("*.png")}
    assert names == {
        "probe-randn-20-6-5-5gradients.png",
        "probe-digits-20-6-5-scalefit-ridge0.01-5gradients.png",
    }
    assert "The structural probe" in page
    assert "digits(20-6-5), scale fit, ridge 0.01" in page
    assert "missing: data set cifar is not at hand" in page
    assert "failed: ValueError: n must be at most" in page
    assert "2 gradients up" in page
    assert "median and range" not in page  # that is in the figure
    for family in seeded_runs(read_rows(run))[:2]:
        for name, value in family.medians.items():
            assert f"{name} {value:.4g}" in page
    assert write_report(run, tmp_path / "again").read_bytes() == page.encode()


def made(method, values, *, seed=0, status="MAX_TIME", outcome="done", **fields):
    """A row with a value at every second and every ten samples; the first is that of the start."""
    cell = {**CELL.__dict__, "method": method, "seed": seed}
    ticks = [float(k + 1) for k in range(len(values))]
    history = {
        "time": ticks,
        "gradients": ticks,
        "samples": [10 * k for k in ticks],
        "value": list(values),
    }
    return {
        "key": f"{method} {seed}",
        "cell": cell,
        "outcome": outcome,
        "status": status,
        "value": values[-1],
        "gap": None,
        "start_value": values[0],
        "time": ticks[-1],
        "history": history,
        "norm": 1.5,
        "residual": 1e-15,
        "residual_before_polishing": 1e-15,
        "claim_holds": True,
        "error": "it broke",
        **fields,
    }


def family(*rows):
    (found,) = seeded_runs(list(rows))
    return found


def test_medians_and_places():
    """A failed run and one without a value count as infinite, so that no run wins by failing."""
    found = family(
        *(made("UMCM", [9.0, end], seed=seed) for seed, end in enumerate((5.0, 1.0, 4.0))),
        *(made("J-JOBCD", [9.0, end], seed=seed) for seed, end in enumerate((3.0, 3.0, 3.0))),
        made("ADMM", [9.0, 0.1], seed=0),
        made("ADMM", [9.0, None], seed=1),
        made("ADMM", [9.0, 0.0], seed=2, outcome="failed"),
        *(made("CSDM", [9.0, 4.0], seed=seed) for seed in range(3)),
        *(made("GS-JOBCD", [9.0, 8.0], seed=seed) for seed in range(3)),
    )
    assert found.rows.seeds == [0, 1, 2]
    assert found.medians == {
        "UMCM": 4.0,
        "ADMM": math.inf,
        "CSDM": 4.0,
        "GS-JOBCD": 8.0,
        "J-JOBCD": 3.0,
    }
    assert found.places == {"J-JOBCD": 1, "UMCM": 2, "CSDM": 2}
    assert found.no_worse("J-JOBCD") is True
    assert found.no_worse("GS-JOBCD") is False
    assert found.no_worse("VR-J-JOBCD") is None
    table = results_table([found])
    assert "3 [3, 3]" in table
    assert "4 [1, 5]" in table
    assert "failed: it broke" in table
    assert "none [0.1, none]" in table


def test_what_matching_takes():
    """The first record at or below the last value of J-JOBCD; for J-JOBCD too, where it had
    stalled before."""
    jacobi = made("J-JOBCD", [9.0, 7.0, 5.0, 3.0, 3.0, 3.0])
    found = family(
        jacobi,
        made("J-JOBCD", [9.0, 8.0, 7.0], seed=1),
        made("J-JOBCD", [9.0, 4.0], seed=2),
        made("VR-J-JOBCD", [9.0, None, 2.5, 3.5]),
        made("VR-J-JOBCD", [9.0, 8.0, 7.5], seed=1),
        made("VR-J-JOBCD", [4.0], seed=2),
    )
    assert samples_to(jacobi, 3.0) == 40.0
    assert samples_to(jacobi, 2.9) is None
    first, second, third = matches(found)
    assert (first.value, first.jacobi, first.reduced, first.ratio) == (3.0, 40.0, 30.0, 0.75)
    assert (second.reduced, second.ratio) == (None, math.inf)
    assert third.ratio == 0.5
    table = matching_table([found])
    assert "<td>0.75</td><td>0.75, not reached, 0.50</td>" in table
    assert matching_table([family(jacobi)]) == ""
    words = " ".join(verdict([found]))
    assert "at most a third of its sample gradients on no data set." in words
    assert "no worse" not in words  # nobody to compare with


def test_the_words_count_data_sets():
    found = family(
        made("UMCM", [9.0, 5.0]),
        made("CSDM", [9.0, 3.0]),
        made("J-JOBCD", [9.0, 8.0, 6.0, 3.0]),
        made("VR-J-JOBCD", [2.9]),
    )
    words = verdict([found, family(made("UMCM", [9.0, 1.0]), made("J-JOBCD", [9.0, 2.0]))])
    assert words == [
        "The structural probe: VR-J-JOBCD comes first on 1 of 2 data sets and UMCM on 1.",
        "J-JOBCD ends no worse than UMCM and CSDM on 1 of 2 data sets.",
        "VR-J-JOBCD ends no worse than UMCM and CSDM on the only data set.",
        "VR-J-JOBCD reaches the last value of J-JOBCD with at most a third of its sample gradients "
        "on the only data set.",
    ]


def test_a_run_that_left_is_marked():
    found = family(
        made("J-JOBCD", [9.0, 1.0], status="UNBOUNDED"),
        made("J-JOBCD", [9.0, 1.0], seed=1, norm=1e4),
        made("J-JOBCD", [9.0, 1.0], seed=2, norm=1e4, status="STALLED"),
        made("J-JOBCD", [9.0, 1.0], seed=3, status="STALLED"),
        made("J-JOBCD", [9.0, 1.0], seed=4, status="NOT_ATTAINED"),
    )
    assert "3 left, 1 time up, 1 stalled" in results_table([found])
    assert "‖X‖ 1e+04" in results_table([found])


def test_curves_hold_the_last_record():
    """Between records the last one stands, after the end too, and f(X0) before the first."""
    short = made("J-JOBCD", [8.0, 6.0])
    long = made("J-JOBCD", [8.0, 7.0, None, 1.0], seed=1)
    long["history"]["time"] = [1.5, 2.5, 3.5, 4.5]
    grid, values = on_grid([short, long], "time")
    assert grid.tolist() == [1.0, 1.5, 2.0, 2.5, 4.5]
    assert values.tolist() == [[8.0, 8.0, 6.0, 6.0, 6.0], [8.0, 8.0, 8.0, 7.0, 1.0]]


def test_a_figure_needs_two_points():
    assert probe_convergence(family(made("J-JOBCD", [9.0]), made("UMCM", [9.0, None]))) is None
    assert probe_convergence(family(made("J-JOBCD", [9.0, 0.01]))).startswith(b"\x89PNG")
