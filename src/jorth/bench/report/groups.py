"""Rows that belong side by side, and who is first among them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from jorth.arrays import is_number
from jorth.bench.cells import Cell
from jorth.bench.methods import NAMES
from jorth.bench.paper import Size
from jorth.bench.records import Row, cell_of

AWAY = 100.0
"""A race is out of sight when it ended as unbounded and -f has grown by this factor: the value then says only how far
the last step went."""
FLOOR = 1e-11
"""Gaps below this are equal: the time decides."""
IMPROVED = 1e-3
"""A warm start counts as improved when f fell by this share of its size."""


@dataclass
class OneProblem:
    """What runs of one problem on one budget share."""

    cell: Cell

    @property
    def name(self) -> str:
        """Data and size, and what else sets the problem apart."""
        return title(self.cell)

    @property
    def budget(self) -> str:
        """The budget in words."""
        return budget(self.cell)


@dataclass
class Group(OneProblem):
    """Runs of one problem on one budget; ``theta`` is that of its JOBCD methods in a race."""

    theta: float | None
    rows: dict[str, Row]

    @property
    def size(self) -> Size:
        """The data, m, n and p."""
        return self.cell.data, self.cell.m, self.cell.n, self.cell.p

    @property
    def done(self) -> dict[str, Row]:
        """The runs with a result."""
        return {name: row for name, row in self.rows.items() if row["outcome"] == "done"}


def title(cell: Cell) -> str:
    """Data and size of a cell, and what else sets its problem apart: options where they are not the usual ones."""
    parts = [] if cell.condition is None else [f"source condition {cell.condition:g}"]
    if cell.problem == "probe":
        options = (("α", cell.alpha, 1.0), ("scale", cell.scale, 1.0), ("ridge", cell.ridge, 0.0))
        parts += [f"{name} {value}" for name, value, usual in options if value != usual]
    return ", ".join([cell.size, *parts])


def in_order(seeds: Iterable[Any]) -> list[Any]:
    """Seeds in rising order; what is no number comes last."""
    return sorted(
        seeds, key=lambda seed: (not is_number(seed), seed if is_number(seed) else str(seed))
    )


def budget(cell: Cell) -> str:
    """The budget of a cell in words."""
    parts = [] if cell.max_time is None else [f"{cell.max_time:g} s"]
    parts += [] if cell.max_evaluations is None else [f"{cell.max_evaluations} gradients"]
    return " or ".join(parts) or "no limit"


def group_rows(rows: list[Row], problem: str) -> list[Group]:
    """The groups of a problem in the order of their first rows, one a theta; methods without one are in each."""
    shared: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        cell = cell_of(row)
        if cell.problem == problem:
            shared.setdefault((cell.problem_key, cell.max_time, cell.max_evaluations), []).append(
                row
            )
    groups = []
    for members in shared.values():
        cells = [cell_of(row) for row in members]
        thetas: list[float | None] = [
            *sorted({cell.theta for cell in cells if cell.theta is not None})
        ] or [None]
        for theta in thetas:
            found = {
                cell.method: row
                for cell, row in zip(cells, members, strict=True)
                if cell.theta is None or cell.theta == theta
            }
            groups.append(
                Group(cells[0], theta, {name: found[name] for name in NAMES if name in found})
            )
    return groups


def is_away(row: Row) -> bool:
    """Whether a race has left for infinity."""
    value, first = row.get("value"), row.get("start_value")
    if (
        row["cell"]["problem"] != "race"
        or row.get("status") != "UNBOUNDED"
        or value is None
        or first is None
    ):
        return False
    return bool(value <= AWAY * first)  # both are negative


def score(row: Row) -> tuple[float, float]:
    """Lower is better. Races: the value, and all that are away are equal. Else: the gap, and below FLOOR the time."""
    if row["outcome"] != "done" or row["value"] is None:
        return math.inf, math.inf
    if row["gap"] is None:
        return (-math.inf if is_away(row) else row["value"]), 0.0
    gap = max(row["gap"], FLOOR)
    return gap, (row["time"] if gap <= FLOOR else 0.0)


def ranks(group: Group) -> dict[str, int]:
    """1, 2 or 3 for the best three; equal scores share a rank. Runs without a finite value have none."""
    scores = {name: score(row) for name, row in group.done.items() if math.isfinite(score(row)[1])}
    placed = {
        name: 1 + sum(other < mine for other in scores.values()) for name, mine in scores.items()
    }
    return {name: place for name, place in placed.items() if place <= 3}


def is_improved(row: Row) -> bool:
    """Whether the second method of a chain markedly improved on the first one's point: the paper's (+)."""
    stages = row.get("stages") or []
    if len(stages) < 2 or stages[0]["value"] is None or row["value"] is None:
        return False
    first = stages[0]["value"]
    return bool(first - row["value"] > IMPROVED * abs(first))
