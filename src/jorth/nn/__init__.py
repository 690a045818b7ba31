"""J-orthogonal parameters of torch modules: initialiser and parametrisations; hyperbolic layers."""

from jorth.nn import init
from jorth.nn.attention import LorentzAttention
from jorth.nn.centroid import LorentzCentroid
from jorth.nn.declarations import declare
from jorth.nn.embedding import LorentzEmbedding
from jorth.nn.hyperbolic_mlr import HyperbolicMLR
from jorth.nn.linear import JOrthogonalLinear
from jorth.nn.lorentz_linear import LorentzLinear
from jorth.nn.lorentz_space import LorentzSpace
from jorth.nn.parametrizations import CSParametrization as CSParametrization
from jorth.nn.parametrizations import ExponentialParametrization as ExponentialParametrization
from jorth.nn.parametrizations import cs_parametrization, exponential_parametrization
from jorth.nn.residual import LorentzResidual
from jorth.nn.transformer import LorentzTransformerLayer

__all__ = [
    "HyperbolicMLR",
    "JOrthogonalLinear",
    "LorentzAttention",
    "LorentzCentroid",
    "LorentzEmbedding",
    "LorentzLinear",
    "LorentzResidual",
    "LorentzSpace",
    "LorentzTransformerLayer",
    "cs_parametrization",
    "declare",
    "exponential_parametrization",
    "init",
]
