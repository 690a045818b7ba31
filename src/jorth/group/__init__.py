"""The group O(p, q) = {X : X^T J X = J}: how to inspect, draw, move and repair its elements."""

from jorth.group.elements import component, exchange, inverse, residual
from jorth.group.geodesics import distance
from jorth.group.gradient import multiplier, riemannian_gradient
from jorth.group.logarithm import log
from jorth.group.means import mean
from jorth.group.polishing import PolishError, polish
from jorth.group.retractions import cayley, exp
from jorth.group.sampling import random_point
from jorth.group.time_column import OtherTimeWarning
from jorth.group.transports import transport

__all__ = [
    "OtherTimeWarning",
    "PolishError",
    "cayley",
    "component",
    "distance",
    "exchange",
    "exp",
    "inverse",
    "log",
    "mean",
    "multiplier",
    "polish",
    "random_point",
    "residual",
    "riemannian_gradient",
    "transport",
]
