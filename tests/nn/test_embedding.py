"""Points as parameters: what the rows mean, sparse gradients, padding, and a learned radius."""

import numpy as np
import pytest
import torch

from jorth import Signature
from jorth.nn import LorentzEmbedding
from jorth.ultrahyperbolic import distance, log0, membership, origin

SIG = Signature.lorentz(4)


@pytest.mark.parametrize("sig", [SIG, Signature(2, 2)], ids=str)
@pytest.mark.parametrize("alpha", [1.0, 2.5])
def test_a_row_is_the_rapidity_of_its_point(sig, alpha):
    layer = LorentzEmbedding(sig, 9, std=0.8, alpha=alpha, dtype=torch.float64, seed=3)
    index = torch.tensor([[0, 3, 8], [3, 3, 1]])
    x = layer(index)
    assert x.shape == (2, 3, 4)
    assert membership(x.detach(), sig, alpha=alpha).max() < 1e-14
    torch.testing.assert_close(log0(x, sig, alpha=alpha) / alpha, layer.weight[index])
    if sig is SIG:
        o = torch.from_numpy(origin(sig, alpha=alpha))
        lengths = alpha * layer.weight[index].norm(dim=-1)
        torch.testing.assert_close(distance(o, x, sig, alpha=alpha), lengths)


def test_sparse_gradients_are_the_dense_ones():
    dense, sparse = (LorentzEmbedding(SIG, 6, std=0.5, sparse=flag) for flag in (False, True))
    index = torch.tensor([4, 1, 4])
    for layer in (dense, sparse):
        layer(index).square().sum().backward()
    assert sparse.weight.grad.is_sparse
    torch.testing.assert_close(sparse.weight.grad.to_dense(), dense.weight.grad)
    assert torch.equal(dense.weight.grad.abs().sum(dim=1) > 0, torch.arange(6) % 3 == 1)
    torch.optim.SparseAdam(sparse.parameters(), lr=0.1).step()


def test_padding_stays_at_the_origin():
    layer = LorentzEmbedding(SIG, 5, padding_idx=-1, std=1.0)
    torch.testing.assert_close(layer(torch.tensor(4)).detach(), origin(SIG, dtype=torch.float32))
    loss = distance(layer(torch.arange(5)), layer(torch.zeros(5, dtype=torch.int64)), SIG).sum()
    loss.backward()
    assert layer.weight.grad[4].abs().max() == 0
    assert layer.weight.grad[:4].abs().min() > 0


def test_a_radius_is_learned_from_distances():
    """Points of a space with radius 2, their rows given: only the radius is to be found."""
    layer = LorentzEmbedding(SIG, 7, std=1.0, learn_radius=True, dtype=torch.float64)
    wanted = LorentzEmbedding(SIG, 7, std=1.0, alpha=2.0, dtype=torch.float64)
    index = torch.arange(7)
    target = distance(wanted(index), wanted(index.flip(0)), SIG, alpha=2.0).detach()
    optimizer = torch.optim.LBFGS([layer.log_factor], max_iter=50)

    def loss():
        optimizer.zero_grad()
        x = layer(index)
        value = (distance(x, x.flip(0), SIG, alpha=layer.radius) - target).square().sum()
        value.backward()
        return value

    optimizer.step(loss)
    assert layer.radius.item() == pytest.approx(2.0, rel=1e-4)


def test_seeds_and_resets():
    layer = LorentzEmbedding(SIG, 4, seed=5, std=0.3)
    again = LorentzEmbedding(SIG, 4, seed=np.random.default_rng(5), std=0.3)
    first = layer.weight.detach().clone()
    layer.reset_parameters(6)
    assert not torch.equal(layer.weight, first)
    layer.reset_parameters()
    assert torch.equal(layer.weight, first)
    assert again.weight.std() > 0.1
    empty = LorentzEmbedding(SIG, 4, seed=5, std=0.3, device="meta").to_empty(device="cpu")
    empty.reset_parameters()
    assert torch.equal(empty.weight, first)


@pytest.mark.parametrize("learn_radius", [False, True])
def test_compiled_and_stacked(learn_radius):
    layer = LorentzEmbedding(SIG, 5, std=1.0, learn_radius=learn_radius, dtype=torch.float64)
    index = torch.tensor([0, 2])
    torch._dynamo.reset()
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(index), layer(index))
    other = LorentzEmbedding(SIG, 5, seed=1, learn_radius=learn_radius, dtype=torch.float64)
    params, buffers = torch.func.stack_module_state([layer, other])
    call = lambda p, b: torch.func.functional_call(layer, (p, b), (index,))  # noqa: E731
    wanted = torch.stack([layer(index), other(index)])
    torch.testing.assert_close(torch.vmap(call)(params, buffers), wanted)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: LorentzEmbedding(SIG, 0), ValueError, "num_embeddings must be at least 1"),
        (lambda: LorentzEmbedding(SIG, 3, padding_idx=3), ValueError, "padding_idx must be None"),
        (lambda: LorentzEmbedding(SIG, 3)(torch.ones(2)), TypeError, "index must be a tensor of"),
        (lambda: LorentzEmbedding(Signature(3, 0), 3), ValueError, "signature must have q"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
