"""UltraE as a model of PyKEEN, whose pipeline trains, evaluates and compares it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from jorth import arrays
from jorth.adapters import needing
from jorth.arrays import check_signature, describe, squarable_number
from jorth.group.elements import finite_square
from jorth.group.retractions import exp_by_products
from jorth.kge import UltraE as JorthUltraE
from jorth.kge.model import SIGNATURE, squared_arc, start_points
from jorth.kge.products.moving import multiply
from jorth.kge.products.pairs import pair_terms
from jorth.nn.parametrizations import exponential_form
from jorth.signature import Signature
from jorth.ultrahyperbolic import check_q, lift_at, slices

with needing("pykeen", "kge"):
    from pykeen.models import ERModel
    from pykeen.nn.modules import Interaction
    from pykeen.nn.representation import Embedding, Representation

Entity = tuple[Tensor, Tensor]


class UltraEInteraction(Interaction[Entity, Tensor, Entity]):
    """-d^2(R lift(x_h), lift(x_t)) + b_h + b_t + delta.

    An entity has x (n,) and b (), a relation R (n, n).

    Args:
        signature: The signs of J.
        alpha: The radius of the pseudo-hyperboloid.
        delta: The margin.
    """

    entity_shape = ("d", "")
    relation_shape = ("dd",)
    signs: Tensor
    plus: Tensor
    minus: Tensor

    def __init__(
        self, signature: Signature = SIGNATURE, alpha: float = 1.0, delta: float = 5.0
    ) -> None:
        super().__init__()
        dtype = torch.get_default_dtype()
        self.alpha = squarable_number(alpha, "alpha", dtype)
        self.delta = arrays.finite_number(delta, "delta", dtype)
        check_q(check_signature(signature))
        self.signature = signature
        plus, minus = signature.positions(torch.device("cpu"))
        self.register_buffer("signs", torch.from_numpy(signature.signs.copy()), persistent=False)
        self.register_buffer("plus", plus, persistent=False)
        self.register_buffer("minus", minus, persistent=False)

    def forward(self, h: Entity, r: Tensor, t: Entity) -> Tensor:
        """The scores of representations that broadcast; R moves the side with fewer entities."""
        (x, b_h), (y, b_t) = h, t
        source, target = self.lift(x), self.lift(y)
        if source.numel() > target.numel():
            source, target = target, source
            r = self.inverse(r)
        moved = (r @ source[..., None]).squeeze(-1)
        return self.scores(torch.einsum("...d,...d->...", moved * self.signs, target), b_h + b_t)

    def lift(self, points: Tensor) -> Tensor:
        """The points (..., n) on the pseudo-hyperboloid."""
        plus, minus = slices(self.signature) or (self.plus, self.minus)
        return lift_at(points, plus, minus, self.alpha)

    def inverse(self, matrices: Tensor) -> Tensor:
        """R^-1 = J R^T J (..., n, n)."""
        return self.signs[:, None] * matrices.mT * self.signs

    def scores(self, products: Tensor, bias: Tensor) -> Tensor:
        """The scores for inner products <R lift(x_h), lift(x_t)>_J and sums b_h + b_t."""
        area = self.alpha**2
        return torch.sub(bias + self.delta, squared_arc(products / area), alpha=area)


class JOrthogonalRepresentation(Representation):
    """The matrices exp(J S) R0 for free skew S, J-orthogonal under any unconstrained optimiser."""

    signs: Tensor
    base: Tensor

    def __init__(
        self,
        max_id: int,
        shape: Any = None,
        *,
        signature: Signature = SIGNATURE,
        base: Tensor | None = None,
        **kwargs: Any,
    ) -> None:
        n = check_signature(signature).n
        max_id = arrays.whole_number(max_id, "max_id", 1)
        start = torch.eye(n).repeat(max_id, 1, 1)
        if base is not None:
            start = finite_square(base, signature, "base").detach().clone()
        if start.shape != (max_id, n, n):
            expected = f"shape ({max_id}, {n}, {n}) for max_id = {max_id}"
            raise ValueError(f"base must have {expected}, got {describe(base)}")
        super().__init__(max_id=max_id, shape=(n, n), **kwargs)
        self.register_buffer("base", start)
        self.register_buffer("signs", signature.vector(start), persistent=False)
        self.weight = torch.nn.Parameter(torch.zeros_like(start))

    def reset_parameters(self) -> None:
        """Back to R0."""
        torch.nn.init.zeros_(self.weight)

    def _plain_forward(self, indices: Tensor | None = None) -> Tensor:
        chosen = slice(None) if indices is None else indices
        weight, base = self.weight[chosen], self.base[chosen]
        return exponential_form(weight, base, self.signs, exp_by_products)


class UltraE(ERModel[Entity, Tensor, Entity]):
    """UltraE for PyKEEN: ``pipeline(model=UltraE, model_kwargs=dict(signature=...), ...)``.

    PyKEEN's optimisers know no constraint, so relations are exp(J S) R0 here; `from_jorth` takes
    over a model that jorth has trained. With ``create_inverse_triples`` the other direction of a
    relation has its own matrix.

    Args:
        signature: The signs of J.
        alpha: The radius of the pseudo-hyperboloid.
        delta: The margin.
        spread: The standard deviation of the random start of the entities.
        seed: The seed of that start.
        base: The R0 of all relations; identities when omitted.
        **kwargs: Arguments of `pykeen.models.ERModel`, including ``triples_factory``.
    """

    _formed: tuple[object, Tensor, Tensor] | None = None

    def __init__(
        self,
        *,
        signature: Signature = SIGNATURE,
        alpha: float = 1.0,
        delta: float = 5.0,
        spread: float = 0.05,
        seed: int = 0,
        base: Tensor | None = None,
        **kwargs: Any,
    ) -> None:
        spread = squarable_number(spread, "spread", torch.get_default_dtype())
        seed = arrays.seed_number(seed)
        _check_factory(kwargs.get("triples_factory"))

        def around_one_point(tensor: Tensor) -> Tensor:
            return start_points(len(tensor), signature, spread, seed).to(tensor)

        super().__init__(
            interaction=UltraEInteraction(signature, alpha, delta),
            entity_representations=[Embedding, Embedding],
            entity_representations_kwargs=[
                dict(shape=signature.n, initializer=around_one_point),
                dict(shape=(), initializer=torch.nn.init.zeros_),
            ],
            relation_representations=JOrthogonalRepresentation,
            relation_representations_kwargs=dict(signature=signature, base=base),
            **kwargs,
        )

    def score_hrt(self, hrt_batch: Tensor, *, mode: Any = None) -> Tensor:
        """Scores (N, 1) of triples (N, 3).

        Points are lifted once per entity, matrices formed once per relation, and points moved once
        per query: the negatives of a triple mostly share one end with it.
        """
        points, biases = self._get_entity_representations_from_inductive_mode(mode=mode)
        entities, ends = _numbered(hrt_batch[:, ::2], points.max_id)
        relations, relation = _numbered(hrt_batch[:, 1], self.relation_representations[0].max_id)
        E, b = self.interaction.lift(points(entities)), biases(entities)
        code, anchor, query, answer = _queries(ends, relation, len(relations), len(entities))
        signs, for_head = self.interaction.signs, code[:, None] >= len(relations)
        source = E.index_select(0, anchor)
        moved = multiply(
            self._matrices(relations), code, torch.where(for_head, signs * source, source)
        )
        moved = torch.where(for_head, moved, signs * moved)  # J R^-1 = R^T J
        left = moved, b.index_select(0, anchor)
        products, bias = pair_terms(left, (E, b), query, answer)
        scores: Tensor = self.interaction.scores(products, bias)
        return scores[:, None]

    def _matrices(self, relations: Tensor) -> Tensor:
        """The matrices R of relations (m,), then their transposes: (2 m, n, n).

        A training step asks for those of its triples and again for those of their negatives, which
        are the same. They are kept until the backward pass has come through them.
        """
        isometries = self.relation_representations[0]
        weight = isometries.weight
        state = (weight.data_ptr(), weight._version, torch.is_grad_enabled())
        if self._formed is not None and self._formed[0] == state:
            _, known, matrices = self._formed
            if torch.equal(known, relations):
                return matrices
        R = isometries(relations)
        matrices = torch.cat([R, R.mT])
        self._formed = None
        if matrices.requires_grad:
            self._formed = state, relations, matrices
            matrices.register_hook(self._forget)  # type: ignore[no-untyped-call]
        return matrices

    def _forget(self, gradient: Tensor) -> None:
        self._formed = None

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_formed"}

    @classmethod
    def from_jorth(cls, model: JorthUltraE, triples_factory: Any, **kwargs: Any) -> UltraE:
        """The PyKEEN model with the scores of a jorth model.

        ``triples_factory`` must number entities and relations as ``model`` does; both sort names.
        A reciprocal model needs a factory with ``create_inverse_triples=True``, and vice versa.
        """
        if not isinstance(model, JorthUltraE):
            raise TypeError(f"model must be a jorth.kge.UltraE, got {describe(model)}")
        if model.scaling != "none" or model.log_scale is not None or model.reverse_weight:
            none = 'scaling="none", learn_scale=False and reverse_weight=0, as PyKEEN has none'
            raise ValueError(f"model must have {none}, got {model}")
        _check_factory(triples_factory)
        expected = (model.n_entities, len(model.relations))
        found = (triples_factory.num_entities, triples_factory.num_relations)
        if found != expected:
            what = f"{expected} entities and relations as model"
            raise ValueError(f"triples_factory must have {what}, got {found}")
        base = model.relations.detach()
        if model.reciprocal:  # PyKEEN numbers the inverse of 2 r as 2 r + 1
            base = torch.stack(torch.split(base, model.n_relations), dim=1).flatten(0, 1)
        adapted: UltraE = cls(
            signature=model.signature,
            alpha=model.alpha,
            delta=model.delta,
            base=base,
            triples_factory=triples_factory,
            **kwargs,
        ).to(model.points.dtype)
        points, bias = adapted.entity_representations
        with torch.no_grad():
            points._embeddings.weight.copy_(model.points)
            bias._embeddings.weight.copy_(model.bias[:, None])
        return adapted


def _queries(
    ends: Tensor, relation: Tensor, relations: int, entities: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Triples as questions for one of their ends, no question twice.

    Of the two questions that a triple answers, the one is asked that more of the triples answer.

    Args:
        ends: (N, 2), heads and tails.
        relation: (N,).
        relations: The number of relations.
        entities: The number of entities.

    Returns:
        The codes (Q,), in order, and anchors (Q,) of the questions, code r + ``relations`` asking
        for heads; the question (N,) of every triple, and its answer (N,).
    """
    codes = torch.stack([relation, relation + relations], dim=-1)
    both, numbers, counts = torch.unique(
        codes * entities + ends, return_inverse=True, return_counts=True
    )
    for_head = (counts[numbers].diff(dim=-1) > 0).long()
    asked, query = _numbered(numbers.gather(1, for_head)[:, 0], len(both))
    answer = ends.gather(1, 1 - for_head)[:, 0]
    return both[asked] // entities, both[asked] % entities, query, answer


def _numbered(values: Tensor, below: int) -> tuple[Tensor, Tensor]:
    """The distinct values, all of them below a bound, in order, and the place of each value."""
    present = torch.zeros(below, dtype=torch.int64, device=values.device)
    present[values.reshape(-1)] = 1
    return present.nonzero()[:, 0], (present.cumsum(0) - 1)[values]


def _check_factory(triples_factory: object) -> None:
    if not hasattr(triples_factory, "num_entities"):
        found = describe(triples_factory)
        raise TypeError(f"triples_factory must be a TriplesFactory of PyKEEN, got {found}")
