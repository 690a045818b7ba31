"""The table: times to a gap as ratios, the best outside peer's over each method's."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median

from jorth.bench.records import Row
from jorth.bench.scoring import GAPS
from jorth.bench.speed.cells import CDOPT, JOBCD, METHODS, PEERS, SpeedCell
from jorth.bench.speed.choice import best_beta

GOALS = ((200, 5.0), (1000, 3.0))
"""How many times faster than the best peer the best of JOBCD is to be at the least gap, up to which n."""


@dataclass(frozen=True)
class Ratio:
    """The best peer's time over a method's; with ``bound`` no peer came there, and it is their budget over it."""

    value: float
    bound: bool = False

    def __str__(self) -> str:
        return f"{'> ' if self.bound else ''}{self.value:.2g}" if self.value < 10 else self._large()

    def _large(self) -> str:
        return f"{'> ' if self.bound else ''}{self.value:.0f}"


class Entry:
    """The runs of one n, p, condition and number of threads."""

    def __init__(self, rows: list[Row]) -> None:
        self.cell = SpeedCell.from_json(rows[0]["cell"])
        self.rows = {
            name: [row for row in rows if row["cell"]["method"] == name] for name in METHODS
        }
        tried = self.done(CDOPT)
        self.beta = best_beta(tried) if tried else None
        self.rows[CDOPT] = [
            row for row in self.rows[CDOPT] if self.beta in (None, row["cell"]["beta"])
        ]

    def done(self, name: str) -> list[Row]:
        """The runs of a method that ended by themselves or with their budget."""
        return [row for row in self.rows[name] if row["outcome"] == "done"]

    def seconds(self, name: str, gap: float) -> float:
        """The median over the seeds; a run that did not get there counts as infinite, and so does no run."""
        runs = [row for row in self.rows[name] if row["outcome"] in ("done", "failed")]
        times = [row.get("reached", {}).get(f"{gap:g}", math.inf) for row in runs]
        return median(times) if times else math.inf

    def best_peer(self, gap: float) -> tuple[str, float]:
        """The outside peer that was first, and its time; infinite where none came there."""
        return min(((name, self.seconds(name, gap)) for name in PEERS), key=lambda pair: pair[1])

    def ratio(self, name: str, gap: float) -> Ratio | None:
        """None where the method did not come there, or no peer was run."""
        ours, (_, theirs) = self.seconds(name, gap), self.best_peer(gap)
        if not math.isfinite(ours) or not any(self.done(peer) for peer in PEERS):
            return None
        if math.isfinite(theirs):
            return Ratio(theirs / ours)
        budgets = [row["time"] for peer in PEERS for row in self.done(peer)]
        return Ratio(max(budgets) / ours, bound=True)

    def state(self, name: str) -> str:
        """Why a method has no ratio."""
        rows = self.rows[name]
        if not rows:
            return "not run"
        return "–" if self.done(name) else rows[-1]["outcome"]

    def fastest(self, gap: float) -> str | None:
        """The method that was first of all."""
        name, seconds = min(
            ((name, self.seconds(name, gap)) for name in METHODS), key=lambda pair: pair[1]
        )
        return name if math.isfinite(seconds) else None


def entries(rows: list[Row]) -> list[Entry]:
    """The rows of a run by problem, sorted by threads, n, p and condition."""
    places: dict[tuple[int, int, float, int], list[Row]] = {}
    for row in rows:
        places.setdefault(SpeedCell.from_json(row["cell"]).place, []).append(row)
    order = sorted(places, key=lambda place: (place[3], *place[:3]))
    return [Entry(places[place]) for place in order]


def goal(n: int) -> float | None:
    """The ratio aimed at for size n; None beyond those that have one."""
    return next((ratio for size, ratio in GOALS if n <= size), None)


HEADS = ("n, p", "condition", "threads", *METHODS, "best peer, s")


def cells_of(entry: Entry) -> list[str]:
    """One line of the table: ratios at all gaps, and the best peer's seconds."""
    cell = entry.cell
    line = [f"{cell.n}, {cell.p}", f"{cell.condition:g}", str(cell.threads)]
    for name in METHODS:
        beta = f" (β {entry.beta:g})" if name == CDOPT and entry.beta is not None else ""
        line.append(_at_gaps(entry, name) + beta)
    peers = [entry.best_peer(gap) for gap in GAPS]
    line.append(
        " / ".join(f"{seconds:.2g}" if math.isfinite(seconds) else "–" for _, seconds in peers)
    )
    return line


def _at_gaps(entry: Entry, name: str) -> str:
    if not entry.done(name):
        return entry.state(name)
    return " / ".join("–" if (r := entry.ratio(name, gap)) is None else str(r) for gap in GAPS)


def markdown(found: list[Entry]) -> list[str]:
    """The table and, under it, whether the goals are met."""
    lines = [f"| {' | '.join(HEADS)} |", "|" + "---|" * len(HEADS)]
    lines += [f"| {' | '.join(cells_of(entry))} |" for entry in found]
    return [*lines, "", *(f"- {sentence}" for sentence in map(verdict, found))]


def verdict(entry: Entry) -> str:
    """The best of JOBCD against the best peer at the least gap, and who was first of all."""
    gap, cell = min(GAPS), entry.cell
    peer, _ = entry.best_peer(gap)
    where = f"n = {cell.n}, p = {cell.p}, condition {cell.condition:g}, {cell.threads} thread(s)"
    ratios = {name: ratio for name in JOBCD if (ratio := entry.ratio(name, gap)) is not None}
    if not ratios:
        return f"{where}: no ratio at {gap:g}"
    best = max(ratios, key=lambda name: ratios[name].value)
    aim = goal(cell.n)
    met = (
        ""
        if aim is None
        else f", goal {aim:g}: {'met' if ratios[best].value >= aim else 'not met'}"
    )
    against = (
        "no peer got there in its budget" if ratios[best].bound else f"the best peer is {peer}"
    )
    return (
        f"{where}: {best} {ratios[best]} times ({against}){met}; first of all: {entry.fastest(gap)}"
    )
