"""Typed states: where a run stands."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from torch import Tensor

from jorth.storage.checkpoint import NOT_SAVED


class Scored(NamedTuple):
    """A feasible point with its value and gradient, and the violation it had before polishing."""

    X: Tensor
    value: float
    gradient: Tensor
    violation: float


@dataclass
class State:
    """Where a run stands. A solver with a memory of its own adds typed fields in a subclass.

    X changes in place. It is feasible at any moment, unless the solver says that it is not.
    ``value`` and ``gradient`` are those of f at X when ``exact``; a stochastic solver has estimates
    in between. A checkpoint holds all fields but those marked `NOT_SAVED`.
    """

    X: Tensor
    value: float
    gradient: Tensor
    exact: bool = True
    unbounded: bool = False
    stalled: bool = False
    reason: str = "no step lowers f in this precision"
    """Why the run stalled, when it did."""
    curvature: float | None = None
    """The estimate of the Lipschitz constant of the gradient, if the solver keeps one."""
    scored: Scored | None = field(default=None, metadata=NOT_SAVED)
    """The polished X and f there, for a method that leaves the constraint; None if it has none."""
    complete: bool = field(default=True, metadata=NOT_SAVED)
    """False in the middle of an iteration: such a state is not saved."""
    numbers: dict[str, float] = field(default_factory=dict)
    tensors: dict[str, Tensor] = field(default_factory=dict)
    cache: dict[str, Any] = field(default_factory=dict, metadata=NOT_SAVED)
