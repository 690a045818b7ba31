"""Runs of one problem over several seeds: medians, places, and what one method needs to match another."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median

from jorth.bench.methods import NAMES
from jorth.bench.records import Row, cell_of
from jorth.bench.report.groups import OneProblem, in_order

RIVALS = ("UMCM", "ADMM", "CSDM")
"""The paper's methods that J-JOBCD and VR-J-JOBCD are compared with."""


@dataclass
class Family(OneProblem):
    """Runs of one problem on one budget; a row for each seed of each method."""

    rows: dict[str, list[Row]]

    @property
    def seeds(self) -> list[int]:
        """All seeds."""
        return in_order({cell_of(row).seed for rows in self.rows.values() for row in rows})

    def done(self, method: str) -> list[Row]:
        """The runs of a method with a result."""
        return [row for row in self.rows.get(method, []) if row["outcome"] == "done"]

    @property
    def medians(self) -> dict[str, float]:
        """The median of the last values by method; a run without a finite one counts as infinite."""
        return {name: median(map(last_value, rows)) for name, rows in self.rows.items()}

    @property
    def places(self) -> dict[str, int]:
        """1, 2 or 3 for the best three medians; equal ones share a place."""
        ends = {name: value for name, value in self.medians.items() if math.isfinite(value)}
        placed = {
            name: 1 + sum(other < mine for other in ends.values()) for name, mine in ends.items()
        }
        return {name: place for name, place in placed.items() if place <= 3}


def families(rows: list[Row], problem: str) -> list[Family]:
    """The families of a problem in the order of their first rows, methods in the order of the tables."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        cell = cell_of(row)
        if cell.problem == problem:
            found.setdefault(cell.family_key, []).append(row)
    return [Family(cell_of(members[0]), _by_method(members)) for members in found.values()]


def _by_method(rows: list[Row]) -> dict[str, list[Row]]:
    by_name = {name: [row for row in rows if row["cell"]["method"] == name] for name in NAMES}
    return {name: members for name, members in by_name.items() if members}


def last_value(row: Row) -> float:
    """The value that a run ended with, infinite where there is none."""
    value = row["value"] if row["outcome"] == "done" else None
    return math.inf if value is None else float(value)


@dataclass(frozen=True)
class Match:
    """The sample gradients with which two runs first reached ``value``, the last value of the one to be matched.

    Attributes:
        seed: Of both runs.
        value: The last value of J-JOBCD.
        jacobi: The sample gradients of J-JOBCD.
        reduced: Those of VR-J-JOBCD, None where it did not get there. Its value is known at full passes only, so the
            true number is smaller.
    """

    seed: int
    value: float
    jacobi: float
    reduced: float | None

    @property
    def ratio(self) -> float:
        """Reduced over jacobi; infinite where it was not reached."""
        return math.inf if self.reduced is None else self.reduced / self.jacobi


def matches(family: Family) -> list[Match]:
    """For each seed with both, how many sample gradients VR-J-JOBCD needed to match J-JOBCD."""
    reduced = {cell_of(row).seed: row for row in family.done("VR-J-JOBCD")}
    found = []
    for row in family.done("J-JOBCD"):
        seed, values = (
            cell_of(row).seed,
            [value for value in row["history"]["value"] if value is not None],
        )
        if seed in reduced and values:
            jacobi = samples_to(row, values[-1])
            assert jacobi is not None
            found.append(Match(seed, values[-1], jacobi, samples_to(reduced[seed], values[-1])))
    return found


def samples_to(row: Row, value: float) -> float | None:
    """The sample gradients at the first record with at most ``value``."""
    history = row["history"]
    pairs = zip(history["samples"], history["value"], strict=True)
    return next((samples for samples, found in pairs if found is not None and found <= value), None)


def no_worse(family: Family, method: str) -> bool | None:
    """Whether a method's median is at most that of each of RIVALS that was run; None where nothing was compared."""
    ends = family.medians
    rivals = [ends[name] for name in RIVALS if name in ends]
    if method not in ends or not rivals or not family.done(method):
        return None
    return all(ends[method] <= rival for rival in rivals)
