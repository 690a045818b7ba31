"""Riemannian L-BFGS."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor

from jorth._inputs import check_count, frobenius
from jorth.solvers.riemannian.base import RiemannianMethod, RiemannianState
from jorth.solvers.riemannian.line_search import Line, Trial, inner


@dataclass
class Pair:
    """A step and the change of the gradient along it."""

    step: Tensor
    change: Tensor
    curvature: float
    """<step, change>."""


@dataclass
class LBFGSState(RiemannianState):
    """The state of `RiemannianLBFGS`."""

    memory: list[Pair] = field(default_factory=list)
    """The last pairs, the newest first."""

    def forget(self) -> None:
        self.memory = []


@dataclass(frozen=True, kw_only=True)
class RiemannianLBFGS(RiemannianMethod):
    """L-BFGS on O(p, q) with the right-invariant metric, within the component of the start.

    For a convex quadratic f = 1/2 tr(X^T A X) + <C, X> (`Procrustes`, `Quadratic` without D) the
    preconditioner is the inverse of the main part of the curvature. A few tens of iterations are
    then enough. It is not used where the condition number of X is beyond 1e4.

    Args:
        memory: The number of pairs remembered; None takes 3 with the preconditioner, else 10.

    >>> sig = jorth.Signature(2, 1)
    >>> f, x0 = jorth.Quadratic(np.diag([1.0, 2.0, 3.0])), jorth.random_point(sig)
    >>> jorth.minimize(f, x0, signature=sig, method=jorth.RiemannianLBFGS(memory=5)).success
    True
    """

    memory: int | None = None
    name = "riemannian-lbfgs"
    state_type = LBFGSState
    flatten = 0.7  # a secant step follows if the full step ends far from the minimum

    def __post_init__(self) -> None:
        check_count(self.memory, "memory")

    def direction(self, state: LBFGSState, g: Tensor) -> Tensor:
        """Minus the inverse Hessian times g, by the two-loop recursion."""
        r = g.clone()
        along = []
        for pair in state.memory:
            along.append(inner(pair.step, r) / pair.curvature)
            r.sub_(pair.change, alpha=along[-1])
        r = self.precondition(state, r)
        for pair, before in zip(state.memory[::-1], along[::-1], strict=True):
            r.add_(pair.step, alpha=before - inner(pair.change, r) / pair.curvature)
        return r.neg_()

    def precondition(self, state: LBFGSState, r: Tensor) -> Tensor:
        """The preconditioner times r, or a scalar from the last pair times r."""
        if state.preconditioner.basis is not None or not state.memory:
            return super().precondition(state, r)
        last = state.memory[0]
        return r * (last.curvature / inner(last.change, last.change))

    def first_step(self, state: LBFGSState, line: Line) -> float:
        """1 if the memory or the preconditioner gives the direction its scale."""
        return 1.0 if state.memory else super().first_step(state, line)

    def remember(self, state: LBFGSState, line: Line, trial: Trial) -> list[Pair]:
        """Add the new pair if its curvature is positive."""
        change = trial.g - line.g
        curvature = inner(trial.S, change)
        if curvature <= 1e-10 * frobenius(trial.S) * frobenius(change):
            return state.memory
        size = self.memory or (10 if state.preconditioner.basis is None else 3)
        return [Pair(trial.S, change, curvature), *state.memory[: size - 1]]
