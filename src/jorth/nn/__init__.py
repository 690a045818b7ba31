"""J-orthogonal parameters of torch modules: an initialiser, a layer and parametrisations."""

from jorth.nn import init
from jorth.nn.declarations import declare
from jorth.nn.linear import JOrthogonalLinear
from jorth.nn.parametrizations import (
    CSParametrization,
    ExponentialParametrization,
    cs_parametrization,
    exponential_parametrization,
)

__all__ = [
    "CSParametrization",
    "ExponentialParametrization",
    "JOrthogonalLinear",
    "cs_parametrization",
    "declare",
    "exponential_parametrization",
    "init",
]
