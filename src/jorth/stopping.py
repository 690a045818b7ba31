"""Stopping criteria for `jorth.minimize`: they combine with | (either) and & (both)."""

from jorth.solvers.loop.stopping import (
    BlockStationary,
    Criterion,
    GradientNorm,
    MaxIterations,
    MaxTime,
    NormAbove,
    RelativeDecrease,
    ValueBelow,
)

__all__ = [
    "BlockStationary",
    "Criterion",
    "GradientNorm",
    "MaxIterations",
    "MaxTime",
    "NormAbove",
    "RelativeDecrease",
    "ValueBelow",
]
