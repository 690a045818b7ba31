"""The properties that every manifold of geoopt has, on O(p, q)."""

import copy
import pickle

import geoopt
import numpy as np
import pytest
import scipy.linalg
import torch

import jorth
from jorth import Signature
from jorth.adapters.geoopt import JOrthogonal
from tests.adapters.problems import SIGNATURES


def ambient(n, seed, batch=()):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal((*batch, n, n)))


def point(signature, seed, batch=(), **options):
    options = {"dtype": torch.float64, **options}
    return JOrthogonal(signature).random(*batch, signature.n, signature.n, seed=seed, **options)


@pytest.fixture(params=SIGNATURES, ids=str)
def signature(request):
    return request.param


@pytest.fixture
def manifold(signature):
    return JOrthogonal(signature)


# Projections


def test_projx_is_the_polar_factor(manifold, signature):
    noisy = point(signature, 1).data + 1e-2 * ambient(signature.n, 2)
    projected = manifold.projx(noisy)
    manifold.assert_check_point_on_manifold(projected, atol=1e-14, rtol=0)
    torch.testing.assert_close(manifold.projx(projected), projected, rtol=0, atol=1e-14)
    J = np.diag(signature.signs.astype(float))
    S = scipy.linalg.sqrtm(J @ noisy.numpy().T @ J @ noisy.numpy())
    np.testing.assert_allclose(projected.numpy(), noisy.numpy() @ np.linalg.inv(S), atol=1e-12)


def test_proju_is_an_orthogonal_projection(manifold, signature):
    X, U = point(signature, 3, cond=100.0), ambient(signature.n, 4)
    V = manifold.proju(X, U)
    manifold.assert_check_vector_on_tangent(X, V, atol=1e-13, rtol=1e-13)
    torch.testing.assert_close(manifold.proju(X, V), V, rtol=0, atol=1e-11)
    inverse = torch.linalg.inv(X.data)
    T = manifold.proju(X, ambient(signature.n, 5)) @ inverse
    rest = (U - V) @ inverse
    assert abs((rest * T).sum()) < 1e-11 * rest.norm() * T.norm()


def test_egrad2rgrad_represents_the_differential(manifold, signature):
    X, G = point(signature, 6), ambient(signature.n, 7)
    gradient = manifold.egrad2rgrad(X, G)
    manifold.assert_check_vector_on_tangent(X, gradient, atol=1e-13, rtol=1e-13)
    V = manifold.proju(X, ambient(signature.n, 8))
    torch.testing.assert_close(
        manifold.inner(X, gradient, V), (G * V).sum(), rtol=1e-12, atol=1e-12
    )
    expected = jorth.riemannian_gradient(X.data, G, signature)
    torch.testing.assert_close(gradient, expected, rtol=1e-13, atol=1e-13)


# The metric


def test_inner_is_the_right_invariant_metric(manifold, signature):
    X = point(signature, 9, batch=(3,))
    u, v = (manifold.proju(X, ambient(signature.n, seed, (3,))) for seed in (10, 11))
    inverse = torch.linalg.inv(X.data)
    torch.testing.assert_close(
        manifold.inner(X, u, v), ((u @ inverse) * (v @ inverse)).sum((-2, -1))
    )
    torch.testing.assert_close(manifold.inner(X, u), manifold.inner(X, u, u))
    torch.testing.assert_close(manifold.norm(X, u), manifold.inner(X, u).sqrt())
    assert manifold.inner(X, u, v).shape == (3,)
    assert manifold.inner(X, u, v, keepdim=True).shape == (3, 1, 1)
    assert manifold.component_inner(X, u).shape == (3, 1, 1)
    Y = point(signature, 12).data
    torch.testing.assert_close(
        manifold.inner(X @ Y, u @ Y, v @ Y), manifold.inner(X, u, v), rtol=1e-9, atol=1e-9
    )


# Moving


@pytest.mark.parametrize("move", ["retr", "expmap"])
def test_moves_are_feasible_and_first_order(manifold, signature, move):
    X = point(signature, 15, batch=(2,))
    U = manifold.proju(X, ambient(signature.n, 16, (2,)))
    step = getattr(manifold, move)
    manifold.assert_check_point_on_manifold(step(X, U), atol=1e-13, rtol=0)
    torch.testing.assert_close(step(X, 0 * U), X.data, rtol=0, atol=1e-15)
    h = 1e-5
    torch.testing.assert_close(
        (step(X, h * U) - step(X, -h * U)) / (2 * h), U, rtol=1e-7, atol=1e-7
    )


def test_expmap_has_constant_speed(manifold, signature):
    X = point(signature, 17)
    U = manifold.proju(X, ambient(signature.n, 18))
    U = U / manifold.norm(X, U)
    h = 1e-5
    Y = manifold.expmap(X, U)
    velocity = (manifold.expmap(X, (1 + h) * U) - manifold.expmap(X, (1 - h) * U)) / (2 * h)
    torch.testing.assert_close(manifold.norm(Y, velocity).item(), 1.0, rtol=0, atol=1e-8)


