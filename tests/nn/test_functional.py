"""torch.func on layers and parametrisations: ensembles, gradients and Jacobians, against loops."""

import copy

import pytest
import torch
from torch.func import functional_call, stack_module_state, vmap

from tests.nn.modules import KINDS, inputs, layer_of

kinds = pytest.mark.parametrize("kind", KINDS)


def close(found, wanted):
    torch.testing.assert_close(found, wanted, rtol=1e-11, atol=1e-11)


def ensemble_of(kind, size, **options):
    """Layers of one class: copies, since `parametrize` makes a class for every module."""
    first = layer_of(kind, seed=0, **options)
    layers = [copy.deepcopy(first) for _ in range(size)]
    for seed, layer in enumerate(layers):
        layer.load_state_dict(layer_of(kind, seed=seed, **options).state_dict())
    return layers


@kinds
@pytest.mark.parametrize("batch", [(), (2,)])
def test_ensemble_is_a_loop_over_its_layers(kind, batch):
    layers = ensemble_of(kind, 3, batch=batch)
    x = inputs(layers[0], 3, 4)
    params, buffers = stack_module_state(layers)
    call = lambda p, b, x: functional_call(layers[0], (p, b), (x,))  # noqa: E731
    wanted = torch.stack([layer(one) for layer, one in zip(layers, x, strict=True)])
    close(vmap(call)(params, buffers, x), wanted)
    with torch.no_grad():
        close(vmap(call)(params, buffers, x), wanted)
    shared = vmap(call, in_dims=(0, 0, None))(params, buffers, x[0])
    close(shared, torch.stack([layer(x[0]) for layer in layers]))
