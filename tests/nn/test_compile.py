"""torch.compile, torch.export and torch.func take whole layers: the same values and gradients."""

import copy

import pytest
import torch
import torch._dynamo as dynamo

from jorth import Signature
from jorth.nn import JOrthogonalLinear
from tests.nn.modules import KINDS, inputs, layer_of

kinds = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(autouse=True)
def fresh_compiler():
    dynamo.reset()
    yield
    dynamo.reset()


def value_and_gradients(call, layer, x):
    y = call(x)
    return y, *torch.autograd.grad(y.square().sum(), [x, *layer.parameters()])


def same(found, wanted):
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


@kinds
def test_forward_and_backward_are_one_graph(kind):
    layer = layer_of(kind)
    x = inputs(layer, 4).requires_grad_()
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    same(value_and_gradients(compiled, layer, x), value_and_gradients(layer, layer, x))


def test_a_signature_in_any_order_is_one_graph():
    """Many runs of signs are copied to the device and not filled there."""
    large = Signature.of([1, -1] * 4)
    layer = JOrthogonalLinear(large, Signature(2, 1), cond=3.0, dtype=torch.float64)
    x = inputs(layer, 4).requires_grad_()
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    same(value_and_gradients(compiled, layer, x), value_and_gradients(layer, layer, x))


@pytest.mark.parametrize("kind", ["square", "projection", "cs", "exponential embedding"])
def test_export_keeps_the_layer(kind):
    layer = layer_of(kind)
    samples = torch.export.Dim("samples", min=2)
    program = torch.export.export(layer, (inputs(layer, 4),), dynamic_shapes=({0: samples},))
    x = inputs(layer, 7, seed=1)
    same([program.module()(x)], [layer(x)])


# -- torch.func


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
    params, buffers = torch.func.stack_module_state(layers)
    call = lambda p, b, x: torch.func.functional_call(layers[0], (p, b), (x,))  # noqa: E731
    wanted = torch.stack([layer(one) for layer, one in zip(layers, x, strict=True)])
    same(torch.vmap(call)(params, buffers, x), wanted)
    with torch.no_grad():
        same(torch.vmap(call)(params, buffers, x), wanted)
    shared = torch.vmap(call, in_dims=(0, 0, None))(params, buffers, x[0])
    same(shared, torch.stack([layer(x[0]) for layer in layers]))