def test_transport_is_an_isometry_between_tangent_spaces(manifold, signature):
    X = point(signature, 19, batch=(2,))
    u, v, w = (manifold.proju(X, ambient(signature.n, seed, (2,))) for seed in (20, 21, 22))
    Y, v_there = manifold.retr_transp(X, u, v)
    w_there = manifold.transp_follow_retr(X, u, w)
    torch.testing.assert_close(Y, manifold.retr(X, u))
    manifold.assert_check_vector_on_tangent(Y, v_there, atol=1e-13, rtol=1e-13)
    torch.testing.assert_close(
        manifold.inner(Y, v_there, w_there), manifold.inner(X, v, w), rtol=1e-9, atol=1e-9
    )
    torch.testing.assert_close(v_there, v @ torch.linalg.inv(X.data) @ Y, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(manifold.transp(Y, X, v_there), v, rtol=1e-9, atol=1e-9)
    Z, v_geodesic = manifold.expmap_transp(X, u, v)
    torch.testing.assert_close(v_geodesic, manifold.transp_follow_expmap(X, u, v))
    torch.testing.assert_close(Z, manifold.expmap(X, u))


def test_the_logarithm_undoes_the_exponential_and_has_the_length_of_the_distance(signature):
    manifold = JOrthogonal(signature)
    X, Y = point(signature, 28, batch=(2,)), point(signature, 29)
    V = manifold.logmap(X, Y)
    torch.testing.assert_close(manifold.expmap(X, V), Y.expand_as(X).data, rtol=0, atol=1e-9)
    lengths = manifold.dist(X, Y)
    torch.testing.assert_close(manifold.norm(X, V), lengths, rtol=1e-9, atol=0)
    assert manifold.dist(X, Y, keepdim=True).shape == (2, 1, 1)
    torch.testing.assert_close(manifold.dist2(X, Y), lengths**2)
    table = manifold.dist(X[:, None], X)
    torch.testing.assert_close(table, table.mT, rtol=0, atol=1e-9)


# Checks, samples, representation


def test_checks_are_relative_to_the_norm(manifold, signature):
    X = point(signature, 30, cond=1e10)
    assert manifold.check_point_on_manifold(X)
    U = manifold.proju(X, 1e3 * ambient(signature.n, 31))
    assert manifold.check_vector_on_tangent(X, U)
    assert manifold.check_point_on_manifold(X[None].expand(0, -1, -1))


def test_samples_and_origin(manifold, signature):
    n = signature.n
    X = manifold.random(5, n, n, cond=50.0, seed=1, dtype=torch.float64)
    assert isinstance(X, geoopt.ManifoldTensor)
    assert X.manifold is manifold
    manifold.assert_check_point_on_manifold(X, atol=1e-14, rtol=0)
    assert torch.equal(X, manifold.random((5, n, n), cond=50.0, seed=1, dtype=X.dtype))
    assert not torch.equal(X, manifold.random(5, n, n, cond=50.0, seed=2, dtype=X.dtype))
    state = torch.random.get_rng_state()
    points = [manifold.random(n, n) for _ in range(2)]  # from torch's generator
    torch.random.set_rng_state(state)
    assert torch.equal(points[0], manifold.random(n, n))
    assert not torch.equal(*points)
    assert points[0].dtype == torch.get_default_dtype()
    origin = manifold.origin(2, n, n, dtype=torch.float32)
    assert torch.equal(origin, torch.eye(n).expand(2, n, n))
    assert origin.is_contiguous()
    assert repr(manifold) == f"JOrthogonal({signature}) manifold"


def test_pickle_and_deepcopy():
    X = geoopt.ManifoldParameter(point(Signature.of([1, -1, 1]), 33))
    for Y in (pickle.loads(pickle.dumps(X)), copy.deepcopy(X)):
        assert torch.equal(X, Y)
        assert Y.manifold.signature == X.manifold.signature


def test_derivatives_pass_through_a_step():
    manifold = JOrthogonal(Signature(2, 1))
    X, U = point(manifold.signature, 1).data, ambient(3, 2).requires_grad_()
    for step in (manifold.retr, manifold.expmap):
        assert torch.autograd.gradcheck(lambda V, step=step: step(X, V), U)


EYE, BAD = torch.eye(3, dtype=torch.float64), torch.zeros(3, 2, dtype=torch.float64)
SHAPE = r" must have shape \(..., 3, 3\) for Signature\(2, 1\)"
CASES = {
    "x": (lambda m: m.retr(BAD, EYE), ValueError, "x" + SHAPE),
    "u": (lambda m: m.expmap(EYE, BAD), ValueError, "u" + SHAPE),
    "y": (lambda m: m.transp(EYE, BAD, EYE), ValueError, "y" + SHAPE),
    "no factor": (lambda m: m.projx(0 * EYE), jorth.PolishError, "no J-orthogonal factor"),
    "half": (lambda m: m.retr(EYE.half(), EYE.half()), TypeError, "x must be float64 or float32"),
    "NaN": (lambda m: m.retr(EYE, EYE * torch.nan), ValueError, "must be finite"),
    "size": (lambda m: m.random(4, 4), ValueError, "size" + SHAPE),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_input(case):
    call, error, message = CASES[case]
    with pytest.raises(error, match=message):
        call(JOrthogonal(Signature(2, 1)))
