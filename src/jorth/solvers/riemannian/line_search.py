"""A line search along the Cayley retraction that never crosses its pole."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from jorth._inputs import frobenius
from jorth.group.exp_log import cayley_step
from jorth.group.gradient import skew_gradient
from jorth.solvers.problem import Problem, State, Status, StopRun, all_finite

NEWTON_ARMIJO = 0.1
"""The share of the expected decrease that Newton's method asks for: an exact model gives 0.5."""
TRIALS = 50
REFINEMENTS = 3
LARGEST_SLOPE = 0.9
"""The bound on the slope, relative to the first, if the decrease is lost in rounding."""
LONGEST = 1.4
"""The bound on the norm of the boost part of a step; the Cayley transform has its pole at 2."""
AVERAGING = 0.85
"""The weight of the past in a `RunningMean`."""


def inner(a: Tensor, b: Tensor) -> float:
    """Return <a, b>_F."""
    return float(torch.dot(a.flatten(), b.flatten()))


@dataclass
class RunningMean:
    """The reference value of a non-monotone search (Zhang and Hager, SIAM J. Optim. 14, 2004)."""

    value: float
    weight: float = 1.0

    def add(self, value: float) -> None:
        past = AVERAGING * self.weight
        self.weight = past + 1
        self.value = (past * self.value + value) / self.weight


@dataclass
class Line:
    """A direction at X, the gradient g in S there, and the slope <g, direction>."""

    g: Tensor
    direction: Tensor
    slope: float = field(init=False)

    def __post_init__(self) -> None:
        self.slope = inner(self.g, self.direction)


@dataclass
class Trial:
    """The point R(J S) X with S = t times the direction, f and its gradients there."""

    t: float
    S: Tensor
    X: Tensor
    value: float
    gradient: Tensor
    g: Tensor


def search(
    problem: Problem,
    state: State,
    line: Line,
    *,
    first: float = 1.0,
    reference: float | None = None,
    flatten: float | None = None,
    armijo: float = 1e-4,
) -> Trial | None:
    """Backtrack from ``first`` until f is far enough below ``reference`` (f at X when None).

    With ``flatten`` the slope must also fall to this fraction of itself (the strong Wolfe
    condition); a few secant steps try for it, and the best point found is returned. The result is
    None if no step decreases f.
    """
    size = max(abs(state.value), frobenius(state.gradient) * frobenius(state.X))
    rounding = torch.finfo(state.X.dtype).eps * size
    level = state.value if reference is None else reference
    slope = line.slope
    longest = LONGEST / max(boost_norm(problem.signs, line.direction), 1e-300)
    t = min(first, longest)
    best: Trial | None = None
    refined = 0
    finite = True
    for _ in range(TRIALS):
        S = t * line.direction
        X = cayley_step(problem.signs[:, None] * S, state.X).contiguous()
        value, gradient = problem.objective.value_and_gradient(X)
        trial = Trial(t, S, X, value, gradient, skew_gradient(X, gradient, problem.signs))
        finite = all_finite(value, gradient)
        new_slope = inner(trial.g, line.direction) if finite else math.nan
        flat = abs(t * slope) < 100 * rounding
        if flat:  # slopes decide, by the approximate Wolfe condition of Hager and Zhang
            flatter = abs(new_slope) <= LARGEST_SLOPE * abs(slope)
            accepted = trial.value <= state.value + 10 * rounding and flatter
        else:
            accepted = finite and trial.value <= level + armijo * t * slope
        if accepted and (best is None or trial.value < best.value):
            best = trial
        if best is None:
            shorter = _shorter(t, state.value, slope, trial.value)
            t = _secant(t, slope, new_slope) if flat else shorter
            continue
        steep = flatten is not None and not abs(new_slope) <= flatten * abs(slope)
        if not steep or flat or not finite or refined == REFINEMENTS:
            return best
        t = min(_secant(t, slope, new_slope), longest)
        refined += 1
        if t == trial.t:  # this is the longest step already
            return best
    if best is None and not finite:
        raise StopRun(Status.NON_FINITE)
    return best


def _shorter(t: float, value: float, slope: float, found: float) -> float:
    """The minimiser of the parabola through f, its slope and f at t, in [t/10, t/2]."""
    excess = found - value - t * slope
    best = -slope * t * t / (2 * excess) if excess > 0 and math.isfinite(excess) else t / 2
    return min(max(best, t / 10), t / 2)


def _secant(t: float, slope: float, new_slope: float) -> float:
    """The zero of the linear slope through both, in [t/10, 10 t]; t/2 if the new one is NaN."""
    if not math.isfinite(new_slope):
        return t / 2
    rise = new_slope - slope
    return min(max(-slope * t / rise, t / 10), 10 * t) if rise > 0 else 10 * t


def boost_norm(signs: Tensor, S: Tensor) -> float:
    """Return a bound on ||B||_2 for B = S[+,-]: ||B||_F, or if large ||(B B^T)^4||_F^(1/8)."""
    both = torch.where(signs[:, None] != signs, S, 0.0)  # B and -B^T
    size = float(both.norm()) / math.sqrt(2)
    if size <= LONGEST:
        return size
    square = (both / size) @ (both / size)
    fourth = square @ square
    return size * math.pow(float((fourth @ fourth).norm()) / math.sqrt(2), 0.125)
