"""ADMM: the constraint split over two copies of X."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from jorth._inputs import frobenius, unit_roundoff
from jorth.group.gradient import gradient_norm, symmetric_multiplier
from jorth.objectives.quadratic import is_semidefinite
from jorth.solvers.problem import (
    AbstractSolver,
    Problem,
    ScoredPoint,
    State,
    Status,
    StopRun,
    all_finite,
)
from jorth.solvers.stopping import Improvement

EQUALITY = 0.1
"""The penalty of X = Y relative to that of X^T J Y = J."""


@dataclass
class SplitState(State):
    """The state of `ADMM`: the copy Y of X and the scaled multipliers U and W, all (n, n)."""

    Y: Tensor = field(default_factory=lambda: torch.empty(0))
    U: Tensor = field(default_factory=lambda: torch.empty(0))
    W: Tensor = field(default_factory=lambda: torch.empty(0))
    curvature: float = 1.0
    penalty: float = 1.0
    """That of the constraints, in units of the curvature."""
    steps: int = 0
    """Steps since the start, or since the method last went back."""
    best: ScoredPoint | None = None
    """The polished point with the lowest value so far."""
    improvement: Improvement = field(default_factory=Improvement)

    def is_lost(self, signs: Tensor, patience: int = 15) -> bool:
        """Return whether X cannot be polished or gets no better; to be called once per step."""
        point = self.scored
        if point is None:
            return self.best is not None
        if point.value < self.improvement.best_value:
            self.best = point
        norm = gradient_norm(point.X, point.gradient, signs)
        return self.improvement.update(point.value, norm, 2 * unit_roundoff(point.X)) >= patience


@dataclass(frozen=True, kw_only=True)
class ADMM(AbstractSolver):
    """The alternating direction method of multipliers on min f(X) subject to X = Y, X^T J Y = J.

    With scaled multipliers U, W and penalties rho = penalty L / 10 and sigma = penalty L, a step
    consists of two symmetric positive definite solves and an update:

        (H + rho I + sigma J Y Y^T J) X' = H X - G + rho (Y - U) + sigma J Y (J - W^T)
        (rho I + sigma J X' X'^T J) Y' = rho (X' + U) + sigma J X' (J - W)
        U += X' - Y',  W += X'^T J Y' - J

    H is the curvature of f: A for a convex quadratic f = 1/2 tr(X^T A X) + <C, X>, and L I
    otherwise, with L the Lipschitz constant or the largest secant so far. The loop polishes, scores
    and returns X, which may leave the component of the start. Where that fails, the method goes
    back to the best polished point, and the penalty, at first 1, grows fourfold.

    >>> sig = jorth.Signature(2, 1)
    >>> f, x0 = jorth.Quadratic(np.diag([1.0, 2.0, 3.0])), jorth.random_point(sig)
    >>> jorth.minimize(f, x0, signature=sig, method=jorth.ADMM()).residual < 1e-14
    True
    """

    name = "admm"
    state_type = SplitState
    feasible = False
    thin = False

    def init(self, problem: Problem, X: Tensor) -> SplitState:
        state: SplitState = super().init(problem, X)
        known = problem.objective.curvature()
        state.curvature = known or frobenius(state.gradient) / frobenius(X) or 1.0
        state.Y, state.U, state.W = X.clone(), torch.zeros_like(X), torch.zeros_like(X)
        return state

    def step(self, problem: Problem, state: SplitState) -> None:
        """Update X, Y and the multipliers, or go back to the best point if X is lost."""
        if state.is_lost(problem.signs):
            self._go_back(problem, state)
        found = self._solve_for_copies(problem, state)
        if found is None and state.steps > 0:
            self._go_back(problem, state)
            return
        if found is None:
            state.stalled = True
            state.reason = "the linear systems of a step are singular in this precision"
            return
        X, Y = found
        s = problem.signs
        apart = X - Y
        violation = X.mT @ (s[:, None] * Y) - torch.diag(s)
        value, gradient = problem.objective.value_and_gradient(X)
        if not all_finite(value, gradient):
            raise StopRun(Status.NON_FINITE)
        if problem.objective.curvature() is None:
            moved = float((X - state.X).norm())
            secant = frobenius(gradient - state.gradient) / moved if moved > 0 else 0.0
            if secant > state.curvature:  # multipliers are scaled by it
                state.U, state.W = (state.curvature / secant * M for M in (state.U, state.W))
                state.curvature = secant
        state.Y = Y
        state.U = state.U + apart
        state.W = state.W + violation
        state.move_to(X, value, gradient)
        state.steps += 1

    def _solve_for_copies(
        self, problem: Problem, state: SplitState
    ) -> tuple[Tensor, Tensor] | None:
        """Return X' and Y'; None if a system is not positive definite, as Y or X has diverged."""
        s = problem.signs
        Y, U, W = state.Y, state.U, state.W
        sigma = state.penalty * state.curvature
        rho = EQUALITY * sigma
        J = torch.diag(s)
        identity = torch.eye(len(s)).to(Y)
        form = problem.objective.quadratic()
        exact = form is not None and form.D is None and is_semidefinite(form.A)
        H = form.A.to(Y) if form is not None and exact else state.curvature * identity
        JY = s[:, None] * Y
        near = rho * (Y - U) + sigma * (JY @ (J - W.mT))
        X = _solve(H + rho * identity + sigma * (JY @ JY.mT), H @ state.X - state.gradient + near)
        if X is None:
            return None
        JX = s[:, None] * X
        other = _solve(
            rho * identity + sigma * (JX @ JX.mT), rho * (X + U) + sigma * (JX @ (J - W))
        )
        return None if other is None else (X, other)

    def _go_back(self, problem: Problem, state: SplitState) -> None:
        """Go to the best point, with fourfold penalty and W = -Lambda / (2 sigma)."""
        assert state.best is not None
        state.improvement.idle = 0
        state.move_to(state.best.X, state.best.value, state.best.gradient)
        state.penalty *= 4
        sigma = state.penalty * state.curvature
        state.Y = state.X.clone()
        state.W = -symmetric_multiplier(state.X, state.gradient, problem.signs) / (2 * sigma)
        state.U = problem.signs[:, None] * (state.X @ state.W) / EQUALITY
        state.steps = 0


def _solve(K: Tensor, right: Tensor) -> Tensor | None:
    """Return K^-1 right for a symmetric K; None if it is not positive definite."""
    factor, failed = torch.linalg.cholesky_ex(K)
    if bool(failed):
        return None
    # always the same memory layout, so that a resumed run rounds as this one does
    return torch.cholesky_solve(right, factor).contiguous()
