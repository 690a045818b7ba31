"""Batches of small problems in torch operations: each as if it were alone; every status."""

import numpy as np
import pytest
import torch

import jorth
from jorth import Signature
from jorth.group.exp_log import cayley_step
from jorth.solvers import device_batches
from jorth.solvers.device_batches import (
    CONVERGED,
    MAX_ITERATIONS,
    NON_FINITE,
    UNBOUNDED,
    minimize_many,
)
from jorth.solvers.riemannian.batched_newton import direction, evaluate, hessian
from jorth.solvers.riemannian.batched_search import move

UNIT = 2.0**-53
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def clouds(count, sig, seed, noise=0.1):
    """Source, target (count, 3 n, n) and the planted isometries."""
    rng = np.random.default_rng(seed)
    X = jorth.random_point(sig, cond=3.0, batch=(count,), seed=seed)
    source = rng.standard_normal((count, 3 * sig.n, sig.n))
    target = source @ X + noise * rng.standard_normal(source.shape)
    return (torch.from_numpy(part) for part in (source, target, X))


def forms(source, target):
    m = source.shape[1]
    return source.mT @ source / m, -source.mT @ target / m


def solve(A, C, sig, X, device="cpu", **options):
    """The answer on the CPU, with tight options."""
    options = dict(tolerance=1e-12, max_iterations=100) | options
    A, C, X = (part.to(device) for part in (A, C, X))
    return [part.cpu() for part in minimize_many(A, C, sig.vector(A), X, **options)]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "signs",
    [(1, -1), (1, -1, 1), (1, 1, 1, -1), (1, 1, -1), (1,) * 5 + (-1,) * 3, (1,) * 6 + (-1,) * 5],
)
def test_each_equals_its_single_solve(device, signs):
    sig = Signature.of(signs)
    source, target, _ = clouds(6, sig, 0)
    A, C = forms(source, target)
    starts = torch.from_numpy(jorth.random_point(sig, cond=1.5, batch=(6,), seed=1))
    X, value, norm, iterations, status = solve(A, C, sig, starts, device)
    assert (status == CONVERGED).all()
    assert (iterations > 0).all()
    assert torch.as_tensor(jorth.residual(X, sig)).max() <= 100 * sig.n * UNIT
    for k in range(6):
        single = jorth.minimize(
            jorth.Quadratic(A[k], C[k]),
            starts[k].clone(),
            signature=sig,
            method="riemannian-lbfgs",
            gradient_tolerance=1e-12,
        )
        # both gradients are 1e-12; a point is as accurate as that over the least curvature
        assert (X[k] - single.x).abs().max() <= 1e-8
        assert abs(value[k] - single.value) <= 1e-12 * max(1.0, abs(single.value))
        G = A[k] @ X[k] + C[k]
        M = sig.vector(X)[:, None] * (G @ X[k].mT)
        assert (
            torch.linalg.norm(M - M.mT) / 2 <= norm[k] + 100 * sig.n * UNIT * G.norm() * X[k].norm()
        )


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("signs", [(1,) * 32 + (-1,), (1, -1) * 8])
def test_larger_ones_converge(device, signs):
    sig = Signature.of(signs)
    source, target, planted = clouds(5, sig, 2, noise=1e-3)
    A, C = forms(source, target)
    X, _, _, _, status = solve(A, C, sig, torch.eye(sig.n).double().expand_as(A), device)
    assert (status == CONVERGED).all()
    assert (X - planted).abs().max() <= 0.1
    assert torch.as_tensor(jorth.residual(X, sig)).max() <= 100 * sig.n * UNIT


@pytest.mark.parametrize("signs", [(1, -1, 1), (1, 1, -1, 1, -1)])
def test_the_hessian_is_the_second_derivative_along_the_cayley_curve(signs):
    sig = Signature.of(signs)
    source, target, _ = clouds(3, sig, 3)
    A, C = forms(source, target)
    X = torch.from_numpy(jorth.random_point(sig, cond=2.0, batch=(3,), seed=4))
    s = sig.vector(X)
    H = hessian(evaluate(A, C, X, s), s)[1]
    assert (H - H.mT).abs().max() <= 100 * UNIT * H.abs().max()
    i, j = torch.triu_indices(sig.n, sig.n, 1)
    c = torch.from_numpy(np.random.default_rng(5).standard_normal((3, len(i))))
    S = torch.zeros_like(X)
    S[:, i, j], S[:, j, i] = c, -c
    h = 1e-4

    def value(t):
        return evaluate(A, C, cayley_step(t * s[:, None] * S, X), s).value

    found = (c[:, None] @ H @ c[..., None])[:, 0, 0]
    second = (value(h) - 2 * value(0.0) + value(-h)) / h**2
    # differences of f, rounded at 1e-15, over h^2, and the fourth derivative times h^2
    assert (found - second).abs().max() <= 1e-5 * H.abs().max() * c.square().sum(1).max()
    first = (value(h) - value(-h)) / (2 * h)
    slope = (evaluate(A, C, X, s).g * S).sum((1, 2))
    assert (slope - first).abs().max() <= 1e-6 * slope.abs().max()


