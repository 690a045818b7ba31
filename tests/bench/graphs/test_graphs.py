"""`jorth bench kge`: plan, budget, rows, page."""

import math
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from jorth.bench import read_rows, run_cells, write_report
from jorth.bench.core import runs
from jorth.bench.graphs import runner as graph_runner
from jorth.bench.graphs.cells import (
    GRAPH_METHODS,
    LARGEST_NORM,
    MINIS,
    QUICK_PLAN,
    SETTINGS,
    GraphCell,
    Plan,
)
from jorth.bench.graphs.runner import BASE_CONFIG, config_of
from jorth.bench.graphs.section import graph_runs, headline, on_grid, verdict
from jorth.cli import main
from jorth.kge import evaluate, load_triples, train

CELL = QUICK_PLAN.trial_cells()[0]
LINES = {
    "train": (
        "a r b",
        "b r a",
        "b s c",
        "c r d",
        "d r c",
        "a s d",
        "d s b",
        "c s a",
        "a s c",
        "b r d",
    ),
    "test": ("a r c", "d r b", "c s b"),
}
"""(d, r, b) has its reverse among the training triples, and so has (c, s, b)."""


def jorth(*arguments):
    return CliRunner().invoke(main, ["bench", "kge", *map(str, arguments)])


def run_cell(cell, data_dir=None):
    return runs.run_cell(graph_runner.KIND, cell, data_dir)


def tried(cell, mrr, *, losses=(5.0, 4.0), norm=2.0):
    history = {"loss": list(losses)}
    return {
        "key": cell.key,
        "outcome": "done",
        "valid": {"mrr": mrr},
        "history": history,
        "norm": norm,
    }


@pytest.fixture
def tiny_graph(tmp_path):
    for part, lines in LINES.items():
        folder = tmp_path / "data" / "kg" / "tiny"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{part}.txt").write_text("\n".join(lines).replace(" ", "\t") + "\n")
    return tmp_path / "data"


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kge")
    result = jorth("--quick", "--seed", 0, "--seed", 4, "-o", folder)
    assert result.exit_code == 0, result.output
    return folder, result.output


def test_the_paper_s_setting():
    config = config_of(Plan().trial_cells()[0])
    assert (config.p, config.q, config.delta, config.alpha, config.negatives, config.lr) == (
        18,
        18,
        5.0,
        1.0,
        50,
        5e-4,
    )
    assert (config.loss, config.schedule) == ("logistic", "constant")
    assert MINIS == ("WN18RR-mini", "FB15k-237-mini")


def test_every_method_has_as_many_trials_of_different_settings():
    cells = Plan().trial_cells()
    assert len(cells) == len(set(cells)) == 2 * 3 * 8
    assert {len(set(settings)) for settings in SETTINGS.values()} == {8}
    assert {cell.stage for cell in cells} == {"trial"}
    assert {cell.seed for cell in cells} == {3}


def test_the_best_held_out_mrr_is_chosen():
    plan = replace(QUICK_PLAN, methods=("CSDM", "J-JOBCD"), seeds=(3, 5))
    csdm, second, first_jacobi, jacobi = plan.trial_cells()
    rows = [
        tried(csdm, 0.3, losses=(12.0, 9.0)),
        tried(second, 0.4, losses=(12.0, 10.0)),
        tried(jacobi, 0.1),
    ]
    rows.append(tried(first_jacobi, 0.9) | {"outcome": "failed"})
    chosen = plan.test_cells(rows)
    assert chosen == [
        replace(cell, stage="test", seed=seed) for cell in (second, jacobi) for seed in (3, 5)
    ]  # not the lower loss, not what failed
    assert [cell.method for cell in plan.test_cells(rows[:2])] == ["CSDM", "CSDM"]


