"""The table: times of the best peer to a gap over those of each method."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median

from jorth.bench.core.cells import GAPS
from jorth.bench.core.records import MethodRows, Row
from jorth.bench.speed.cells import CDOPT, JOBCD, PEERS, SPEED_METHODS, SpeedCell, best_beta

GOALS = ((200, 5.0), (1000, 3.0))
"""The ratio to the best peer that the best of JOBCD should reach at the smallest gap, up to n."""
HEADS = ("n, p", "condition", "threads", *SPEED_METHODS, "best peer, s")


@dataclass(frozen=True)
class Ratio:
    """The best peer's time over a method's; a bound takes the budget if no peer got there."""

    value: float
    bound: bool = False

    def __str__(self) -> str:
        number = f"{self.value:.2g}" if self.value < 10 else f"{self.value:.0f}"
        return f"{'> ' if self.bound else ''}{number}"


class Entry:
    """The runs of one n, p, condition and number of threads, which make one line of the table."""

    def __init__(self, rows: list[Row]) -> None:
        self.cell = SpeedCell.from_json(rows[0]["cell"])
        self.rows = MethodRows(rows, SPEED_METHODS)
        tried = self.rows.done(CDOPT)
        self.beta = best_beta(tried) if tried else None
        if self.beta is not None:
            self.rows[CDOPT] = [r for r in self.rows[CDOPT] if r["cell"]["beta"] == self.beta]

    def seconds(self, name: str, gap: float) -> float:
        """The median over the seeds; runs that fell short count as infinite, and so does no run."""
        runs = [row for row in self.rows.get(name, []) if row["outcome"] in ("done", "failed")]
        times = [row.get("reached", {}).get(f"{gap:g}", math.inf) for row in runs]
        return median(times) if times else math.inf

    def best_peer(self, gap: float) -> tuple[str, float]:
        """The fastest peer and its time, which is infinite if none got there."""
        return min(((name, self.seconds(name, gap)) for name in PEERS), key=lambda pair: pair[1])

    def ratio(self, name: str, gap: float) -> Ratio | None:
        """None if the method did not get there, or no peer was run."""
        ours = self.seconds(name, gap)
        _, theirs = self.best_peer(gap)
        budgets = [row["time"] for peer in PEERS for row in self.rows.done(peer)]
        if not math.isfinite(ours) or not budgets:
            return None
        if math.isfinite(theirs):
            return Ratio(theirs / ours)
        return Ratio(max(budgets) / ours, bound=True)

    def fastest(self, gap: float) -> str | None:
        """The fastest of all methods; None if none got there."""
        seconds = {name: self.seconds(name, gap) for name in SPEED_METHODS}
        name = min(seconds, key=lambda name: seconds[name])
        return name if math.isfinite(seconds[name]) else None

    def texts(self) -> list[str]:
        """The line of the table: the ratios at all gaps, and the seconds of the best peer."""
        cell = self.cell
        found = [f"{cell.n}, {cell.p}", f"{cell.condition:g}", str(cell.threads)]
        for name in SPEED_METHODS:
            beta = f" (β {self.beta:g})" if name == CDOPT and self.beta is not None else ""
            found.append(self._ratios(name) + beta)
        peers = [self.best_peer(gap)[1] for gap in GAPS]
        found.append(" / ".join(f"{time:.2g}" if math.isfinite(time) else "–" for time in peers))
        return found

    def _ratios(self, name: str) -> str:
        if name not in self.rows:
            return "not run"
        if not self.rows.done(name):
            return str(self.rows[name][-1]["outcome"])
        ratios = [self.ratio(name, gap) for gap in GAPS]
        return " / ".join("–" if ratio is None else str(ratio) for ratio in ratios)

    def verdict(self) -> str:
        """The best of JOBCD against the best peer at the smallest gap, and the fastest method."""
        cell = self.cell
        gap = min(GAPS)
        where = (
            f"n = {cell.n}, p = {cell.p}, condition {cell.condition:g}, {cell.threads} thread(s)"
        )
        ratios = {name: ratio for name in JOBCD if (ratio := self.ratio(name, gap)) is not None}
        if not ratios:
            return f"{where}: no ratio at {gap:g}"
        best = max(ratios, key=lambda name: ratios[name].value)
        against = f"the best peer is {self.best_peer(gap)[0]}"
        if ratios[best].bound:
            against = "no peer got there in its budget"
        aim = goal(cell.n)
        met = ""
        if aim is not None:
            met = f", goal {aim:g}: {'met' if ratios[best].value >= aim else 'not met'}"
        return (
            f"{where}: {best} {ratios[best]} times ({against}){met}; "
            f"first of all: {self.fastest(gap)}"
        )


def entries(rows: list[Row]) -> list[Entry]:
    """The rows by problem, sorted by threads, n, p and condition."""
    places: dict[tuple[int, int, int, float], list[Row]] = {}
    for row in rows:
        cell = SpeedCell.from_json(row["cell"])
        places.setdefault((cell.threads, cell.n, cell.p, cell.condition), []).append(row)
    return [Entry(places[place]) for place in sorted(places)]


def goal(n: int) -> float | None:
    """The goal for size n; None beyond the sizes that have one."""
    return next((ratio for size, ratio in GOALS if n <= size), None)


def markdown(found: list[Entry]) -> list[str]:
    """The table, and below it whether the goals are met."""
    lines = [f"| {' | '.join(HEADS)} |", "|" + "---|" * len(HEADS)]
    lines += [f"| {' | '.join(entry.texts())} |" for entry in found]
    return [*lines, "", *(f"- {entry.verdict()}" for entry in found)]
