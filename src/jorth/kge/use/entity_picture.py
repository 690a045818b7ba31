"""`draw_entities`: the entities in the Poincare disc, coloured by label or number."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from torch import Tensor

from jorth.arrays import check_indices, describe, is_number, whole_number
from jorth.extras import needs
from jorth.kge.graph import to_triples
from jorth.kge.use.disc import Disc, Floats, project_to_disc
from jorth.kge.use.figures import GREY, INK, picture_path, save_figure, short
from jorth.kge.use.naming import Names, is_single, parts_of
from jorth.signature import Signature
from jorth.terminal import visible

# clearly different for colour-blind readers too, the first ones most
LABEL_COLOURS = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#882255",
    "#56B4E9",
    "#D55E00",
    "#CC79A7",
    "#000000",
    "#999933",
    "#332288",
)
MOST_COLOURS = len(LABEL_COLOURS)
OTHER, WITHOUT = "other", "no label"
STEPS = np.linspace(0, 1, 24)
"""The places on a line at which it is drawn."""


def draw_entities(
    model: Any,
    path: str | os.PathLike[str],
    *,
    colours: Mapping[Any, Any] | None = None,
    lines: Tensor | None = None,
    label: Any = 10,
    title: str = "",
) -> Disc:
    """Draw the entities in the Poincare disc, as `project_to_disc` projects them.

    The picture says which share of the squared distances from the centroid it shows, and how well
    its distances agree in rank with those of the embedding. With q > 1 it shows the hyperbolic
    parts of the points, and says so.

    Args:
        model: A `NamedModel`, or an `UltraE`, which has numbers only.
        path: The file to write: .png, .pdf or .svg.
        colours: A label or a number for entities, by name or number: a type, a depth. Entities
            without one are grey; the most frequent labels get a colour of their own.
        lines: Triples (M, 3) that are drawn as geodesics from head to tail, such as those of one
            relation.
        label: How many entities, spread over the disc, have their names beside them, or which ones.
        title: The title.

    Returns:
        The projection.
    """
    with needs("jorth.kge.draw_entities", "matplotlib"):
        from matplotlib.figure import Figure

    file = picture_path(path)
    plain, entities, _ = parts_of(model)
    values = _values(colours, entities)
    if lines is not None:
        lines = to_triples(lines, "lines")
        check_indices(lines[:, ::2], "entities of lines", plain.n_entities, lines.device)
    disc = project_to_disc(model)
    named = _labelled(label, entities, disc.points)
    figure = Figure(figsize=(7.6, 7.6), layout="constrained")
    axes = figure.add_subplot()
    axes.add_patch(_circle())
    if lines is not None:
        _draw_lines(axes, disc.points, lines[:, ::2].cpu().numpy())
    _draw_points(figure, axes, disc.points, values)
    _write_names(axes, disc.points, {number: str(entities.key(number)) for number in named})
    axes.set_title(visible(title), fontsize=11, parse_math=False)
    axes.text(0, -1.07, _about(disc, plain.signature), ha="center", va="top", fontsize=8, color=INK)
    axes.set(aspect="equal", xlim=(-1.03, 1.03), ylim=(-1.18, 1.03))
    axes.axis("off")
    save_figure(figure, file)
    return disc


def _values(colours: Any, entities: Names) -> list[Any] | None:
    """The label or the number of every entity, None where there is none."""
    if colours is None:
        return None
    if not isinstance(colours, Mapping):
        expected = "a mapping from entities to labels or numbers"
        raise TypeError(f"colours must be {expected}, got {describe(colours)}")
    found: list[Any] = [None] * entities.count
    for number, value in zip(
        entities.numbers(list(colours), "colours"), colours.values(), strict=True
    ):
        if not isinstance(value, str) and not is_number(value):
            expected = "labels (texts) or numbers"
            raise TypeError(f"colours must map to {expected}, got {describe(value)}")
        found[number] = value
    return found


def _labelled(label: Any, entities: Names, points: Floats) -> list[int]:
    """The entities whose names are written."""
    if is_single(label) and not isinstance(label, str):
        return _spread(points, min(whole_number(label, "label", 0), len(points)))
    return entities.numbers(label, "label")


def _spread(points: Floats, count: int) -> list[int]:
    """Entities far from each other in the disc: each is the farthest from those before it."""
    if count == 0:
        return []
    chosen = [int(np.square(points).sum(axis=1).argmin())]
    apart = np.linalg.norm(points - points[chosen[0]], axis=1)
    while len(chosen) < count:
        chosen.append(int(apart.argmax()))
        apart = np.minimum(apart, np.linalg.norm(points - points[chosen[-1]], axis=1))
    return chosen


def _circle() -> Any:
    from matplotlib.patches import Circle

    return Circle((0, 0), 1, facecolor="#fafafa", edgecolor=GREY, linewidth=1)


def _draw_lines(axes: Any, points: Floats, pairs: Any) -> None:
    from matplotlib.collections import LineCollection

    arcs = geodesics(points[pairs[:, 0]], points[pairs[:, 1]])
    faint = float(np.clip(40 / max(1, len(arcs)), 0.12, 0.5))
    axes.add_collection(LineCollection(list(arcs), colors=INK, linewidths=0.7, alpha=faint))


def geodesics(a: Floats, b: Floats) -> Floats:
    """Points (m, 24, 2) on the geodesics of the disc from a to b (m, 2).

    A Moebius map takes a to 0, where geodesics are straight; the inverse map takes them back. In
    complex numbers w = (b - a) / (1 - conj(a) b), and the points are (t w + a) / (1 + conj(a) t w)
    with t from 0 to 1.
    """
    z, end = (points[:, 0] + 1j * points[:, 1] for points in (a, b))
    w = (end - z) / (1 - z.conj() * end)
    along = STEPS * w[:, None]
    found = (along + z[:, None]) / (1 + z.conj()[:, None] * along)
    return np.stack([found.real, found.imag], axis=-1)


def _draw_points(figure: Any, axes: Any, points: Floats, values: list[Any] | None) -> None:
    from matplotlib import colormaps

    size = float(np.clip(6000 / len(points), 6, 40))
    style = {"s": size, "linewidths": 0.3, "edgecolors": "white", "zorder": 3}
    if values is None:
        axes.scatter(*points.T, color=colormaps["viridis"](0.3), **style)
        return
    without = np.array([value is None for value in values])
    numeric = all(not isinstance(value, str) for value in values)
    distinct = Counter(value for value in values if value is not None)
    if numeric and len(distinct) > MOST_COLOURS:
        axes.scatter(*points[without].T, color=GREY, **style)
        shades = [value for value in values if value is not None]
        drawn = axes.scatter(*points[~without].T, c=shades, cmap="viridis", **style)
        figure.colorbar(drawn, ax=axes, shrink=0.6)
        return
    for name, colour, chosen in _groups(values, distinct, numeric):
        axes.scatter(*points[chosen].T, color=colour, label=name, **style)
    legend = axes.legend(loc="upper right", fontsize=8, framealpha=0.9, markerscale=1.4)
    for text in legend.get_texts():
        text.set_parse_math(False)


def _groups(values: list[Any], distinct: Counter[Any], numeric: bool) -> list[Any]:
    """Name, colour and entities of every group, those without a label first, below the others."""
    from matplotlib import colormaps

    if numeric:
        kept = sorted(distinct)
        shades: Sequence[Any] = [
            colormaps["viridis"](0.95 * k / max(1, len(kept) - 1)) for k in range(len(kept))
        ]
    else:
        fits = len(distinct) <= MOST_COLOURS
        common = distinct.most_common(MOST_COLOURS if fits else MOST_COLOURS - 1)
        kept = [name for name, _ in common]
        shades = LABEL_COLOURS[: len(kept)]
    colour = dict(zip(kept, shades, strict=True))
    grey = {
        WITHOUT: np.array([value is None for value in values]),
        OTHER: np.array([value is not None and value not in colour for value in values]),
    }
    found: list[Any] = [(name, GREY, chosen) for name, chosen in grey.items() if chosen.any()]
    for name, shade in colour.items():
        text = name if isinstance(name, str) else f"{name:g}"
        found.append((short(text), shade, np.array([value == name for value in values])))
    return found


def _write_names(axes: Any, points: Floats, names: dict[int, str]) -> None:
    from matplotlib.patheffects import withStroke

    for number, name in names.items():
        x, y = points[number]
        axes.annotate(
            short(name),
            (x, y),
            xytext=(4, 4),
            textcoords="offset points",
            fontsize=8,
            color=INK,
            zorder=5,
            path_effects=[withStroke(linewidth=2.5, foreground="white")],
            parse_math=False,
        )


def _about(disc: Disc, signature: Signature) -> str:
    """What the picture shows, in a line or two."""
    note = f"{signature}: hyperbolic parts; directions t / |t| not shown\n"
    what = "" if signature.q == 1 else note
    plane = f"tangent plane at the centroid, {disc.kept:.0%} of the squared distances from it"
    return f"{what}{plane}; rank correlation of distances {disc.agreement:.2f}"
