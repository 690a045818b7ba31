"""Answers to queries, nearest entities, what relations do, and depths in a hierarchy."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth._inputs import UnknownName, describe, generator, suggestion, whole_number
from jorth.group import component, inverse
from jorth.kge.graph import Triples
from jorth.kge.model import NamedModel, UltraE, of_training, squared_arc
from jorth.kge.ranking import Queries, ranks
from jorth.linalg import cs_decomposition
from jorth.signature import Signature
from jorth.ultrahyperbolic import distance, inner

Key = str | int
"""The name of an entity or a relation, or its number."""


@dataclass(frozen=True, eq=False)
class Names:
    """The ``count`` entities or relations of a model, with or without names."""

    kind: str
    count: int
    names: Sequence[str] | None

    def numbers(self, keys: Any, argument: str) -> list[int]:
        """Return the numbers of one key or of a sequence of keys; errors name the ``argument``."""
        plain = keys.tolist() if hasattr(keys, "tolist") else keys
        several = [plain] if is_single(plain) else list(plain)
        table: dict[str, int] = {}
        if self.names is not None and any(isinstance(key, str) for key in several):
            table = {name: number for number, name in enumerate(self.names)}
        return [self._number(key, table, argument) for key in several]

    def key(self, number: int) -> Key:
        """Return the name of a number, or the number itself in a model without names."""
        return number if self.names is None else self.names[number]

    def _number(self, key: Any, table: dict[str, int], argument: str) -> int:
        if isinstance(key, str):
            if self.names is None:
                reason = "a number, as the model has no names (see jorth.kge.NamedModel)"
                raise TypeError(f"{argument} must be {reason}, got {describe(key)}")
            if key not in table:
                hint = suggestion(key, self.names)
                raise UnknownName(f"{argument}: there is no {self.kind} {key[:100]!r}{hint}")
            return table[key]
        number = whole_number(key, argument, 0)
        if number >= self.count:
            raise ValueError(f"{argument} must be from 0 to {self.count - 1}, got {number}")
        return number


def is_single(keys: Any) -> bool:
    """Return whether it is one key and not a sequence, an array, a series or a tensor of keys."""
    plain = keys.tolist() if hasattr(keys, "tolist") else keys
    return isinstance(plain, (str, bytes)) or not isinstance(plain, Sequence)


def parts_of(model: Any) -> tuple[UltraE, Names, Names]:
    """Return the `UltraE` of a model, its entities and its relations."""
    named = isinstance(model, NamedModel)
    plain = model.model if named else model
    if not isinstance(plain, UltraE):
        expected = "a jorth.kge.NamedModel or a jorth.kge.UltraE"
        is_path = isinstance(model, (str, os.PathLike))
        hint = "; jorth.kge.load_model reads a folder" if is_path else ""
        raise TypeError(f"model must be {expected}, got {describe(plain)}{hint}")
    entities = Names("entity", plain.n_entities, model.entities if named else None)
    relations = Names("relation", plain.n_relations, model.relations if named else None)
    for names in (entities, relations):
        if names.names is not None and len(names.names) != names.count:
            expected = f"{names.count} names, one per {names.kind}"
            raise ValueError(f"model must have {expected}, got {len(names.names)}")
    return plain, entities, relations


class Answer(NamedTuple):
    """An entity with its score and its probability; a list of them makes a DataFrame."""

    entity: Key
    score: float
    probability: float


class Link(NamedTuple):
    """A relation between two entities with its score and its probability."""

    relation: Key
    score: float
    probability: float


class Fact(NamedTuple):
    """The score of a triple, and the ranks of its head and its tail; 1 is best."""

    score: float
    head_rank: float
    tail_rank: float


def predict(
    model: Any,
    head: Any = None,
    relation: Any = None,
    tail: Any = None,
    *,
    k: int = 10,
    known: Tensor | None = None,
) -> Any:
    """Return the best answers to (head, relation, ?), (?, relation, tail) or (head, ?, tail).

    The probability of an entity is the softmax of the scores over all candidates, which is what the
    loss trains. Several true answers share it, also those that are left out. Nothing calibrates it
    on triples that were not trained on.

    The score of a triple, if nothing is asked for, is log(N(r) p(t | h, r) p(h | r, t)), with N the
    frequencies in training, and the probability of a relation the softmax of these. The ranks are
    those of `evaluate`; without ``known`` other true answers compete.

    For the relations in ``model.irreflexive`` the entity of the query is no candidate.

    Args:
        model: A `NamedModel`, or an `UltraE`, which has numbers only.
        head: The name or the number of an entity, or a sequence of them; None asks for heads.
        relation: The name or the number of a relation, or a sequence of them; None asks for
            relations.
        tail: As ``head``; None asks for tails.
        k: The number of answers per query.
        known: Triples (M, 3) whose answers are left out, such as ``graph.train``.

    Returns:
        A list of `Answer` or of `Link`, the best first, or the `Fact` of a triple; for a sequence
        of queries a list of these. There are fewer than k answers where fewer are left. One key
        goes with all keys of a sequence.

    >>> model = jorth.kge.UltraE(5, 2, signature=jorth.Signature(3, 1))  # untrained, without names
    >>> jorth.kge.predict(model, head=0, relation=1, k=1)
    [Answer(entity=..., score=..., probability=...)]
    """
    plain, entities, relations = parts_of(model)
    keys = {"head": head, "relation": relation, "tail": tail}
    given = {name: key for name, key in keys.items() if key is not None}
    if len(given) < 2:
        got = "".join(given) or "none"
        raise ValueError(f"at least two of head, relation and tail must be given, got {got}")
    k = whole_number(k, "k", 1)
    device = plain.points.device
    table = Queries.of(plain, known, of_training(model, "irreflexive"), device)
    asked = {
        name: (relations if name == "relation" else entities).numbers(key, name)
        for name, key in given.items()
    }
    queries = _columns(asked, device)
    found: list[Any] = []
    if head is None or tail is None:
        side = "tail" if head is None else "head"
        for anchor, code in table.split(queries[side], queries["relation"]):
            for row in _best(*table.scores(anchor, code, side == "head"), k):
                found.append([Answer(entities.key(number), *rest) for number, *rest in row])
    else:
        count, every = len(queries["head"]), torch.arange(plain.n_relations)
        if relation is None:
            queries = {name: part.repeat_interleave(len(every)) for name, part in queries.items()}
            queries["relation"] = every.repeat(count).to(device)
        h, r, t = (queries[name] for name in keys)
        parts = [_judge(table, *part) for part in table.split(h, r, t)]
        logarithms, *places, excluded = (torch.cat(part) for part in zip(*parts, strict=True))
        counts = of_training(model, "frequencies")
        score = logarithms if counts is None else logarithms + counts.to(logarithms)[r].log()
        if relation is None:
            for row in _best(score.view(count, -1), excluded.view(count, -1), k):
                found.append([Link(relations.key(number), *rest) for number, *rest in row])
        else:
            figures = (part.tolist() for part in (score, *places))
            found = [Fact(*row) for row in zip(*figures, strict=True)]
    return found[0] if all(map(is_single, given.values())) else found


def _columns(numbers: dict[str, list[int]], device: torch.device) -> dict[str, Tensor]:
    """Return the parts of queries as tensors (B,), single numbers repeated."""
    sizes = [len(part) for part in numbers.values()]
    count = max(sizes) if all(sizes) else 0
    if set(sizes) - {1, count}:
        found = ", ".join(map(str, sizes))
        raise ValueError(f"{', '.join(numbers)} must be equally many, or one; got {found}")
    rows = {name: part * count if len(part) == 1 else part for name, part in numbers.items()}
    return {name: torch.tensor(row, dtype=torch.int64, device=device) for name, row in rows.items()}


def _judge(queries: Queries, h: Tensor, r: Tensor, t: Tensor) -> tuple[Tensor, ...]:
    """Return of triples (B,) log p(t | h, r) p(h | r, t), both ranks, and what is excluded."""
    logarithms, places = [], []
    for anchor, answer, tails in ((t, h, False), (h, t, True)):
        scores, excluded = queries.scores(anchor, r, tails)
        first, last = ranks(scores, excluded, answer)
        places.append((first + last) / 2)
        own = answer[:, None]
        logarithms.append(scores.double().log_softmax(dim=1).gather(1, own).squeeze(1))
    return logarithms[0] + logarithms[1], *places, excluded.gather(1, own).squeeze(1)


def _best(scores: Tensor, excluded: Tensor, k: int) -> list[list[tuple[int, float, float]]]:
    """Return for every row the k best not excluded: number, score, probability."""
    scores = scores.double()
    probability = torch.softmax(scores, dim=-1)
    order = scores.masked_fill(excluded, -torch.inf).topk(min(k, scores.shape[-1])).indices
    columns = (order, *(table.gather(1, order) for table in (scores, probability, excluded)))
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [
        [(number, score, p) for number, score, p, out in zip(*row, strict=True) if not out]
        for row in rows
    ]


class Neighbour(NamedTuple):
    """An entity, its distance, and whether the geodesic to it is "spacelike" or "timelike"."""

    entity: Key
    distance: float
    kind: str


def nearest(model: Any, entity: Any, k: int = 10) -> Any:
    """Return the k entities with the least geodesic distance from an entity on U, itself left out.

    The distance is that of the scores, `jorth.ultrahyperbolic.distance`, and x and -x count as one
    point. With q > 1 distances along timelike geodesics, which are closed, are angles of at most pi
    / 2, times alpha, and d is no metric: different points may have distance 0.

    Args:
        model: A `NamedModel`, or an `UltraE`, which has numbers only.
        entity: The name or the number of an entity, or a sequence of them.
        k: The number of neighbours.

    Returns:
        A list of `Neighbour`, the nearest first; for a sequence of entities a list of such lists.

    >>> model = jorth.kge.UltraE(5, 2, signature=jorth.Signature(3, 1))
    >>> jorth.kge.nearest(model, 0, k=1)
    [Neighbour(entity=..., distance=..., kind='spacelike')]
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


