"""The entities in the Poincare disc: the best plane through their centroid."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from jorth.arrays import generator
from jorth.kge.use.naming import parts_of
from jorth.signature import Signature
from jorth.ultrahyperbolic import centroid, distance, lift, log, origin, transport

Floats = NDArray[np.float64]
PAIRS = 20_000
"""The number of pairs of entities on which distances are compared."""
PLANE = Signature(2, 1)


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

    The points are mapped to the tangent space at their centroid c by the logarithm, v_i =
    log(c, x_i). The two leading principal directions of the v_i span a plane of that space. The
    parts of v_i in it are mapped to the hyperbolic plane by the exponential. The centre of the disc
    is c, and distances from it can only shrink. ``kept`` and ``agreement`` say how much is lost.

    With q = 1 the x_i are the embeddings. With q > 1 they are their hyperbolic parts: a point (s,
    t) of U stands for the point (s, |t|) of a hyperbolic space, and the direction t / |t| is not
    shown. ``agreement`` compares with the distances on U all the same. As x and -x have distance 0,
    the one of the two is taken whose t is on the side of most others.

    Args:
        model: A `NamedModel` or an `UltraE`, with p at least 1.
    """
    plain, _, _ = parts_of(model)
    signature = plain.signature
    if signature.p == 0:
        raise ValueError(f"model must have p >= 1 for a picture in the disc, got {signature}")
    with torch.no_grad():
        embedded = plain.embeddings().double().cpu().numpy()
    v = _at_origin(_space(embedded, signature) / plain.alpha)
    _, sizes, axes = np.linalg.svd(v, full_matrices=False)
    total = float(np.square(sizes).sum())
    flat = np.zeros((len(v), 2))
    flat[:, : len(axes[:2])] = v @ _with_signs(axes[:2]).T
    first, second = _pairs(len(v))
    wanted = distance(embedded[first], embedded[second], signature, alpha=plain.alpha)
    drawn = on_hyperboloid(flat)
    shown = distance(drawn[first], drawn[second], PLANE)
    kept = float(np.square(sizes[:2]).sum()) / total if total else 1.0
    return Disc(poincare(drawn), kept, _rank_correlation(shown, wanted))


def _space(points: Floats, signature: Signature) -> Floats:
    """The s (m, p) of the points (s, t), or of (-s, -t) where that is nearer to the others."""
    t = points[:, signature.negative]
    directions = t / np.linalg.norm(t, axis=1, keepdims=True)
    side = np.where(directions @ directions.sum(axis=0) < 0, -1.0, 1.0)
    return np.asarray(side[:, None] * points[:, signature.positive])


def _at_origin(space: Floats) -> Floats:
    """Tangent vectors (m, p) at the centroid of the points over ``space`` (m, p), alpha = 1.

    They are moved to the origin in parallel, where their last coordinate is zero.
    """
    signature = Signature(space.shape[1], 1)
    points = lift(np.column_stack([space, np.ones(len(space))]), signature)
    centre = centroid(points, signature)
    tangent = log(np.broadcast_to(centre, points.shape), points, signature)
    start = np.asarray(origin(signature))
    return np.asarray(transport(centre, start, tangent, signature)[:, :-1])


def _with_signs(axes: Floats) -> Floats:
    """The axes with positive largest entries, so that a picture does not depend on rounding."""
    largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=1)[:, None], axis=1)
    return axes * np.where(largest < 0, -1.0, 1.0)


def on_hyperboloid(v: Floats) -> Floats:
    """The points (m, 3) to which tangent vectors (m, 2) at the origin lead."""
    length = np.hypot(v[:, 0], v[:, 1])
    factor = np.divide(np.sinh(length), length, out=np.ones_like(length), where=length > 0)
    return np.column_stack([v * factor[:, None], np.cosh(length)])


def poincare(points: Floats) -> Floats:
    """Points (..., 3) of the hyperboloid in the disc (..., 2): s / (1 + t)."""
    return np.asarray(points[..., :2] / (1 + points[..., 2:]))


def _pairs(count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All pairs of different entities, or so many random ones."""
    if count * (count - 1) // 2 <= PAIRS:
        first, second = np.triu_indices(count, 1)
        return first, second
    random = generator(0)
    first = random.integers(count, size=PAIRS)
    return first, (first + random.integers(1, count, size=PAIRS)) % count


def _rank_correlation(a: Floats, b: Floats) -> float:
    from scipy.stats import rankdata

    ranks = rankdata(a), rankdata(b)
    if min(float(np.ptp(rank)) for rank in ranks) == 0:
        return float("nan")
    return float(np.corrcoef(*ranks)[0, 1])
