"""The result on the terminal: a table for each task, the summary, and how long the parts took."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from jorth.bench.core.records import Row, error_of
from jorth.bench.speed.cells import SpeedCell
from jorth.bench.speed.methods import GROUPS
from jorth.bench.speed.summary import claims
from jorth.bench.speed.table import DEEP_GAPS, Entry, full_table, ratio_texts, tables, time_text
from jorth.tables import NumberTable
from jorth.terminal import visible

HOW_TO_READ = (
    "Each group: how many times faster than the best peer its best method is, to a relative gap "
    "of 1e-4 / 1e-8. Below 1 is slower, – not reached, > no peer got there."
)


def shown(rows: list[Row], found: list[Entry]) -> RenderableType:
    """All that is printed after a run."""
    parts: list[RenderableType] = [
        _table(title, members) for title, members in tables(found).items()
    ]
    parts.append(Text(HOW_TO_READ))
    parts += [Text(f"- {claim}") for claim in claims(found)]
    parts += [Text(line) for line in _notes(rows, found)]
    return Group(*parts)


def _table(title: str, found: list[Entry]) -> NumberTable:
    heads, lines = full_table(found) if found[0].cell.task == "batch" else _by_group(found)
    table = NumberTable(heads, title=title)
    for line in lines:
        table.add(*line)
    return table


def _by_group(found: list[Entry]) -> tuple[Sequence[str], list[list[str]]]:
    """Heads and lines with the seconds of the best peer and the ratios of the groups."""
    groups = [name for name in GROUPS if any(_present(entry, name) for entry in found)]
    lines = []
    for entry in found:
        cell = entry.cell
        peer = time_text(entry.best_peer(min(DEEP_GAPS))[1])
        ratios = [_ratios(entry, name) for name in groups]
        lines.append([f"{cell.n}, {cell.p}", f"{cell.condition:g}", peer, *ratios])
    return ("n, p", "cond.", "best peer, s", *groups), lines


def _ratios(entry: Entry, group: str) -> str:
    """At both gaps, without spaces; empty if nothing of the group was run."""
    if not _present(entry, group):
        return ""
    return ratio_texts(entry.group_ratio(group, gap) for gap in DEEP_GAPS).replace(" ", "")


def _present(entry: Entry, group: str) -> bool:
    return any(entry.rows.done(name) for name in GROUPS[group])


def _notes(rows: list[Row], found: list[Entry]) -> Iterator[str]:
    for entry in found:
        if low := entry.below_optimum():
            yield f"Below the reference optimum at n = {entry.cell.n}: {', '.join(low)}"
    missing = {error_of(row) for row in rows if row["outcome"] == "missing"}
    yield from sorted(visible(text) for text in missing)
    failed = sum(row["outcome"] == "failed" for row in rows)
    if failed:
        yield f"{failed} runs failed; jorth report has their errors."
    yield from _durations(rows)


def _durations(rows: Sequence[Row]) -> Iterator[str]:
    """How long the runs of each task and size took on the wall, preparation included."""
    parts: dict[tuple[str, int], float] = {}
    for row in rows:
        cell = SpeedCell.from_json(row["cell"])
        part = cell.task, cell.n
        parts[part] = parts.get(part, 0.0) + row.get("wall", 0.0)
    yield f"{sum(parts.values()):.0f} s in all:"
    for task in dict.fromkeys(task for task, _ in parts):
        sizes = [f"n = {n} {spent:.0f} s" for (name, n), spent in parts.items() if name == task]
        yield f"  {task}: {', '.join(sizes)}"
