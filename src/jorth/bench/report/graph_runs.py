"""Runs on one knowledge graph: trials and tests by method, and their medians."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median

from jorth.bench.graphs.cells import METHODS, GraphCell
from jorth.bench.records import Row
from jorth.bench.report.groups import in_order

OURS = ("J-JOBCD", "VR-J-JOBCD")
RIVAL = "CSDM"


@dataclass
class GraphRuns:
    """The rows of one graph, signature and budget."""

    cell: GraphCell
    trials: dict[str, list[Row]]
    tests: dict[str, list[Row]]

    @property
    def name(self) -> str:
        """The graph and the signature."""
        return f"{self.cell.graph}, p = {self.cell.p}, q = {self.cell.q}"

    @property
    def notes(self) -> dict[str, float]:
        """Sizes and leak of the graph; empty where nothing was run."""
        rows = [row for members in (*self.tests.values(), *self.trials.values()) for row in members]
        return next((row["notes"] for row in rows if "notes" in row), {})

    @property
    def seeds(self) -> list[int]:
        """Of the tests."""
        return in_order({row["cell"]["seed"] for rows in self.tests.values() for row in rows})

    def done(self, method: str) -> list[Row]:
        """The tests of a method with a result."""
        return [row for row in self.tests.get(method, []) if row["outcome"] == "done"]

    def median_loss(self, method: str) -> float:
        """The median of the last training losses; a run without one counts as infinite."""
        rows = self.tests.get(method, [])
        return median(_number(row.get("loss"), math.inf) for row in rows) if rows else math.nan

    def median_test(self, method: str, figure: str) -> float:
        """The median of a figure on the test triples; a run without one counts as zero."""
        rows = self.tests.get(method, [])
        return (
            median(_number(row.get("test", {}).get(figure), 0.0) for row in rows)
            if rows
            else math.nan
        )


def graph_runs(rows: list[Row]) -> list[GraphRuns]:
    """The runs of every graph in the order of their first rows, methods in the order of the tables."""
    found: dict[tuple[str, int, int, int], list[Row]] = {}
    for row in rows:
        cell = GraphCell.from_json(row["cell"])
        found.setdefault((cell.graph, cell.p, cell.q, cell.epochs), []).append(row)
    return [
        GraphRuns(
            GraphCell.from_json(members[0]["cell"]),
            _by_method(members, "trial"),
            _by_method(members, "test"),
        )
        for members in found.values()
    ]


def _by_method(rows: list[Row], stage: str) -> dict[str, list[Row]]:
    chosen = [row for row in rows if row["cell"]["stage"] == stage]
    by_name = {name: [row for row in chosen if row["cell"]["method"] == name] for name in METHODS}
    return {name: members for name, members in by_name.items() if members}


def _number(value: float | None, otherwise: float) -> float:
    return otherwise if value is None else float(value)
