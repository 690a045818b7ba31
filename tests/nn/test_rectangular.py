"""Isometries, isometric embeddings and projections: what layers and their weights preserve."""

import numpy as np
import pytest
import torch

from jorth import Signature
from jorth.nn import JOrthogonalLinear, cs_parametrization, exponential_parametrization
from jorth.nn.init import j_orthogonal_
from tests.nn.modules import KINDS, LARGE, SMALL, inputs, layer_of

U = 2.0**-53
THIN = [
    (SMALL, LARGE),
    (Signature(2, 0), LARGE),
    (Signature(0, 1), LARGE),
    (Signature.lorentz(3), Signature.lorentz(8)),
    (Signature(2, 0), Signature(5, 0)),
    (Signature.of([-1, 1]), Signature.of([1, 1, -1])),
]
thin = pytest.mark.parametrize(("small", "large"), THIN, ids=str)


def inner(x, y, signature):
    return (x * torch.from_numpy(signature.signs.astype(float)).to(x) * y).sum(dim=-1)


def gram_defect(X, large, small):
    """max |X^T J X - J_k| / ||X||^2 in NumPy, of one matrix or many."""
    X = X.detach().double().numpy()
    gram = X.swapaxes(-1, -2) @ (large.signs[:, None] * X)
    return (
        np.abs(gram - np.diag(small.signs)).max() / np.linalg.norm(X, 2, axis=(-2, -1)).max() ** 2
    )


# -- initialiser


@thin
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_thin_initialiser_has_the_signs_of_its_columns(small, large, dtype):
    X = torch.empty(2, 3, large.n, small.n, dtype=dtype)
    assert j_orthogonal_(X, large, columns=small, cond=9.0, seed=1) is X
    assert gram_defect(X, large, small) < 10 * large.n * torch.finfo(dtype).eps
    assert len(torch.unique(X.reshape(6, -1), dim=0)) == 6


# -- layers


@pytest.mark.parametrize(("small", "large"), [*THIN, (LARGE, LARGE)], ids=str)
@pytest.mark.parametrize("batch", [(), (2, 3)])
def test_a_layer_is_an_isometry(small, large, batch):
    layer = JOrthogonalLinear(small, large, cond=20.0, batch=batch, seed=3, dtype=torch.float64)
    assert (layer.in_features, layer.out_features) == (small.n, large.n)
    assert (layer.signature, layer.columns) == (large, small)
    x, y = inputs(layer, 7, seed=0), inputs(layer, 7, seed=1)
    bound = 100 * large.n * U * 20 * x.norm(dim=-1) * y.norm(dim=-1)  # ||W||^2 <= cond
    assert ((inner(layer(x), layer(y), large) - inner(x, y, small)).abs() <= bound).all()
    assert layer(x).shape == (7, *batch, large.n)


