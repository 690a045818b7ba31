"""torch.func on layers and parametrisations: ensembles, gradients and Jacobians, against loops."""

import copy

import pytest
import torch
from torch.func import functional_call, grad, jacfwd, jacrev, jvp, stack_module_state, vmap

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


def loss_of(layer):
    def loss(state, x):
        return functional_call(layer, state, (x,)).square().sum()

    return loss


def state_of(layer):
    return {name: p.detach() for name, p in layer.named_parameters()}


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


@kinds
def test_gradients_of_an_ensemble_are_those_of_its_layers(kind):
    layers = ensemble_of(kind, 2)
    x = inputs(layers[0], 4)
    params, buffers = stack_module_state(layers)
    loss = lambda p, b: functional_call(layers[0], (p, b), (x,)).square().sum()  # noqa: E731
    found = vmap(grad(loss))(params, buffers)
    for position, layer in enumerate(layers):
        wanted = torch.autograd.grad(layer(x).square().sum(), list(layer.parameters()))
        for (name, _), gradient in zip(layer.named_parameters(), wanted, strict=True):
            close(found[name][position], gradient)


@kinds
def test_gradients_of_samples(kind):
    layer = layer_of(kind)
    x = inputs(layer, 4)
    found = vmap(grad(loss_of(layer)), in_dims=(None, 0))(state_of(layer), x)
    for position, sample in enumerate(x):
        wanted = torch.autograd.grad(layer(sample).square().sum(), list(layer.parameters()))
        for (name, _), gradient in zip(layer.named_parameters(), wanted, strict=True):
            close(found[name][position], gradient)


@kinds
def test_jacobians_in_the_weights(kind):
    """Forward and reverse mode agree with one gradient after the other."""
    layer = layer_of(kind)
    x = inputs(layer)
    call = lambda state: functional_call(layer, state, (x,))  # noqa: E731
    reverse, forward = jacrev(call)(state_of(layer)), jacfwd(call)(state_of(layer))
    rows = [
        torch.autograd.grad(entry, list(layer.parameters()), retain_graph=True)
        for entry in layer(x)
    ]
    for (name, _), wanted in zip(layer.named_parameters(), zip(*rows, strict=True), strict=True):
        close(reverse[name], torch.stack(wanted))
        close(forward[name], torch.stack(wanted))


@kinds
def test_derivative_in_a_direction(kind):
    """A jvp is the central difference, to its error of h^2."""
    layer = layer_of(kind)
    x, state = inputs(layer), state_of(layer)
    generator = torch.Generator().manual_seed(2)
    change = {
        name: torch.randn(p.shape, dtype=p.dtype, generator=generator) for name, p in state.items()
    }
    call = lambda state: functional_call(layer, state, (x,))  # noqa: E731
    _, found = jvp(call, (state,), (change,))
    h = 1e-5
    ahead, behind = (
        call({name: p + sign * h * change[name] for name, p in state.items()}) for sign in (1, -1)
    )
    torch.testing.assert_close(found, (ahead - behind) / (2 * h), rtol=1e-6, atol=1e-6)
