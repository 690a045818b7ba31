"""Layers of every kind, as the tests of torch.compile and torch.func take them."""

import torch
from torch.nn.utils import parametrize

from jorth import Signature
from jorth.nn import (
    CSParametrization,
    JOrthogonalLinear,
    cs_parametrization,
    exponential_parametrization,
)

SMALL = Signature.of([1, -1, 1])
LARGE = Signature.of([-1, 1, 1, -1, 1])


def triangular(layer, name, signature):
    parametrize.register_parametrization(layer, name, CSParametrization(signature, triangular=True))
    return layer


KINDS = {
    "square": (LARGE, LARGE, None),
    "embedding": (SMALL, LARGE, None),
    "projection": (LARGE, SMALL, None),
    "cs": (LARGE, LARGE, cs_parametrization),
    "triangular cs": (LARGE, LARGE, triangular),
    "exponential": (LARGE, LARGE, exponential_parametrization),
    "exponential embedding": (SMALL, LARGE, exponential_parametrization),
    "exponential projection": (LARGE, SMALL, exponential_parametrization),
}


def layer_of(kind, *, batch=(), bias=True, seed=1):
    """A layer of a kind in float64, with a bias and free weights that are not zero."""
    signature, out_signature, parametrization = KINDS[kind]
    layer = JOrthogonalLinear(
        signature, out_signature, batch=batch, bias=bias, cond=4.0, seed=seed, dtype=torch.float64
    )
    if parametrization is not None:
        parametrization(layer, "weight", layer.signature)
    generator = torch.Generator().manual_seed(seed)
    for name, p in layer.named_parameters():
        if name != "weight":
            torch.nn.init.normal_(p, std=0.2, generator=generator)
    return layer


def inputs(layer, *sizes, seed=0):
    generator = torch.Generator().manual_seed(seed)
    shape = (*sizes, *layer.batch, layer.in_features)
    return torch.randn(shape, dtype=torch.float64, generator=generator)
