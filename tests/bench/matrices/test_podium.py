"""Who came first and by how much, in every case."""

import pytest

from jorth.bench.matrices.cells import MatrixCell
from jorth.bench.matrices.groups import group_rows
from jorth.bench.matrices.podium import headline, podium, race_sentence, ranking, sentence

CELL = MatrixCell(problem="trace", method="", data="randn", m=10, n=4, p=2, ridge=0.1, max_time=1.0)
NAME = "randn(10-4-2)"


def row(method, gap=None, time=1.0, **fields):
    cell = {**CELL.__dict__, "method": method, "problem": fields.pop("problem", "trace")}
    usual = {"outcome": "done", "status": "MAX_TIME", "value": 1.0, "start_value": -1.0}
    return {"key": method, "cell": cell, "gap": gap, "time": time, "stages": [], **usual, **fields}


def failed(method):
    return row(method, outcome="failed", error="ValueError: no")


def group(*rows):
    (found,) = group_rows(list(rows), rows[0]["cell"]["problem"])
    return found


@pytest.mark.parametrize(
    ("rows", "winners", "result", "margin"),
    [
        ([failed("UMCM")], [], "no run has a result", ""),
        ([row("UMCM", None, value=None)], [], "no run has a result", ""),
        ([row("UMCM", 1e-3)], ["UMCM"], "gap 1.0e-03 after 1 s", "no other method has a result"),
        (
            [row("UMCM", 1e-3), failed("ADMM")],
            ["UMCM"],
            "gap 1.0e-03 after 1 s",
            "no other method has a result",
        ),
        (
            [row("UMCM", 1e-3), row("ADMM", 1e-3)],
            ["UMCM", "ADMM"],
            "gap 1.0e-03 after 1 s",
            "all methods are equal",
        ),
        (
            [row("UMCM", 1e-3), row("ADMM", 1e-2), row("CSDM", 1e-2)],
            ["UMCM"],
            "gap 1.0e-03 after 1 s",
            "ADMM and CSDM reached 1.0e-02",
        ),
        (
            [row("UMCM", 1e-13, 0.5), row("ADMM", 1e-2)],
            ["UMCM"],
            "solved in 0.5 s",
            "the only one to solve it; ADMM reached a gap of 1.0e-02",
        ),
        (
            [row("UMCM", 1e-13, 0.5), row("ADMM", -1e-16, 2.0)],
            ["UMCM"],
            "solved in 0.5 s",
            "4 times as fast as ADMM",
        ),
    ],
)
def test_headlines(rows, winners, result, margin):
    found = headline(group(*rows), "Trace")
    assert (found.kind, found.problem) == ("Trace", NAME)
    assert (list(found.winners), found.result, found.margin) == (winners, result, margin)


def test_a_clock_that_shows_zero_is_no_division_by_zero():
    found = headline(group(row("UMCM", 1e-13, 0.0), row("ADMM", 1e-13, 1e-9)), "Trace")
    assert found.winners == ["UMCM"]
    assert found.margin == "1 times as fast as ADMM"


def test_sentences():
    solved = group(row("UMCM", 1e-13, 0.5), row("ADMM", 1e-13, 1.0))
    open_ = group(row("UMCM", 1e-1), row("ADMM", 1e-3))
    empty = group(failed("UMCM"))
    assert sentence([empty], "Trace") == "Trace: no run has a result."
    assert sentence([open_], "Trace") == "Trace: ADMM comes first."
    assert sentence([solved, open_, empty], "Trace") == (
        "Trace: UMCM comes first on 1 of 2 data sets and ADMM on 1. Where both solved the problem, "
        "the winner was 2 times as fast as the second method."
    )


def test_a_race_has_no_winner():
    away = row("UMCM", problem="race", value=-1e9, status="UNBOUNDED")
    races = [group(away, row("ADMM", problem="race", value=-2.0))]
    assert ranking(races[0]) == [["UMCM"], ["ADMM"]]
    assert race_sentence(races) == (
        "The problem as printed is unbounded below, so nobody wins: 1 of 2 runs left for infinity "
        "within the budget."
    )
    nothing = group(row("UMCM", problem="race", outcome="failed", error="no"))
    assert race_sentence([nothing]) == "The problem as printed: no run has a result."


def test_a_podium_shows_why_there_is_nobody_on_it():
    assert "failed: ValueError: no" in podium(group(failed("UMCM")), "1 s").cells[0]
