"""UMCM: an unconstrained iteration on the augmented Lagrangian whose multiplier is a function of X."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from jorth.arrays import check_auto, frobenius
from jorth.group import component
from jorth.group.slopes import symmetric_multiplier
from jorth.solvers.baselines import watch
from jorth.solvers.loop.budget import all_finite
from jorth.solvers.loop.problem import Problem
from jorth.solvers.loop.solver import AbstractSolver
from jorth.solvers.loop.state import State
from jorth.solvers.loop.status import Status, StopRun

ARMIJO = 1e-4
AVERAGING = 0.85
"""How much of the past the reference value of the non-monotone line search keeps."""
SHRINK = 0.3
TRIALS = 40
TUBE = 0.9
"""||J X^T J X - I||_F stays below this: there X has a J-orthogonal factor, and its diagonal blocks are regular."""
FAR = 0.2
"""Where X gets no better with ||C||_F above this, the penalty is too low: the merit falls there, f does not."""
FEW = 12
"""So many trials off the constraint: -D need not be a direction of descent there."""
OUTSIDE = 6
"""So many trials outside the tube, and X is at its wall: the penalty is too low."""
RAISE = 3.0
"""The factor by which the penalty grows when no step is found."""


@dataclass(frozen=True, kw_only=True)
class UMCM(AbstractSolver):
    """UMCM: X moves off the constraint, held near it by a penalty and by the multiplier Lambda(X) = sym(J X^T G).

    The step is along minus D(X) = G - J X Lambda(X) + beta J X C, C = X^T J X - J, with the lengths of Barzilai and
    Borwein in turn, and a non-monotone line search (Zhang and Hager) on the augmented Lagrangian
    f - <Lambda(X), C> / 2 + beta ||C||^2 / 4. Trials with ||C||_F > 0.9 are refused: inside that tube X has a
    J-orthogonal factor, which is what the loop scores and returns. A long step could leap into the tube around
    another component; such trials are refused too.

    Args:
        beta: The penalty; "auto" starts from the Lipschitz constant of the gradient, or from ||G|| / ||X|| where the
            objective knows none. Where no step is found X is set back to its J-orthogonal factor, where it gets no
            better far off the constraint to the best such factor so far, and "auto" raises the penalty threefold.
    """

    beta: float | Literal["auto"] = "auto"
    name = "umcm"
    feasible = False
    thin = False

    def __post_init__(self) -> None:
        check_auto(self.beta, "beta")

    def init(self, problem: Problem, X: Tensor) -> State:
        """The state at the start, with a first penalty."""
        state: State = super().init(problem, X)
        guess = problem.objective.curvature() or frobenius(state.gradient) / frobenius(X) or 1.0
        state.numbers["beta"] = guess if self.beta == "auto" else float(self.beta)
        self._restart(problem, state)
        return state

    def step(self, problem: Problem, state: State) -> None:
        """One Barzilai-Borwein step; a step back onto the constraint where none is found."""
        numbers = state.numbers
        here = state.cache.pop("here", None) or _look(problem, state.X, state.value, state.gradient)
        if watch.lost(state, problem.signs) and float(here.C.norm()) > FAR:
            self._set_back(problem, state, *watch.best(state))
            here = _look(problem, state.X, state.value, state.gradient)
        D = here.direction(numbers["beta"])
        trial = self._search(problem, state, D)
        if trial is None:
            self._give_up_or_set_back(problem, state)
            return
        moved, bent = trial.X - state.X, trial.direction(numbers["beta"]) - D
        numbers["step"] = (
            _barzilai_borwein(moved, bent, long=int(numbers["steps"]) % 2 == 0) or numbers["step"]
        )
        numbers["steps"] += 1
        weight = AVERAGING * numbers["weight"] + 1
        merit = trial.merit(numbers["beta"])
        numbers["reference"] = (
            AVERAGING * numbers["weight"] * numbers["reference"] + merit
        ) / weight
        numbers["weight"] = weight
        state.X.copy_(trial.X)
        state.value, state.gradient = trial.value, trial.gradient
        state.cache["here"] = trial

    def _give_up_or_set_back(self, problem: Problem, state: State) -> None:
        """Once more from the J-orthogonal factor of X, where -D is a direction of descent, unless X is that already."""
        if state.numbers["steps"] == 0:
            state.stalled, state.reason = (
                True,
                "no step lowers the augmented Lagrangian in this precision",
            )
            return
        self._set_back(problem, state, *(state.scored or watch.best(state))[:3])

    def _set_back(
        self, problem: Problem, state: State, X: Tensor, value: float, gradient: Tensor
    ) -> None:
        """Start again from a feasible point, with a higher penalty."""
        if self.beta == "auto":
            state.numbers["beta"] *= RAISE
        state.X.copy_(X)
        state.value, state.gradient = value, gradient
        self._restart(problem, state)

    def _restart(self, problem: Problem, state: State) -> None:
        """Forget lengths and means: the augmented Lagrangian is another one now."""
        here, beta = _look(problem, state.X, state.value, state.gradient), state.numbers["beta"]
        size = frobenius(here.direction(beta))
        first = 0.1 * float(state.X.norm()) / size if size > 0 else 1.0
        state.numbers.update(
            step=min(first, 1 / (3 * beta)), steps=0.0, reference=here.merit(beta), weight=1.0
        )

    def _search(self, problem: Problem, state: State, D: Tensor) -> _Point | None:
        beta, reference = state.numbers["beta"], state.numbers["reference"]
        slope, eps = float(D.square().sum()), torch.finfo(D.dtype).eps
        t, finite, outside = state.numbers["step"], True, 0
        at_the_factor = state.numbers["steps"] == 0
        for _ in range(TRIALS if at_the_factor else FEW):
            X = state.X - t * D
            value, gradient = problem.objective.value_and_gradient(X)
            finite = all_finite(value, gradient)
            trial = _look(problem, X, value, gradient)
            inside = finite and float(trial.C.norm()) <= TUBE and _same_part(problem, state.X, X)
            outside += finite and not inside
            if outside == OUTSIDE and not at_the_factor:
                return None
            if inside:
                slack = (
                    100 * eps * (abs(reference) + abs(value))
                )  # within rounding of the merit any step will do
                if trial.merit(beta) <= reference - ARMIJO * t * slope + slack:
                    return trial
            t *= SHRINK
        if not finite:
            raise StopRun(Status.NON_FINITE)
        return None


def _same_part(problem: Problem, X: Tensor, Y: Tensor) -> bool:
    """Whether two points of the tube belong to the same component.

    On the way to another one det X[+,+] or det X[-,-] changes its sign. Such a block B of a point of the tube has
    B^T B >= (1 - 0.9) I, from C: the way is longer than twice the root of that.
    """
    if float((X - Y).norm()) < 2 * (1 - TUBE) ** 0.5:
        return True
    return bool(component(X, problem.signature) == component(Y, problem.signature))


class _Point(NamedTuple):
    """X with value and gradient there, the violation C and J X, J X Lambda."""

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
        return (
            self.value
            - float((self.multiplier * self.C).sum()) / 2
            + beta * float(self.C.square().sum()) / 4
        )


def _look(problem: Problem, X: Tensor, value: float, gradient: Tensor) -> _Point:
    s = problem.signs
    JX = s[:, None] * X
    return _Point(
        X, value, gradient, X.mT @ JX - torch.diag(s), JX, symmetric_multiplier(X, gradient, s)
    )


def _barzilai_borwein(moved: Tensor, bent: Tensor, *, long: bool) -> float:
    """<s, s> / |<s, y>| or |<s, y>| / <y, y>, at any scale of f; 0 where X or D has not moved."""
    s, y = frobenius(moved), frobenius(bent)
    if s == 0 or y == 0:
        return 0.0
    cosine = max(abs(float((moved / s * (bent / y)).sum())), 1e-10)
    return s / y / cosine if long else s / y * cosine
