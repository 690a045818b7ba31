"""A watch over methods that leave the constraint: the best feasible point they passed, and when to go back to it."""

from __future__ import annotations

import math
from typing import NamedTuple

from torch import Tensor

from jorth.arrays import unit_roundoff
from jorth.group.slopes import gradient_norm
from jorth.solvers.loop.monitor import Progress
from jorth.solvers.loop.state import State

PATIENCE = 15
"""Steps without a better value or gradient norm at the polished point: the method has lost its way."""


class Best(NamedTuple):
    """The feasible point of the lowest value so far."""

    X: Tensor
    value: float
    gradient: Tensor


def lost(state: State, signs: Tensor) -> bool:
    """Whether X, as the loop scored it, cannot be polished or has been getting no better; remembers the best point."""
    point, numbers = state.scored, state.numbers
    if point is None:
        return "watch.value" in numbers
    progress = Progress(
        numbers.get("watch.value", math.inf),
        numbers.get("watch.gradient", math.inf),
        int(numbers.get("watch.idle", 0)),
    )
    if point.value < progress.best_value:
        state.tensors.update({"watch.X": point.X.clone(), "watch.gradient": point.gradient.clone()})
    progress.stalled(
        point.value, gradient_norm(point.X, point.gradient, signs), 2 * unit_roundoff(point.X)
    )
    numbers["watch.value"] = progress.best_value
    numbers["watch.gradient"] = progress.best_gradient
    numbers["watch.idle"] = float(progress.idle)
    return progress.idle >= PATIENCE


def best(state: State) -> Best:
    """Where to go back to; patience starts anew there."""
    state.numbers["watch.idle"] = 0.0
    return Best(
        state.tensors["watch.X"], state.numbers["watch.value"], state.tensors["watch.gradient"]
    )
