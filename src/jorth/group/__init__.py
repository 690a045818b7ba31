"""The group O(p, q) = {X : X^T J X = J}: how to inspect, draw, move and repair its elements."""

from jorth.group.elements import component, exchange, inverse, residual
from jorth.group.polishing import PolishError, polish
from jorth.group.retractions import cayley, exp
from jorth.group.sampling import random_point
from jorth.group.slopes import multiplier, riemannian_gradient
from jorth.group.time_column import OtherTimeWarning

__all__ = [
    "OtherTimeWarning",
    "PolishError",
    "cayley",
    "component",
    "exchange",
    "exp",
    "inverse",
    "multiplier",
    "polish",
    "random_point",
    "residual",
    "riemannian_gradient",
]
