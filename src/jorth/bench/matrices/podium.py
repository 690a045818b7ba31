"""Who came first on eigenvalue and Procrustes problems, and by how much, in words."""

from __future__ import annotations

import math
from statistics import median

from jorth.bench.core.records import Row, reason
from jorth.bench.core.sections import Headline, Podium, nobody_else
from jorth.bench.core.words import counted, firsts, listed
from jorth.bench.matrices.groups import GAP_FLOOR, Group, has_diverged, score

MIN_SECONDS = 1e-9  # what a clock that shows zero is taken for


def ranking(group: Group) -> list[list[str]]:
    """The methods with a result, best first; equal ones are together."""
    scores = {name: score(row) for name, row in group.done.items()}
    finite = {name: found for name, found in scores.items() if math.isfinite(found[1])}
    return [
        [name for name, found in finite.items() if found == level]
        for level in sorted(set(finite.values()))
    ]


def podium(group: Group, details: str) -> Podium:
    """The best three of a group."""
    results = {name: result_of(row) for name, row in group.done.items()}
    trouble = dict.fromkeys(reason(row) for row in group.rows.values() if row["outcome"] != "done")
    return Podium(group.name, details, group.places, results, "; ".join(trouble))


def result_of(row: Row) -> str:
    """The result of a run in a few words."""
    if row["value"] is None:
        return "not finite"
    if row["gap"] is None:
        return "left for infinity" if has_diverged(row) else f"f = {row['value']:.2e}"
    if _solved(row):
        return f"solved in {row['time']:.2g} s"
    return f"gap {row['gap']:.1e} after {row['time']:.2g} s"


def headline(group: Group, kind: str) -> Headline:
    """The winner by gap, or by time where the problem was solved, and the distance to the next."""
    order = ranking(group)
    if not order:
        return Headline(kind, group.name, [], "no run has a result", "")
    first, *others = order
    row = group.done[first[0]]
    margin = _margin(row, others[0], group) if others else nobody_else(first)
    return Headline(kind, group.name, first, result_of(row), margin)


def _margin(row: Row, second: list[str], group: Group) -> str:
    other = group.done[second[0]]
    if _solved(other):
        return f"{_times(row, other):.2g} times as fast as {listed(second)}"
    if _solved(row):
        return f"the only one to solve it; {listed(second)} reached a gap of {other['gap']:.1e}"
    return f"{listed(second)} reached {other['gap']:.1e}"


def sentence(groups: list[Group], problem: str) -> str:
    """Who came first how often, and how much faster than the second, as a sentence."""
    orders = [ranking(group) for group in groups]
    text = f"{problem}: {firsts([order[0] if order else [] for order in orders], 'data set')}"
    ratios = [
        _times(group.done[order[0][0]], group.done[order[1][0]])
        for group, order in zip(groups, orders, strict=True)
        if len(order) > 1 and _solved(group.done[order[1][0]])
    ]
    if not ratios:
        return f"{text}."
    where = "" if len(ratios) == 1 else f" (median of {counted(len(ratios), 'data set')})"
    how = f"{median(ratios):.2g} times as fast as the second method{where}"
    return f"{text}. Where both solved the problem, the winner was {how}."


def race_sentence(groups: list[Group]) -> str:
    """What the race is, and how many runs left for infinity."""
    runs = {id(row): row for group in groups for row in group.done.values()}
    if not runs:
        return "The problem as printed: no run has a result."
    away = sum(map(has_diverged, runs.values()))
    return (
        "The problem as printed is unbounded below, so nobody wins: "
        f"{away} of {counted(len(runs), 'run')} left for infinity within the budget."
    )


def _solved(row: Row) -> bool:
    return row["gap"] is not None and row["gap"] <= GAP_FLOOR


def _times(first: Row, second: Row) -> float:
    """How many times as fast the first of two runs was."""
    return float(max(second["time"], MIN_SECONDS) / max(first["time"], MIN_SECONDS))