@dataclass(frozen=True, eq=False)
class Explanation:
    """A relation R as a boost followed by rotations, and how it acts on the entities.

    R = diag(Q1, Q2) B is the polar decomposition. It follows from the hyperbolic CS decomposition
    R = diag(U1, U2) H(mu) diag(V1, V2)^T: Q1 = U1 V1^T rotates the positive coordinates, Q2 =
    U2 V2^T the negative ones, and B = diag(V1, V2) H(mu) diag(V1, V2)^T is symmetric.

    Attributes:
        relation: The name or the number of the relation.
        rapidities: (min(p, q),), mu, descending. With q = 1 it is the distance, in units of alpha,
            by which R moves the origin.
        angles: The angles of Q1 in [0, pi], descending, one per plane.
        negative_angles: Those of Q2.
        reflections: The determinants +-1 of Q1 and Q2; -1 is one reflection beside the angles.
        translation: The logarithm of the largest |eigenvalue|. Unlike mu it does not depend on
            where the origin is: with q = 1 it is the least distance, in units of alpha, by which R
            moves any point; zero for a rotation around some point.
        from_identity: The median distance of R x from x over the median distance of two entities:
            0 if R changes nothing, about 1 if R x is as far from x as any other entity.
        from_involution: The same for R R x: 0 for a symmetric relation.
        inverse: The other relation S with the least median distance of S R x from x; None if there
            is none.
        from_inverse: That distance, measured as above: 0 if S undoes R; NaN if there is no S.
    """

    relation: Key
    rapidities: NDArray[np.float64]
    angles: NDArray[np.float64]
    negative_angles: NDArray[np.float64]
    reflections: tuple[int, int]
    translation: float
    from_identity: float
    from_involution: float
    inverse: Key | None
    from_inverse: float


