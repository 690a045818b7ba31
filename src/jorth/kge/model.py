"""UltraE: entities on a pseudo-hyperboloid, relations as its isometries."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jorth.arrays import (
    check_device,
    check_dtype,
    check_flag,
    check_indices,
    check_signature,
    check_square,
    describe,
    generator,
    real_number,
    rounded_to,
    seed_number,
    whole_number,
)
from jorth.group import random_point
from jorth.kge.distance import squared_arc
from jorth.signature import Signature
from jorth.ultrahyperbolic import lift_at

SIGNATURE = Signature(18, 18)
SPREAD = 0.05


class UltraE(torch.nn.Module):
    """The score -d^2(R_r E_h, E_t) + b_h + b_t + delta of a triple (h, r, t).

    E (entities, n) lies on U = {x : <x, x>_J = -alpha^2}, each R_r is J-orthogonal, d is the geodesic distance
    (`jorth.ultrahyperbolic.distance`), b is one number an entity. The parameters are ``points`` (entities, n), free
    numbers of which E is the lift, ``bias`` (entities,) and ``relations`` (m, n, n), which an optimiser has to
    keep J-orthogonal.

    A query (anchor, code) asks for the other end of a triple. Code r < ``n_relations`` asks for tails of the head
    ``anchor``, code r + ``n_relations`` for heads of the tail ``anchor``. For heads the matrix is R_r^-1 = J R_r^T J,
    since d(R_r x, y) = d(x, R_r^-1 y); with ``reciprocal`` it is a matrix of its own, m = 2 ``n_relations``.

    Args:
        entities: How many there are.
        relations: How many there are.
        signature: The signs of J: any size and order, q of at least 1. The paper has p = q = 18.
        alpha: The radius of U.
        delta: The margin.
        reciprocal: Whether the other direction of a relation has its own matrix.
        spread: Standard deviation of the random start of ``points`` around one point.
        rotate: Whether the relations start at random rotations of the positive coordinates, not at I. At I every entity
            is its own best answer, and training takes long to leave that.
        seed: Of the random start.
        dtype: float64 by default, or float32.
        device: Of the parameters.
    """

    signs: Tensor
    plus: Tensor
    minus: Tensor

    def __init__(
        self,
        entities: int,
        relations: int,
        *,
        signature: Signature = SIGNATURE,
        alpha: float = 1.0,
        delta: float = 5.0,
        reciprocal: bool = False,
        spread: float = SPREAD,
        rotate: bool = True,
        seed: int = 0,
        dtype: torch.dtype = torch.float64,
        device: Any = None,
    ) -> None:
        super().__init__()
        self.n_entities = whole_number(entities, "entities", 2)
        self.n_relations = whole_number(relations, "relations", 1)
        self.signature = check_signature(signature)
        check_q(signature)
        check_dtype(dtype)
        self.alpha = check_square(alpha, "alpha", dtype)
        check_square(spread, "spread", dtype)
        self.delta = real_number(
            delta, "delta", "a number", lambda number: math.isfinite(rounded_to(dtype, number))
        )
        for name, flag in (("reciprocal", reciprocal), ("rotate", rotate)):
            check_flag(flag, name)
        self.reciprocal = bool(reciprocal)
        seed = seed_number(seed)
        check_device(device)
        self.points = torch.nn.Parameter(
            start_points(self.n_entities, signature, spread, seed).to(device, dtype)
        )
        self.bias = torch.nn.Parameter(torch.zeros(self.n_entities, dtype=dtype, device=device))
        matrices = self.n_relations * (1 + self.reciprocal)
        self.relations = torch.nn.Parameter(
            start_relations(matrices, signature, rotate, seed).to(device, dtype)
        )
        plus, minus = signature.positions(self.points.device)
        self.register_buffer("signs", signature.vector(self.points), persistent=False)
        self.register_buffer("plus", plus, persistent=False)
        self.register_buffer("minus", minus, persistent=False)

    def embeddings(self, entities: Tensor | None = None) -> Tensor:
        """The points E (..., n) of U of some entities (...), of all by default."""
        points = self.points if entities is None else _read(self.points, entities)
        return lift_at(points, self.plus, self.minus, self.alpha)

    def matrices(self) -> Tensor:
        """The J-orthogonal matrix of every code: (2 n_relations, n, n)."""
        R: Tensor = self.relations
        if self.reciprocal:
            return R
        return torch.cat([R, self.signs[:, None] * R.mT * self.signs])

    def read(self, *groups: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Points E (..., n) and biases (...) of several groups (...) of entities.

        The tables are read once, so that their gradients are summed once too.
        """
        every = torch.cat([group.reshape(-1) for group in groups])
        sizes = [group.numel() for group in groups]
        points, biases = (
            torch.split(table, sizes) for table in (self.embeddings(every), _read(self.bias, every))
        )
        found = zip(groups, points, biases, strict=True)
        n = self.signature.n
        return [(E.reshape(*group.shape, n), bias.reshape(group.shape)) for group, E, bias in found]

    def move(self, points: Tensor, code: Tensor) -> Tensor:
        """Where the answers of queries should lie: R E (..., n), with the ``points`` E (..., n) of their anchors."""
        moved: Tensor = (_read(self.matrices(), code) @ points[..., None]).squeeze(-1)
        return moved

    def score_points(
        self, moved: Tensor, anchor_bias: Tensor, candidates: Tensor, bias: Tensor
    ) -> Tensor:
        """Scores (B, k) of what `move` gives with the points (k, n) or (B, k, n) of candidates and their biases.

        With candidates common to the batch it is one matrix product <R E_anchor, E>_J.
        """
        signed = moved * (self.signs / self.alpha**2)
        g = (
            (candidates @ signed[..., None]).squeeze(-1)
            if candidates.ndim == 3
            else signed @ candidates.mT
        )
        return self._score(g, anchor_bias[:, None], bias)

    def score_queries(
        self, anchor: Tensor, code: Tensor, candidates: Tensor | None = None
    ) -> Tensor:
        """Scores (B, k) of the queries (B,) with ``candidates`` (k,) or (B, k), all entities by default."""
        self._check_queries(anchor, "anchor", code, "code", 2 * self.n_relations)
        if candidates is not None:
            check_indices(candidates, "candidates", self.n_entities, self.points.device)
        return self._query_scores(anchor, code, candidates)

    def _query_scores(self, anchor: Tensor, code: Tensor, candidates: Tensor | None) -> Tensor:
        points, anchor_bias = self.embeddings(anchor), _read(self.bias, anchor)
        bias = self.bias if candidates is None else _read(self.bias, candidates)
        return self.score_points(
            self.move(points, code), anchor_bias, self.embeddings(candidates), bias
        )

    def score_tails(self, head: Tensor, relation: Tensor) -> Tensor:
        """Scores (B, entities) of (head, relation, ?) for every entity as the tail."""
        self._check_queries(head, "head", relation, "relation", self.n_relations)
        return self._query_scores(head, relation, None)

    def score_heads(self, relation: Tensor, tail: Tensor) -> Tensor:
        """Scores (B, entities) of (?, relation, tail) for every entity as the head."""
        self._check_queries(tail, "tail", relation, "relation", self.n_relations)
        return self._query_scores(tail, relation + self.n_relations, None)

    def _check_queries(
        self, anchor: Tensor, name: str, code: Tensor, code_name: str, codes: int
    ) -> None:
        """An error unless both are numbers (B,) in their range."""
        check_indices(anchor, name, self.n_entities, self.points.device)
        check_indices(code, code_name, codes, self.points.device)
        for value, called in ((anchor, name), (code, code_name)):
            if value.ndim != 1:
                raise ValueError(f"{called} must have shape (B,), got {describe(value)}")
        if len(anchor) != len(code):
            raise ValueError(
                f"{name} and {code_name} must be as many, got {len(anchor)} and {len(code)}"
            )

    def forward(self, triples: Tensor) -> Tensor:
        """Scores (...) of triples (..., 3); relation codes count too, read as (anchor, code, answer)."""
        check_indices(
            triples, "triples", max(self.n_entities, 2 * self.n_relations), self.points.device
        )
        if triples.ndim < 1 or triples.shape[-1] != 3:
            raise ValueError(f"triples must have shape (..., 3), got {describe(triples)}")
        anchor, code, answer = triples.unbind(-1)
        check_indices(triples[..., ::2], "entities of triples", self.n_entities, self.points.device)
        check_indices(code, "relations of triples", 2 * self.n_relations, self.points.device)
        (x, anchor_bias), (y, answer_bias) = self.read(anchor, answer)
        g = (self.move(x, code) * (self.signs / self.alpha**2) * y).sum(-1)
        return self._score(g, anchor_bias, answer_bias)

    def extra_repr(self) -> str:
        """Sizes and geometry."""
        return (
            f"{self.n_entities} entities, {self.n_relations} relations, {self.signature}, alpha={self.alpha:g}, "
            f"delta={self.delta:g}, reciprocal={self.reciprocal}"
        )

    def _score(self, g: Tensor, anchor_bias: Tensor, answer_bias: Tensor) -> Tensor:
        """The scores of points with <R E_anchor, E_answer>_J = alpha^2 g."""
        return (
            torch.sub(anchor_bias + self.delta, squared_arc(g), alpha=self.alpha**2) + answer_bias
        )