@pytest.mark.parametrize(
    "broken",
    [
        {"losses": (5.0, 5.1)},
        {"losses": (5.0, math.nan)},
        {"norm": 8193.0},
        {"norm": math.inf},
        {"norm": math.nan},
    ],
)
def test_a_trial_that_ran_away_is_the_last_choice(broken):
    plan = replace(QUICK_PLAN, methods=("J-JOBCD",), seeds=(3,))
    first, second = plan.trial_cells()
    (chosen,) = plan.test_cells([tried(first, 0.9, **broken), tried(second, 0.1, norm=8191.0)])
    assert chosen.setting == second.setting
    (chosen,) = plan.test_cells([tried(first, 0.2, **broken), tried(second, 0.1, **broken)])
    assert chosen.setting == first.setting


def test_the_largest_norm_leaves_half_of_the_digits():
    assert np.finfo(float).eps ** -0.25 == LARGEST_NORM


def test_a_cell_is_read_back_as_it_was():
    cell = next(cell for cell in Plan().trial_cells() if cell.options)
    row = run_cell(replace(CELL, options=cell.options, method="J-JOBCD"))
    again = GraphCell.from_json(
        {**row["cell"], "options": [list(pair) for pair in row["cell"]["options"]]}
    )
    assert again.key == row["key"]
    assert config_of(again).relation_options == dict(cell.options)


@pytest.mark.parametrize("method", GRAPH_METHODS)
def test_a_row_is_what_train_gives(tiny_graph, method):
    cell = replace(CELL, graph="tiny", method=method, stage="test", seed=2, epochs=3)
    row = run_cell(cell, tiny_graph)
    triples = load_triples(tiny_graph / "kg" / "tiny", seed=2)
    budget = 3 * len(triples.train)
    result = train(
        triples,
        replace(
            BASE_CONFIG,
            p=4,
            q=2,
            method=method.lower(),
            relation_lr=cell.relation_lr,
            seed=2,
            epochs=3,
            evaluate_every=1,
        ),
        callback=lambda found: found["queries"] >= budget,
    )
    assert row["loss"] == pytest.approx(result.history["loss"][-1], rel=1e-5)
    assert row["best_epoch"] == result.best_epoch
    assert row["test"] == evaluate(result.model, triples.test, triples.known).metrics()
    assert row["valid"]["mrr"] == np.nanmax(result.history["mrr"])
    assert row["residual"] < 1e-13
    assert row["notes"]["train"] == 9
    assert row["notes"]["valid"] == 1
    assert row["notes"]["reverse_in_train"] == pytest.approx(2 / 3)


def test_the_budget_is_one_of_queries():
    """The large batches of VR-J-JOBCD count."""
    row = run_cell(replace(CELL, method="VR-J-JOBCD", epochs=8))
    passes = row["history"]["passes"]
    assert passes[-1] >= 8 > passes[-2]
    assert len(passes) < 8
    assert len(run_cell(replace(CELL, epochs=8))["history"]["passes"]) == 8


def test_a_trial_does_not_see_the_test_triples(monkeypatch):
    monkeypatch.setattr(
        graph_runner, "evaluate", lambda *arguments: pytest.fail("a trial ranked the test triples")
    )
    row = run_cell(CELL)
    assert row["outcome"] == "done"
    assert "test" not in row


def test_quick_tunes_tests_and_resumes(quick):
    folder, output = quick
    rows = read_rows(folder)
    assert [row["cell"]["stage"] for row in rows] == ["trial"] * 6 + ["test"] * 6
    assert {row["outcome"] for row in rows} == {"done"}
    assert output.count("To make a page") == 1
    for method in GRAPH_METHODS:
        trials, tests = (
            [r for r in rows if r["cell"]["method"] == method and ("test" in r) == t]
            for t in (False, True)
        )
        best = max(trials, key=lambda row: row["valid"]["mrr"])
        assert {row["cell"]["relation_lr"] for row in tests} == {best["cell"]["relation_lr"]}
        assert [row["cell"]["seed"] for row in tests] == [0, 4]
    content = (folder / "runs.jsonl").read_text()
    again = jorth("--quick", "--seed", 0, "--seed", 4, "-o", folder)
    assert "6 of 6 runs" in again.output
    assert "MRR" not in again.output
    assert (folder / "runs.jsonl").read_text() == content


