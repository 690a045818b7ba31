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
<title>jorth benchmark</title><style>{{ css }}</style></head>
<body><main><h1>Benchmark of methods over J-orthogonal matrices</h1>
{{ body }}</main>
<footer>{{ footer }}</footer></body></html>
"""
SUMMARY = (
    "<p>{{ counts['done'] }} runs done, {{ counts['failed'] }} failed, "
    "{{ counts['missing'] }} missing.</p>"
)
FOOTER = "{% for name, text in lines %}<p><b>{{ name }}:</b> {{ text }}</p>{% endfor %}"
CSS = html("""
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, "Segoe UI", sans-serif; color: #1a1a1a; background: #fff;
  max-width: 92rem; margin: 0 auto; padding: 1.5rem; }
h1 { font-size: 1.7rem; margin: 0 0 .5rem; }
h2 { font-size: 1.3rem; margin: 2.2rem 0 .6rem; border-bottom: 2px solid #1a1a1a; }
h3 { font-size: 1.05rem; margin: 1.4rem 0 .4rem; }
p, li { max-width: 60rem; }
.note { border-left: 4px solid #0072B2; padding: .1rem 1rem; background: #f4f7fa; }
.warning { border-left: 4px solid #D55E00; padding: .1rem 1rem; background: #fdf5f0; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .77rem; margin: .6rem 0 1.2rem;
  font-variant-numeric: tabular-nums; }
caption { text-align: left; padding: .3rem 0; font-size: .9rem; }
th, td { border: 1px solid #9a9a9a; padding: .25rem .4rem; text-align: left; vertical-align: top; }
td { white-space: nowrap; }
td.text { white-space: normal; min-width: 14rem; }
thead th { background: #ececec; }
tbody th { font-weight: 600; white-space: nowrap; }
tr.paper th, tr.paper td { background: #f7f7f7; font-style: italic; }
small { color: #444; }
.rank { display: inline-block; min-width: 1.15em; text-align: center; border: 1.5px solid;
  border-radius: 50%; font-weight: 700; font-style: normal; line-height: 1.15;
  margin-right: .25em; }
.rank1 { color: #fff; background: #00578a; border-color: #00578a; }
.rank2 { color: #00578a; border-color: #00578a; }
.rank3 { color: #444; border-color: #777; border-style: dashed; }
.failed { color: #8f2d00; font-weight: 600; white-space: normal; }
figure { margin: 1rem 0; }
figure img { max-width: 100%; height: auto; border: 1px solid #ddd; }
figcaption { font-size: .85rem; max-width: 60rem; }
footer { margin-top: 2.5rem; border-top: 2px solid #1a1a1a; font-size: .82rem; }
@page { size: A4 landscape; margin: 12mm; }
@media print {
  body { font-size: 10pt; max-width: none; padding: 0; }
  .scroll { overflow: visible; }
  table { font-size: 6.5pt; }
  th, td { padding: 1px 3px; }
  figure, tr { break-inside: avoid; }
  h2, h3 { break-after: avoid; }
  .rank1 { color: #000; background: #fff; border: 2.5px solid #000; }
}
""")


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
