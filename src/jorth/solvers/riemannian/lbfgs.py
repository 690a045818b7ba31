"""Riemannian L-BFGS."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from jorth.arrays import check_count, frobenius
from jorth.solvers.loop.problem import Problem
from jorth.solvers.loop.state import State
from jorth.solvers.riemannian.base import RiemannianMethod
from jorth.solvers.riemannian.line_search import Trial, inner, search

FLATTEN = 0.7
"""A step after which the slope is steeper than this fraction of itself was too long or too short."""


@dataclass(frozen=True, kw_only=True)
class RiemannianLBFGS(RiemannianMethod):
    """L-BFGS on O(p, q) with the right-invariant metric and the Cayley retraction; it stays in the start's component.

    For a convex quadratic f = 1/2 tr(X^T A X) + <C, X> (`Procrustes`, `Quadratic` without D) the exact inverse of the
    main part of the curvature is the first metric. With it some tens of iterations suffice. Far out, at condition
    numbers of X beyond 1e4, it is not used.

    Args:
        memory: The number of pairs kept; None takes 3 with the preconditioner and 10 without.
        preconditioner: "auto" uses the inverse above where it exists; "none" does not.
    """

    memory: int | None = None
    name = "riemannian-lbfgs"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count(self.memory, "memory")

    def direction(self, state: State, g: Tensor) -> Tensor:
        """Minus the inverse Hessian times g, by the two-loop recursion."""
        r, loop = g.clone(), []
        for step, change in self._pairs(state):
            weight = 1 / inner(step, change)
            coefficient = weight * inner(step, r)
            r.sub_(change, alpha=coefficient)
            loop.append((step, change, weight, coefficient))
        r = self.scaled(state, r)
        for step, change, weight, coefficient in reversed(loop):
            r.add_(step, alpha=coefficient - weight * inner(change, r))
        return r.neg_()

    def scaled(self, state: State, r: Tensor) -> Tensor:
        """The preconditioner, or a scalar from the last pair."""
        kept = self._pairs(state)
        if state.cache.get("basis") is not None or not kept:
            return super().scaled(state, r)
        step, change = kept[0]
        return r * (inner(step, change) / inner(change, change))

    def search(
        self, problem: Problem, state: State, g: Tensor, direction: Tensor, slope: float
    ) -> Trial | None:
        """From the full step; a secant step where that was far from the minimum along the line."""
        return search(
            problem, state, g, direction, slope, first=self.first_step(state, g), flatten=FLATTEN
        )

    def first_step(self, state: State, g: Tensor) -> float:
        """1, where the memory or the preconditioner give the direction its scale."""
        return 1.0 if self.remembers(state) else super().first_step(state, g)

    def remember(
        self, state: State, g: Tensor, direction: Tensor, slope: float, trial: Trial
    ) -> None:
        """Keep a pair in the oldest slot, if its curvature is positive."""
        step, change = trial.S, trial.g - g
        if inner(step, change) <= 1e-10 * frobenius(step) * frobenius(change):
            return
        count, size = int(state.numbers.get("pairs", 0)), self._size(state)
        state.tensors[f"step {count % size}"] = step
        state.tensors[f"change {count % size}"] = change
        state.numbers["pairs"] = count + 1

    def remembers(self, state: State) -> bool:
        """Whether a pair is kept."""
        return bool(state.numbers.get("pairs"))

    def forget(self, state: State) -> None:
        """Drop all pairs."""
        state.numbers["pairs"] = 0

    def _size(self, state: State) -> int:
        return self.memory or (3 if state.cache.get("basis") is not None else 10)

    def _pairs(self, state: State) -> list[tuple[Tensor, Tensor]]:
        """The pairs that are kept, the newest first."""
        count, size = int(state.numbers.get("pairs", 0)), self._size(state)
        slots = [(count - 1 - back) % size for back in range(min(count, size))]
        return [(state.tensors[f"step {slot}"], state.tensors[f"change {slot}"]) for slot in slots]
