"""The picture of a model: its entities in the Poincaré disc."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth._files import make_folder, replacing
from jorth._inputs import describe, file_path, generator, is_number, whole_number
from jorth.extras import needs
from jorth.kge.answers import Names, is_single, parts_of
from jorth.kge.graph import check_indices, to_triples
from jorth.signature import Signature
from jorth.terminal import visible
from jorth.ultrahyperbolic import centroid, distance, exp, lift, log, origin, transport

GREY, INK = "#b5b5b5", "#222222"
Floats = NDArray[np.float64]


def short(text: str, most: int = 30) -> str:
    """Return a name from a file, printable and not too long."""
    printable = visible(text)
    return printable if len(printable) <= most else printable[: most - 1] + "…"


@dataclass(frozen=True, eq=False)
class Disc:
    """Points in the unit disc, and how much of the embedding they show.

    Attributes:
        points: (entities, 2), in the Poincare model.
        kept: The share of the squared distances from the centroid that lies in the plane.
        agreement: Spearman's rank correlation of the distances in the disc with those in the
            embedding, over 20,000 random pairs; NaN if all distances of one kind are equal.
    """

    points: Floats = field(repr=False)
    kept: float
    agreement: float


def project_to_disc(model: Any) -> Disc:
    """Project the entities to the Poincare disc.

    The points are mapped to the tangent space at their centroid c by the logarithm, reduced to the
    plane of their two leading principal directions, and mapped to the hyperbolic plane by the
    exponential. The centre of the disc is c, and distances from it can only shrink. ``kept`` and
    ``agreement`` say how much is lost.

    With q > 1 a point (s, t) of U stands for (s, |t|) in a hyperbolic space, but ``agreement``
    compares with the distances on U.
    """
    from scipy.stats import rankdata

    plain, _, _ = parts_of(model)
    signature = plain.signature
    if signature.p == 0:
        raise ValueError(f"model must have p >= 1 for a picture in the disc, got {signature}")
    with torch.no_grad():
        embedded = plain.embeddings().double().cpu().numpy()
    v = _at_origin(_space(embedded, signature) / plain.alpha)
    _, sizes, axes = np.linalg.svd(v, full_matrices=False)
    total = float(np.square(sizes).sum())
    kept = float(np.square(sizes[:2]).sum()) / total if total else 1.0
    largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=1)[:, None], axis=1)
    axes *= np.where(largest < 0, -1.0, 1.0)  # or their signs would depend on rounding
    flat = np.zeros((len(v), 3))
    flat[:, : len(axes[:2])] = v @ axes[:2].T
    plane = Signature(2, 1)
    projected = exp(np.asarray(origin(plane)), flat, plane)
    first, second = _pairs(len(v))
    wanted = distance(embedded[first], embedded[second], signature, alpha=plain.alpha)
    ranks = rankdata(wanted), rankdata(distance(projected[first], projected[second], plane))
    is_constant = min(float(np.ptp(rank)) for rank in ranks) == 0
    agreement = math.nan if is_constant else float(np.corrcoef(*ranks)[0, 1])
    return Disc(projected[:, :2] / (1 + projected[:, 2:]), kept, agreement)


def _space(points: Floats, signature: Signature) -> Floats:
    """Return the s (m, p) of points (s, t), or of (-s, -t) where nearer to the others."""
    t = points[:, signature.negative]
    directions = t / np.linalg.norm(t, axis=1, keepdims=True)
    side = np.where(directions @ directions.sum(axis=0) < 0, -1.0, 1.0)
    return np.asarray(side[:, None] * points[:, signature.positive])


def _at_origin(space: Floats) -> Floats:
    """Return tangent vectors (m, p) at the centroid of the points over ``space``, alpha = 1.

    They are transported to the origin, where their last coordinate is zero.
    """
    signature = Signature(space.shape[1], 1)
    points = lift(np.column_stack([space, np.ones(len(space))]), signature)
    centre = centroid(points, signature)
    tangent = log(np.broadcast_to(centre, points.shape), points, signature)
    start = np.asarray(origin(signature))
    return np.asarray(transport(centre, start, tangent, signature)[:, :-1])


def _pairs(count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return all pairs of different entities, or 20,000 random ones."""
    most = 20_000
    if count * (count - 1) // 2 <= most:
        first, second = np.triu_indices(count, 1)
        return first, second
    random = generator(0)
    first = random.integers(count, size=most)
    return first, (first + random.integers(1, count, size=most)) % count