@torch.no_grad()
def explain(model: Any, relation: Any = None) -> Any:
    """Return a relation's boosts and rotations, and whether it undoes itself or another.

    The matrices are those of the direction from heads to tails. Distances are taken over all
    entities, or over 400 of them, drawn with a fixed seed.

    Args:
        model: A `NamedModel`, or an `UltraE`, which has numbers only.
        relation: The name or the number of a relation, or a sequence of them; None for all.

    Returns:
        An `Explanation`, or a list of them.

    >>> model = jorth.kge.UltraE(5, 2, signature=jorth.Signature(3, 1))
    >>> jorth.kge.explain(model, 0).rapidities  # untrained relations are rotations
    array([0.])
    """
    plain, _, relations = parts_of(model)
    signature, alpha = plain.signature, plain.alpha
    asked = list(range(plain.n_relations)) if relation is None else relation
    numbers = relations.numbers(asked, "relation")
    sample = torch.from_numpy(generator(0).permutation(plain.n_entities)[:400])
    x = plain.embeddings()[sample.to(plain.points.device)].double().cpu()
    R = plain.matrices()[: plain.n_relations].cpu()

    def apart(y: Tensor, z: Tensor) -> Any:
        return distance(y, z, signature, alpha=alpha).median(dim=-1).values

    typical = float(apart(x, x.roll(1, dims=0))) or 1.0
    images, origins = x @ R.double().mT, x @ inverse(R.double(), signature).mT
    signed = images * (signature.vector(x) / alpha**2)
    # R R x is as far from x as R x from R^-1 x
    from_identity, from_involution = apart(images, x) / typical, apart(images, origins) / typical
    found = []
    for number in numbers:
        other, from_inverse = None, math.nan
        if len(R) > 1:
            # one product for all S; half the digits of short distances are enough to compare them
            arcs = squared_arc(torch.einsum("sn,msn->ms", signed[number], origins))
            arcs = arcs.median(dim=-1).values
            arcs[number] = torch.inf
            other = int(arcs.argmin())
            from_inverse = float(apart(images[number], origins[other])) / typical
        one = Explanation(
            relation=relations.key(number),
            **_decomposed(R[number], signature),
            from_identity=float(from_identity[number]),
            from_involution=float(from_involution[number]),
            inverse=None if other is None else relations.key(other),
            from_inverse=from_inverse,
        )
        found.append(one)
    return found[0] if is_single(asked) else found