@thin
def test_projection_is_the_adjoint_of_the_embedding(small, large):
    """<W x, y> = <x, P y>; P undoes W, and W P is a J-symmetric idempotent."""
    embedding = JOrthogonalLinear(small, large, cond=9.0, seed=3, dtype=torch.float64)
    projection = JOrthogonalLinear(large, small, dtype=torch.float64)
    assert (projection.in_features, projection.out_features) == (large.n, small.n)
    projection.weight = embedding.weight
    x, y = inputs(embedding, 7), inputs(projection, 7, seed=1)
    adjoint = inner(x, projection(y), small)
    torch.testing.assert_close(inner(embedding(x), y, large), adjoint, rtol=0, atol=1e-12)
    torch.testing.assert_close(projection(embedding(x)), x, rtol=0, atol=1e-12)
    rest = y - embedding(projection(y))  # J-orthogonal to the image
    torch.testing.assert_close(
        inner(rest, embedding(x), large), torch.zeros(7, dtype=torch.float64), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("kind", ["square", "embedding", "projection"])
def test_a_layer_is_its_matrices_side_by_side(kind):
    layer = layer_of(kind, batch=(2, 3))
    x, y = inputs(layer, 7), layer(inputs(layer, 7))
    W, s, t = layer.weight, LARGE.vector(x), SMALL.vector(x)
    assert W.shape == (2, 3, 5, 5 if kind == "square" else 3)
    assert not torch.equal(W[0, 0], W[1, 2])
    for i, j in np.ndindex(2, 3):
        matrix = W[i, j] if kind != "projection" else torch.diag(t) @ W[i, j].mT @ torch.diag(s)
        torch.testing.assert_close(layer.matrix[i, j], matrix)
        torch.testing.assert_close(y[:, i, j], x[:, i, j] @ matrix.mT + layer.bias[i, j])


def test_gradients_of_a_projection():
    layer = layer_of("projection")
    weight, x = layer.weight.detach().requires_grad_(), inputs(layer, 2).requires_grad_()
    call = lambda W, x: torch.func.functional_call(layer, {"weight": W}, (x,))  # noqa: E731
    assert torch.autograd.gradcheck(call, (weight, x))


# -- parametrisations


@pytest.mark.parametrize("ends", [(SMALL, LARGE), (LARGE, SMALL)], ids=["embedding", "projection"])
@pytest.mark.parametrize("batch", [(), (3,)])
def test_exponential_parametrisation_of_a_thin_weight(ends, batch):
    layer = JOrthogonalLinear(*ends, cond=5.0, batch=batch, dtype=torch.float64)
    before = layer.weight.detach().clone()
    assert exponential_parametrization(layer, "weight", LARGE) is layer
    assert torch.equal(layer.weight, before)
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.1)
    x = inputs(layer, 4)
    for _ in range(20):
        optimizer.zero_grad()
        (layer(x) - 1).square().sum().backward()
        optimizer.step()
    assert (layer.weight - before).abs().max() > 1e-3
    assert gram_defect(layer.weight, LARGE, SMALL) < 50 * LARGE.n * U


@pytest.mark.parametrize("kind", KINDS)
def test_weights_keep_their_digits_under_autocast(kind):
    layer = layer_of(kind).float()
    x = inputs(layer, 4).float()
    wanted = layer(x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        weight, found = layer.weight, layer(x)
    assert torch.equal(weight, layer.weight)
    assert torch.equal(found, wanted)


# -- conveniences of modules


@pytest.mark.parametrize("kind", ["square", "embedding", "projection"])
def test_layer_made_on_the_meta_device_is_drawn_later(kind):
    signature, out_signature, _ = KINDS[kind]
    make = lambda **options: JOrthogonalLinear(  # noqa: E731
        signature, out_signature, cond=3.0, bias=True, seed=5, dtype=torch.float64, **options
    )
    layer = make(device="meta")
    assert layer.weight.is_meta
    assert layer.bias.is_meta
    layer.to_empty(device="cpu").reset_parameters()
    assert torch.equal(layer.weight, make().weight)
    assert torch.equal(layer.bias, make().bias)


CASES = {
    "more of one kind, fewer of the other": (lambda: JOrthogonalLinear(Signature(3, 2), Signature(5, 1)), ValueError, r"out_signature must have at least or at most as many signs of each kind as Signature\(3, 2\), or the same ones, got Signature\(5, 1\)"),
    "as many in another order": (lambda: JOrthogonalLinear(Signature(1, 1), Signature.of([-1, 1])), ValueError, "out_signature must have at least or at most"),
    "input of an embedding": (lambda: JOrthogonalLinear(SMALL, LARGE)(torch.ones(2, 5)), ValueError, r"x must have shape \(..., 3\)"),
    "thin without columns": (lambda: j_orthogonal_(torch.empty(5, 3), LARGE), ValueError, r"tensor must have shape \(..., 5, 5\)"),
    "shape": (lambda: j_orthogonal_(torch.empty(3, 5), LARGE, columns=SMALL), ValueError, r"tensor must have shape \(..., 5, 3\) for .* and columns of .*, got"),
    "thin CS": (lambda: cs_parametrization(JOrthogonalLinear(SMALL, LARGE), "weight", LARGE), ValueError, r"weight must be square for the CS form \(exponential_parametrization takes thin matrices\)"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_error_names_the_argument(name):
    call, error, message = CASES[name]
    with pytest.raises(error, match=message):
        call()