def test_the_seed_holds_out_other_triples(quick):
    starts = {
        row["cell"]["seed"]: row["history"]["loss"][0]
        for row in read_rows(quick[0])
        if "test" in row
    }
    assert starts[0] != starts[4]
    first, other = (graph_runner._triples("generated", seed, None) for seed in (0, 4))
    assert first.test.tolist() != other.test.tolist()


def test_failed_and_missing_rows_stay(tmp_path, monkeypatch):
    def broken(*arguments, **options):
        raise FloatingPointError("the loss is inf")

    monkeypatch.setattr(graph_runner, "train", broken)
    cells = [CELL, replace(CELL, graph="nowhere")]
    summary = run_cells(cells, tmp_path, data_dir=tmp_path / "empty")
    assert (summary.total, summary.finished, summary.interrupted) == (2, 2, False)
    failed, missing = read_rows(tmp_path)
    assert failed["outcome"] == "failed"
    assert failed["error"] == "FloatingPointError: the loss is inf"
    assert missing["outcome"] == "missing"
    assert str(tmp_path) not in missing["error"]
    page = write_report(tmp_path, tmp_path / "page").read_text()
    assert "FloatingPointError: the loss is inf" in page
    assert "knowledge graph nowhere is not at hand" in page


def test_ctrl_c_keeps_what_is_done(tmp_path, monkeypatch):
    real = graph_runner.train
    second = config_of(QUICK_PLAN.trial_cells()[1])

    def second_is_interrupted(triples, config, **options):
        if replace(config, evaluate_every=second.evaluate_every) == second:
            raise KeyboardInterrupt
        return real(triples, config, **options)

    monkeypatch.setattr(graph_runner, "train", second_is_interrupted)
    result = jorth("--quick", "-o", tmp_path)
    assert result.exit_code == 130
    assert "1 of 6 runs" in result.output
    assert len(read_rows(tmp_path)) == 1


def test_ctrl_c_in_the_warm_up_is_no_traceback(tmp_path, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(graph_runner, "train", interrupted)
    result = jorth("--quick", "-o", tmp_path)
    assert result.exit_code == 130
    assert "0 of 6 runs" in result.output


def test_the_page(quick, tmp_path):
    page = write_report(quick[0], tmp_path).read_text()
    assert "Knowledge graphs" in page
    assert "The problems" not in page
    assert (tmp_path / "kge.png").read_bytes().startswith(b"\x89PNG")
    (runs,) = graph_runs(read_rows(quick[0]))
    for method in GRAPH_METHODS:
        middle = np.median([row["test"]["mrr"] for row in runs.tests.done(method)])
        assert runs.median_mrr(method) == middle
        assert f"<td>{middle:.3g} [" in page
    assert page.count("* generated") == 3


def test_verdict_says_what_came_out_and_what_leaks():
    rows = []
    for method, losses, mrr in (
        ("CSDM", (9, 1, 5), 0.2),
        ("J-JOBCD", (4, 4, 4), 0.1),
        ("VR-J-JOBCD", (7, 7, 7), 0.3),
    ):
        for seed, loss in enumerate(losses):
            cell = replace(CELL, method=method, stage="test", seed=seed)
            fields = {
                "key": cell.key,
                "cell": cell.__dict__,
                "outcome": "done",
                "notes": {"reverse_in_train": 0.65},
            }
            rows.append(fields | {"loss": loss, "test": {"mrr": mrr}})
    (runs,) = graph_runs(rows)
    first, second, leak = verdict(runs)
    assert first == (
        "Knowledge graph generated, p = 4, q = 2: J-JOBCD has a lower training loss than CSDM (4 "
        "against 5) and has a lower test MRR than CSDM (0.1000 against 0.2000)."
    )
    assert "VR-J-JOBCD has a higher training loss than CSDM (7 against 5) and has" in second
    assert "65% of the test triples" in leak
    rows[6] |= {"outcome": "failed", "loss": None, "test": {"mrr": None}}
    (runs,) = graph_runs(rows)
    assert runs.median_loss("VR-J-JOBCD") == 7
    assert runs.median_mrr("VR-J-JOBCD") == 0.3
    rows[7] |= {"outcome": "failed", "loss": None, "test": {"mrr": None}}
    assert graph_runs(rows)[0].median_loss("VR-J-JOBCD") == math.inf


def scored(method, outcome="done", loss=1.0, mrr=0.5):
    cell = replace(CELL, method=method, stage="test", seed=0)
    fields = {"key": cell.key, "cell": cell.__dict__, "outcome": outcome, "notes": {}}
    return fields | {"loss": loss, "test": {"mrr": mrr}}


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([scored("CSDM")], None),
        (
            [scored("CSDM"), scored("J-JOBCD")],
            "J-JOBCD has the same training loss as CSDM (1) and has the same test MRR as CSDM "
            "(0.5000).",
        ),
        (
            [scored("CSDM", loss=2.0, mrr=0.25), scored("J-JOBCD")],
            "J-JOBCD has a lower training loss than CSDM (1 against 2) and has a higher test MRR "
            "than CSDM (0.5000 against 0.2500).",
        ),
        (
            [scored("CSDM", loss=None, mrr=None), scored("J-JOBCD")],
            "J-JOBCD has a training loss of 1 (CSDM has none) and has a test MRR of 0.5000 (CSDM "
            "has none).",
        ),
        (
            [scored("CSDM"), scored("J-JOBCD", loss=None, mrr=None)],
            "J-JOBCD has no training loss and has no test MRR.",
        ),
        ([scored("CSDM", "failed", None, None), scored("J-JOBCD")], None),
        ([scored("CSDM", "failed", None, None)], "no test has a result."),
    ],
)
def test_the_verdict_is_a_sentence_in_every_case(rows, text):
    """Equal numbers gave "has a no other test MRR"."""
    (runs,) = graph_runs(rows)
    found = verdict(runs)
    assert found == ([] if text is None else [f"Knowledge graph generated, p = 4, q = 2: {text}"])
    line = headline(runs)
    assert not {"None", "nan", "inf"} & set(f"{line.result} {line.margin}".split())