def _decomposed(R: Tensor, signature: Signature) -> dict[str, Any]:
    cs = cs_decomposition(R, signature)  # in the precision in which R is J-orthogonal
    reflections = component(R, signature)
    return {
        "rapidities": cs.mu.double().numpy(),
        "angles": rotation_angles(cs.U1 @ cs.V1.mT, reflections[0]),
        "negative_angles": rotation_angles(cs.U2 @ cs.V2.mT, reflections[1]),
        "reflections": reflections,
        "translation": max(0.0, float(torch.linalg.eigvals(R.double()).abs().max().log())),
    }


def rotation_angles(Q: Tensor, determinant: int) -> NDArray[np.float64]:
    """Return the angles in [0, pi] of the planes of an orthogonal Q (m, m), descending.

    The eigenvalues are exp(+-i angle), one pair per plane. With determinant -1, one eigenvalue -1
    is left over, and if m is then even, one eigenvalue 1.
    """
    both = torch.linalg.eigvals(Q).angle().abs().sort(descending=True).values
    paired = both[1:] if determinant < 0 else both
    return np.asarray(paired[: len(paired) // 2 * 2 : 2].double().numpy())


def triples_of(graph: Triples, relation: Any) -> Tensor:
    """Return all triples (M, 3) of a relation, by name or number."""
    if not isinstance(graph, Triples):
        raise TypeError(f"graph must be a jorth.kge.Triples, got {describe(graph)}")
    names = Names("relation", len(graph.relations), graph.relations)
    numbers = names.numbers(relation, "relation")
    if len(numbers) != 1:
        raise ValueError(f"relation must be one relation, got {len(numbers)}")
    known = graph.known.cpu()
    return known[known[:, 1] == numbers[0]]


def depths(graph: Triples, relation: Any) -> dict[str, int]:
    """Return the number of steps from entities to the nearest root of the hierarchy of a relation.

    The relation leads upwards, as "parent" or "hypernym" do. A root is the tail of a triple and
    never a head. Entities that reach no root, and those without a triple, have no depth. All three
    parts of the graph count.

    Args:
        graph: The graph.
        relation: The name or the number of the relation.

    >>> graph = jorth.kge.hierarchy_with_cycles(depth=2)
    >>> max(jorth.kge.depths(graph, "parent").values())
    2
    """
    below: dict[int, list[int]] = {}
    heads = set()
    for head, _, tail in triples_of(graph, relation).tolist():
        below.setdefault(tail, []).append(head)
        heads.add(head)
    level = sorted(set(below) - heads)
    found = dict.fromkeys(level, 0)
    depth = 0
    while level:
        depth += 1
        level = sorted({child for top in level for child in below.get(top, [])} - set(found))
        found |= dict.fromkeys(level, depth)
    return {graph.entities[number]: depth for number, depth in found.items()}
