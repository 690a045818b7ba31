"""Riemannian L-BFGS."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from jorth.arrays import check_count, frobenius
from jorth.solvers.riemannian.base import RiemannianMethod, RiemannianState
from jorth.solvers.riemannian.line_search import Line, Trial, inner


@dataclass
class Pair:
    """A step and the change of the gradient along it."""

    step: Tensor
    change: Tensor


@dataclass
class Pairs:
    """The pairs that are kept, the newest first."""

    pairs: list[Pair]


@dataclass
class LBFGSState(RiemannianState):
    """The state of `RiemannianLBFGS`."""

    memory: Pairs | None = None

    @property
    def pairs(self) -> list[Pair]:
        """The pairs that are kept; none after a restart."""
        return [] if self.memory is None else self.memory.pairs


@dataclass(frozen=True, kw_only=True)
class RiemannianLBFGS(RiemannianMethod):
    """L-BFGS on O(p, q) with the right-invariant metric; it stays in the start's component.

    For a convex quadratic f = 1/2 tr(X^T A X) + <C, X> (`Procrustes`, `Quadratic` without D) the
    exact inverse of the main part of the curvature is the first metric. With it some tens of
    iterations suffice. It is not used far out, at condition numbers of X beyond 1e4.

    Args:
        memory: The number of pairs kept; None takes 3 with the preconditioner and 10 without.
        preconditioner: "auto" uses the inverse above where it exists; "none" does not.
    """

    memory: int | None = None
    name = "riemannian-lbfgs"
    state_type = LBFGSState
    flatten = 0.7  # a secant step follows where the full step was far from the minimum

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count(self.memory, "memory")

    def direction(self, state: LBFGSState, g: Tensor) -> Tensor:
        """Minus the inverse Hessian times g, by the two-loop recursion."""
        r = g.clone()
        weights = [1 / inner(pair.step, pair.change) for pair in state.pairs]
        coefficients = []
        for pair, weight in zip(state.pairs, weights, strict=True):
            coefficients.append(weight * inner(pair.step, r))
            r.sub_(pair.change, alpha=coefficients[-1])
        r = self.precondition(state, r)
        backwards = list(zip(state.pairs, weights, coefficients, strict=True))[::-1]
        for pair, weight, coefficient in backwards:
            r.add_(pair.step, alpha=coefficient - weight * inner(pair.change, r))
        return r.neg_()

    def precondition(self, state: LBFGSState, r: Tensor) -> Tensor:
        """The preconditioner, or a scalar from the last pair."""
        if state.preconditioner.basis is not None or not state.pairs:
            return super().precondition(state, r)
        last = state.pairs[0]
        return r * (inner(last.step, last.change) / inner(last.change, last.change))

    def first_step(self, state: LBFGSState, line: Line) -> float:
        """1 where the memory or the preconditioner gives the direction its scale."""
        return 1.0 if state.pairs else super().first_step(state, line)

    def remember(self, state: LBFGSState, line: Line, trial: Trial) -> Pairs | None:
        """One more pair if its curvature is positive."""
        pair = Pair(trial.S, trial.g - line.g)
        least = 1e-10 * frobenius(pair.step) * frobenius(pair.change)
        if inner(pair.step, pair.change) <= least:
            return state.memory
        size = self.memory or (10 if state.preconditioner.basis is None else 3)
        return Pairs([pair, *state.pairs[: size - 1]])
