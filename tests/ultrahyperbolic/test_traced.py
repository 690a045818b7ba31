"""Every map of the room with a learned radius: derivatives, torch.compile, torch.func."""

import numpy as np
import pytest
import torch

from jorth import Signature
from jorth.ultrahyperbolic import (
    centroid,
    distance,
    exp,
    exp0,
    frechet_mean,
    inner,
    lift,
    log,
    log0,
    membership,
    origin,
    project_tangent,
    transport,
)

SIGS = [Signature.lorentz(4), Signature.of([1, -1, 1, -1]), Signature.of([1, -1] * 3)]


def near(x, sig, alpha):
    return lift(1.2 * x + 0.1, sig, alpha=alpha)


def tangent(x, sig, alpha):
    return project_tangent(lift(x, sig, alpha=alpha), 0.3 * x - 0.1, sig, alpha=alpha)


MAPS = {
    "lift": lambda x, sig, alpha: lift(x, sig, alpha=alpha),
    "lift of space": lambda x, sig, alpha: lift(x[..., 1:], sig, alpha=alpha),
    "origin": lambda x, sig, alpha: inner(x, origin(sig, alpha=alpha), sig),
    "inner": lambda x, sig, alpha: inner(x, lift(x, sig, alpha=alpha), sig),
    "membership": lambda x, sig, alpha: membership(x, sig, alpha=alpha),
    "distance": lambda x, sig, alpha: distance(
        lift(x, sig, alpha=alpha), near(x, sig, alpha), sig, alpha=alpha
    ),
    "exp": lambda x, sig, alpha: exp(
        lift(x, sig, alpha=alpha), tangent(x, sig, alpha), sig, alpha=alpha
    ),
    "log": lambda x, sig, alpha: log(
        lift(x, sig, alpha=alpha), near(x, sig, alpha), sig, alpha=alpha
    ),
    "exp0": lambda x, sig, alpha: exp0(0.2 * x[..., 1:], sig, alpha=alpha),
    "log0": lambda x, sig, alpha: log0(lift(x, sig, alpha=alpha), sig, alpha=alpha),
    "transport": lambda x, sig, alpha: transport(
        *(f(x, sig, alpha) for f in (MAPS["lift"], near, tangent)), sig, alpha=alpha
    ),
    "centroid": lambda x, sig, alpha: centroid(lift(x, sig, alpha=alpha), sig, alpha=alpha),
    "frechet_mean": lambda x, sig, alpha: frechet_mean(lift(x, sig, alpha=alpha), sig, alpha=alpha),
}
maps = pytest.mark.parametrize("name", MAPS)
traced = pytest.mark.parametrize("name", [name for name in MAPS if name != "frechet_mean"])
signatures = pytest.mark.parametrize("sig", SIGS, ids=str)


def rows(sig, *batch, seed=0):
    """Vectors whose lifts lie near each other: long along the first time."""
    x = 0.5 * torch.randn(
        *batch, 5, sig.n, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)
    )
    x[..., int(sig.negative[0])] += 3
    return x


@maps
@signatures
def test_derivatives_in_points_and_radius(name, sig):
    x, alpha = rows(sig).requires_grad_(), torch.tensor(1.3, dtype=torch.float64).requires_grad_()
    call = lambda x, a: MAPS[name](x, sig, a)  # noqa: E731
    assert torch.autograd.gradcheck(call, (x, alpha))


@maps
def test_second_derivatives(name):
    if name == "frechet_mean":
        pytest.skip("has first derivatives only, and says so")
    sig = SIGS[1]
    x = rows(sig)[:2].requires_grad_()
    alpha = torch.tensor(1.3, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradgradcheck(lambda x, a: MAPS[name](x, sig, a), (x, alpha))


@pytest.mark.parametrize("sig", SIGS, ids=str)
def test_the_lift_bends_at_the_origin_too(sig):
    x = origin(sig, dtype=torch.float64)
    time = int(sig.negative[0])
    bend = torch.autograd.functional.hessian(lambda x: lift(x, sig, alpha=1.3)[time], x)
    space = torch.zeros(sig.n, dtype=torch.float64)
    space[sig.positive.tolist()] = 1 / 1.3  # of sqrt(alpha^2 + |s|^2)
    space[[k for k in sig.negative.tolist() if k != time]] = -1.3  # of t_0 / |t|
    torch.testing.assert_close(bend, torch.diag(space))


# torch's own, when it traces a torch.autograd.Function
@pytest.mark.filterwarnings("ignore:.* should not be instantiated:DeprecationWarning")
@traced
def test_one_graph_with_values_and_gradients(name):
    torch._dynamo.reset()
    call = lambda x, a: MAPS[name](x, SIGS[1], a)  # noqa: E731
    compiled = torch.compile(call, fullgraph=True, backend="aot_eager")
    x = rows(SIGS[1]).requires_grad_()
    alpha = torch.tensor(1.3, dtype=torch.float64).requires_grad_()
    results = [
        (found, *torch.autograd.grad(found.sum(), (x, alpha), allow_unused=True))
        for found in (compiled(x, alpha), call(x, alpha))
    ]
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


@traced
@signatures
def test_vmap_over_points_and_radii(name, sig):
    x, alphas = rows(sig, 3), torch.tensor([1.3, 1.0, 0.8], dtype=torch.float64)
    value = lambda x, a: MAPS[name](x, sig, a)  # noqa: E731
    slope = torch.func.grad(lambda x, a: value(x, a).sum(), argnums=1)
    for f in (value, slope):
        wanted = torch.stack([f(*pair) for pair in zip(x, alphas, strict=True)])
        torch.testing.assert_close(torch.vmap(f)(x, alphas), wanted, rtol=1e-11, atol=1e-11)
        wanted = torch.stack([f(x[0], alpha) for alpha in alphas])
        found = torch.vmap(f, (None, 0))(x[0], alphas)
        torch.testing.assert_close(found, wanted, rtol=1e-11, atol=1e-11)


@maps
def test_a_tensor_anywhere_gives_a_tensor(name):
    sig = SIGS[0]
    x, alpha = rows(sig), torch.tensor(1.3, dtype=torch.float64, requires_grad=True)
    found = MAPS[name](x.numpy(), sig, alpha)
    assert isinstance(found, torch.Tensor)
    assert found.requires_grad
    assert isinstance(MAPS[name](x.numpy(), sig, 1.3), np.ndarray)
    torch.testing.assert_close(found.detach(), torch.from_numpy(MAPS[name](x.numpy(), sig, 1.3)))


def test_a_point_in_numpy_keeps_the_gradient_of_a_vector():
    sig = SIGS[0]
    v = torch.zeros(2, 4, dtype=torch.float64, requires_grad=True)
    assert exp(origin(sig), v, sig).requires_grad


@pytest.mark.parametrize(
    ("alpha", "message"),
    [
        (torch.ones(2), "alpha must be a positive number or a tensor of floats of no dimension"),
        (torch.tensor(-1.0), "alpha must be a positive number"),
        (1e-200, "alpha must be a number whose square"),
    ],
)
def test_bad_radius(alpha, message):
    with pytest.raises(ValueError, match=message):
        exp0(np.zeros(3), SIGS[0], alpha=alpha)
