"""UltraE as a model of PyKEEN, whose pipeline trains, evaluates and compares it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor

from jorth import _inputs
from jorth._inputs import check_signature, describe, positive_number
from jorth.extras import needs
from jorth.group.elements import check_feasible, finite_square
from jorth.group.exp_log import exp_by_products
from jorth.kge import NamedModel
from jorth.kge import UltraE as JorthUltraE
from jorth.kge.model import SIGNATURE, STARTS, multiply, squared_arc, start_points, start_relations
from jorth.nn.parametrizations import exponential_form
from jorth.signature import Signature
from jorth.ultrahyperbolic import check_q, lift_at, slices

with needs("jorth.adapters.pykeen", "pykeen"):
    from pykeen.models import ERModel, model_resolver
    from pykeen.nn.modules import Interaction, interaction_resolver
    from pykeen.nn.representation import Embedding, Representation
    from pykeen.utils import NoRandomSeedNecessary

Entity = tuple[Tensor, Tensor]


class UltraEInteraction(Interaction[Entity, Tensor, Entity]):
    """-d^2(R lift(x_h), lift(x_t)) + b_h + b_t + delta.

    An entity has x (n,) and b (), a relation R (n, n).

    Args:
        signature: The signs of J.
        alpha: The radius of the pseudo-hyperboloid.
        delta: The margin.

    >>> from jorth.adapters.pykeen import UltraEInteraction
    >>> UltraEInteraction(jorth.Signature(3, 1)).relation_shape
    ('dd',)
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
        self.alpha = positive_number(alpha, "alpha")
        self.delta = _inputs.finite_number(delta, "delta")
        self.signature = signature = check_signature(signature)
        check_q(signature)
        plus, minus = signature.positions(torch.device("cpu"))
        self.register_buffer("signs", torch.from_numpy(signature.signs.copy()), persistent=False)
        self.register_buffer("plus", plus, persistent=False)
        self.register_buffer("minus", minus, persistent=False)

    def forward(self, h: Entity, r: Tensor, t: Entity) -> Tensor:
        """Return scores of representations that broadcast; R moves the side with fewer entities."""
        (x, b_h), (y, b_t) = h, t
        source, target = self.lift(x), self.lift(y)
        if source.numel() > target.numel():
            source, target = target, source
            r = self.inverse(r)
        images = (r @ source[..., None]).squeeze(-1)
        return self.scores(torch.einsum("...d,...d->...", images * self.signs, target), b_h + b_t)

    def lift(self, points: Tensor) -> Tensor:
        """Return the points (..., n) on the pseudo-hyperboloid."""
        plus, minus = slices(self.signature) or (self.plus, self.minus)
        return lift_at(points, plus, minus, self.alpha)

    def inverse(self, matrices: Tensor) -> Tensor:
        """Return R^-1 = J R^T J (..., n, n)."""
        return self.signs[:, None] * matrices.mT * self.signs

    def scores(self, products: Tensor, bias: Tensor) -> Tensor:
        """Return the scores for inner products <R lift(x_h), lift(x_t)>_J and sums b_h + b_t."""
        area = self.alpha**2
        return torch.sub(bias + self.delta, squared_arc(products / area), alpha=area)


