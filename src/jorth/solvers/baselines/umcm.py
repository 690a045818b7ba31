"""UMCM: unconstrained steps on an augmented Lagrangian with a multiplier Lambda(X)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from jorth._checkpoint import NOT_SAVED
from jorth._inputs import check_auto, frobenius
from jorth.group import component
from jorth.group.gradient import symmetric_multiplier
from jorth.solvers.baselines.infeasible import InfeasibleState
from jorth.solvers.problem import AbstractSolver, Problem, Status, StopRun, all_finite
from jorth.solvers.riemannian.line_search import RunningMean

ARMIJO = 1e-4
SHRINK = 0.3
TRIALS = 40
TUBE = 0.9
"""The bound on ||C||_F within which X has a J-orthogonal factor and regular diagonal blocks."""
FAR = 0.2
"""If X gets no better while ||C||_F is above this, the penalty is too low."""
TRIALS_OFF_CONSTRAINT = 12
"""The number of trials off the constraint, where -D need not be a descent direction."""
TRIALS_OUTSIDE = 6
"""After so many trials outside the tube the penalty is too low."""
RAISE = 3.0
"""The factor on the penalty when no step is found."""


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
class CorrectionState(InfeasibleState):
    """The state of `UMCM`: the penalty, the step length and the reference of the line search."""

    beta: float = 1.0
    step: float = 1.0
    steps: int = 0
    """Steps since X was last on the constraint."""
    mean: RunningMean = field(default_factory=lambda: RunningMean(0.0))
    here: _Point | None = field(default=None, metadata=NOT_SAVED)


@dataclass(frozen=True, kw_only=True)
class UMCM(AbstractSolver):
    """UMCM: a penalty and the multiplier Lambda(X) = sym(J X^T G) hold X near the constraint.

    Steps are along -D(X), D(X) = G - J X Lambda(X) + beta J X C with C = X^T J X - J. The two
    lengths of Barzilai and Borwein alternate, with a non-monotone line search (Zhang and Hager) on
    the augmented Lagrangian f - <Lambda(X), C> / 2 + beta ||C||^2 / 4. Trials outside the tube
    ||C||_F <= 0.9 are refused: inside it X has a J-orthogonal factor, which the loop scores and
    returns. Trials in the tube around another component are refused too.

    Args:
        beta: The penalty; "auto" starts from the Lipschitz constant of the gradient, or from
            ||G|| / ||X|| if the objective knows none. If no step is found, X is reset to its
            J-orthogonal factor; if it gets no better far from the constraint, to the best such
            factor so far. In both cases "auto" triples the penalty.
    """

    beta: float | Literal["auto"] = "auto"
    name = "umcm"
    state_type = CorrectionState
    feasible = False
    thin = False

    def __post_init__(self) -> None:
        check_auto(self.beta, "beta")

    def init(self, problem: Problem, X: Tensor) -> CorrectionState:
        state: CorrectionState = super().init(problem, X)
        guess = problem.objective.curvature() or frobenius(state.gradient) / frobenius(X) or 1.0
        state.beta = guess if self.beta == "auto" else problem.objective.in_unit(float(self.beta))
        self._restart(problem, state)
        return state

    def step(self, problem: Problem, state: CorrectionState) -> None:
        """One Barzilai-Borwein step, or a step back onto the constraint if none is found."""
        here = state.here or _point_at(problem, state.X, state.value, state.gradient)
        state.here = None
        if state.is_lost(problem.signs) and float(here.C.norm()) > FAR:
            state.go_to_best()
            self._raise_penalty(problem, state)
            here = _point_at(problem, state.X, state.value, state.gradient)
        D = here.direction(state.beta)
        trial = self._search(problem, state, D)
        if trial is None:
            self._reset_or_stall(problem, state)
            return
        moved = trial.X - state.X
        bent = trial.direction(state.beta) - D
        state.step = _barzilai_borwein(moved, bent, long=state.steps % 2 == 0) or state.step
        state.steps += 1
        state.mean.add(trial.merit(state.beta))
        state.move_to(trial.X, trial.value, trial.gradient)
        state.here = trial

    def _reset_or_stall(self, problem: Problem, state: CorrectionState) -> None:
        """Try again from the J-orthogonal factor of X, where f falls along -D, unless this is X."""
        if state.steps == 0:
            state.stalled = True
            state.reason = "no step lowers the augmented Lagrangian in this precision"
            return
        point = state.scored
        if point is None:
            state.go_to_best()
        else:
            state.move_to(point.X, point.value, point.gradient)
        self._raise_penalty(problem, state)

    def _raise_penalty(self, problem: Problem, state: CorrectionState) -> None:
        if self.beta == "auto":
            state.beta *= RAISE
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
        slope = float(D.square().sum())
        reference = state.mean.value
        t = state.step
        finite = True
        outside = 0
        on_constraint = state.steps == 0
        for _ in range(TRIALS if on_constraint else TRIALS_OFF_CONSTRAINT):
            X = state.X - t * D
            value, gradient = problem.objective.value_and_gradient(X)
            finite = all_finite(value, gradient)
            trial = _point_at(problem, X, value, gradient)
            inside = finite and float(trial.C.norm()) <= TUBE
            inside = inside and _same_component(problem, state.X, X)
            outside += finite and not inside
            if outside == TRIALS_OUTSIDE and not on_constraint:
                return None
            # any step is good enough within the rounding of the merit
            slack = 100 * torch.finfo(D.dtype).eps * (abs(reference) + abs(value))
            if inside and trial.merit(state.beta) <= reference - ARMIJO * t * slope + slack:
                return trial
            t *= SHRINK
        if not finite:
            raise StopRun(Status.NON_FINITE)
        return None


def _same_component(problem: Problem, X: Tensor, Y: Tensor) -> bool:
    """Whether two points of the tube belong to the same component.

    Between components det X[+,+] or det X[-,-] changes its sign. In the tube such a block B has
    B^T B >= (1 - 0.9) I, so that the distance is more than twice the root of 1 - 0.9.
    """
    if float((X - Y).norm()) < 2 * (1 - TUBE) ** 0.5:
        return True
    return bool(component(X, problem.signature) == component(Y, problem.signature))


def _point_at(problem: Problem, X: Tensor, value: float, gradient: Tensor) -> _Point:
    s = problem.signs
    JX = s[:, None] * X
    C = X.mT @ JX - torch.diag(s)
    return _Point(X, value, gradient, C, JX, symmetric_multiplier(X, gradient, s))


def _barzilai_borwein(moved: Tensor, bent: Tensor, *, long: bool) -> float:
    """<s, s> / |<s, y>| or |<s, y>| / <y, y>, at any scale of f; 0 if X or D has not changed."""
    s, y = frobenius(moved), frobenius(bent)
    if s == 0 or y == 0:
        return 0.0
    cosine = max(abs(float((moved / s * (bent / y)).sum())), 1e-10)
    return s / y / cosine if long else s / y * cosine
