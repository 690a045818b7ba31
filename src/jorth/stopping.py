"""Stopping criteria for `jorth.minimize`, which combine with |."""

from jorth.solvers import Criterion as Criterion
from jorth.solvers import GradientNorm as GradientNorm
from jorth.solvers import NormAbove as NormAbove
from jorth.solvers import RelativeDecrease as RelativeDecrease
from jorth.solvers import RelativeGradient as RelativeGradient
from jorth.solvers import ValueBelow as ValueBelow

__all__ = [name for name in dir() if not name.startswith("_")]
