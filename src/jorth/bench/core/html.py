"""HTML from jinja2 templates, which are constants or files; all values are escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from jorth.bench.core.records import Row, reason
from jorth.extras import needs

with needs("the report", "jinja2"):
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

Html: TypeAlias = Markup  # the output of a template; all other text is escaped when filled in
_ENGINE = Environment(
    autoescape=True,
    undefined=StrictUndefined,
    keep_trailing_newline=True,
    loader=FileSystemLoader(Path(__file__).parents[1]),
)

TABLE = """\
<div class="scroll" tabindex="0" role="region" aria-label="{{ caption | truncate(80) }}">\
<table{% if css %} class="{{ css }}"{% endif %}>\
<caption>{{ caption }}</caption>
<thead><tr>{% for head in heads %}<th scope="col">{{ head }}</th>{% endfor %}</tr></thead>
<tbody>
{{ rows | join("\n") }}
</tbody></table></div>"""
TABLE_ROW = """\
<tr{% if css %} class="{{ css }}"{% endif %}>\
<th scope="row">{{ head }}</th>{{ cells | join }}</tr>"""
TABLE_CELL = """\
<td{% if css %} class="{{ css }}"{% endif %}{% if span %} colspan="{{ span }}"{% endif %}>\
{{ content }}</td>"""
_compiled = cache(_ENGINE.from_string)

LABEL = "{{ name }}<br><small>{{ more }}</small>"
BADGE = """\
{% if place in names %}\
<span class="rank rank{{ place }}" title="{{ names[place] }}">{{ place }}</span>\
{% endif %}"""
WITHOUT_RESULT = """\
{% for why in reasons %}{% if not loop.first %}<br>{% endif %}\
<span class="failed">{{ why }}</span>{% endfor %}"""


def html(template: str, **values: Any) -> Html:
    """Fill ``values`` into a template, which must be a constant and never text from a file."""
    return Markup(_compiled(template).render(values))


def html_from(file: str, **values: Any) -> Html:
    """Fill ``values`` into a template file, whose path is relative to `jorth.bench`."""
    return Markup(_ENGINE.get_template(file).render(values))


def together(*parts: Html) -> Html:
    """Pieces of a page, one after the other."""
    return html("{{ parts | join }}", parts=parts)


def table(caption: str, heads: Sequence[str], rows: Iterable[Html], css: str = "") -> Html:
    """A table with a caption and column heads; its rows are made by `table_row`."""
    return html(TABLE, caption=caption, heads=heads, rows=rows, css=css)


def table_row(head: str, cells: Iterable[Html], css: str = "") -> Html:
    """A row of a table; its cells are made by `table_cell`."""
    return html(TABLE_ROW, head=head, cells=cells, css=css)


def table_cell(content: Any, *, css: str = "", span: int = 0) -> Html:
    """A cell of a table that spans ``span`` columns; 0 is one column."""
    return html(TABLE_CELL, content=content, css=css, span=span)


def label(name: str, more: str) -> Html:
    """The head of a row: a name, and details in small print below it."""
    return html(LABEL, name=name, more=more)


def badge(place: int | None) -> Html:
    """The mark of the places 1 to 3; other places have none."""
    return html(BADGE, place=place, names={1: "first", 2: "second", 3: "third"})


def without_result(rows: list[Row]) -> Html:
    """Why runs have no result, one line each."""
    return html(WITHOUT_RESULT, reasons=map(reason, rows))
