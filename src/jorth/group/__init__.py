"""The group O(p, q) = {X : X^T J X = J}: how to inspect, draw, move and repair its elements."""

from jorth.group.elements import component, exchange, inverse, residual
from jorth.group.exp_log import cayley, exp, log
from jorth.group.geodesics import distance, mean, transport
from jorth.group.gradient import riemannian_gradient
from jorth.group.polish import PolishError, polish
from jorth.group.sampling import random_point
from jorth.group.time_column import OtherTimeWarning

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
    "polish",
    "random_point",
    "residual",
    "riemannian_gradient",
    "transport",
]
