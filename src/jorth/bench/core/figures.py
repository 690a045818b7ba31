"""What all figures share: line styles, sizes, and the export to PNG and to the page."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from jorth.bench.core.html import Html, html
from jorth.extras import needs
from jorth.storage.atomic import replacing

Numbers = NDArray[np.float64]
# Colour, line style and marker of each method, the same in every figure. Methods that are shown
# together differ in all three or, also for colour-blind readers, clearly in colour.
LINES: dict[str, tuple[str, Any, str]] = {
    "UMCM": ("#56B4E9", ":", "v"),
    "ADMM": ("#CC79A7", "-.", "s"),
    "CSDM": ("#E69F00", "--", "D"),
    "GS-JOBCD": ("#0072B2", "-", "o"),
    "J-JOBCD": ("#B83A00", "-", "^"),
    "CSDM+GS-JOBCD": ("#663333", (0, (5, 1, 1, 1, 1, 1)), "P"),
    "GS-JOBCD right": ("#332288", (0, (1, 1)), "<"),
    "J-JOBCD right": ("#228833", (0, (3, 1)), ">"),
    "VR-J-JOBCD": ("#009E73", (0, (6, 2)), "X"),
    "accelerated GS-JOBCD": ("#1B1B8F", "-", "h"),
    "accelerated J-JOBCD": ("#D55E00", "--", "d"),
    "CSDM L-BFGS": ("#7A4B00", (0, (3, 1, 1, 1)), "p"),
    "exponential": ("#6699CC", ":", "H"),
    "Riemannian SD": ("#B8A000", (0, (1, 2)), "1"),
    "Riemannian CG": ("#882255", (0, (4, 2)), "2"),
    "Riemannian L-BFGS": ("#000000", "-", "*"),
    "Riemannian Newton": ("#EE3377", "-.", "x"),
    "auto": ("#AA4499", (0, (2, 1)), "+"),
}
OTHER_LINE = ("black", "-", "*")  # a solver of the user's
MOST_TICKS = 7  # labels of a logarithmic axis
MARK_SPACING = 0.17  # of the markers on a line, over the diagonal of the panel
DOTS_PER_INCH = 100
FIGURE = """\
<figure id="{{ name }}"><div class="picture" tabindex="0" role="group" aria-label="figure">\
<img alt="{{ caption }}" src="data:image/png;base64,{{ data }}"></div>\
<figcaption>{{ caption }}</figcaption></figure>
"""


def line_style(name: str, width: float = 1.6) -> dict[str, Any]:
    """Colour, style, width and markers of the line of a method."""
    colour, style, marker = LINES.get(name, OTHER_LINE)
    names = [*LINES, name]
    offset = names.index(name) / len(names)  # so that markers of near lines do not meet
    return {
        "color": colour,
        "linestyle": style,
        "linewidth": width,
        "marker": marker,
        "markersize": 5,
        "markevery": (MARK_SPACING * offset, MARK_SPACING),
    }


def new_figure(width: float = 8.6, height: float = 3.9) -> Any:
    """An empty figure; width and height are in inches."""
    with needs("the report", "matplotlib", extra="report"):
        from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained", facecolor="white")


def log_axis(axes: Any, which: Literal["x", "y"]) -> None:
    """Make an axis logarithmic with labels that do not overlap; call it when the limits are final.

    Over two decades only powers of ten have labels. Up to two decades 2 and 5 times these have
    them too, as plain numbers; an axis shorter than that has a few round numbers.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    axes.set(**{f"{which}scale": "log"})
    axis = axes.xaxis if which == "x" else axes.yaxis
    low, high = sorted(axis.get_view_interval())
    decades = np.log10(high / low)
    axis.set_minor_formatter(NullFormatter())
    if decades > 2:
        axis.set_major_locator(LogLocator(numticks=MOST_TICKS))
        return
    steps = LogLocator(subs=(1.0, 2.0, 5.0)) if decades > 0.7 else MaxNLocator(4)
    axis.set_major_locator(steps)
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def legend_below(figure: Any, handles: dict[str, Any], *, columns: int = 6) -> None:
    """Place a legend below all panels, in as many columns as fit into the figure."""
    for count in range(min(columns, len(handles)), 0, -1):
        place = {"loc": "outside lower center", "ncols": count, "fontsize": 8}
        legend = figure.legend(handles.values(), handles, handlelength=3.5, **place)
        if count == 1 or legend.get_window_extent().width <= figure.bbox.width:
            return
        legend.remove()


def handles_of(panels: Iterable[Any]) -> dict[str, Any]:
    """The lines of all panels by their labels, each label once."""
    found: dict[str, Any] = {}
    for panel in panels:
        lines, labels = panel.get_legend_handles_labels()
        found |= dict(zip(labels, lines, strict=True))
    return found


def png(figure: Any) -> bytes:
    """The figure as PNG; the same figure gives the same bytes."""
    buffer = BytesIO()
    figure.savefig(buffer, dpi=DOTS_PER_INCH, metadata={"Software": None})
    return buffer.getvalue()


def place_figure(picture: bytes | None, name: str, caption: str, place: Path) -> Html:
    """Write a picture into the folder ``place`` and return it as HTML; None gives empty HTML."""
    if picture is None:
        return html("")
    with replacing(place / f"{name}.png") as stream:
        stream.write(picture)
    return html(FIGURE, name=name, caption=caption, data=base64.b64encode(picture).decode())
