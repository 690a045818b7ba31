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
    """A statement that is counted, and the problems in which it does not hold."""

    text: str
    holds: int
    total: int
    misses: list[str]

    def __str__(self) -> str:
        return f"{self.text}: {self.holds} of {self.total}"


def claims(found: list[Entry]) -> list[Claim]:
    """Three statements at each of DEEP_GAPS, over the problems that can tell."""
    counted = []
    for gap in DEEP_GAPS:
        to = f"to {gap:.0e}"
        timed = [e for e in found if e.cell.task != "batch" or gap == min(DEEP_GAPS)]
        best = partial(_best_of_ours, gap=gap)
        accelerated = partial(_faster, names=GROUPS["accelerated"], times=1.0, gap=gap)
        counted += [
            _claim(f"{to} our best is {FASTER:g} times as fast as the best peer", timed, best),
            _claim(f"{to} accelerated JOBCD is as fast as the best peer", timed, accelerated),
            _claim(
                f"{to} auto takes at most {NEAR:g} times as long as our best",
                timed,
                partial(_near, gap=gap),
            ),
        ]
    return [claim for claim in counted if claim.total]


def _claim(text: str, found: list[Entry], check: Callable[[Entry], str | None]) -> Claim:
    """``check`` returns "" where the statement holds, a figure where not, None if unknown."""
    known = [(entry, said) for entry in found if (said := check(entry)) is not None]
    misses = [f"{name_of(entry)}: {said}" for entry, said in known if said]
    return Claim(text, len(known) - len(misses), len(known), misses)


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


def _near(entry: Entry, gap: float) -> str | None:
    """`minimize` beside all that start from the identity, `procrustes` beside all of ours."""
    ours = ours_in(entry)
    from_identity = [name for name in ours if not name.endswith(DATA_START)]
    known, misses = False, []
    for name, others in ((AUTO, from_identity), (AUTO + DATA_START, ours)):
        best, seconds = entry.best(others, gap) if others else ("", math.inf)
        if not entry.rows.done(name) or not math.isfinite(seconds):
            continue
        known = True
        factor = entry.seconds(name, gap) / seconds
        if factor > NEAR:
            misses.append(f"{name} ({entry.ran(name)}) {factor:.2g} times {best}")
    return ", ".join(misses) if known else None


def name_of(entry: Entry) -> str:
    """The problem and the clock of an entry in words."""
    cell = entry.cell
    call = ", whole call" if entry.clock == "calls" else ""
    return (
        f"{cell.task} n = {cell.n}, p = {cell.p}, condition {cell.condition:g}, "
        f"{threads_text(cell.threads)}{call}"
    )
