"""What all figures share: line styles, sizes, and the export to PNG and to the page."""

from __future__ import annotations

import base64
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jorth.bench.core.html import Html, html
from jorth.extras import needs
from jorth.storage.atomic import replacing

Numbers = NDArray[np.float64]
# Okabe and Ito's colours; the line styles tell the methods apart without colour
LINES: dict[str, tuple[str, Any]] = {
    "UMCM": ("#56B4E9", ":"),
    "ADMM": ("#CC79A7", "-."),
    "CSDM": ("#E69F00", "--"),
    "GS-JOBCD": ("#0072B2", "-"),
    "J-JOBCD": ("#D55E00", "-"),
    "CSDM+GS-JOBCD": ("#009E73", (0, (5, 1, 1, 1, 1, 1))),
    "GS-JOBCD right": ("#0072B2", (0, (1, 1))),
    "J-JOBCD right": ("#D55E00", (0, (1, 1))),
    "VR-J-JOBCD": ("#D55E00", "--"),
    "accelerated GS-JOBCD": ("#0072B2", (0, (5, 1))),
    "accelerated J-JOBCD": ("#D55E00", (0, (5, 1))),
    "CSDM L-BFGS": ("#E69F00", "-"),
    "exponential": ("#E69F00", ":"),
    "Riemannian SD": ("#000000", ":"),
    "Riemannian CG": ("#000000", "--"),
    "Riemannian L-BFGS": ("#000000", "-"),
    "Riemannian Newton": ("#009E73", "-"),
    "auto": ("#F0E442", "-"),
}
DOTS_PER_INCH = 100
FIGURE = """\
<figure id="{{ name }}"><img alt="{{ caption }}" src="data:image/png;base64,{{ data }}">\
<figcaption>{{ caption }}</figcaption></figure>
"""


def line_style(name: str, width: float = 1.6) -> dict[str, Any]:
    """Colour, style and width of the line of a method."""
    colour, style = LINES[name]
    return {"color": colour, "linestyle": style, "linewidth": width}


def new_figure(width: float = 8.6, height: float = 3.9) -> Any:
    """An empty figure; width and height are in inches."""
    with needs("the report", "matplotlib", extra="report"):
        from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained", facecolor="white")


def legend_below(figure: Any, axes: Any, *, columns: int) -> None:
    """Place the legend of ``axes`` below all panels."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, fontsize=8)


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