LABEL_COLOURS = (
    "#0072B2", "#E69F00", "#009E73", "#882255", "#56B4E9", "#D55E00", "#CC79A7", "#000000",
    "#999933", "#332288",
)  # fmt: skip
"""Clearly different for colour-blind readers too, the first ones most."""


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

    The picture says how much of the embedding it shows.

    Args:
        model: A `NamedModel`, or an `UltraE`, which has numbers only.
        path: The file to write: .png, .pdf or .svg.
        colours: A label or a number for entities, by name or number: a type, a depth. Entities
            without one are grey; the most frequent labels get a colour of their own.
        lines: Triples (M, 3) that are drawn as geodesics from head to tail, such as those of one
            relation.
        label: How many hubs, entities of a large bias, have their names beside them, or which
            entities.
        title: The title.

    Returns:
        The projection.

    >>> model = jorth.kge.UltraE(5, 2, signature=jorth.Signature(3, 1))
    >>> disc = jorth.kge.draw_entities(model, "entities.png")
    """
    with needs("jorth.kge.draw_entities", "matplotlib"):
        from matplotlib.figure import Figure
        from matplotlib.patches import Circle

    file = file_path(path, "path")
    if file.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise ValueError(f"path must end in .png, .pdf or .svg, got {describe(file.name)}")
    plain, entities, _ = parts_of(model)
    values = _values(colours, entities)
    if lines is not None:
        lines = to_triples(lines, "lines")
        check_indices(lines[:, ::2], "entities of lines", plain.n_entities, lines.device)
    disc = project_to_disc(model)
    named = _labelled(label, entities, disc.points, plain.bias.detach().cpu().double().numpy())
    figure = Figure(figsize=(7.6, 7.6), layout="constrained")
    axes = figure.add_subplot()
    axes.add_patch(Circle((0, 0), 1, facecolor="#fafafa", edgecolor=GREY, linewidth=1))
    if lines is not None:
        _draw_lines(axes, disc.points, lines[:, ::2].cpu().numpy())
    _draw_points(figure, axes, disc.points, values)
    _write_names(axes, disc.points, {number: str(entities.key(number)) for number in named})
    axes.set_title(visible(title), fontsize=11, parse_math=False)
    axes.text(0, -1.07, _about(disc, plain.signature), ha="center", va="top", fontsize=8, color=INK)
    axes.set(aspect="equal", xlim=(-1.03, 1.03), ylim=(-1.18, 1.03))
    axes.axis("off")
    make_folder(file.parent, "path")
    with replacing(file) as stream:
        figure.savefig(stream, dpi=150, format=file.suffix[1:].lower())
    return disc


def _values(colours: Any, entities: Names) -> list[Any] | None:
    """Return the label or the number of every entity, None where there is none."""
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


def _labelled(label: Any, entities: Names, points: Floats, bias: Floats) -> list[int]:
    """Return the entities whose names are written.

    A number of them are taken from three times as many with the largest biases, which are those of
    many triples. Each is the farthest in the disc from those before it.
    """
    if not is_single(label) or isinstance(label, str):
        return entities.numbers(label, "label")
    count = min(whole_number(label, "label", 0), len(points))
    hubs = np.argsort(-bias, kind="stable")[: 3 * count]
    chosen: list[int] = []
    apart = bias[hubs]  # the first one has the largest
    while len(chosen) < count:
        chosen.append(int(hubs[apart.argmax()]))
        own = np.linalg.norm(points[hubs] - points[chosen[-1]], axis=1)
        apart = own if len(chosen) == 1 else np.minimum(apart, own)
    return chosen


def _draw_lines(axes: Any, points: Floats, pairs: Any) -> None:
    from matplotlib.collections import LineCollection

    arcs = geodesics(points[pairs[:, 0]], points[pairs[:, 1]])
    faint = float(np.clip(40 / max(1, len(arcs)), 0.12, 0.5))
    axes.add_collection(LineCollection(list(arcs), colors=INK, linewidths=0.7, alpha=faint))


def geodesics(a: Floats, b: Floats) -> Floats:
    """Return points (m, 24, 2) on the geodesics of the disc from a to b (m, 2).

    A Moebius map takes a to 0, where geodesics are straight; the inverse map takes them back. In
    complex numbers w = (b - a) / (1 - conj(a) b), and the points are (t w + a) / (1 + conj(a) t w)
    with t from 0 to 1.
    """
    z, end = (points[:, 0] + 1j * points[:, 1] for points in (a, b))
    w = (end - z) / (1 - z.conj() * end)
    along = np.linspace(0, 1, 24) * w[:, None]
    found = (along + z[:, None]) / (1 + z.conj()[:, None] * along)
    return np.stack([found.real, found.imag], axis=-1)


def _draw_points(figure: Any, axes: Any, points: Floats, values: list[Any] | None) -> None:
    """Draw the entities: numbers by shades, the most frequent labels by colours of their own."""
    from matplotlib import colormaps

    size = float(np.clip(6000 / len(points), 6, 40))
    style = {"s": size, "linewidths": 0.3, "edgecolors": "white", "zorder": 3}
    if values is None:
        axes.scatter(*points.T, color=colormaps["viridis"](0.3), **style)
        return
    given = [value for value in values if value is not None]
    if not any(isinstance(value, str) for value in given):
        known = np.array([value is not None for value in values])
        axes.scatter(*points[~known].T, color=GREY, **style)
        shades = axes.scatter(*points[known].T, c=given, cmap="viridis", **style)
        figure.colorbar(shades, ax=axes, shrink=0.6)
        return
    common = [label for label, _ in Counter(map(str, given)).most_common(len(LABEL_COLOURS))]
    labels = np.array([str(value) if value is not None else "" for value in values])
    others = ~np.isin(labels, common)
    if others.any():
        axes.scatter(*points[others].T, color=GREY, label="others", **style)
    for name, colour in zip(common, LABEL_COLOURS, strict=False):
        axes.scatter(*points[labels == name].T, color=colour, label=short(name), **style)
    legend = axes.legend(loc="upper right", fontsize=8, framealpha=0.9, markerscale=1.4)
    for text in legend.get_texts():
        text.set_parse_math(False)


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
    """Return what the picture shows, in a line or two."""
    note = f"{signature}: hyperbolic parts; directions t / |t| not shown\n"
    what = "" if signature.q == 1 else note
    plane = f"tangent plane at the centroid, {disc.kept:.0%} of the squared distances from it"
    return f"{what}{plane}; rank correlation of distances {disc.agreement:.2f}"
