"""The section of the page on times compared with other libraries, and its figure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from jorth.bench.core.figures import place_figure
from jorth.bench.core.html import Html, html_from, table, table_cell, table_row
from jorth.bench.core.records import Row
from jorth.bench.core.sections import Headline, Section
from jorth.bench.core.words import on_how_many
from jorth.bench.speed.methods import OURS, PEERS
from jorth.bench.speed.picture import picture
from jorth.bench.speed.summary import claims
from jorth.bench.speed.table import DEEP_GAPS, Entry, entries, full_table, group_table, tables

TITLE = "Speed compared with pymanopt and cdopt"
CAPTION = (
    "Relative gap against time, planted Procrustes from the identity, on the smallest and the "
    "largest size of the run. Further to the left is faster."
)
GAP = min(DEEP_GAPS)  # the gap by which winners are found


def sections(rows: list[Row], place: Path) -> list[Section]:
    """The figure, short tables, and a summary; all methods are in the appendix."""
    found = entries(rows)
    parts = tables(found)
    body = html_from(
        "speed/section.html",
        figure=place_figure(picture(found), "speed", CAPTION, place),
        claims=claims(found),
        tables=[_table(title, *group_table(members)) for title, members in parts.items()],
    )
    full = [
        (f"Speed: {title}, all methods", _table(title, *full_table(members)))
        for title, members in parts.items()
        if members[0].cell.task != "batch"
    ]
    lines = [headline(title, members) for title, members in parts.items()]
    return [Section("speed", TITLE, body, [sentence(found)], lines, full)]


def _table(title: str, heads: Sequence[str], lines: list[list[str]]) -> Html:
    body = [table_row(head, map(table_cell, texts)) for head, *texts in lines]
    return table(title, heads, body)


def sentence(found: list[Entry]) -> str:
    """On how many problems a method of jorth was the fastest, and by how much."""
    known = [entry for entry in found if _fastest(entry)]
    if not known:
        return "Speed: no run reached the smallest gap."
    ours = sum(_fastest(entry) in OURS for entry in known)
    where = on_how_many(ours, len(known), "problem")
    ratios = _ratios(known)
    text = f"Speed: a method of jorth is the fastest to a gap of {GAP:.0e} {where}"
    if not ratios:
        return f"{text}; no other library was timed."
    return f"{text}; {_how_much(ratios)}."


def headline(title: str, found: list[Entry]) -> Headline:
    """The method that was fastest most often, and the best of ours over the best peer."""
    fastest = Counter(name for entry in found if (name := _fastest(entry)))
    if not fastest:
        return Headline("Speed", title, [], f"no run reached a gap of {GAP:.0e}", "")
    most = fastest.most_common(1)[0][1]
    winners = [name for name, number in fastest.items() if number == most]
    each = " each" if len(winners) > 1 else ""
    result = f"fastest {on_how_many(most, fastest.total(), 'problem')}{each}"
    ratios = _ratios(found)
    margin = _how_much(ratios) if ratios else "no other library was timed"
    return Headline("Speed", title, winners, result, margin)


def _fastest(entry: Entry) -> str | None:
    name, seconds = entry.best((*OURS, *PEERS), GAP)
    return name if seconds < float("inf") else None


def _ratios(found: list[Entry]) -> list[float]:
    """The time of the best peer over that of our best method, where both are known."""
    known = [entry.ratio(entry.best(OURS, GAP)[0], GAP) for entry in found]
    return [ratio.value for ratio in known if ratio is not None]


def _how_much(ratios: list[float]) -> str:
    if len(ratios) == 1:
        return f"our best method is {ratios[0]:.2g} times as fast as the best peer"
    return (
        f"our best method is {median(ratios):.2g} times as fast as the best peer "
        f"(median; range {min(ratios):.2g} to {max(ratios):.2g})"
    )
