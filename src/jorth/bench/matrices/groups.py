"""Rows that are compared with each other, and their places."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from jorth.bench.core.places import best_three
from jorth.bench.core.records import Row
from jorth.bench.matrices.cells import MatrixCell
from jorth.bench.matrices.methods import in_order
from jorth.bench.matrices.paper import Size

DIVERGED_GROWTH = 100.0
"""A race has diverged if it ended as unbounded and -f has grown by this factor."""
GAP_FLOOR = 1e-11  # gaps below this count as equal, and the time decides
IMPROVED = 1e-3  # a warm start counts as improved if f fell by this fraction of its size


@dataclass
class OneProblem:
    """What runs of one problem on one budget share."""

    cell: MatrixCell

    @property
    def name(self) -> str:
        """The data, the size, and options that differ from the defaults."""
        cell = self.cell
        parts = [] if cell.condition is None else [f"source condition {cell.condition:g}"]
        if cell.problem == "probe":
            options = ("α", cell.alpha, 1.0), ("scale", cell.scale, 1.0), ("ridge", cell.ridge, 0.0)
            parts += [f"{name} {value}" for name, value, default in options if value != default]
        return ", ".join([cell.size, *parts])

    @property
    def budget(self) -> str:
        cell = self.cell
        parts = [] if cell.max_time is None else [f"{cell.max_time:g} s"]
        parts += [] if cell.max_evaluations is None else [f"{cell.max_evaluations} gradients"]
        return " or ".join(parts) or "no limit"


@dataclass
class Group(OneProblem):
    """Runs of one problem on one budget; in a race, ``theta`` is that of the JOBCD methods."""

    theta: float | None
    rows: dict[str, Row]

    @property
    def size(self) -> Size:
        return self.cell.data, self.cell.m, self.cell.n, self.cell.p

    @property
    def done(self) -> dict[str, Row]:
        return {name: row for name, row in self.rows.items() if row["outcome"] == "done"}

    @property
    def places(self) -> dict[str, int]:
        """The places of the best three; runs without a finite value have none."""
        scores = {name: score(row) for name, row in self.done.items()}
        return best_three({name: s for name, s in scores.items() if math.isfinite(s[1])})

    def speeds(self, gap: float) -> tuple[float | None, dict[str, float | None]]:
        """The shortest time to the gap, and each method's time over it; None if not reached."""
        times = {
            name: row["reached"].get(f"{gap:g}", {}).get("time") for name, row in self.done.items()
        }
        known = [time for time in times.values() if time is not None]
        if not known:
            return None, dict.fromkeys(times)
        fastest = max(min(known), 1e-9)
        return min(known), {
            name: None if time is None else time / fastest for name, time in times.items()
        }


def group_rows(rows: list[Row], problem: str) -> list[Group]:
    """The groups of a problem in the order of their first rows, one per theta.

    Methods without a theta are in every group.
    """
    shared: dict[MatrixCell, list[tuple[MatrixCell, Row]]] = {}
    for row in rows:
        cell = MatrixCell.from_json(row["cell"])
        if cell.problem == problem:
            shared.setdefault(replace(cell, method="", theta=None), []).append((cell, row))
    groups = []
    for members in shared.values():
        thetas: list[Any] = sorted({cell.theta for cell, _ in members if cell.theta is not None})
        for theta in thetas or [None]:
            found = {cell.method: row for cell, row in members if cell.theta in (None, theta)}
            ordered = {name: found[name] for name in in_order(found)}
            groups.append(Group(members[0][0], theta, ordered))
    return groups


def columns_of(groups: Iterable[Any]) -> list[str]:
    """The methods that have rows in any of the groups, in the order of the tables."""
    present = {name for group in groups for name in group.rows}
    return in_order(present)


def score(row: Row) -> tuple[float, float]:
    """The value in a race, else the gap, and below GAP_FLOOR the time; lower is better."""
    if row["outcome"] != "done" or row["value"] is None:
        return math.inf, math.inf
    if row["gap"] is None:
        return (-math.inf if has_diverged(row) else row["value"]), 0.0
    gap = max(row["gap"], GAP_FLOOR)
    return gap, (row["time"] if gap <= GAP_FLOOR else 0.0)


def has_diverged(row: Row) -> bool:
    """Whether a race has diverged, so that its value only shows how far the last step went."""
    value = row.get("value")
    first = row.get("start_value")
    unbounded = row["cell"]["problem"] == "race" and row.get("status") == "UNBOUNDED"
    if not unbounded or value is None or first is None:
        return False
    return bool(value <= DIVERGED_GROWTH * first)  # both are negative


def is_improved(row: Row) -> bool:
    """Whether the second method of a chain clearly improved on the first: the paper's (+)."""
    stages = row.get("stages") or []
    if len(stages) < 2 or stages[0]["value"] is None or row["value"] is None:
        return False
    first = stages[0]["value"]
    return bool(first - row["value"] > IMPROVED * abs(first))
