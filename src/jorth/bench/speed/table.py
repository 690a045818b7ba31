"""Times of the best peer to a gap over those of each method, problem by problem."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from jorth.bench.core.cells import GAPS
from jorth.bench.core.records import MethodRows, Row
from jorth.bench.speed.cells import TASKS, SpeedCell, best_beta
from jorth.bench.speed.methods import BATCH_METHODS, CDOPT, GROUPS, OURS, PEERS, SPEED_METHODS

NONE = "–"
DEEP_GAPS = (1e-4, 1e-8)  # those of the summary and of the table on the terminal
BATCH_HEADS = ("n, p", "cond.", "one call /s", "loop /s", "peer /s", "over loop", "over peer")
CLOCKS = {"reached": "solving", "calls": "whole call"}
"""What was timed, by the field of a row that has it."""


@dataclass(frozen=True)
class Ratio:
    """The best peer's time over a method's; a bound takes the budget if no peer got there."""

    value: float
    bound: bool = False

    def __str__(self) -> str:
        number = f"{self.value:.2g}" if self.value < 10 else f"{self.value:.0f}"
        return f"{'> ' if self.bound else ''}{number}"


class Entry:
    """The runs of one problem and number of threads by one clock: one line of the table."""

    def __init__(self, rows: list[Row], clock: str = "reached") -> None:
        self.cell = SpeedCell.from_json(rows[0]["cell"])
        self.clock = clock
        self.rows = MethodRows(rows, SPEED_METHODS)
        tried = self.rows.done(CDOPT)
        self.beta = best_beta(tried) if tried else None
        if self.beta is not None:
            self.rows[CDOPT] = [r for r in self.rows[CDOPT] if r["cell"]["beta"] == self.beta]

    @property
    def place(self) -> tuple[int, int, int]:
        """What the entries of one table share: the task, the threads and the clock."""
        return TASKS.index(self.cell.task), self.cell.threads, list(CLOCKS).index(self.clock)

    def seconds(self, name: str, gap: float) -> float:
        """The median over the seeds; runs that fell short count as infinite, and so does no run."""
        runs = [row for row in self.rows.get(name, []) if row["outcome"] in ("done", "failed")]
        times = [row.get(self.clock, {}).get(f"{gap:g}", math.inf) for row in runs]
        return median(times) if times else math.inf

    def best(self, names: Iterable[str], gap: float) -> tuple[str, float]:
        """The fastest of some methods and its time, which is infinite if none got there."""
        return min(((name, self.seconds(name, gap)) for name in names), key=lambda pair: pair[1])

    def best_peer(self, gap: float) -> tuple[str, float]:
        return self.best(PEERS, gap)

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

    def group_ratio(self, group: str, gap: float) -> Ratio | None:
        """The ratio of the fastest method of a group."""
        return self.ratio(self.best(GROUPS[group], gap)[0], gap)

    def ran(self, name: str) -> str:
        """What `minimize` chose where the method is "auto", else its own name."""
        return next((str(row["ran"]) for row in self.rows.done(name) if row.get("ran")), name)

    def below_optimum(self) -> list[str]:
        """Methods that found a lower value than the reference by more than the smallest gap."""
        low = -min(GAPS)
        return [n for n in self.rows if any(r["gap"] < low for r in self.rows.done(n))]

    def texts(self, names: Iterable[str]) -> list[str]:
        """A line of the full table: the ratios at all gaps, and the seconds of the best peer."""
        cell = self.cell
        found = [f"{cell.n}, {cell.p}", f"{cell.condition:g}"]
        for name in names:
            beta = f" (β {self.beta:g})" if name == CDOPT and self.beta is not None else ""
            found.append(self._ratios(name) + beta)
        return [*found, " / ".join(time_text(self.best_peer(gap)[1]) for gap in GAPS)]

    def _ratios(self, name: str) -> str:
        if name not in self.rows:
            return "not run"
        if not self.rows.done(name):
            return str(self.rows[name][-1]["outcome"])
        return ratio_texts(self.ratio(name, gap) for gap in GAPS)


def ratio_texts(ratios: Iterable[Ratio | None]) -> str:
    """Ratios with slashes between them."""
    return " / ".join(NONE if ratio is None else str(ratio) for ratio in ratios)


def threads_text(count: int) -> str:
    """The number of threads in words."""
    return "1 thread" if count == 1 else f"{count} threads"


def time_text(seconds: float) -> str:
    """Seconds, or the mark of what was not reached."""
    return f"{seconds:.2g}" if math.isfinite(seconds) else NONE


def entries(rows: list[Row]) -> list[Entry]:
    """The rows by problem and clock, sorted by task, threads, clock, n, p and condition."""
    places: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        cell = SpeedCell.from_json(row["cell"])
        place = (TASKS.index(cell.task), cell.threads, cell.n, cell.p, cell.condition)
        places.setdefault(place, []).append(row)
    found = [Entry(members) for members in places.values()]
    found += [Entry(m, "calls") for m in places.values() if any(row.get("calls") for row in m)]
    return sorted(found, key=lambda e: (e.place, e.cell.n, e.cell.p, e.cell.condition))


def tables(found: Iterable[Entry]) -> dict[str, list[Entry]]:
    """The entries by table, with the title of each."""
    parts: dict[str, list[Entry]] = {}
    for entry in found:
        cell = entry.cell
        threads = threads_text(cell.threads)
        what = "problems per second" if cell.task == "batch" else CLOCKS[entry.clock]
        parts.setdefault(f"{cell.task}, {threads}, {what}", []).append(entry)
    return parts


def full_table(found: list[Entry]) -> tuple[Sequence[str], list[list[str]]]:
    """The heads and lines of a table with all methods; of batches, the problems per second."""
    if found[0].cell.task == "batch":
        return BATCH_HEADS, [_rates(entry) for entry in found]
    names = methods_in(found)
    heads = ("n, p", "condition", *names, "best peer, s")
    return heads, [entry.texts(names) for entry in found]


def group_table(found: list[Entry]) -> tuple[Sequence[str], list[list[str]]]:
    """The heads and lines of a short table: the seconds of the best peer, the ratios of groups."""
    if found[0].cell.task == "batch":
        return full_table(found)
    groups = [name for name in GROUPS if any(_present(entry, name) for entry in found)]
    lines = []
    for entry in found:
        cell = entry.cell
        peer = time_text(entry.best_peer(min(DEEP_GAPS))[1])
        ratios = [_group_ratios(entry, name) for name in groups]
        lines.append([f"{cell.n}, {cell.p}", f"{cell.condition:g}", peer, *ratios])
    return ("n, p", "cond.", "best peer, s", *groups), lines


def _group_ratios(entry: Entry, group: str) -> str:
    """At both gaps, without spaces; empty if nothing of the group was run."""
    if not _present(entry, group):
        return ""
    return ratio_texts(entry.group_ratio(group, gap) for gap in DEEP_GAPS).replace(" ", "")


def _present(entry: Entry, group: str) -> bool:
    return any(entry.rows.done(name) for name in GROUPS[group])


def _rates(entry: Entry) -> list[str]:
    """Problems per second of each method, and how many times faster one call is."""
    seconds = [entry.seconds(name, min(GAPS)) for name in BATCH_METHODS]
    rates = [f"{1 / each:,.0f}" if math.isfinite(each) else NONE for each in seconds]
    ratios = [
        NONE if NONE in (rates[0], rate) else str(Ratio(each / seconds[0]))
        for each, rate in zip(seconds[1:], rates[1:], strict=True)
    ]
    return [f"{entry.cell.n}, {entry.cell.p}", f"{entry.cell.condition:g}", *rates, *ratios]


def methods_in(found: Iterable[Entry]) -> list[str]:
    """The methods of which some entry has rows."""
    present = {name for entry in found for name in entry.rows}
    return [name for name in SPEED_METHODS if name in present]


def ours_in(entry: Entry) -> list[str]:
    """Our methods of which an entry has rows."""
    return [name for name in OURS if name in entry.rows]
