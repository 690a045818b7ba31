"""The layer, the initialiser and the parametrisations."""

import copy

import numpy as np
import pytest
import torch

import jorth
from jorth import Signature
from jorth.nn import (
    CSParametrization,
    ExponentialParametrization,
    JOrthogonalLinear,
    cs_parametrization,
    exponential_parametrization,
)
from jorth.nn.init import j_orthogonal_

SIG = Signature.of([1, -1, 1, 1, -1])


# -- initialiser


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_initialiser_fills_in_place(dtype):
    X = torch.nn.Parameter(torch.empty(2, 3, SIG.n, SIG.n, dtype=dtype))
    assert j_orthogonal_(X, SIG, cond=9.0, component=(-1, 1), seed=1) is X
    assert jorth.residual(X.detach(), SIG).max() < 10 * SIG.n * torch.finfo(dtype).eps
    assert torch.allclose(torch.linalg.cond(X.detach()), torch.tensor(9.0, dtype=dtype), rtol=1e-4)
    assert (jorth.component(X.detach(), SIG) == torch.tensor([-1, 1])).all()
    assert len(torch.unique(X.detach()[..., 0, 0])) == 6


@pytest.mark.parametrize(
    "make", [lambda: 3, lambda: np.random.default_rng(3), lambda: torch.Generator().manual_seed(3)]
)
def test_seeds(make):
    draw = lambda seed: j_orthogonal_(torch.empty(SIG.n, SIG.n), SIG, seed=seed)  # noqa: E731
    shared = make()
    first, second = draw(shared), draw(shared)
    assert torch.equal(first, draw(make()))
    assert torch.equal(first, second) == isinstance(shared, int)  # a generator moves on


# -- layer


def test_layer_resets_and_copies():
    layer = JOrthogonalLinear(SIG, bias=True, seed=2)
    twin = copy.deepcopy(layer)
    layer.reset_parameters(seed=3)
    assert not torch.equal(layer.weight, twin.weight)
    layer.load_state_dict(twin.state_dict())
    assert torch.equal(layer.weight, twin.weight)
    assert torch.equal(layer.bias, torch.zeros(SIG.n))
    assert 'Signature.of("+-++-"), batch=(), bias=True' in repr(layer)


# -- parametrisations

both = pytest.mark.parametrize("parametrize", [cs_parametrization, exponential_parametrization])


@both
@pytest.mark.parametrize(
    "signature", [SIG, Signature(3, 0), Signature(0, 2), Signature(1, 4), Signature(1, 0)], ids=str
)
@pytest.mark.parametrize("batch", [(), (3,)])
def test_parametrisation_keeps_the_weight_and_the_group(parametrize, signature, batch):
    component = (1, 1) if min(signature.p, signature.q) == 0 else (-1, 1)
    layer = JOrthogonalLinear(signature, batch=batch, dtype=torch.float64)
    j_orthogonal_(layer.weight, signature, cond=5.0, component=component, seed=2)
    before = layer.weight.detach().clone()
    assert parametrize(layer, "weight", signature) is layer
    assert (layer.weight - before).abs().max() < 1e-14
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.1)
    x = torch.randn(
        4, *batch, signature.n, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
    )
    for _ in range(20):
        optimizer.zero_grad()
        (layer(x) - 1).square().sum().backward()
        optimizer.step()
    assert (signature.n == 1) or (layer.weight - before).abs().max() > 1e-3
    assert (
        torch.as_tensor(jorth.residual(layer.weight.detach(), signature)).max()
        < 50 * signature.n * 2.0**-53
    )
    found = torch.as_tensor(jorth.component(layer.weight.detach(), signature))
    assert (found == torch.tensor(component)).all()


@both
def test_parametrisation_reaches_every_direction(parametrize):
    """At a generic point the derivative of X in the free weights spans the tangent space, n (n - 1) / 2 dimensions."""
    layer = parametrize(JOrthogonalLinear(SIG, cond=5.0, dtype=torch.float64), "weight", SIG)
    weights = tuple(layer.parametrizations.weight.parameters())
    form = layer.parametrizations.weight[0]
    jacobian = torch.autograd.functional.jacobian(lambda *w: form(*w), weights)
    matrix = torch.cat([part.reshape(SIG.n**2, -1) for part in jacobian], dim=1)
    assert int(torch.linalg.matrix_rank(matrix, rtol=1e-10)) == SIG.n * (SIG.n - 1) // 2


