"""Steps for a rough f, whose curvature along a step says nothing: averaged slopes, one angle, a way back.

A structural probe with q > 1 has a narrow peak for every pair of rows that passes |g| = 1. Its gradient at a point is
that of the nearest peaks, a curvature found there allows steps of their width only, and a rule that wants f to fall at
each step stops at the first of them. What goes on is the part of the slopes that many points share. The slopes
S = skew(J G X^T) belong to the same planes wherever X is, so they are averaged as they stand, divided by the root of
their mean square, and each plane turns by about the same angle. f may rise for a while; the best point is kept, and
after some points without a better one the walk starts again from there with half the angle.

Around a start f is flat but for its peaks, and often a little higher further out, before it falls: a walk that is
called back soon, and shortened, never gets there. So as long as f stays within a quarter of what it was at the start,
the walk has several times the patience, and when that runs out the angle is doubled instead, twice at most.

Angles go with 1 / sqrt(n): a step that turns every plane by a, this way or that, has a norm of about 2 a sqrt(n).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from jorth.group.slopes import skew_gradient
from jorth.solvers.jobcd.pair_steps import Proposal, oriented
from jorth.solvers.loop.problem import Problem
from jorth.solvers.loop.state import State
from jorth.solvers.loop.status import Status, StopRun

FLAT = 0.25
"""The part of |f| at the start within which a walk is still near it: the first fall is further, the peaks are not."""
LONGER = 4
"""Times the patience near the start."""
WIDENED = 2
"""How often the angle is doubled there."""


@dataclass(frozen=True)
class Averaging:
    """How a walk goes.

    Attributes:
        angle: By which a plane turns (rapidity of a boost) when its slope has been the same for long, at first.
        momentum: The decay of the mean slopes.
        decay: Of the mean squares.
        patience: Scored points without a better one before the walk goes back, once f has fallen.
    """

    angle: float
    momentum: float
    decay: float
    patience: int


def walk(
    problem: Problem,
    state: State,
    averaging: Averaging,
    sides: tuple[str, ...],
    propose: Callable[[Tensor, Tensor, float], Proposal],
) -> Tensor:
    """The next point: one step on the side whose turn it is, from the gradient or estimate that the state holds.

    ``propose`` (X, G, L) minimises <Y - X, G> + L/2 ||Y - X||^2 over Y. It is asked at X = I, so that lengths are
    measured by ||Y X^-1 - I||, in which steps do not shrink where X is large.
    """
    turn = int(state.numbers.get("turn", 0))
    state.numbers["turn"] = turn + 1
    state.numbers.setdefault("angle", averaging.angle)
    side = sides[turn % len(sides)]
    X, G = oriented(state.X, side), oriented(state.gradient, side)
    slopes = _averaged(state, side, skew_gradient(X, G, problem.signs), averaging)
    identity = torch.eye(len(X), dtype=X.dtype, device=X.device)
    proposal = propose(identity, problem.signs[:, None] * slopes, 1 / state.numbers["angle"])
    problem.objective.count.pair_updates += proposal.pairs
    moved = oriented(X + (proposal.X - identity) @ X, side)
    if not bool(torch.isfinite(moved).all()):
        raise StopRun(Status.NON_FINITE)
    return moved


def _averaged(state: State, side: str, S: Tensor, averaging: Averaging) -> Tensor:
    """Mean slopes over the roots of their mean squares, both corrected for their start at zero."""
    mean, square = (
        state.tensors.setdefault(f"{name} {side}", torch.zeros_like(S))
        for name in ("mean", "square")
    )
    state.numbers[f"steps {side}"] = count = state.numbers.get(f"steps {side}", 0.0) + 1
    mean.lerp_(S, 1 - averaging.momentum)
    square.lerp_(S.square(), 1 - averaging.decay)
    root = (square / (1 - averaging.decay**count)).sqrt()
    direction = mean / (1 - averaging.momentum**count) / root
    return torch.where(root > 0, direction, 0.0)


def keep_best(state: State, averaging: Averaging) -> None:
    """Remember a scored point that is the best so far; go back to it after some that are not."""
    numbers = state.numbers
    numbers.setdefault("start", state.value)
    if state.value < numbers.get("best", float("inf")):
        state.tensors["best X"], state.tensors["best gradient"] = (
            state.X.clone(),
            state.gradient.clone(),
        )
        numbers["best"], numbers["worse"] = state.value, 0.0
        return
    numbers["worse"] += 1
    flat = max(state.value, numbers["start"]) - numbers["best"] < FLAT * abs(numbers["start"])
    if numbers["worse"] < averaging.patience * (LONGER if flat else 1):
        return
    numbers["returns"] = numbers.get("returns", 0.0) + 1
    numbers["angle"] *= 2 if flat and numbers["returns"] <= WIDENED else 0.5
    _go_back(state)


def _go_back(state: State) -> None:
    """To the best point, with no memory of slopes."""
    state.X.copy_(state.tensors["best X"])
    state.value, state.gradient = state.numbers["best"], state.tensors["best gradient"].clone()
    state.numbers["worse"] = 0.0
    for name in [name for name in state.tensors if name.startswith(("mean ", "square "))]:
        state.tensors[name].zero_()
        state.numbers[f"steps {name.split()[1]}"] = 0.0


def best_of(state: State, last: State) -> State:
    """The best point of a walk, where the last one is not."""
    if not state.numbers.get("best", float("inf")) < last.value:
        return last
    return State(state.tensors["best X"], state.numbers["best"], state.tensors["best gradient"])
