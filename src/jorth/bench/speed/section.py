"""The section of the page on times compared with other libraries, and its figure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jorth.bench.core.cells import GAPS
from jorth.bench.core.figures import legend_below, new_figure, place_figure, png
from jorth.bench.core.html import Html, html_from, table, table_cell, table_row
from jorth.bench.core.records import Row
from jorth.bench.speed.cells import OURS
from jorth.bench.speed.table import HEADS, Entry, entries, goal

CAPTION = "Time of the best outside peer over that of each method, at gaps of 1e-2 / 1e-4 / 1e-8."
STYLES = (
    ("#0072B2", "--"),
    ("#D55E00", "--"),
    ("#009E73", "-"),
    ("#009E73", "-."),
    ("#000000", "-"),
    ("#000000", "-."),
    ("#56B4E9", ":"),
)
"""The colours and line styles of OURS."""


def section(rows: list[Row], place: Path) -> Html:
    """The introduction, the table, the figure, and whether the goals are met."""
    found = entries(rows)
    body = []
    for entry in found:
        head, *texts = entry.texts()
        body.append(table_row(head, map(table_cell, texts)))
    return html_from(
        "speed/section.html",
        times=table(CAPTION, HEADS, body),
        figure=place_figure(picture(found), "speed", CAPTION, place),
        verdicts=[entry.verdict() for entry in found],
    )


def picture(found: list[Entry]) -> bytes | None:
    """How many times faster than the best peer, by size, as PNG; None without a ratio.

    There is one panel per number of threads, share of plus signs and condition.
    """
    panels: dict[tuple[int, float, float], list[Entry]] = {}
    for entry in found:
        if any(entry.ratio(name, min(GAPS)) for name in OURS):
            cell = entry.cell
            panels.setdefault((cell.threads, cell.share, cell.condition), []).append(entry)
    if not panels:
        return None
    columns = min(4, len(panels))
    rows = -(-len(panels) // columns)
    figure = new_figure(max(4.5, 2.9 * columns), 3.1 * rows + 0.6)
    axes = figure.subplots(rows, columns, squeeze=False, sharey=True).ravel()
    for axis, (key, members) in zip(axes, sorted(panels.items()), strict=False):
        _panel(axis, members)
        threads, share, condition = key
        title = f"p = {share:g} n, condition {condition:g}, {threads} thread(s)"
        axis.set_title(title, fontsize=9)
    for axis in axes[len(panels) :]:
        axis.axis("off")
    for axis in axes[::columns]:
        axis.set_ylabel(f"best outside peer's time over ours\nto a gap of {min(GAPS):.0e}")
    legend_below(figure, axes[0], columns=3)
    return png(figure)


def _panel(axis: Any, found: list[Entry]) -> None:
    for name, (colour, style) in zip(OURS, STYLES, strict=True):
        ratios = [(entry.cell.n, entry.ratio(name, min(GAPS))) for entry in found]
        known = [(n, ratio) for n, ratio in ratios if ratio is not None]
        line = dict(color=colour, linestyle=style, marker="o", ms=4, label=name)
        axis.plot([n for n, _ in known], [ratio.value for _, ratio in known], **line)
        bounds = [(n, ratio.value) for n, ratio in known if ratio.bound]
        triangle = dict(color=colour, ms=9, fillstyle="none")
        axis.plot([n for n, _ in bounds], [value for _, value in bounds], "^", **triangle)
    axis.axhline(1.0, color="#888888", linewidth=0.8)
    sizes = [entry.cell.n for entry in found]
    goals = [(n, aim) for n in sizes if (aim := goal(n)) is not None]
    dash = dict(color="#CC79A7", ms=14, mew=2, label="goal")
    axis.plot([n for n, _ in goals], [aim for _, aim in goals], "_", **dash)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xticks(sizes, [str(n) for n in sizes])
    axis.minorticks_off()
    axis.set_xlabel("n")
    axis.grid(alpha=0.3)
