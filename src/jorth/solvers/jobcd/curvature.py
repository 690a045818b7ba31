"""The curvature estimate L of a majorised step: where it starts, how it doubles and falls."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

from torch import Tensor

from jorth.arrays import check_auto, frobenius
from jorth.solvers.jobcd.pair_steps import Outcome, Proposal, accept
from jorth.solvers.loop.problem import Problem
from jorth.solvers.loop.state import State
from jorth.solvers.loop.status import Status, StopRun

Curvature = float | Literal["auto"]

DOUBLINGS = 60
RELAX = {0.9: 0.8, 0.5: 0.9, -math.inf: 1.0}
"""By which factor the estimate falls after a success, for the least part of the promised decrease that was met."""


def check_curvature(curvature: Curvature) -> None:
    """A ValueError unless the option is "auto" or a positive number."""
    check_auto(curvature, "curvature")


def first_curvature(problem: Problem, state: State, curvature: Curvature) -> None:
    """Set L once: the number given, the bound that the objective knows, or a guess that backtracking corrects."""
    if "curvature" in state.numbers:
        return
    if curvature != "auto":
        state.numbers["curvature"] = float(curvature)
        return
    bound = problem.objective.curvature()
    size = state.X.norm().item()
    guess = frobenius(state.gradient) / size if size else 1.0
    state.numbers["curvature"] = bound if bound else (guess or 1.0)


def majorised_step(
    problem: Problem,
    state: State,
    propose: Callable[[float], Proposal],
    *,
    side: str,
    adaptive: bool,
    key: str = "curvature",
    floor: float = 0.0,
    secant: bool = False,
) -> None:
    """Propose until f falls enough; double the estimate on failure, let it fall after a success.

    With ``secant`` the estimate after a success is the curvature that was met along the step.
    """
    before, outcome, value = state.numbers[key], Outcome.REFUSED, state.value
    X, G = state.X.clone(), state.gradient
    for _ in range(DOUBLINGS):
        estimate = state.numbers[key]
        proposal = propose(estimate)
        if proposal.unbounded and problem.ends_unbounded:
            state.unbounded = True
            return
        if (
            proposal.decrease <= 0
        ):  # every pair is at its best already, or the step has shrunk to nothing
            problem.objective.count.pair_updates += proposal.pairs
            break
        outcome = accept(problem, state, proposal, side, strict=adaptive)
        if outcome is Outcome.TAKEN:
            if adaptive:
                met = (value - state.value) / proposal.decrease
                fallen = estimate * next(factor for least, factor in RELAX.items() if met >= least)
                found = (
                    _secant(state, state.X - X, state.gradient - G, before) if secant else fallen
                )
                state.numbers[key] = max(found, floor)
            return
        if not adaptive:
            break
        state.numbers[key] = 2 * estimate
    else:
        state.stalled = True
    state.numbers[key] = before
    if outcome is Outcome.NOT_FINITE:
        raise StopRun(Status.NON_FINITE)


def _secant(state: State, moved: Tensor, bent: Tensor, before: float) -> float:
    """The curvature met along a step: <s, y> / <s, s> twice, then <y, y> / <s, y>; half of ``before`` if negative.

    These are the lengths of Barzilai and Borwein. The second alone is what a rough f shows at its sharpest.
    """
    far, size = float(moved.abs().max()), float(bent.abs().max())
    if not (0 < far < math.inf and 0 < size < math.inf):
        return before / 2
    s, y = (
        moved / far,
        bent / size,
    )  # the squares of a gradient may be beyond the range where it is not
    along = float((s * y).sum())
    if not along > 0:
        return before / 2
    state.numbers["secants"] = count = state.numbers.get("secants", 0.0) + 1
    return (
        size
        / far
        * (float(y.square().sum()) / along if count % 3 == 0 else along / float(s.square().sum()))
    )
