"""Sentences that are put together from results read as sentences, whatever is missing."""

import math
import re
from itertools import product

import pytest

from jorth.bench.core.sections import Headline, Podium, headline_of
from jorth.bench.core.words import compared, counted, firsts, listed, on_how_many, seeds_text

BROKEN = re.compile(r"\b(None|nan|inf|no other test|a no|an? has)\b|\s\s|\s[.,;:)]|\(\)|: \.")


def test_counts_and_lists():
    assert [counted(number, "run") for number in (0, 1, 2, 1234)] == [
        "0 runs",
        "1 run",
        "2 runs",
        "1,234 runs",
    ]
    assert [listed("ABC"[:count]) for count in range(4)] == ["none", "A", "A and B", "A, B and C"]
    assert [seeds_text(seeds) for seeds in ([], [3], [0, 1, 4])] == [
        "no seeds",
        "seed 3",
        "seeds 0, 1 and 4",
    ]
    assert on_how_many(2, 3, "data set") == "on 2 of 3 data sets"
    assert on_how_many(3, 3, "data set") == "on all 3 data sets"
    assert on_how_many(0, 3, "data set") == "on none of 3 data sets"
    assert on_how_many(1, 1, "data set") == "on the only data set"
    assert on_how_many(0, 1, "data set") == "on no data set"


@pytest.mark.parametrize(("mine", "other"), [*product((0.1, 0.2, math.nan, math.inf), repeat=2)])
def test_two_numbers_are_compared_in_every_case(mine, other):
    text = compared("test MRR", mine, other, "CSDM", ".3f")
    assert not BROKEN.search(text)
    if not math.isfinite(mine):
        assert text == "has no test MRR"
    elif not math.isfinite(other):
        assert text == f"has a test MRR of {mine:.3f} (CSDM has none)"
    elif mine == other:
        assert text == f"has the same test MRR as CSDM ({mine:.3f})"
    else:
        order = "lower" if mine < other else "higher"
        assert text == f"has a {order} test MRR than CSDM ({mine:.3f} against {other:.3f})"


def test_numbers_that_look_the_same_are_called_the_same():
    text = compared("loss", 1.00001, 1.00002, "CSDM", ".2f")
    assert text == "has the same loss as CSDM (1.00)"


@pytest.mark.parametrize(
    ("winners", "text"),
    [
        ([], "no run has a result"),
        ([[], []], "no run has a result"),
        ([["A"]], "A comes first"),
        ([["A"], []], "A comes first"),
        ([["A", "B"]], "A and B share first place"),
        ([["A"], ["A"]], "A comes first on all 2 data sets"),
        ([["A"], ["B"], ["A", "C"]], "A comes first on 2 of 3 data sets, B on 1 and C on 1"),
    ],
)
def test_first_places(winners, text):
    assert firsts(winners, "data set") == text


@pytest.mark.parametrize(
    ("scores", "headline"),
    [
        ({}, Headline("k", "p", [], "no run has a result", "")),
        ({"A": 1.0}, Headline("k", "p", ["A"], "f = 1", "no other method has a result")),
        ({"A": 1.0, "B": 1.0}, Headline("k", "p", ["A", "B"], "f = 1", "all methods are equal")),
        ({"A": 2.0, "B": 1.0}, Headline("k", "p", ["B"], "f = 1", "A: f = 2")),
        (
            {"A": 1.0, "B": 2.0, "C": 2.0, "D": 3.0},
            Headline("k", "p", ["A"], "f = 1", "B and C: f = 2"),
        ),
    ],
)
def test_headlines(scores, headline):
    assert headline_of("k", "p", scores, lambda score: f"f = {score:g}") == headline


def test_a_podium_without_places_says_why():
    assert "data are missing" in Podium("p", "", {}, {}, "data are missing").cells[0]
    assert "no run has a result" in Podium("p", "", {}, {}).cells[0]
    first, second, third = Podium(
        "p", "", {"A": 1, "B": 1, "C": 3}, dict.fromkeys("ABC", "x")
    ).cells
    assert first.count("<b>") == 2
    assert 'class="winner"' in first
    assert "<b>" not in second
    assert "<b>C</b>" in third