class JOrthogonalRepresentation(Representation):
    """The matrices exp(J S) R0 for free skew S, J-orthogonal under any unconstrained optimiser.

    Args:
        max_id: The number of matrices.
        shape: Always (n, n), whatever PyKEEN gives.
        signature: The signs of J.
        base: The J-orthogonal R0 (max_id, n, n); identities when omitted.
        **kwargs: Arguments of `pykeen.nn.representation.Representation`.

    >>> from jorth.adapters.pykeen import JOrthogonalRepresentation
    >>> JOrthogonalRepresentation(max_id=2, shape=(4, 4), signature=jorth.Signature(3, 1))().shape
    torch.Size([2, 4, 4])
    """

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
        signature = check_signature(signature)
        n = signature.n
        max_id = _inputs.whole_number(max_id, "max_id", 1)
        start = torch.eye(n).repeat(max_id, 1, 1)
        if base is not None:
            start = finite_square(base, signature, "base").detach().clone()
        if start.shape != (max_id, n, n):
            expected = f"shape ({max_id}, {n}, {n}) for max_id = {max_id}"
            raise ValueError(f"base must have {expected}, got {describe(base)}")
        check_feasible(start, signature, "base")
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
    """UltraE for PyKEEN: ``pipeline(model="UltraE", model_kwargs=dict(signature=...), ...)``.

    The import of `jorth.adapters.pykeen` makes the name known to PyKEEN. PyKEEN's optimisers know
    no constraint, so relations are exp(J S) R0 here; `from_jorth` takes over a model that jorth has
    trained. With ``create_inverse_triples`` the other direction of a relation has its own matrix.

    Args:
        signature: The signs of J.
        embedding_dim: The number of signs where no signature is given, half of them negative.
            With a signature it must be that of its signs.
        alpha: The radius of the pseudo-hyperboloid.
        delta: The margin.
        spread: The standard deviation of the random start of the entities.
        start: Where the relations start, as in `jorth.kge.UltraE`.
        seed: The seed of the start. When omitted it is ``random_seed`` of PyKEEN if given, and
            otherwise drawn from torch's generator. Resetting the parameters restores the start.
        base: The J-orthogonal R0 of all relations, in place of those of ``start``.
        **kwargs: Arguments of `pykeen.models.ERModel`, including ``triples_factory``.

    >>> from pykeen.pipeline import pipeline  # doctest: +SKIP
    >>> import jorth.adapters.pykeen  # doctest: +SKIP
    >>> result = pipeline(dataset="nations", model="UltraE")  # doctest: +SKIP
    """

    hpo_default: ClassVar[Mapping[str, Any]] = {
        "embedding_dim": {"type": int, "low": 8, "high": 64, "q": 8},
        "delta": {"type": float, "low": 0.0, "high": 10.0},
        "spread": {"type": float, "low": 0.01, "high": 0.2, "log": True},
    }

    def __init__(
        self,
        *,
        signature: Signature | None = None,
        embedding_dim: int | None = None,
        alpha: float = 1.0,
        delta: float = 5.0,
        spread: float = 0.05,
        start: str = "shared",
        seed: int | None = None,
        base: Tensor | None = None,
        **kwargs: Any,
    ) -> None:
        signature = _signature_of(signature, embedding_dim)
        spread = positive_number(spread, "spread")
        _inputs.check_choice(start, "start", STARTS)
        seed = _start_seed(seed, kwargs.get("random_seed"))
        factory: Any = kwargs.get("triples_factory")
        interaction = UltraEInteraction(signature, alpha, delta)
        if base is None:
            rotations = start_relations(factory.num_relations, signature, start, seed)
            base = rotations.to(torch.get_default_dtype())
        scatter = partial(_scattered, signature=signature, spread=spread, seed=seed)
        super().__init__(
            interaction=interaction,
            entity_representations=[Embedding, Embedding],
            entity_representations_kwargs=[
                dict(shape=signature.n, initializer=scatter),
                dict(shape=(), initializer=torch.nn.init.zeros_),
            ],
            relation_representations=JOrthogonalRepresentation,
            relation_representations_kwargs=dict(signature=signature, base=base),
            **kwargs,
        )

    def score_hrt(self, hrt_batch: Tensor, *, mode: Any = None) -> Tensor:
        """Return scores (N, 1) of triples (N, 3).

        Points are lifted once per entity, and matrices formed once per relation.
        """
        points, biases = self._get_entity_representations_from_inductive_mode(mode=mode)
        matrices = self.relation_representations[0]
        entities, ends = _numbered(hrt_batch[:, ::2], points.max_id)
        relations, relation = _numbered(hrt_batch[:, 1], matrices.max_id)
        E, b = self.interaction.lift(points(entities)), biases(entities)
        (x, b_h), (y, b_t) = ((E.index_select(0, k), b.index_select(0, k)) for k in ends.unbind(-1))
        images = multiply(matrices(relations), relation, x) * self.interaction.signs
        scores: Tensor = self.interaction.scores((images * y).sum(dim=-1), b_h + b_t)
        return scores[:, None]

    @classmethod
    def from_jorth(
        cls, model: JorthUltraE | NamedModel, triples_factory: Any, **kwargs: Any
    ) -> UltraE:
        """Return the PyKEEN model with the scores of a jorth model or of `jorth.kge.train`.

        Triples whose head is their tail have other scores if the model has learned ``loops``, which
        PyKEEN does not know: then there is a RuntimeWarning.

        ``triples_factory`` must number entities and relations as ``model`` does; both sort names.
        A reciprocal model needs a factory with ``create_inverse_triples=True``, and vice versa.
        PyKEEN's training loops, which reset the parameters first, start from that model too.
        """
        if isinstance(model, NamedModel):
            model = model.model
        if not isinstance(model, JorthUltraE):
            raise TypeError(f"model must be a jorth.kge.UltraE, got {describe(model)}")
        if model.reverse_weight:
            raise ValueError(f"model must have reverse_weight=0, as PyKEEN has none, got {model}")
        expected = (model.n_entities, len(model.relations))
        found = (triples_factory.num_entities, triples_factory.num_relations)
        if found != expected:
            what = f"{expected} entities and relations as model"
            raise ValueError(f"triples_factory must have {what}, got {found}")
        if bool(model.loops.any()):
            text = "PyKEEN does not know the loops of model: scores of triples (h, r, h) differ"
            warnings.warn(text, RuntimeWarning, stacklevel=2)
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
        taken = (model.points, model.bias)
        for part, start in zip(adapted.entity_representations, taken, strict=True):
            part.initializer = partial(_copied, start=start.detach().clone())
        adapted.reset_parameters_()
        return adapted


