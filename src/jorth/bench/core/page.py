"""The page: a summary, a section for each kind, runs without a result, and the machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from jorth.bench.core.html import Html, html, table, table_cell, table_row, together
from jorth.bench.core.records import Row, error_of
from jorth.bench.core.runs import Kind
from jorth.storage.atomic import replacing

DOCUMENT = """\
<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">\
<meta name="viewport" content="width=device-width, initial-scale=1">\
<link rel="icon" href="data:,">\
<title>jorth benchmark</title><style>
{{ css }}</style></head>
<body><main><h1>Benchmark of methods over J-orthogonal matrices</h1>
{{ body }}</main>
<footer>{{ footer }}</footer></body></html>
"""
SUMMARY = (
    "<p>{{ counts['done'] }} runs done, {{ counts['failed'] }} failed, "
    "{{ counts['missing'] }} missing.</p>"
)
FOOTER = "{% for name, text in lines %}<p><b>{{ name }}:</b> {{ text }}</p>{% endfor %}"
CSS = Html(Path(__file__).with_name("page.css").read_text(encoding="utf-8"))


def write_page(rows: list[Row], kinds: Sequence[Kind], order: Sequence[Kind], place: Path) -> Path:
    """Write the page and its figures into the folder ``place``.

    ``kinds`` has the kind of each row, ``order`` the kinds in the order of their sections.
    """
    place.mkdir(parents=True, exist_ok=True)
    parts = [_summary(rows)]
    for kind in order:
        members = [row for row, found in zip(rows, kinds, strict=True) if found is kind]
        parts.append(kind.section(members, place))
    body = together(*parts, _without_result(rows, kinds))
    text = html(DOCUMENT, css=CSS, body=body, footer=_footer(rows))
    page = place / "index.html"
    with replacing(page) as stream:
        stream.write(text.encode(errors="replace"))  # JSON may hold unpaired surrogates
    return page


def _summary(rows: list[Row]) -> Html:
    counts = Counter(row["outcome"] for row in rows)
    return html(SUMMARY, counts=counts)


def _without_result(rows: list[Row], kinds: Sequence[Kind]) -> Html:
    """A table of failed runs one by one, and of missing ones once per data set."""
    body = []
    missing = set()
    for row, kind in zip(rows, kinds, strict=True):
        cell = kind.cell_of(row)
        if row["outcome"] == "done" or (row["outcome"] == "missing" and cell.size in missing):
            continue
        head = cell.size
        if row["outcome"] == "missing":
            missing.add(cell.size)
        else:
            head += f", {cell.problem}, {cell.method}"
        cells = [table_cell(row["outcome"]), table_cell(error_of(row), css="text")]
        body.append(table_row(head, cells))
    if not body:
        return html("")
    caption = "Runs without a result. Missing data are looked for again by the next call."
    listed = table(caption, ["run", "outcome", "why"], body)
    return html("<h2>Failed and missing</h2>{{ listed }}", listed=listed)


def _footer(rows: list[Row]) -> Html:
    """Machine, versions, commit and dates."""
    versions = (", ".join(f"{name} {v}" for name, v in row["versions"].items()) for row in rows)
    dates = sorted(str(row["date"]) for row in rows)
    lines = (
        ("Machine", _distinct(map(_machine, rows))),
        ("Versions", _distinct(versions)),
        ("Commit", _distinct(str(row["commit"] or "unknown") for row in rows)),
        ("Runs", f"{dates[0]} to {dates[-1]}"),
    )
    return html(FOOTER, lines=lines)


def _machine(row: Row) -> str:
    hardware = row["hardware"]
    parts = [
        str(hardware["cpu"]),
        f"{hardware['usable_cores']} of {hardware['cores']} cores usable",
        f"{hardware['threads']} torch threads",
        str(hardware["system"]),
    ]
    if hardware["gpu"]:
        parts.append(f"GPU {hardware['gpu']} (not used)")
    return ", ".join(parts)


def _distinct(texts: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(texts))
