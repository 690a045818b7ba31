"""UMCM: unconstrained steps on an augmented Lagrangian with a multiplier Lambda(X)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from jorth._inputs import frobenius
from jorth.group import component
from jorth.group.gradient import symmetric_multiplier
from jorth.solvers.problem import AbstractSolver, Problem, State, Status, StopRun, all_finite
from jorth.solvers.riemannian.line_search import RunningMean

TUBE = 0.9
"""The bound on ||C||_F within which X has a J-orthogonal factor and regular diagonal blocks."""


class _Point(NamedTuple):
    """X, value and gradient there, the violation C = X^T J X - J, J X and Lambda."""

    X: Tensor
    value: float
    gradient: Tensor
    C: Tensor
    JX: Tensor
    multiplier: Tensor

    def direction(self, beta: float) -> Tensor:
        """G - J X (Lambda - beta C)."""
        return self.gradient - self.JX @ (self.multiplier - beta * self.C)

    def merit(self, beta: float) -> float:
        """The augmented Lagrangian f - <Lambda, C> / 2 + beta ||C||^2 / 4."""
        corrected = self.value - float((self.multiplier * self.C).sum()) / 2
        return corrected + beta * float(self.C.square().sum()) / 4


@dataclass
class CorrectionState(State):
    """The state of `UMCM`: the penalty, the step length and the reference of the line search."""

    beta: float = 1.0
    step: float = 1.0
    steps: int = 0
    """Steps since X was last on the constraint."""
    mean: RunningMean = field(default_factory=lambda: RunningMean(0.0))


@dataclass(frozen=True, kw_only=True)
class UMCM(AbstractSolver):
    """UMCM: a penalty and the multiplier Lambda(X) = sym(J X^T G) hold X near the constraint.

    Steps are along -D(X), D(X) = G - J X Lambda(X) + beta J X C with C = X^T J X - J, with the two
    lengths of Barzilai and Borwein in turn and a non-monotone line search (Zhang and Hager) on the
    augmented Lagrangian. Trials outside the tube ||C||_F <= 0.9, inside which X has a J-orthogonal
    factor, and those in the tube around another component are refused.

    beta is at first the Lipschitz constant of the gradient, or ||G|| / ||X|| if the objective knows
    none. If no step is found, X is reset to its J-orthogonal factor, and beta is tripled.

    >>> sig = jorth.Signature(2, 1)
    >>> f, x0 = jorth.Quadratic(np.diag([1.0, 2.0, 3.0])), jorth.random_point(sig)
    >>> jorth.minimize(f, x0, signature=sig, method=jorth.UMCM()).residual < 1e-14
    True
    """

    name = "umcm"
    state_type = CorrectionState
    feasible = False
    thin = False

    def init(self, problem: Problem, X: Tensor) -> CorrectionState:
        state: CorrectionState = super().init(problem, X)
        known = problem.objective.curvature()
        state.beta = known or frobenius(state.gradient) / frobenius(X) or 1.0
        self._restart(problem, state)
        return state

    def step(self, problem: Problem, state: CorrectionState) -> None:
        """Take a Barzilai-Borwein step, or go back onto the constraint if none is found."""
        D = _point_at(problem, state.X, state.value, state.gradient).direction(state.beta)
        trial = self._search(problem, state, D)
        if trial is not None:
            change = trial.direction(state.beta) - D
            long = state.steps % 2 == 0
            state.step = _barzilai_borwein(trial.X - state.X, change, long=long) or state.step
            state.steps += 1
            state.mean.add(trial.merit(state.beta))
            state.move_to(trial.X, trial.value, trial.gradient)
            return
        # from the J-orthogonal factor f falls along -D, unless this is X
        factor = state.scored
        if state.steps == 0 or factor is None:
            state.stalled = True
            state.reason = "no step lowers the augmented Lagrangian in this precision"
            return
        state.move_to(factor.X, factor.value, factor.gradient)
        state.beta *= 3
        self._restart(problem, state)

    def _restart(self, problem: Problem, state: CorrectionState) -> None:
        """Start anew with the step length and the mean, for a new augmented Lagrangian."""
        here = _point_at(problem, state.X, state.value, state.gradient)
        size = frobenius(here.direction(state.beta))
        first = 0.1 * float(state.X.norm()) / size if size > 0 else 1.0
        state.step = min(first, 1 / (3 * state.beta))
        state.steps = 0
        state.mean = RunningMean(here.merit(state.beta))

    def _search(self, problem: Problem, state: CorrectionState, D: Tensor) -> _Point | None:
        """Return a point along -D in the tube with a lower merit than the mean of the past ones."""
        slope = float(D.square().sum())
        reference = state.mean.value
        t = state.step
        finite = True
        # off the constraint -D need not be a descent direction
        for _ in range(40 if state.steps == 0 else 12):
            X = state.X - t * D
            value, gradient = problem.objective.value_and_gradient(X)
            finite = all_finite(value, gradient)
            trial = _point_at(problem, X, value, gradient)
            inside = finite and float(trial.C.norm()) <= TUBE
            # any step is good enough within the rounding of the merit
            slack = 100 * torch.finfo(D.dtype).eps * (abs(reference) + abs(value))
            inside = inside and _same_component(problem, state.X, X)
            if inside and trial.merit(state.beta) <= reference - 1e-4 * t * slope + slack:
                return trial
            t *= 0.3
        if not finite:
            raise StopRun(Status.NON_FINITE)
        return None


def _same_component(problem: Problem, X: Tensor, Y: Tensor) -> bool:
    """Return whether two points of the tube are close, or have determinants of the same signs."""
    if float((X - Y).norm()) < 2 * (1 - TUBE) ** 0.5:
        return True
    return bool(component(X, problem.signature) == component(Y, problem.signature))


def _point_at(problem: Problem, X: Tensor, value: float, gradient: Tensor) -> _Point:
    s = problem.signs
    JX = s[:, None] * X
    C = X.mT @ JX - torch.diag(s)
    return _Point(X, value, gradient, C, JX, symmetric_multiplier(X, gradient, s))


def _barzilai_borwein(step: Tensor, change: Tensor, *, long: bool) -> float:
    """Return <s, s> / |<s, y>| or |<s, y>| / <y, y> at any scale of f; 0 if X or D stays."""
    s, y = frobenius(step), frobenius(change)
    if s == 0 or y == 0:
        return 0.0
    cosine = max(abs(float((step / s * (change / y)).sum())), 1e-10)
    return s / y / cosine if long else s / y * cosine
