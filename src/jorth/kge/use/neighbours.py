"""`nearest`: the entities next to an entity."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from jorth.arrays import whole_number
from jorth.kge.model import UltraE
from jorth.kge.use.naming import Key, Names, is_single, parts_of
from jorth.suggestions import explained
from jorth.ultrahyperbolic import distance, inner


class Neighbour(NamedTuple):
    """An entity, its distance, and whether the geodesic to it is "spacelike" or "timelike"."""

    entity: Key
    distance: float
    kind: str


@explained
def nearest(model: Any, entity: Any, k: int = 10) -> Any:
    """The k entities with the least geodesic distance from an entity on U, itself left out.

    The distance is that of the scores, `jorth.ultrahyperbolic.distance`. With q = 1 it is the
    hyperbolic distance, and all geodesics are spacelike. With q > 1 there are two kinds: along
    spacelike geodesics, hyperbolas, distances have no bound; along timelike ones, which are closed,
    they are angles of at most pi / 2, times alpha. Both are sorted together, as in the scores. Then
    d is no metric: points on a null geodesic have distance 0 and are different, and the triangle
    inequality fails. x and -x count as one point.

    Args:
        model: A `NamedModel`, or an `UltraE`, which has numbers only.
        entity: The name or the number of an entity, or a sequence of them.
        k: The number of neighbours.

    Returns:
        A list of `Neighbour`, the nearest first; for a sequence of entities a list of such lists.
    """
    plain, entities, _ = parts_of(model)
    k = min(whole_number(k, "k", 1), plain.n_entities - 1)
    with torch.no_grad():
        points = plain.embeddings()
    found = [
        _nearest(plain, points, number, k, entities)
        for number in entities.numbers(entity, "entity")
    ]
    return found[0] if is_single(entity) else found


def _nearest(
    model: UltraE, points: Tensor, number: int, k: int, entities: Names
) -> list[Neighbour]:
    own = points[number]
    distances = distance(points, own, model.signature, alpha=model.alpha)
    distances[number] = torch.inf
    best = distances.topk(k, largest=False)
    products = inner(points[best.indices], own, model.signature).abs()
    # with one negative sign only rounding makes a product smaller than alpha^2
    timelike = (products < model.alpha**2) & (model.signature.q > 1)
    return [
        Neighbour(entities.key(other), value, "timelike" if closed else "spacelike")
        for other, value, closed in zip(
            best.indices.tolist(), best.values.tolist(), timelike.tolist(), strict=True
        )
    ]
