"""The result on the terminal: a table for each task, the summary, and how long the parts took."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from jorth.bench.core.records import Row, error_of
from jorth.bench.speed.cells import SpeedCell
from jorth.bench.speed.summary import claims
from jorth.bench.speed.table import Entry, group_table, tables
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
    heads, lines = group_table(found)
    table = NumberTable(heads, title=title)
    for line in lines:
        table.add(*line)
    return table


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
