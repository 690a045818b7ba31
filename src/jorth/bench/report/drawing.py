"""What all figures share: how a method looks, axes, the way to PNG and to the page."""

from __future__ import annotations

import base64
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jorth.bench.report.templates import Html, html
from jorth.storage.atomic import replacing

# Okabe and Ito's colours, and a line style that tells the methods apart without them
LOOKS: dict[str, tuple[str, Any]] = {
    "UMCM": ("#56B4E9", ":"),
    "ADMM": ("#CC79A7", "-."),
    "CSDM": ("#E69F00", "--"),
    "GS-JOBCD": ("#0072B2", "-"),
    "J-JOBCD": ("#D55E00", "-"),
    "CSDM+GS-JOBCD": ("#009E73", (0, (5, 1, 1, 1, 1, 1))),
    "GS-JOBCD right": ("#0072B2", (0, (1, 1))),
    "J-JOBCD right": ("#D55E00", (0, (1, 1))),
    "VR-J-JOBCD": ("#D55E00", "--"),
    "CSDM L-BFGS": ("#E69F00", "-"),
    "exponential": ("#E69F00", ":"),
    "Riemannian SD": ("#000000", ":"),
    "Riemannian CG": ("#000000", "--"),
    "Riemannian L-BFGS": ("#000000", "-"),
}
AXES = {"time": "seconds", "gradients": "gradient evaluations (epochs)"}
"""The columns of a history that are drawn against, and their labels."""
DOTS_PER_INCH = 100


def look(name: str, width: float = 1.6) -> dict[str, Any]:
    """Colour, style and width of the line of a method."""
    colour, style = LOOKS[name]
    return {"color": colour, "linestyle": style, "linewidth": width}


def positive(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """For a logarithmic axis: a zero at the start becomes a third of what follows."""
    later = x[x > 0]
    return np.maximum(x, later[0] / 3 if len(later) else 1e-6)


def new_figure(width: float = 8.6, height: float = 3.9) -> Any:
    """An empty figure of so many inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained", facecolor="white")


def png(figure: Any) -> bytes:
    """The figure as PNG; the same figure gives the same bytes."""
    buffer = BytesIO()
    figure.savefig(buffer, dpi=DOTS_PER_INCH, metadata={"Software": None})
    return buffer.getvalue()


FIGURE = """\
<figure id="{{ name }}"><img alt="{{ caption }}" src="data:image/png;base64,{{ data }}">\
<figcaption>{{ caption }}</figcaption></figure>
"""


def place_figure(picture: bytes, name: str, caption: str, place: Path) -> Html:
    """A figure of the page as HTML with its data in it, and as a file in the folder ``place``."""
    with replacing(place / f"{name}.png") as stream:
        stream.write(picture)
    return html(FIGURE, name=name, caption=caption, data=base64.b64encode(picture).decode())
