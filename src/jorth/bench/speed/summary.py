"""The summary: in how many problems ours are how much faster, and which ones are short of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from jorth.bench.speed.methods import AUTO, DATA_START, GROUPS, PEERS
from jorth.bench.speed.table import DEEP_GAPS, Entry, ours_in, threads_text

FASTER = 5.0  # the best of ours over the best peer
NEAR = 2.0  # `auto` over the best of ours


@dataclass(frozen=True)
class Claim:
    """A statement about times to a gap, in how many cases it holds, and those in which not."""

    gap: float
    text: str
    holds: int
    total: int
    misses: list[str]

    def __str__(self) -> str:
        return f"To {self.gap:.0e}, {self.text}: {self.holds} of {self.total} cases"


def claims(found: list[Entry]) -> list[Claim]:
    """The statements at each of DEEP_GAPS, over the problems that can tell."""
    counted = []
    near = f"takes at most {NEAR:g} times as long as"
    for gap in DEEP_GAPS:
        timed = [e for e in found if e.cell.task != "batch" or gap == min(DEEP_GAPS)]
        accelerated = partial(_faster, names=GROUPS["accelerated"], times=1.0)
        checks: dict[str, Callable[..., str | None]] = {
            f"our best method is at least {FASTER:g} times as fast as the best peer": _best_of_ours,
            "accelerated JOBCD is at least as fast as the best peer": accelerated,
            f"auto {near} our best method from the identity": _auto_of_minimize,
            f"procrustes {near} our best method from any start": _auto_of_procrustes,
        }
        counted += [
            _claim(gap, text, timed, partial(check, gap=gap)) for text, check in checks.items()
        ]
    return [claim for claim in counted if claim.total]


def _claim(
    gap: float, text: str, found: list[Entry], check: Callable[[Entry], str | None]
) -> Claim:
    """``check`` returns "" where the statement holds, a figure where not, None if unknown."""
    known = [(entry, said) for entry in found if (said := check(entry)) is not None]
    misses = [f"{name_of(entry)}: {said}" for entry, said in known if said]
    return Claim(gap, text, len(known) - len(misses), len(known), misses)


def _best_of_ours(entry: Entry, gap: float) -> str | None:
    return _faster(entry, ours_in(entry), FASTER, gap)


def _faster(entry: Entry, names: Sequence[str], times: float, gap: float) -> str | None:
    present = [name for name in names if entry.rows.done(name)]
    if not present or not any(entry.rows.done(name) for name in PEERS):
        return None
    best, _ = entry.best(present, gap)
    ratio = entry.ratio(best, gap)
    if ratio is None:
        return "not reached"
    return "" if ratio.value >= times else f"{ratio} ({best})"


def _auto_of_minimize(entry: Entry, gap: float) -> str | None:
    others = [name for name in ours_in(entry) if not name.endswith(DATA_START)]
    return _near(entry, AUTO, others, gap)


def _auto_of_procrustes(entry: Entry, gap: float) -> str | None:
    return _near(entry, AUTO + DATA_START, ours_in(entry), gap)


def _near(entry: Entry, name: str, others: Sequence[str], gap: float) -> str | None:
    best, seconds = entry.best(others, gap) if others else ("", math.inf)
    if not entry.rows.done(name) or not math.isfinite(seconds):
        return None
    factor = entry.seconds(name, gap) / seconds
    return "" if factor <= NEAR else f"{entry.ran(name)} took {factor:.2g} times as long as {best}"


def name_of(entry: Entry) -> str:
    """The problem and the clock of an entry in words."""
    cell = entry.cell
    call = ", whole call" if entry.clock == "calls" else ""
    return (
        f"{cell.task} {cell.n}, {cell.p}, condition {cell.condition:g}, "
        f"{threads_text(cell.threads)}{call}"
    )
