"""`draw_relations`: the boosts of relations as bars, the angles of their rotations on a circle."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from jorth.extras import needs
from jorth.kge.use.explaining import Explanation, explain
from jorth.kge.use.figures import BLUE, GREY, INK, ORANGE, picture_path, save_figure, short

COLUMNS = 3
MOST_PANELS = 30
LEGEND = (
    "bars: rapidities of the boost; dashed: translation length, the part that no change of origin "
    "removes\n"
    "circle: angles of the rotation of positive (dots) and negative coordinates (rings), "
    "x a reflection\n"
    "RRx, SRx: median distance from x over that of two entities, 0 for a symmetric relation and "
    "for an inverse S"
)


def draw_relations(model: Any, path: str | os.PathLike[str], relation: Any = None) -> None:
    """Draw what `explain` finds, one panel per relation, 30 at most.

    Bars are the rapidities of the boost. Dots on the circle are the angles of the rotation of the
    positive coordinates, rings those of the negative ones, each as exp(+-i angle).

    Args:
        model: A `NamedModel`, or an `UltraE`, which has numbers only.
        path: The file to write: .png, .pdf or .svg.
        relation: The name or the number of a relation, or a sequence of them; None for all.
    """
    with needs("jorth.kge.draw_relations", "matplotlib"):
        from matplotlib.figure import Figure

    file = picture_path(path)
    found = explain(model, relation)
    every: list[Explanation] = found if isinstance(found, list) else [found]
    shown = every[:MOST_PANELS]
    columns = 2 if len(shown) == 4 else max(1, min(COLUMNS, len(shown)))
    rows = max(1, math.ceil(len(shown) / columns))
    figure = Figure(figsize=(max(3.6 * columns, 6.4), 2.7 * rows + 0.9), layout="constrained")
    highest = max([1e-3, *(max([*one.rapidities, one.translation]) for one in shown)])
    panels = figure.subfigures(rows, columns, squeeze=False).ravel()
    for panel, one in zip(panels, shown, strict=False):
        _draw(panel, one, 1.08 * highest)
    left_out = f"; {len(every) - len(shown)} more relations" if len(every) > len(shown) else ""
    figure.supxlabel(LEGEND + left_out, fontsize=7.5, color=INK)
    save_figure(figure, file)


def _draw(panel: Any, one: Explanation, top: float) -> None:
    wide = min(1.0, 0.35 + 0.05 * len(one.rapidities))
    bars, circle = panel.subplots(1, 2, width_ratios=[wide, 1])
    panel.suptitle(short(str(one.relation), 40), fontsize=10, parse_math=False)
    bars.bar(np.arange(len(one.rapidities)), one.rapidities, color=BLUE)
    bars.axhline(one.translation, color=ORANGE, linestyle="--", linewidth=1.3)
    bars.set(ylim=(0, top), xlim=(-0.8, max(0.8, len(one.rapidities) - 0.2)), xticks=[])
    bars.tick_params(labelsize=8)
    bars.spines[["top", "right"]].set_visible(False)
    bars.set_ylabel("rapidity", fontsize=8)
    _draw_circle(circle, one)


def _draw_circle(axes: Any, one: Explanation) -> None:
    turn = np.linspace(0, 2 * np.pi, 200)
    axes.plot(np.cos(turn), np.sin(turn), color=GREY, linewidth=1)
    for angles, face in ((one.angles, BLUE), (one.negative_angles, "none")):
        both = np.concatenate([angles, -angles])
        edge = BLUE if face == BLUE else ORANGE
        axes.scatter(
            np.cos(both), np.sin(both), s=26, facecolor=face, edgecolor=edge, zorder=3, alpha=0.8
        )
    for sign, colour, size in ((one.reflections[0], BLUE, 8), (one.reflections[1], ORANGE, 13)):
        if sign < 0:
            axes.plot([-1], [0], marker="x", color=colour, markersize=size, zorder=4)
    inverse = "" if one.inverse is None else f"SRx {one.from_inverse:.2f}, S = {one.inverse}"
    text = f"RRx {one.from_involution:.2f}\n{short(inverse, 34)}"
    axes.set_title(text, fontsize=7.5, color=INK, y=-0.12, va="top", parse_math=False)
    axes.annotate("0", (1.12, 0), ha="left", va="center", fontsize=8)
    axes.annotate("π", (-1.12, 0), ha="right", va="center", fontsize=8)
    axes.set(aspect="equal", xlim=(-1.35, 1.35), ylim=(-1.15, 1.15))
    axes.axis("off")
