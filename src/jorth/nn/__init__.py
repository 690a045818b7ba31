"""J-orthogonal parameters of torch modules: initialiser, layer, parametrisation."""

from jorth.nn import init
from jorth.nn.cs_parametrization import CSParametrization, cs_parametrization
from jorth.nn.linear import JOrthogonalLinear

__all__ = ["CSParametrization", "JOrthogonalLinear", "cs_parametrization", "init"]