def test_nothing_tested_yet_is_said():
    (runs,) = graph_runs([tried(CELL, 0.1) | {"cell": CELL.__dict__}])
    assert verdict(runs) == [
        "Knowledge graph generated, p = 4, q = 2: no method has been tested yet."
    ]
    assert headline(runs).winners == []


def test_curves_are_compared_where_all_runs_have_records():
    rows = [
        {"history": {"time": [1.0, 2.0, 4.0], "mrr": [None, 0.2, 0.4]}},
        {"history": {"time": [1.0, 3.0, 5.0], "mrr": [0.0, 0.2, 0.4]}},
    ]
    grid, values = on_grid(rows, "time", "mrr")
    assert (grid[0], grid[-1]) == (2.0, 4.0)
    assert np.allclose(values, [0.1 * grid, 0.1 * (grid - 1)])


def test_the_help_has_the_defaults_of_the_plan():
    text = " ".join(jorth("--help").output.split())
    plan = Plan()
    for words in (
        f"Default: {plan.graphs[0]} and {plan.graphs[1]}.",
        "Default: {}, {} and {}.".format(*plan.seeds),
        f"training triples. Default: {plan.epochs}, quick {QUICK_PLAN.epochs}.",
        f"Settings to try for each method. Default: {plan.trials}, quick {QUICK_PLAN.trials}.",
        f"[1<=x<={len(SETTINGS['CSDM'])}]",
    ):
        assert words in text


def test_all_trials_may_be_asked_for(tmp_path):
    result = jorth("--quick", "--trials", 8, "--solver", "csdm", "-o", tmp_path)
    assert result.exit_code == 0, result.output
    assert [row["cell"]["stage"] for row in read_rows(tmp_path)] == ["trial"] * 8 + ["test"]


def test_usage_errors():
    for arguments, message in (
        (["--solver", "UMCM"], "'UMCM' is not one of"),
        (["--trials", 9], "--trials"),
        (["--epochs", 0], "--epochs"),
    ):
        result = jorth(*arguments)
        assert result.exit_code == 2
        assert message in " ".join(result.output.split())
