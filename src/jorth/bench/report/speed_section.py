"""The section of the page on times beside other libraries."""

from __future__ import annotations

from pathlib import Path

from jorth.bench.records import Row
from jorth.bench.report.drawing import place_figure
from jorth.bench.report.speed_figure import picture
from jorth.bench.report.tables import entry, line, table
from jorth.bench.report.templates import Html, html
from jorth.bench.speed.table import HEADS, cells_of, entries, verdict

WORDS = html(
    '<h2>Speed</h2><div class="note"><p>Planted noisy Procrustes from the identity, threads equal for all methods. An '
    "entry is the time of the best outside peer (pymanopt, cdopt) over that of the method, to relative gaps of 1e-2, "
    "1e-4 and 1e-8: above 1 the method is faster. Medians over the seeds; a run that did not get there counts as "
    "infinite, and – stands where the median did not. &gt; marks a ratio to the budget of peers that did not get there "
    "themselves. Recording is on no clock.</p></div>"
)
CAPTION = "Time of the best outside peer over that of each method, at gaps of 1e-2 / 1e-4 / 1e-8."


SECTION = "{{ words }}{{ times }}{{ figure }}<ul>{% for text in verdicts %}<li>{{ text }}</li>{% endfor %}</ul>"


def section(rows: list[Row], place: Path) -> Html:
    """Words, the table, the figure, and whether the goals are met."""
    found = entries(rows)
    body = []
    for one in found:
        head, *cells = cells_of(one)
        body.append(line(head, map(entry, cells)))
    drawing = picture(found)
    return html(
        SECTION,
        words=WORDS,
        times=table(CAPTION, HEADS, body),
        figure="" if drawing is None else place_figure(drawing, "speed", CAPTION, place),
        verdicts=map(verdict, found),
    )
