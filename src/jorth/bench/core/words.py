"""Words of sentences that are put together from results: counts, lists and comparisons."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number and its noun: 1 run, 2 runs."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def listed(names: Iterable[str]) -> str:
    """Names as one phrase: A; A and B; A, B and C."""
    *first, last = [str(name) for name in names] or ["none"]
    return f"{', '.join(first)} and {last}" if first else last


def compared(what: str, mine: float, other: float, rival: str, form: str) -> str:
    """A part of a sentence: which of two numbers of one kind is higher, or that one is missing."""
    if not math.isfinite(mine):
        return f"has no {what}"
    if not math.isfinite(other):
        return f"has a {what} of {mine:{form}} ({rival} has none)"
    mine_text, other_text = f"{mine:{form}}", f"{other:{form}}"
    if mine_text == other_text:
        return f"has the same {what} as {rival} ({mine_text})"
    order = "lower" if mine < other else "higher"
    return f"has a {order} {what} than {rival} ({mine_text} against {other_text})"


def on_how_many(number: int, total: int, noun: str) -> str:
    """A part of a sentence: on the only data set; on 2 of 3, on all 3, on none of 3 data sets."""
    if total == 1:
        return f"on {'the only' if number else 'no'} {noun}"
    if number == total:
        return f"on all {counted(total, noun)}"
    return f"on {number or 'none'} of {counted(total, noun)}"


def firsts(winners: Sequence[Sequence[str]], noun: str) -> str:
    """How often each method came first, as a part of a sentence; a tie counts for all of them."""
    known = [names for names in winners if names]
    counts = Counter(name for names in known for name in names).most_common()
    if not known:
        return "no run has a result"
    if len(known) == 1:
        names = listed(name for name, _ in counts)
        return f"{names} {'comes first' if len(counts) == 1 else 'share first place'}"
    (name, number), *others = counts
    lead = f"{name} comes first {on_how_many(number, len(known), noun)}"
    return listed([lead, *(f"{name} on {number}" for name, number in others)])


def seeds_text(seeds: Sequence[object]) -> str:
    """The seeds of some runs in words."""
    if not seeds:
        return "no seeds"
    return f"{'seed' if len(seeds) == 1 else 'seeds'} {listed(map(str, seeds))}"
