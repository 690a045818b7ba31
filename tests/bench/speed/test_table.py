"""The table divides, the summary counts, the command prints and writes both."""

import math
from io import StringIO
from pathlib import Path

from rich.console import Console

from jorth.bench import read_rows
from jorth.bench.speed.methods import (
    AUTO,
    CDOPT,
    CHAIN,
    DATA_START,
    GROUPS,
    LBFGS,
    LOOP,
    ONE_CALL,
    PEER_LOOP,
    PEERS,
)
from jorth.bench.speed.page import page
from jorth.bench.speed.picture import picture
from jorth.bench.speed.summary import claims
from jorth.bench.speed.table import NONE, entries, full_table, tables
from jorth.bench.speed.terminal import shown
from tests.bench.speed.made import cell, made
from tests.bench.test_commands import jorth as command


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
    names = ["GS-JOBCD", "J-JOBCD", CHAIN, LBFGS, *PEERS[:3], "pymanopt TR" + DATA_START]
    assert [text.replace(NONE, "no") for text in entry.texts(names)] == [
        "10, 5",
        "3",
        "2 / no / 2",
        "4 / no / no",
        "left out",
        "not run",
        "1 / 1 / 0.8",
        "0.67 / 0.71 / 1",
        "0.8 / 0.56 / no (β 1)",
        "40 / 50 / 0.5",
        "4 / 5 / 16",
    ]
    assert entry.group_ratio("plain", 1e-2).value == 4.0 / 1.0
    assert entry.group_ratio("plain", 1e-8).value == 16.0 / 8.0


def test_where_no_peer_got_there_the_ratio_is_a_bound():
    rows = [
        made(cell("J-JOBCD"), **{"1e-08": 0.5}),
        made(cell("pymanopt CG", max_time=4.0), **{"0.01": 1.0}),
    ]
    (entry,) = entries(rows)
    ratio = entry.ratio("J-JOBCD", 1e-8)
    assert (ratio.value, ratio.bound, str(ratio)) == (8.0, True, "> 8")


def test_whole_calls_are_lines_of_their_own():
    rows = [
        made(cell(LBFGS), calls={"1e-08": 4.0}, **{"1e-08": 1.0}),
        made(cell("pymanopt TR"), calls={"1e-08": 6.0}, **{"1e-08": 3.0}),
    ]
    solving, calls = entries(rows)
    assert solving.ratio(LBFGS, 1e-8).value == 3.0
    assert calls.ratio(LBFGS, 1e-8).value == 1.5
    assert list(tables([solving, calls])) == [
        "procrustes, 1 thread, solving",
        "procrustes, 1 thread, whole call",
    ]


def test_batches_are_shown_by_problems_per_second():
    each = {ONE_CALL: 1e-4, LOOP: 4e-3, PEER_LOOP: 8e-3}
    rows = [
        made(cell(name, task="batch", n=4, p=3), **{"1e-08": time}) for name, time in each.items()
    ]
    (entry,) = entries(rows)
    _, lines = full_table([entry])
    assert lines == [["4, 3", "3", "10,000", "250", "125", "40", "80"]]
    assert "10,000" in printed(rows)
    (claim,) = claims([entry])  # only the time to 1e-8 is known
    assert str(claim) == (
        "To 1e-08, our best method is at least 5 times as fast as the best peer: 1 of 1 cases"
    )
    _, without = full_table(entries(rows[1:]))
    assert without == [["4, 3", "3", NONE, "250", "125", NONE, NONE]]
    _, alone = full_table(entries(rows[:1]))  # was "inf"
    assert alone == [["4, 3", "3", "10,000", NONE, NONE, NONE, NONE]]


