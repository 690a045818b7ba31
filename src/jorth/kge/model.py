"""UltraE: entities on a pseudo-hyperboloid, relations as its isometries."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from jorth import _inputs
from jorth._inputs import check_indices, describe, index_tensor
from jorth._triton import runs_triton
from jorth.derivatives import first_derivatives_only
from jorth.group import random_point
from jorth.kge.products import multiply
from jorth.nn import declare
from jorth.signature import Signature
from jorth.ultrahyperbolic import Place, check_q, lift_at, slices

SIGNATURE = Signature(18, 18)
SCALINGS = ("none", "curvature", "diagonal")
CHUNK = 2**15
"""How many distances a CPU computes at a time: intermediate results stay in the cache."""


class UltraE(torch.nn.Module):
    """The score -e^z d^2(R_r E_h, E_t) + b_h + b_t + delta of a triple (h, r, t).

    E (entities, n) lies on U = {x : <x, x>_J = -alpha^2}, each R_r is J-orthogonal, d is the
    geodesic distance (`jorth.ultrahyperbolic.distance`), and b has one number per entity. The
    parameters are ``points`` (entities, n), unconstrained numbers whose lift is E, ``bias``
    (entities,) and ``relations`` (m, n, n), which the optimiser has to keep J-orthogonal. The
    factor e^z of the squared distance is 1 unless it is learned.

    A query (anchor, code) asks for the other end of a triple. Code r < ``n_relations`` asks for the
    tails of the head ``anchor``, code r + ``n_relations`` for the heads of the tail ``anchor``. For
    heads the matrix is R_r^-1 = J R_r^T J, since d(R_r x, y) = d(x, R_r^-1 y); with ``reciprocal``
    it is a separate matrix, and m = 2 ``n_relations``.

    Isometries keep all distances. With ``scaling`` the anchor E = lift((s, t)) is first moved to
    lift((e^w s, t)), another point of U, and then by R. The numbers w belong to the code, not to
    the matrix: there are 2 ``n_relations`` sets of them. A triple then has two scores, one from
    each end. Without ``reciprocal`` the two codes of a relation still share a matrix, as R_r and
    R_r^-1, but not w: the map of one code is no longer the inverse of that of the other.

    A ``reciprocal`` model may predict by both matrices of a relation: `score_tails`, `score_heads`
    and ``forward`` subtract the squared distance for the matrix R' of the other code as well, times
    ``reverse_weight``. It is d(R' y, x) = d(y, R'^-1 x), x the anchor and y the answer. Training
    does not use it.

    Args:
        entities: The number of entities.
        relations: The number of relations.
        signature: The signs of J in any order, q at least 1. The paper has p = q = 18.
        alpha: The radius of U.
        delta: The margin.
        reciprocal: Whether the other direction of a relation has its own matrix.
        spread: The standard deviation of the initial ``points`` around one point.
        rotate: Whether the relations start at random rotations of the positive coordinates instead
            of I. At I every entity is its own best answer, which training is slow to unlearn.
        scaling: "none", "curvature" (one number w for each code) or "diagonal" (one for each code
            and positive coordinate), the parameter ``log_factors`` (2 ``n_relations``, 1 or p),
            which starts at zero.
        learn_scale: Whether z is a parameter, ``log_scale``, which starts at zero.
        reverse_weight: The weight of the other code's squared distance in predictions, with
            ``reciprocal`` and without ``scaling``.
        seed: The seed of the random initialisation.
        dtype: torch.float64 (the default) or torch.float32.
        device: The device of the parameters.
    """

    signs: Tensor
    plus: Tensor
    minus: Tensor
    log_factors: torch.nn.Parameter | None
    log_scale: torch.nn.Parameter | None

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
        rotate: bool = True,
        scaling: str = "none",
        learn_scale: bool = False,
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
        self.alpha = _inputs.squarable_number(alpha, "alpha", dtype)
        _inputs.squarable_number(spread, "spread", dtype)
        self.delta = _inputs.finite_number(delta, "delta", dtype)
        _inputs.check_flag(reciprocal, "reciprocal")
        _inputs.check_flag(rotate, "rotate")
        self.reciprocal = bool(reciprocal)
        _inputs.check_choice(scaling, "scaling", SCALINGS)
        self.scaling = scaling
        _inputs.check_flag(learn_scale, "learn_scale")
        self.reverse_weight = reverse_number(reverse_weight, self.reciprocal, scaling, dtype)
        seed = _inputs.seed_number(seed)
        _inputs.check_device(device)
        points = start_points(self.n_entities, signature, spread, seed)
        matrices = self.n_relations * (1 + self.reciprocal)
        rotations = start_relations(matrices, signature, rotate, seed)
        self.points = torch.nn.Parameter(points.to(device, dtype))
        self.bias = torch.nn.Parameter(torch.zeros(self.n_entities, dtype=dtype, device=device))
        self.relations = torch.nn.Parameter(rotations.to(device, dtype))
        declare(self, "relations", signature)
        width = {"none": None, "curvature": 1, "diagonal": signature.p}[scaling]
        self._add_zeros("log_factors", None if width is None else (2 * self.n_relations, width))
        self._add_zeros("log_scale", () if learn_scale else None)
        plus, minus = signature.positions(self.points.device)
        self.register_buffer("signs", signature.vector(self.points), persistent=False)
        self.register_buffer("plus", plus, persistent=False)
        self.register_buffer("minus", minus, persistent=False)

    @property
    def _places(self) -> tuple[Place, Place]:
        """The positive and the negative coordinates."""
        return slices(self.signature) or (self.plus, self.minus)

    def _add_zeros(self, name: str, shape: tuple[int, ...] | None) -> None:
        """A parameter that starts at zero, or None."""
        start = None if shape is None else torch.nn.Parameter(self.points.new_zeros(shape))
        self.register_parameter(name, start)

    @property
    def area(self) -> float | Tensor:
        """The factor e^z alpha^2 of the squared arcs of `squared_arc`."""
        return self.alpha**2 if self.log_scale is None else self.alpha**2 * self.log_scale.exp()

    def embeddings(self, entities: Tensor | None = None) -> Tensor:
        """The points E (..., n) on U of the given entities (...), or of all."""
        points = self.points if entities is None else _rows(self.points, entities)
        return lift_at(points, *self._places, self.alpha)

    def weights(self) -> dict[str, Tensor]:
        """The parameters by name, the J-orthogonal matrices also if they are parametrised."""
        named: dict[str, Tensor]
        named = {"points": self.points, "bias": self.bias, "relations": self.relations}
        learned = {"log_factors": self.log_factors, "log_scale": self.log_scale}
        return named | {name: part for name, part in learned.items() if part is not None}

    def matrices(self) -> Tensor:
        """The J-orthogonal matrices of all codes: (2 n_relations, n, n)."""
        R: Tensor = self.relations
        if self.reciprocal:
            return R
        return torch.cat([R, self.signs[:, None] * R.mT * self.signs])

    def read(self, *groups: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Points E (..., n) and biases (...) for several groups (...) of entities.

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

    def move(self, points: Tensor, code: Tensor, kept: Tensor | None = None) -> Tensor:
        """R E (..., n) for the points E (..., n) of the anchors: where the answers should lie.

        The positive coordinates of E are first multiplied by the factors of the code, and by
        ``kept`` (..., p) if given.
        """
        factor = kept
        if self.log_factors is not None:
            factor = _rows(self.log_factors, code).exp()
            factor = factor if kept is None else factor * kept
        if factor is not None:
            s = points.index_select(-1, self.plus) * factor
            points = points.index_copy(-1, self.plus, s)
            points = lift_at(points, *self._places, self.alpha)
        return multiply(self.matrices(), code, points)

    def move_back(self, points: Tensor, code: Tensor) -> Tensor:
        """R'^-1 E (..., n) for the points E (..., n) of the anchors and R' of the other code."""
        inverses = self.signs[:, None] * self.matrices().mT * self.signs
        return multiply(inverses, (code + self.n_relations) % (2 * self.n_relations), points)

    def score_points(
        self, moved: Tensor, anchor_bias: Tensor, candidates: Tensor, bias: Tensor
    ) -> Tensor:
        """Scores (B, k) of the results of `move` with the points and biases of candidates.

        With candidates (k, n) common to the batch, rather than (B, k, n), the inner products
        <R E_anchor, E>_J are one matrix product.
        """
        signed = self.signed(moved)
        if candidates.ndim == 3:
            g = (candidates @ signed[..., None]).squeeze(-1)
        else:
            g = signed @ candidates.mT
        return self.score_products(g, anchor_bias[:, None] + self.delta + bias)

    def signed(self, moved: Tensor) -> Tensor:
        """The results of `move` times J / alpha^2, whose products with points are those of U."""
        return moved * (self.signs / self.alpha**2)

    def score_products(self, g: Tensor, bias: Tensor) -> Tensor:
        """The scores of points with <R E_anchor, E_answer>_J = alpha^2 g; ``bias`` is added."""
        area = self.area
        if isinstance(area, Tensor):
            return bias - area * squared_arc(g)
        return torch.sub(bias, squared_arc(g), alpha=area)

    def score_tails(self, head: Tensor, relation: Tensor) -> Tensor:
        """Scores (B, entities) of (head, relation, ?) for every entity as the tail."""
        head, relation = self._queries(head, "head", relation)
        return self._score_all(head, relation)

    def score_heads(self, relation: Tensor, tail: Tensor) -> Tensor:
        """Scores (B, entities) of (?, relation, tail) for every entity as the head."""
        tail, relation = self._queries(tail, "tail", relation)
        return self._score_all(tail, relation + self.n_relations)

    def _score_all(self, anchor: Tensor, code: Tensor) -> Tensor:
        x, E = self.embeddings(anchor), self.embeddings()
        scores = self.score_points(self.move(x, code), _rows(self.bias, anchor), E, self.bias)
        if self.reverse_weight:
            scores = self._less_reverse(scores, self.signed(self.move_back(x, code)) @ E.mT)
        return scores

    def _less_reverse(self, scores: Tensor, g: Tensor) -> Tensor:
        """The scores less the weighted squared distances of points with products alpha^2 g."""
        return scores - (self.reverse_weight * self.area) * squared_arc(g)

    def _queries(self, anchor: Any, name: str, relation: Any) -> tuple[Tensor, Tensor]:
        """Numbers of entities and relations (B,) as tensors on the device of the model."""
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
        """Scores (...) of triples (..., 3), read as (anchor, code, answer)."""
        device = self.points.device
        codes = 2 * self.n_relations
        triples = index_tensor(triples, "triples", device)
        check_indices(triples, "triples", max(self.n_entities, codes), device)
        if triples.ndim < 1 or triples.shape[-1] != 3:
            raise ValueError(f"triples must have shape (..., 3), got {describe(triples)}")
        anchor, code, answer = triples.unbind(-1)
        check_indices(triples[..., ::2], "entities of triples", self.n_entities, device)
        check_indices(code, "relations of triples", codes, device)
        (x, anchor_bias), (y, answer_bias) = self.read(anchor, answer)
        g = (self.signed(self.move(x, code)) * y).sum(-1)
        scores = self.score_products(g, anchor_bias + self.delta + answer_bias)
        if self.reverse_weight:
            back = (self.signed(self.move_back(x, code)) * y).sum(-1)
            scores = self._less_reverse(scores, back)
        return scores

    def extra_repr(self) -> str:
        scaling = "" if self.scaling == "none" else f", scaling={self.scaling!r}"
        learned = "" if self.log_scale is None else ", learn_scale=True"
        reverse = f", reverse_weight={self.reverse_weight:g}" if self.reverse_weight else ""
        return (
            f"{self.n_entities} entities, {self.n_relations} relations, {self.signature}, "
            f"alpha={self.alpha:g}, delta={self.delta:g}, reciprocal={self.reciprocal}"
            f"{scaling}{learned}{reverse}"
        )


def reverse_number(value: Any, reciprocal: bool, scaling: str, dtype: torch.dtype) -> float:
    """A ``reverse_weight`` that fits the other settings, or a ValueError."""
    weight = _inputs.nonnegative_number(value, "reverse_weight")
    _inputs.finite_number(weight, "reverse_weight", dtype)
    if weight and not reciprocal:
        expected = "0 without reciprocal, where both directions have one matrix"
        raise ValueError(f"reverse_weight must be {expected}, got {weight:g}")
    if weight and scaling != "none":
        expected = "0 with scaling, which it cannot be combined with"
        raise ValueError(f"reverse_weight must be {expected}, got {weight:g} and {scaling!r}")
    return weight


def _rows(table: Tensor, index: Tensor) -> Tensor:
    """``table[index]``, with a gradient that is summed without sorting the index first."""
    return table.index_select(0, index.reshape(-1)).reshape(*index.shape, *table.shape[1:])


def start_points(entities: int, signature: Signature, spread: float, seed: int) -> Tensor:
    """Numbers (entities, n) scattered around the first unit vector of the negative coordinates."""
    noise = _inputs.generator(seed).standard_normal((entities, signature.n))
    points = float(spread) * torch.from_numpy(noise)
    points[:, int(signature.negative[0])] += 1.0
    return points


def start_relations(count: int, signature: Signature, rotate: bool, seed: int) -> Tensor:
    """J-orthogonal matrices (count, n, n): random rotations of the positive coordinates, or I."""
    start = torch.eye(signature.n, dtype=torch.float64).repeat(count, 1, 1)
    if rotate and signature.p:
        random = np.random.default_rng([seed, 1])  # a stream independent of that of the points
        rotations = random_point(Signature(signature.p, 0), batch=(count,), seed=random)
        plus = torch.tensor(signature.positive)
        start[:, plus[:, None], plus] = torch.as_tensor(rotations)
    return start


def squared_arc(g: Tensor) -> Tensor:
    """acosh(|g|)^2 where |g| >= 1 and acos(|g|)^2 elsewhere.

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
            from jorth.kge._distances_triton import write_squared_arcs as write
        elif g.dtype in (torch.float32, torch.float64) and g.device.type == "cpu":
            from jorth.kge._distances_numba import write_squared_arcs as write  # loads numba
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
