"""The section of the page on times compared with other libraries, and its figure."""

from __future__ import annotations

from pathlib import Path

from jorth.bench.core.figures import place_figure
from jorth.bench.core.html import Html, html_from, table, table_cell, table_row
from jorth.bench.core.records import Row
from jorth.bench.speed.picture import picture
from jorth.bench.speed.summary import claims
from jorth.bench.speed.table import Entry, entries, full_table, tables

CAPTION = "relative gap against time, planted Procrustes from the identity"


def section(rows: list[Row], place: Path) -> Html:
    """The introduction, the figure, the summary with what is short of it, and the tables."""
    found = entries(rows)
    return html_from(
        "speed/section.html",
        figure=place_figure(picture(found), "speed", CAPTION, place),
        claims=claims(found),
        tables=[_table(title, members) for title, members in tables(found).items()],
    )


def _table(title: str, found: list[Entry]) -> Html:
    heads, lines = full_table(found)
    body = [table_row(head, map(table_cell, texts)) for head, *texts in lines]
    return table(title, heads, body)