@pytest.mark.parametrize("n", [4, 12])
def test_directions_lead_downhill_from_anywhere(n):
    """Far starts, where the Hessian is not positive definite, and an indefinite A."""
    sig = Signature(n - 2, 2)
    source, target, _ = clouds(40, sig, 6)
    A, C = forms(source, target)
    A[20:] -= 1.5 * torch.eye(n)
    X = torch.from_numpy(jorth.random_point(sig, cond=100.0, batch=(40,), seed=7))
    s = sig.vector(X)
    points = evaluate(A, C, X, s)
    S = direction(points, s)
    assert torch.equal(S, -S.mT)
    assert ((points.g * S).sum((1, 2)) < 0).all()


def test_conjugate_gradients_solve_the_newton_system():
    """||H S + g|| <= 0.1 ||g||, with the matrix of the Hessian, which the second derivative tests.

    The multiplier is what they would miss: at a start with much noise it is as large as A.
    """
    sig = Signature(9, 3)
    A, C = forms(*list(clouds(8, sig, 13, noise=1.0))[:2])
    identity = torch.eye(12).double().expand_as(A)
    X = solve(A, C, sig, identity, tolerance=1e-3)[0]  # the Hessian is positive definite here
    s = sig.vector(X)
    points = evaluate(A, C, X, s)
    i, j = torch.triu_indices(12, 12, 1)
    H = hessian(points, s)[1]
    assert (torch.linalg.eigvalsh(H)[:, 0] > 0).all()
    S = direction(points, s)
    residual = (H @ S[:, i, j, None])[..., 0] / 2 + points.g[:, i, j]
    assert (residual.norm(dim=1) <= 0.11 * points.g[:, i, j].norm(dim=1)).all()


def test_steps_that_raise_f_are_shortened():
    """Eight times the Newton step overshoots; uphill no step is found, and nothing moves."""
    sig = Signature(3, 2)
    A, C = forms(*list(clouds(30, sig, 11))[:2])
    X = torch.from_numpy(jorth.random_point(sig, cond=1.5, batch=(30,), seed=12))
    s = sig.vector(X)
    points = evaluate(A, C, X, s)
    newton = direction(points, s)
    S = 8 * newton
    far = evaluate(A, C, cayley_step(s[:, None] * S, X), s)
    assert (far.value > points.value).any()
    moved, lost, spoiled = move(points, S, s)
    assert not lost.any()
    assert not spoiled.any()
    assert (moved.value < points.value).all()
    again = evaluate(A, C, moved.X, s)
    assert (moved.value - again.value).abs().max() <= 1e-12 * moved.size.max()
    assert (moved.g - again.g).abs().max() <= 1e-12 * moved.size.max()
    moved, lost, spoiled = move(points, -newton, s)
    assert lost.all()
    assert not spoiled.any()
    assert torch.equal(moved.X, X)


def test_statuses_and_order():
    sig = Signature(2, 1)
    source, target, _ = clouds(4, sig, 8)
    A, C = forms(source, target)
    A[1] = torch.diag(torch.tensor([-1.0, -1, -1]))  # f falls without bound
    C[2, 0, 0] = torch.nan
    A[3], C[3] = 0.0, 0.0
    identity = torch.eye(3).double().expand_as(A)
    X, value, norm, iterations, status = solve(A, C, sig, identity)
    assert status.tolist() == [CONVERGED, UNBOUNDED, NON_FINITE, CONVERGED]
    assert iterations[2] == iterations[3] == 0
    assert torch.equal(X[3], identity[3])
    assert value[3] == norm[3] == 0
    assert torch.isfinite(X[1]).all()
    alone = solve(A[:1], C[:1], sig, identity[:1])
    assert torch.allclose(X[:1], alone[0], rtol=0, atol=1e-12)
    few = solve(A, C, sig, identity, max_iterations=1)
    assert few[4].tolist() == [MAX_ITERATIONS, MAX_ITERATIONS, NON_FINITE, CONVERGED]
    assert few[3].tolist() == [1, 1, 0, 0]
    assert few[1][0] < solve(A, C, sig, identity, max_iterations=0)[1][0]


@pytest.mark.parametrize("scale", [1e-150, 1e-30, 1e150])
def test_the_unit_of_f_does_not_matter(scale):
    sig = Signature(3, 1)
    A, C = forms(*list(clouds(10, sig, 9))[:2])
    identity = torch.eye(4).double().expand_as(A)
    plain, scaled = (solve(c * A, c * C, sig, identity) for c in (1.0, scale))
    assert torch.equal(plain[3], scaled[3])
    assert torch.equal(plain[4], scaled[4])
    assert (plain[0] - scaled[0]).abs().max() <= 1e-9
    assert (plain[1] - scaled[1] / scale).abs().max() <= 1e-12 * plain[1].abs().max()


def test_chunks_and_no_problems(monkeypatch):
    sig = Signature(2, 2)
    A, C = forms(*list(clouds(7, sig, 10))[:2])
    identity = torch.eye(4).double().expand_as(A)
    whole = solve(A, C, sig, identity)
    monkeypatch.setitem(device_batches.FLOATS_AT_ONCE, "cpu", 4000)
    for ours, parts in zip(whole, solve(A, C, sig, identity), strict=True):
        assert torch.allclose(ours, parts, rtol=0, atol=1e-9 if ours.is_floating_point() else 0)
    empty = solve(A[:0], C[:0], sig, identity[:0])
    assert [tuple(part.shape) for part in empty] == [(0, 4, 4), (0,), (0,), (0,), (0,)]