def _signature_of(signature: Signature | list[int] | None, embedding_dim: int | None) -> Signature:
    """Return the signature that is given, also as the signs of a JSON file, or of a dimension."""
    if isinstance(signature, list):
        signature = Signature.of(signature)
    if signature is None and embedding_dim is not None:
        n = _inputs.whole_number(embedding_dim, "embedding_dim", 2)
        return Signature(n - n // 2, n // 2)
    signature = check_signature(SIGNATURE if signature is None else signature)
    if embedding_dim not in (None, signature.n):
        raise ValueError(f"embedding_dim must be that of {signature}, got {embedding_dim}")
    return signature


def _numbered(values: Tensor, below: int) -> tuple[Tensor, Tensor]:
    """Return the distinct values, all below a bound, in order, and the place of each value."""
    present = torch.zeros(below, dtype=torch.int64, device=values.device)
    present[values.reshape(-1)] = 1
    return present.nonzero()[:, 0], (present.cumsum(0) - 1)[values]


def _scattered(tensor: Tensor, *, signature: Signature, spread: float, seed: int) -> Tensor:
    """Return the start of entities (count, n); a function of the module can be pickled."""
    return start_points(len(tensor), signature, spread, seed).to(tensor)


def _copied(tensor: Tensor, *, start: Tensor) -> Tensor:
    """Return the start that is known, for PyKEEN, which may write to what it gets."""
    return start.to(tensor, copy=True)


def _start_seed(seed: int | None, random_seed: Any) -> int:
    """Return the given seed, or PyKEEN's, or one drawn from torch's generator."""
    if seed is None and random_seed in (None, NoRandomSeedNecessary):
        return int(torch.randint(2**63 - 1, ()))
    return _inputs.whole_number(random_seed if seed is None else seed, "seed", 0)


model_resolver.register(UltraE, raise_on_conflict=False)
interaction_resolver.register(UltraEInteraction, raise_on_conflict=False)