@both
def test_parametrisation_passes_gradcheck(parametrize):
    layer = parametrize(JOrthogonalLinear(SIG, cond=5.0, dtype=torch.float64), "weight", SIG)
    weights = [
        w.detach() + 0.1 * torch.randn_like(w) for w in layer.parametrizations.weight.parameters()
    ]
    assert torch.autograd.gradcheck(
        layer.parametrizations.weight[0], [w.requires_grad_() for w in weights]
    )


@both
def test_assigning_and_loading(parametrize):
    layer, other = (
        parametrize(JOrthogonalLinear(SIG, seed=k, dtype=torch.float64), "weight", SIG)
        for k in (1, 2)
    )
    wanted = jorth.random_point(SIG, cond=9.0, component=(1, -1), dtype=torch.float64)
    layer.weight = wanted
    assert torch.allclose(layer.weight, wanted, atol=1e-13)
    other.load_state_dict(layer.state_dict())
    assert torch.equal(other.weight, layer.weight)


def test_exponential_form_is_the_exponential():
    X0 = torch.from_numpy(jorth.random_point(SIG, cond=3.0, seed=4))
    form = ExponentialParametrization(SIG)
    assert not form.right_inverse(X0).any()
    weight = 0.3 * torch.randn(
        SIG.n, SIG.n, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
    )
    S = weight.triu(1) - weight.triu(1).mT
    wanted = jorth.exp(SIG.vector(S)[:, None] * S, SIG)
    torch.testing.assert_close(form(weight), wanted @ X0, rtol=0, atol=1e-13)
    thin = X0[:, :2]
    form.right_inverse(thin)
    torch.testing.assert_close(form(weight), wanted @ thin, rtol=0, atol=1e-13)


def test_triangular_factors_are_those_of_torch():
    """U0 cayley(L - L^T), as `torch.nn.utils.parametrizations.orthogonal` writes a factor."""
    X = torch.from_numpy(jorth.random_point(SIG, cond=3.0, seed=5))
    form = CSParametrization(SIG, triangular=True)
    weights = form.right_inverse(X)
    torch.testing.assert_close(form(*weights), X, rtol=0, atol=1e-13)
    A = torch.randn(3, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    theirs = torch.nn.Linear(3, 3, bias=False, dtype=torch.float64)
    torch.nn.utils.parametrizations.orthogonal(theirs, orthogonal_map="cayley")
    theirs.weight = form.U1
    with torch.no_grad():
        theirs.parametrizations.weight.original.copy_(A)
    torch.testing.assert_close(form._factor(A, form.U1), theirs.weight, rtol=0, atol=1e-13)


CASES = {
    "not J-orthogonal": (lambda: cs_parametrization(torch.nn.Linear(5, 5), "weight", SIG), ValueError, "X must be J-orthogonal"),
    "shape": (lambda: cs_parametrization(torch.nn.Linear(4, 4), "weight", SIG), ValueError, r"weight must have shape \(..., 5, 5\)"),
    "exponential, not J-orthogonal": (lambda: exponential_parametrization(torch.nn.Linear(5, 5), "weight", SIG), ValueError, "X must be J-orthogonal"),
    "layer, signature": (lambda: JOrthogonalLinear((3, 2)), TypeError, "signature must be a jorth.Signature, got "),
    "layer, input": (lambda: JOrthogonalLinear(SIG)(torch.ones(2, 4)), ValueError, r"x must have shape \(..., 5\), got a torch.float32 tensor of shape \(2, 4\)"),
    "initialiser, shape": (lambda: j_orthogonal_(torch.empty(4, 4), SIG), ValueError, r"tensor must have shape \(..., 5, 5\)"),
    "initialiser, cond": (lambda: j_orthogonal_(torch.empty(5, 5), SIG, cond=0.1), ValueError, "cond must be a finite number of at least 1"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_error_names_the_argument(name):
    call, error, message = CASES[name]
    with pytest.raises(error, match=message):
        call()
