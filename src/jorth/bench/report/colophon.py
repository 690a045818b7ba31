"""The end of the page: runs without a result, and where and when the others were made."""

from __future__ import annotations

from collections.abc import Iterable

from jorth.bench.cells import Cell
from jorth.bench.graphs.cells import GraphCell
from jorth.bench.records import Row, cell_of, is_graph, is_speed
from jorth.bench.report import tables
from jorth.bench.report.templates import Html, html
from jorth.bench.speed.cells import SpeedCell


def troubles(rows: list[Row]) -> Html:
    """Failed runs one by one, missing ones by data set."""
    body, missing = [], set()
    for row in rows:
        cell = _cell(row)
        if row["outcome"] == "done" or (row["outcome"] == "missing" and cell.size in missing):
            continue
        head = cell.size
        if row["outcome"] == "missing":
            missing.add(cell.size)
        else:
            head += f", {cell.problem}, {cell.method}"
        cells = [tables.entry(row["outcome"]), tables.entry(tables.error_of(row), kind="text")]
        body.append(tables.line(head, cells))
    if not body:
        return html("")
    caption = "Runs without a result. Missing data are looked for again by the next call."
    listed = tables.table(caption, ["run", "outcome", "why"], body)
    return html("<h2>Failed and missing</h2>{{ listed }}", listed=listed)


def _cell(row: Row) -> Cell | GraphCell | SpeedCell:
    if is_speed(row):
        return SpeedCell.from_json(row["cell"])
    return GraphCell.from_json(row["cell"]) if is_graph(row) else cell_of(row)


def footer(rows: list[Row]) -> Html:
    """Machine, versions, commit and dates."""
    machines = _distinct(", ".join(_machine(row)) for row in rows)
    versions = _distinct(
        ", ".join(f"{name} {number}" for name, number in row["versions"].items()) for row in rows
    )
    commits = _distinct(str(row["commit"] or "unknown") for row in rows)
    dates = sorted(str(row["date"]) for row in rows)
    lines = (
        ("Machine", machines),
        ("Versions", versions),
        ("Commit", commits),
        ("Runs", f"{dates[0]} to {dates[-1]}"),
    )
    return html(
        "{% for name, text in lines %}<p><b>{{ name }}:</b> {{ text }}</p>{% endfor %}", lines=lines
    )


def _machine(row: Row) -> Iterable[str]:
    hardware = row["hardware"]
    yield str(hardware["cpu"])
    yield f"{hardware['usable_cores']} of {hardware['cores']} cores usable"
    yield f"{hardware['threads']} torch threads"
    yield str(hardware["system"])
    if hardware["gpu"]:
        yield f"GPU {hardware['gpu']} (not used)"


def _distinct(texts: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(texts))