def test_order():
    rows = [made(cell(n=n, p=n // 2, threads=t)) for t, n in ((2, 10), (1, 20), (1, 10))]
    rows.append(made(cell(task="trace", n=5, p=3)))
    found = [(e.cell.task, e.cell.threads, e.cell.n) for e in entries(rows)]
    of_procrustes = [("procrustes", 1, 10), ("procrustes", 1, 20), ("procrustes", 2, 10)]
    assert found == [*of_procrustes, ("trace", 1, 5)]


def test_names_of_problems():
    assert cell(n=10, p=5).size == "procrustes(10-5) condition 3, 1 thread"
    assert cell(n=10, p=5, threads=2).size.endswith(", 2 threads")


def problem(n, accelerated, lbfgs, auto, near, peer):
    """The rows of one size, with the same time to 1e-4 and to 1e-8."""
    seconds = {
        GROUPS["accelerated"][0]: accelerated,
        LBFGS: lbfgs,
        LBFGS + DATA_START: near,
        AUTO: auto,
        AUTO + DATA_START: near,
        "pymanopt TR": peer,
    }
    return [
        made(cell(name, n=n, p=n // 2), **{"0.0001": time, "1e-08": time})
        for name, time in seconds.items()
    ]


def test_the_summary_counts_and_names_what_is_short():
    rows = problem(10, 1.0, 1.0, 2.0, 0.5, 5.0) + problem(20, 4.0, 1.0, 2.5, 2.1, 3.0)
    times = {"0.0001": 2.5, "1e-08": 2.5}
    rows += [made(cell(AUTO, n=20, p=10, seed=1), **times) | {"ran": "gs-jobcd"}]
    rows += [made(cell(LBFGS, n=30, p=15), **{"0.0001": 1.0})]  # no peer: says nothing
    found = {(claim.gap, claim.text): claim for claim in claims(entries(rows))}
    near = "takes at most 2 times as long as"
    for gap in (1e-4, 1e-8):
        best = found[gap, "our best method is at least 5 times as fast as the best peer"]
        assert (best.holds, best.total) == (1, 2)
        where = "procrustes 20, 10, condition 3, 1 thread"
        assert best.misses == [f"{where}: 3 ({LBFGS})"]
        alone = found[gap, "accelerated JOBCD is at least as fast as the best peer"]
        assert (alone.holds, alone.total) == (1, 2)
        assert alone.misses == [f"{where}: 0.75 (Accelerated GS-JOBCD)"]
        auto = found[gap, f"auto {near} our best method from the identity"]
        assert auto.misses == [f"{where}: gs-jobcd took 2.5 times as long as {LBFGS}"]
        assert str(auto).endswith(": 1 of 2 cases")
        aligned = found[gap, f"procrustes {near} our best method from any start"]
        assert aligned.misses == [f"{where}: auto, data start took 2.1 times as long as {LBFGS}"]


def widths(text):
    return [line.count("|") - 1 for line in text.splitlines() if line.startswith("| n, p |")]


def test_wide_tables_of_the_page_are_in_its_appendix():
    rows = problem(10, 1.0, 1.0, 2.0, 0.5, 5.0) + problem(20, 4.0, 1.0, 2.5, 2.1, 3.0)
    rows += [
        made(cell(name, n=10, p=5), **{"1e-08": 1.0}) for name in ("GS-JOBCD", "J-JOBCD", CDOPT)
    ]
    shown = Path(__file__).parents[3] / "docs" / "results" / "speed.md"
    for text in (page(entries(rows)), shown.read_text(encoding="utf-8")):
        before, after = text.split("## Appendix: every method")
        assert max(widths(before)) <= 8 < max(widths(after))
        assert "exceptions" not in before
        assert "## Appendix: where a statement does not hold" in after
        assert "| inf |" not in text


def test_a_value_below_the_reference_is_told():
    rows = [made(cell(LBFGS), gap=-1e-15), made(cell("pymanopt TR"), gap=-1e-6)]
    (entry,) = entries(rows)
    assert entry.below_optimum() == ["pymanopt TR"]
    assert "Below the reference optimum at n = 10: pymanopt TR" in printed(rows)


def printed(rows, width=100):
    console = Console(width=width, record=True, file=StringIO())
    console.print(shown(rows, entries(rows)))
    return console.export_text()


def test_the_table_on_the_terminal_fits_and_names_what_is_missing():
    rows = problem(1000, 12.3, 1.0, 2.0, 0.5, math.inf) + problem(20, 4.0, 1.0, 2.5, 2.1, 3.0)
    rows += [made(cell("GS-JOBCD", n=1000, p=500), **{"0.0001": 123.4})]
    rows += [made(cell(CDOPT), outcome="missing")]
    text = printed(rows, width=90)
    assert max(map(len, text.splitlines())) <= 90
    assert "…" not in text
    (line,) = [line for line in text.splitlines() if line.split()[:2] == ["1000,", "500"]]
    assert line.split()[2:4] == ["3", NONE]
    assert ">10/>10" in line.split()
    assert "why" in text.splitlines()
    assert "|" not in text
    assert "goal" not in text


def test_figures_on_the_terminal_are_never_cut():
    rows = problem(100, 4.1, 7.3, 2.9, 5.7, 3.1)
    rows += [
        made(cell(GROUPS[group][0], n=100, p=50), **{"0.0001": 4.3, "1e-08": 9.7})
        for group in ("plain", "Newton")
    ]
    text = printed(rows, width=80)
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text
    (line,) = [line for line in text.splitlines() if line.split()[:2] == ["100,", "50"]]
    assert line.split()[-5:] == ["0.72/0.32", "0.76/0.76", "0.54/0.54", "0.72/0.32", "1.1/1.1"]


def test_the_picture_needs_curves():
    rows = problem(50, 1.0, 1.0, 2.0, 0.5, 5.0)
    assert picture(entries(rows)) is None
    for row in rows:
        row["curve"] = {"time": [0.0, 0.5, 1.0], "gap": [1.0, 1e-3, 1e-9]}
    assert picture(entries(rows))[:4] == b"\x89PNG"


def test_quick_run_table_picture_and_page(tmp_path):
    arguments = ("bench", "speed", "--quick", "--n", 8, "-o", tmp_path)
    for name in ("GS-JOBCD", LBFGS, "pymanopt TR", CDOPT):
        arguments += ("--solver", name)
    result = command(*arguments)
    assert result.exit_code == 0, result.output
    rows = read_rows(tmp_path)
    assert {row["cell"]["method"] for row in rows} == {"GS-JOBCD", LBFGS, "pymanopt TR", CDOPT}
    assert "procrustes, 1 thread, whole call" in result.output
    assert "To 1e-08, our best method is at least 5 times as fast as the best peer" in result.output
    assert "s in all:" in result.output
    written = (tmp_path / "speed.md").read_text()
    assert written == page(entries(rows))
    assert "| n, p | condition | GS-JOBCD |" in written
    assert (tmp_path / "speed.png").read_bytes()[:4] == b"\x89PNG"
    content = (tmp_path / "runs.jsonl").read_text()
    again = command(*arguments)
    assert again.exit_code == 0
    if all(row["outcome"] == "done" for row in rows):
        assert (tmp_path / "runs.jsonl").read_text() == content
    made_page = command("report", tmp_path)
    assert made_page.exit_code == 0, made_page.output
    html = (tmp_path / "report" / "index.html").read_text()
    assert '<h2 id="speed">Speed compared with pymanopt and cdopt</h2>' in html
    assert (tmp_path / "report" / "speed.png").exists()
    # the short table, and all methods in the appendix
    assert html.count("<caption>procrustes, 1 thread, solving</caption>") == 2