def _read(table: Tensor, index: Tensor) -> Tensor:
    """``table[index]``, whose gradient is summed as it comes, not sorted first."""
    return table.index_select(0, index.reshape(-1)).reshape(*index.shape, *table.shape[1:])


def check_q(signature: Signature) -> None:
    """A ValueError for a signature without a pseudo-hyperboloid."""
    if signature.q == 0:
        raise ValueError(
            f"signature must have q of at least 1 for points with <x, x> = -alpha^2, got {signature}"
        )


def start_points(entities: int, signature: Signature, spread: float, seed: int) -> Tensor:
    """Free numbers (entities, n) around the point with one negative coordinate 1 and zeros elsewhere."""
    points = float(spread) * torch.from_numpy(
        generator(seed).standard_normal((entities, signature.n))
    )
    points[:, int(signature.negative[0])] += 1.0
    return points


def start_relations(count: int, signature: Signature, rotate: bool, seed: int) -> Tensor:
    """J-orthogonal matrices (count, n, n): random rotations of the positive coordinates, or I."""
    start = torch.eye(signature.n, dtype=torch.float64).repeat(count, 1, 1)
    if rotate and signature.p:
        random = np.random.default_rng([seed, 1])  # another stream than that of the points
        rotations = random_point(Signature(signature.p, 0), batch=(count,), seed=random)
        plus = torch.tensor(signature.positive)
        start[:, plus[:, None], plus] = torch.as_tensor(rotations)
    return start
