"""UltraE: entities on a pseudo-hyperboloid, relations as its isometries; saved and loaded."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jorth import _inputs
from jorth._files import make_folder, reading, replacing
from jorth._inputs import describe
from jorth._triton import runs_triton
from jorth.derivatives import first_derivatives_only
from jorth.group import random_point
from jorth.kge.graph import check_indices, check_per_relation, distinct_names, index_tensor
from jorth.nn import declare
from jorth.signature import Signature
from jorth.ultrahyperbolic import Place, check_q, lift_at, slices

SIGNATURE = Signature(18, 18)
STARTS = ("shared", "separate", "identity")
CHUNK = 2**15
"""How many distances a CPU computes at a time: intermediate results stay in the cache."""


class UltraE(torch.nn.Module):
    """The score -d^2(R_r E_h, E_t) + b_h + b_t + delta of a triple (h, r, t), + c_r if h = t.

    E (entities, n) lies on U = {x : <x, x>_J = -alpha^2}, each R_r is J-orthogonal, d is the
    geodesic distance (`jorth.ultrahyperbolic.distance`), and b has one number per entity. The
    parameters are ``points`` (entities, n), whose lift is E, ``bias`` (entities,), ``relations``
    (m, n, n), which the optimiser has to keep J-orthogonal, and ``loops`` (2 ``n_relations``,), c
    of every code: by how much an entity that answers its own query differs from others.

    A query (anchor, code) asks for the other end of a triple. Code r < ``n_relations`` asks for the
    tails of the head ``anchor``, code r + ``n_relations`` for the heads of the tail ``anchor``. For
    heads the matrix is R_r^-1 = J R_r^T J, since d(R_r x, y) = d(x, R_r^-1 y); with ``reciprocal``
    it is a separate matrix, and m = 2 ``n_relations``.

    Predictions of a ``reciprocal`` model, not its training, also subtract ``reverse_weight`` times
    the squared distance for the matrix R' of the other code, d(R' y, x) = d(y, R'^-1 x), x the
    anchor and y the answer.

    Args:
        entities: The number of entities.
        relations: The number of relations.
        signature: The signs of J in any order, q at least 1. The paper has p = q = 18.
        alpha: The radius of U.
        delta: The margin.
        reciprocal: Whether the other direction of a relation has its own matrix.
        spread: The standard deviation of the initial ``points`` around one point.
        start: Where the relations start: "shared", at one random rotation of the positive
            coordinates for all of them; "separate", at one for each; or "identity". At I every
            entity is its own best answer, which training is slow to unlearn. From a shared start
            relations with few triples answer as the others do.
        reverse_weight: The weight of the other code's squared distance in predictions of a
            ``reciprocal`` model.
        seed: The seed of the random initialisation.
        dtype: torch.float64 (the default) or torch.float32.
        device: The device of the parameters.

    >>> model = jorth.kge.UltraE(5, 2, signature=jorth.Signature(3, 1))
    >>> model.score_tails(torch.tensor([0]), torch.tensor([1])).shape
    torch.Size([1, 5])
    """

    signs: Tensor
    plus: Tensor
    minus: Tensor

    # one argument per setting of the model
    def __init__(
        self,
        entities: int,
        relations: int,
        *,
        signature: Signature = SIGNATURE,
        alpha: float = 1.0,
        delta: float = 5.0,
        reciprocal: bool = False,
        spread: float = 0.05,
        start: str = "shared",
        reverse_weight: float = 0.0,
        seed: int = 0,
        dtype: torch.dtype = torch.float64,
        device: Any = None,
    ) -> None:
        super().__init__()
        self.n_entities = _inputs.whole_number(entities, "entities", 2)
        self.n_relations = _inputs.whole_number(relations, "relations", 1)
        self.signature = signature = _inputs.check_signature(signature)
        check_q(signature)
        _inputs.check_dtype(dtype)
        self.alpha = _inputs.positive_number(alpha, "alpha")
        _inputs.positive_number(spread, "spread")
        self.delta = _inputs.finite_number(delta, "delta")
        _inputs.check_flag(reciprocal, "reciprocal")
        _inputs.check_choice(start, "start", STARTS)
        self.reciprocal = bool(reciprocal)
        self.reverse_weight = reverse_number(reverse_weight, self.reciprocal)
        seed = _inputs.whole_number(seed, "seed", 0)
        _inputs.check_device(device)
        points = start_points(self.n_entities, signature, spread, seed)
        matrices = self.n_relations * (1 + self.reciprocal)
        rotations = start_relations(matrices, signature, start, seed)
        self.points = torch.nn.Parameter(points.to(device, dtype))
        self.bias = torch.nn.Parameter(torch.zeros(self.n_entities, dtype=dtype, device=device))
        self.relations = torch.nn.Parameter(rotations.to(device, dtype))
        loops = torch.zeros(2 * self.n_relations, dtype=dtype, device=device)
        self.loops = torch.nn.Parameter(loops)
        declare(self, "relations", signature)
        plus, minus = signature.positions(self.points.device)
        self.register_buffer("signs", signature.vector(self.points), persistent=False)
        self.register_buffer("plus", plus, persistent=False)
        self.register_buffer("minus", minus, persistent=False)

    @property
    def _places(self) -> tuple[Place, Place]:
        """The positive and the negative coordinates."""
        return slices(self.signature) or (self.plus, self.minus)

    def embeddings(self, entities: Tensor | None = None) -> Tensor:
        """Return the points E (..., n) on U of the given entities (...), or of all."""
        points = self.points if entities is None else _rows(self.points, entities)
        return lift_at(points, *self._places, self.alpha)

    def weights(self) -> dict[str, Tensor]:
        """Return the parameters by name, the relations also where they are parametrised."""
        names = ("points", "bias", "relations", "loops")
        return {name: getattr(self, name) for name in names}

    def matrices(self) -> Tensor:
        """Return the J-orthogonal matrices of all codes: (2 n_relations, n, n)."""
        R: Tensor = self.relations
        if self.reciprocal:
            return R
        return torch.cat([R, self.signs[:, None] * R.mT * self.signs])

    def gather(self, *groups: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Return points E (..., n) and biases (...) for several groups (...) of entities.

        The tables are read only once, so that their gradients are summed only once.
        """
        all_entities = torch.cat([group.reshape(-1) for group in groups])
        sizes = [group.numel() for group in groups]
        points = torch.split(self.embeddings(all_entities), sizes)
        biases = torch.split(_rows(self.bias, all_entities), sizes)
        return [
            (E.reshape(*group.shape, E.shape[-1]), bias.reshape(group.shape))
            for group, E, bias in zip(groups, points, biases, strict=True)
        ]

    def apply_relations(self, points: Tensor, code: Tensor) -> Tensor:
        """Return R E (..., n) for points E (..., n) of anchors: where the answers should lie."""
        return multiply(self.matrices(), code, points)

    def apply_reverse(self, points: Tensor, code: Tensor) -> Tensor:
        """Return R'^-1 E (..., n) for points E (..., n) of anchors and R' of the other code."""
        inverses = self.signs[:, None] * self.matrices().mT * self.signs
        return multiply(inverses, (code + self.n_relations) % (2 * self.n_relations), points)

    def score_points(
        self, images: Tensor, anchor_bias: Tensor, candidates: Tensor, bias: Tensor
    ) -> Tensor:
        """Return the scores (B, k) of images R E of anchors with points and biases of candidates.

        With candidates (k, n) common to the batch, rather than (B, k, n), the inner products
        <R E_anchor, E>_J are one matrix product.
        """
        signed = self.signed(images)
        if candidates.ndim == 3:
            g = (candidates @ signed[..., None]).squeeze(-1)
        else:
            g = signed @ candidates.mT
        return self.score_products(g, anchor_bias[:, None] + self.delta + bias)

    def signed(self, images: Tensor) -> Tensor:
        """Return the images times J / alpha^2, whose products with points are those of U."""
        return images * (self.signs / self.alpha**2)

    def score_products(self, g: Tensor, bias: Tensor) -> Tensor:
        """Return the scores for <R E_anchor, E_answer>_J = alpha^2 g; ``bias`` is added."""
        return torch.sub(bias, squared_arc(g), alpha=self.alpha**2)

    def score_tails(self, head: Tensor, relation: Tensor) -> Tensor:
        """Return the scores (B, entities) of (head, relation, ?) for every entity as the tail."""
        head, relation = self._queries(head, "head", relation)
        return self._score_all(head, relation)

    def score_heads(self, relation: Tensor, tail: Tensor) -> Tensor:
        """Return the scores (B, entities) of (?, relation, tail) for every entity as the head."""
        tail, relation = self._queries(tail, "tail", relation)
        return self._score_all(tail, relation + self.n_relations)

    def _score_all(self, anchor: Tensor, code: Tensor) -> Tensor:
        x, E = self.embeddings(anchor), self.embeddings()
        images = self.apply_relations(x, code)
        scores = self.score_points(images, _rows(self.bias, anchor), E, self.bias)
        if self.reverse_weight:
            back = self.signed(self.apply_reverse(x, code)) @ E.mT
            scores = scores - self.reverse_weight * self.alpha**2 * squared_arc(back)
        scores[torch.arange(len(anchor), device=anchor.device), anchor] += self.loops[code]
        return scores

    def _queries(self, anchor: Any, name: str, relation: Any) -> tuple[Tensor, Tensor]:
        """Return numbers of entities and relations (B,) as tensors on the device of the model."""
        device = self.points.device
        anchor = index_tensor(anchor, name, device)
        relation = index_tensor(relation, "relation", device)
        check_indices(anchor, name, self.n_entities, device)
        check_indices(relation, "relation", self.n_relations, device)
        if anchor.ndim != 1 or anchor.shape != relation.shape:
            found = f"{describe(anchor)} and {describe(relation)}"
            raise ValueError(f"{name} and relation must have one shape (B,), got {found}")
        return anchor, relation

    def forward(self, triples: Tensor) -> Tensor:
        """Return scores (...) of triples (..., 3), read as (anchor, code, answer)."""
        device = self.points.device
        codes = 2 * self.n_relations
        triples = index_tensor(triples, "triples", device)
        if triples.ndim < 1 or triples.shape[-1] != 3:
            raise ValueError(f"triples must have shape (..., 3), got {describe(triples)}")
        anchor, code, answer = triples.unbind(-1)
        check_indices(triples[..., ::2], "entities of triples", self.n_entities, device)
        check_indices(code, "relations of triples", codes, device)
        (x, anchor_bias), (y, answer_bias) = self.gather(anchor, answer)
        g = (self.signed(self.apply_relations(x, code)) * y).sum(-1)
        scores = self.score_products(g, anchor_bias + self.delta + answer_bias)
        if self.reverse_weight:
            back = (self.signed(self.apply_reverse(x, code)) * y).sum(-1)
            scores = scores - self.reverse_weight * self.alpha**2 * squared_arc(back)
        return scores + torch.where(anchor == answer, self.loops[code], 0.0)

    def extra_repr(self) -> str:
        reverse = f", reverse_weight={self.reverse_weight:g}" if self.reverse_weight else ""
        return (
            f"{self.n_entities} entities, {self.n_relations} relations, {self.signature}, "
            f"alpha={self.alpha:g}, delta={self.delta:g}, reciprocal={self.reciprocal}{reverse}"
        )


def reverse_number(value: Any, reciprocal: bool) -> float:
    """Return a ``reverse_weight`` that fits the other settings, or a ValueError."""
    weight = _inputs.nonnegative_number(value, "reverse_weight")
    if weight and not reciprocal:
        raise ValueError(f"reverse_weight must be 0 without reciprocal, got {weight:g}")
    return weight


def _rows(table: Tensor, index: Tensor) -> Tensor:
    """Return ``table[index]``, with a gradient that is summed without sorting the index first."""
    return table.index_select(0, index.reshape(-1)).reshape(*index.shape, *table.shape[1:])


def multiply(matrices: Tensor, index: Tensor, points: Tensor) -> Tensor:
    """Return ``matrices[index] @ points`` (..., n), for matrices (m, n, n) and an index (...).

    Where there are many points per matrix, those of each matrix are one product. On a device
    training gathers the matrices instead, as it must not wait for the numbers of points.
    """
    flat, x = index.reshape(-1), points.reshape(-1, points.shape[-1])
    may_wait = x.device.type == "cpu" or not torch.is_grad_enabled()
    if not may_wait or len(flat) < 8 * len(matrices):
        product = (_rows(matrices, flat) @ x[..., None]).squeeze(-1)
        return product.reshape(points.shape)
    order = flat.argsort()
    sizes = torch.bincount(flat, minlength=len(matrices)).tolist()
    groups = torch.split(x.index_select(0, order), sizes)
    product = torch.cat([own @ R.mT for own, R in zip(groups, matrices.unbind(), strict=True)])
    return torch.empty_like(product).index_copy(0, order, product).reshape(points.shape)


def start_points(entities: int, signature: Signature, spread: float, seed: int) -> Tensor:
    """Return points (entities, n) around the first unit vector of the negative coordinates."""
    noise = _inputs.generator(seed).standard_normal((entities, signature.n))
    points = float(spread) * torch.from_numpy(noise)
    points[:, int(signature.negative[0])] += 1.0
    return points


def start_relations(count: int, signature: Signature, start: str, seed: int) -> Tensor:
    """Return J-orthogonal (count, n, n): rotations of the positive coordinates, or I.

    ``start`` is that of `UltraE`.
    """
    matrices = torch.eye(signature.n, dtype=torch.float64).repeat(count, 1, 1)
    if start != "identity" and signature.p:
        random = np.random.default_rng([seed, 1])  # a stream independent of that of the points
        different = 1 if start == "shared" else count
        rotations = random_point(Signature(signature.p, 0), batch=(different,), seed=random)
        plus = torch.tensor(signature.positive)
        matrices[:, plus[:, None], plus] = torch.as_tensor(rotations)
    return matrices


def squared_arc(g: Tensor) -> Tensor:
    """Return acosh(|g|)^2 where |g| >= 1 and acos(|g|)^2 elsewhere.

    Multiplied by alpha^2 it is the squared distance of points with <x, y>_J = alpha^2 g. Unlike
    the distance itself it has bounded slopes: +-2 on the two sides of |g| = 1, where the slope is
    taken to be 0. g has an error of u |x| |y| / alpha^2, and so has the result.
    """
    arc: Tensor = _SquaredArc.apply(g)  # type: ignore[no-untyped-call]
    return arc


class _SquaredArc(torch.autograd.Function):
    """The value together with the derivative, which shares all expensive parts with it."""

    @staticmethod
    def forward(ctx: Any, g: Tensor) -> Tensor:
        flat = g.reshape(-1).contiguous()
        square = torch.empty_like(flat)
        slope = torch.empty_like(flat) if ctx.needs_input_grad[0] else None
        write = _square_and_slope
        if g.dtype in (torch.float32, torch.float64) and runs_triton(g.device):
            from jorth.kge._loss_triton import write_squared_arcs as write
        elif g.dtype in (torch.float32, torch.float64) and g.device.type == "cpu":
            from jorth.kge._loss_numba import write_squared_arcs as write  # loads numba
        size = CHUNK if g.device.type == "cpu" else max(1, flat.numel())
        for start in range(0, flat.numel(), size):
            part = slice(start, start + size)
            write(flat[part], square[part], None if slope is None else slope[part])
        if slope is not None:
            ctx.save_for_backward(slope.view(g.shape))
        return square.view(g.shape)

    @staticmethod
    @first_derivatives_only
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (slope,) = ctx.saved_tensors
        scaled: Tensor = gradient * slope
        return scaled


def _square_and_slope(g: Tensor, square: Tensor, slope: Tensor | None) -> None:
    """Write arc^2, and its derivative 2 sign(g) sign(e) arc / sine.

    With e = |g| - 1 and the (hyperbolic or circular) sine sqrt(|e| (2 + e)), the arc is
    log1p(e + sine) or atan2(sine, |g|).
    """
    size = g.abs()
    e = size - 1
    # the root of each factor, so that no product overflows
    sine = e.abs().sqrt_().mul_((size + 1).sqrt_())
    arc = torch.where(e >= 0, torch.log1p(e + sine), torch.atan2(sine, size))
    torch.mul(arc, arc, out=square)
    if slope is not None:
        ratio = torch.where(sine == 0, 1.0, arc / sine)
        torch.mul(ratio.mul_(2).mul_(g.sign()), e.sign(), out=slope)


WEIGHTS, ABOUT = "model.safetensors", "model.json"
SETTINGS = ("alpha", "delta", "reciprocal", "reverse_weight")
"""The settings of a model that ``model.json`` keeps beside its signs and names."""
OF_TRAINING = ("irreflexive", "frequencies")
"""What it keeps of the training triples."""


@dataclass(frozen=True, eq=False)
class NamedModel:
    """A model with the names of its entities and relations, and what else belongs to it.

    Attributes:
        model: The model.
        entities: The names of its entities.
        relations: The names of its relations.
        about: Further data, as JSON can hold them.
        irreflexive: A bool tensor (relations,), such as ``graph.irreflexive``: for which relations
            `predict` does not answer with the entity of the query. None stands for none.
        frequencies: An int64 tensor (relations,), such as ``graph.frequencies``: how often training
            has each relation. None stands for equally often.

    >>> model = jorth.kge.UltraE(2, 1, signature=jorth.Signature(3, 1))
    >>> named = jorth.kge.NamedModel(model, ["ann", "bob"], ["parent"])
    >>> jorth.kge.predict(named, "ann", "parent", k=1)[0].entity in named.entities
    True
    """

    model: UltraE
    entities: Sequence[str]
    relations: Sequence[str]
    about: dict[str, Any] = field(default_factory=dict)
    irreflexive: Tensor | None = None
    frequencies: Tensor | None = None


def save_model(folder: str | os.PathLike[str], named: NamedModel) -> None:
    """Write ``model.safetensors`` (the parameters) and ``model.json``, both atomically.

    Args:
        folder: Where the files go; made where it is missing.
        named: The model with the names of its entities and relations.

    Raises:
        TypeError: A name is no string, or ``about`` is not made of what JSON can hold.
        ValueError: The names are not distinct or not as many as the model has, or a parameter is
            not finite. Files that were there are kept.

    >>> model = jorth.kge.UltraE(2, 1, signature=jorth.Signature(3, 1))
    >>> jorth.kge.save_model("family", jorth.kge.NamedModel(model, ["ann", "bob"], ["parent"]))
    >>> jorth.kge.load_model("family").entities
    ('ann', 'bob')
    """
    from safetensors.torch import save

    if not isinstance(named, NamedModel):
        raise TypeError(f"named must be a jorth.kge.NamedModel, got {describe(named)}")
    model = named.model
    if not isinstance(model, UltraE):
        raise TypeError(f"named.model must be a jorth.kge.UltraE, got {describe(model)}")
    if not isinstance(named.about, dict):
        raise TypeError(f"about must be a dictionary, got {describe(named.about)}")
    root = _inputs.file_path(folder, "folder")
    weights = {name: part.detach().cpu().contiguous() for name, part in model.weights().items()}
    _check_weights(weights)
    tables = {name: of_training(named, name) for name in OF_TRAINING}
    content = {
        "model": "UltraE",
        "signs": model.signature.signs.tolist(),
        **{name: getattr(model, name) for name in SETTINGS},
        "about": named.about,
        **{name: None if part is None else part.tolist() for name, part in tables.items()},
        "relations": distinct_names(named.relations, "relations", model.n_relations),
        "entities": distinct_names(named.entities, "entities", model.n_entities),
    }
    try:
        about = json.dumps(content, ensure_ascii=False, indent=1).encode()
    except (TypeError, ValueError, RecursionError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"names and about must be what JSON can hold: {error}") from None
    make_folder(root, "folder")
    with ExitStack() as both:  # neither is replaced before both are written
        for name, written in ((ABOUT, about), (WEIGHTS, save(weights))):
            stream = both.enter_context(replacing(root / name))
            stream.write(written)
            stream.flush()


def load_model(folder: str | os.PathLike[str], *, device: Any = None) -> NamedModel:
    """Read what `save_model` has written.

    Args:
        folder: The folder of the files.
        device: The device of the model; the CPU by default.

    Raises:
        FileNotFoundError: A file is missing.
        ValueError: A file is damaged, or the two do not belong together. The message names it.

    >>> model = jorth.kge.UltraE(2, 1, signature=jorth.Signature(3, 1))
    >>> jorth.kge.save_model("family", jorth.kge.NamedModel(model, ["ann", "bob"], ["parent"]))
    >>> jorth.kge.load_model("family").relations
    ('parent',)
    """
    from safetensors.torch import load_file

    root = _inputs.file_path(folder, "folder")
    _inputs.check_device(device)
    for name in (WEIGHTS, ABOUT):
        if not (root / name).is_file():
            raise FileNotFoundError(f"folder {root} must hold {WEIGHTS} and {ABOUT}, got no {name}")
    with reading(str(root / WEIGHTS)):
        weights: dict[str, Tensor] = load_file(root / WEIGHTS)
        _check_weights(weights)
    with reading(str(root / ABOUT)):
        content = json.loads((root / ABOUT).read_bytes())
        entities = distinct_names(content["entities"], "entities")
        relations = distinct_names(content["relations"], "relations")
        model = UltraE(
            len(entities),
            len(relations),
            signature=Signature.of(content["signs"]),
            **{name: content[name] for name in SETTINGS},
            start="identity",
            dtype=next(iter(weights.values())).dtype,
        )
        about = dict(content["about"])
        tables = {name: content[name] for name in OF_TRAINING if content.get(name) is not None}
        tables = {name: torch.tensor(values) for name, values in tables.items()}
        named = NamedModel(model, entities, relations, about, **tables)
        for name in tables:
            of_training(named, name)
    with reading(str(root / WEIGHTS)):
        model.load_state_dict(weights)
    return replace(named, model=model.to("cpu" if device is None else device))


def of_training(named: Any, name: str) -> Tensor | None:
    """Return what a model knows of its training triples by relation, None if nothing."""
    values: Tensor | None = getattr(named, name, None)
    if values is not None:
        check_per_relation(values, name, named.model.n_relations)
    return values


def _check_weights(weights: dict[str, Tensor]) -> None:
    """Raise a ValueError unless the tensors are finite and in one precision."""
    dtypes = {weight.dtype for weight in weights.values()}
    if dtypes not in ({torch.float32}, {torch.float64}):
        found = ", ".join(map(str, dtypes))
        raise ValueError(f"the model's tensors must be all float64 or all float32, got {found}")
    for name, weight in weights.items():
        if not weight.isfinite().all():
            raise ValueError(f"{name} must be finite, got NaN or infinite entries")
