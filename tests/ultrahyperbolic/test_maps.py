"""Exponential, logarithm, projection and transport: against mpmath at 80 digits and against geoopt,
at any signature, near and far, with derivatives."""

import mpmath
import numpy as np
import pytest
import torch

import jorth
from jorth import Signature
from jorth.ultrahyperbolic import (
    distance,
    exp,
    exp0,
    inner,
    lift,
    log,
    log0,
    origin,
    project_tangent,
    transport,
)
from jorth.ultrahyperbolic.maps import exp_at, log_at, transport_at
from tests.ultrahyperbolic import exact

SIGS = [
    Signature(4, 1),
    Signature.lorentz(4, time="first"),
    Signature(3, 2),
    Signature(0, 3),
    Signature.of([-1, 1, 1, -1, 1, -1]),
]
DTYPES = [np.float64, np.float32]


def unit(dtype):
    return np.finfo(dtype).eps / 2


def pairs(sig, count, seed=0, alpha=1.0, dtype=np.float64, length=1.0):
    """Points of U and tangent vectors of Euclidean norm ``length`` alpha, of both kinds."""
    rng = np.random.default_rng(seed)
    x = lift(rng.standard_normal((count, sig.n)) * alpha, sig, alpha=alpha)
    v = project_tangent(x, alpha * rng.standard_normal((count, sig.n)), sig, alpha=alpha)
    v *= length * alpha / np.linalg.norm(v, axis=1, keepdims=True)
    return x.astype(dtype), v.astype(dtype)


def exp_bound(x, v, sig, alpha):
    """First-order effect of relative errors u in x, v and the terms of w, at 80 digits.

    |C x| + |S v| for the sum, and (|C'| |x| + |S'| |v|) |v|^2 / alpha^2 for w, C' = S / 2.
    """
    w = exact.form(v, v, sig) / mpmath.mpf(alpha) ** 2
    slope = mpmath.diff(exact.sinhc_root, w) if w else mpmath.mpf(1) / 6
    lengths = exact.norm(x), exact.norm(v)
    direct = abs(exact.cosh_root(w)) * lengths[0] + abs(exact.sinhc_root(w)) * lengths[1]
    through_w = abs(exact.sinhc_root(w)) / 2 * lengths[0] + abs(slope) * lengths[1]
    return float(direct + through_w * (lengths[1] / alpha) ** 2)


@pytest.mark.parametrize("sig", SIGS, ids=str)
@pytest.mark.parametrize("alpha", [1.0, 0.3])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("length", [1e-6, 1.0, 4.0])
def test_exp_against_mpmath(sig, alpha, dtype, length):
    x, v = pairs(sig, 12, seed=1, alpha=alpha, dtype=dtype, length=length)
    found = exp(x, v, sig, alpha=alpha)
    assert found.dtype == dtype
    with mpmath.workdps(exact.DIGITS):
        for k in range(len(x)):
            a, b = exact.numbers(x[k]), exact.numbers(v[k])
            wanted = exact.doubles(exact.exp(a, b, sig, alpha))
            bound = 4 * sig.n * unit(dtype) * exp_bound(a, b, sig, alpha)
            assert np.abs(found[k] - wanted).max() <= bound


@pytest.mark.parametrize("w", [0.0, 1e-300, 1e-12, 0.5, 0.999999, 1.0, 1.000001, 30.0])
@pytest.mark.parametrize("sign", [1, -1])
def test_exp_at_every_length_and_across_the_null_cone(w, sign):
    """Along the axes w is exactly given, and so C and S are seen one by one."""
    sig = Signature(1, 2)
    root = np.sqrt(w)
    x = np.array([0.0, 1.0, 0.0])
    v = np.array([root, 0.0, 0.0]) if sign > 0 else np.array([0.0, 0.0, root])
    found = exp(x, v, sig)
    with mpmath.workdps(exact.DIGITS):
        wanted = exact.doubles(exact.exp(exact.numbers(x), exact.numbers(v), sig, 1.0))
    np.testing.assert_allclose(found, wanted, rtol=8 * unit(np.float64) * (1 + root), atol=2e-16)


def exact_pair(sig, alpha, rng, length):
    """x, v and y = exp(x, v) at 80 digits, v not longer than 2.5 alpha."""
    x = exact.lifted(rng.standard_normal(sig.n) * alpha, sig, alpha)
    v = exact.tangent(x, exact.numbers(rng.standard_normal(sig.n) * alpha * length), sig, alpha)
    w = exact.form(v, v, sig) / mpmath.mpf(alpha) ** 2
    shrink = min(1, 2.5 / mpmath.sqrt(abs(w)))
    v = [shrink * entry for entry in v]
    return x, v, exact.exp(x, v, sig, alpha)


def log_bound(x, v, y, sig, alpha):
    """The first-order effect of errors u |x| and u |y| in the points, at 80 digits.

    They move D = y - x, e = <D, D> / 2 alpha^2 by <D, dD> / alpha^2, and the factor arc / sine with
    e, by at most 2 + 1 / f times the factor itself.
    """
    g = -exact.form(x, y, sig) / mpmath.mpf(alpha) ** 2
    factor = 1 / exact.sinhc_root(exact.form(v, v, sig) / mpmath.mpf(alpha) ** 2)
    D = exact.norm([b - a for a, b in zip(x, y, strict=True)])
    sizes = exact.norm(x) + exact.norm(y)
    e_moves = D * sizes / mpmath.mpf(alpha) ** 2
    through_factor = exact.norm(v) * (2 + 1 / (g + 1)) * e_moves
    return float(factor * sizes + factor * exact.norm(x) * e_moves + through_factor)


@pytest.mark.parametrize("sig", SIGS, ids=str)
@pytest.mark.parametrize("alpha", [1.0, 0.3])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("length", [1e-9, 1e-3, 1.0, 4.0])
def test_log_against_mpmath(sig, alpha, dtype, length):
    rng = np.random.default_rng(3)
    with mpmath.workdps(exact.DIGITS):
        for _ in range(8):
            x, v, y = exact_pair(sig, alpha, rng, length)
            found = log(
                exact.doubles(x).astype(dtype), exact.doubles(y).astype(dtype), sig, alpha=alpha
            )
            assert found.dtype == dtype
            bound = 4 * sig.n * unit(dtype) * log_bound(x, v, y, sig, alpha)
            assert np.abs(found - exact.doubles(v)).max() <= bound


@pytest.mark.parametrize("apart", [1e-12, 1e-7, 1e-3, 0.4, 0.6, 1.2])
@pytest.mark.parametrize("kind", ["spacelike", "timelike", "antipodal"])
def test_log_keeps_the_digits_of_near_points(apart, kind):
    """x is an axis, so that rounding has no part in y - x or y + x beyond that of y's entries.

    The entry of y that is near 1 has an error u, and arc / sine multiplies it.
    """
    sig = Signature(1, 2)
    x = np.array([0.0, 1.0, 0.0])
    with mpmath.workdps(40):
        r = mpmath.mpf(apart)
        if kind == "spacelike":
            y, wanted = [mpmath.sinh(r), mpmath.cosh(r), 0], [r, 0, 0]
        elif kind == "timelike":
            y, wanted = [0, mpmath.cos(r), mpmath.sin(r)], [0, 0, r]
        else:
            y, wanted = [0, -mpmath.cos(r), mpmath.sin(r)], [0, 0, mpmath.pi - r]
        y, wanted = exact.doubles(y), exact.doubles(wanted)
    found = log(x, y, sig)
    along = np.argmax(wanted)
    assert found[along] == pytest.approx(wanted[along], rel=2e-15)
    factor = wanted[along] / np.abs(y[along])
    np.testing.assert_allclose(found, wanted, rtol=2e-15, atol=3e-16 * factor)


@pytest.mark.parametrize("sig", SIGS, ids=str)
@pytest.mark.parametrize("alpha", [1.0, 0.3])
def test_transport_keeps_inner_products_and_carries_the_velocity(sig, alpha):
    x, v = pairs(sig, 40, seed=6, alpha=alpha, length=0.5)
    w = pairs(sig, 40, seed=7, alpha=alpha)[1]
    w = project_tangent(x, w, sig, alpha=alpha)
    y = exp(x, v, sig, alpha=alpha)
    joined = inner(x, y, sig) < 0.5 * alpha**2
    x, v, w, y = x[joined], v[joined], w[joined], y[joined]
    moved_v, moved_w = (transport(x, y, u, sig, alpha=alpha) for u in (v, w))
    np.testing.assert_allclose(inner(y, moved_w, sig), 0, atol=1e-11)
    np.testing.assert_allclose(inner(moved_w, moved_v, sig), inner(w, v, sig), atol=1e-11)
    np.testing.assert_allclose(inner(moved_w, moved_w, sig), inner(w, w, sig), atol=1e-11)
    # the velocity of t -> exp(x, t v) at 1, by central differences
    h = 1e-5
    ends = [exp(x, (1 + step) * v, sig, alpha=alpha) for step in (-h, h)]
    np.testing.assert_allclose(moved_v, (ends[1] - ends[0]) / (2 * h), atol=1e-7)
    np.testing.assert_allclose(transport(y, x, moved_w, sig, alpha=alpha), w, atol=1e-10)


@pytest.mark.parametrize("sig", SIGS, ids=str)
def test_maps_commute_with_isometries(sig):
    x, v = pairs(sig, 10, seed=11, length=0.4)
    w = project_tangent(x, v[::-1].copy(), sig)
    y = exp(x, v, sig)
    V = jorth.random_point(sig, cond=4.0, seed=12).T
    np.testing.assert_allclose(exp(x @ V, v @ V, sig), y @ V, atol=1e-11)
    np.testing.assert_allclose(log(x @ V, y @ V, sig), log(x, y, sig) @ V, atol=1e-10)
    moved = transport(x @ V, y @ V, w @ V, sig)
    np.testing.assert_allclose(moved, transport(x, y, w, sig) @ V, atol=1e-10)


def far_pair(sig, alpha, dtype, length, seed):
    """x near the origin, y at the end of a hyperbola of ``length`` alpha from x, and exact g."""
    rng = np.random.default_rng(seed)
    x = origin(sig, alpha=alpha)
    if seed:
        x = lift(alpha * rng.standard_normal(sig.n), sig, alpha=alpha)
    v = project_tangent(x, rng.standard_normal((100, sig.n)), sig, alpha=alpha)
    v = v[np.argmax(inner(v, v, sig))]
    v *= length * alpha / np.sqrt(inner(v, v, sig))
    x, v = x.astype(dtype), v.astype(dtype)
    y = exp(x, v, sig, alpha=alpha)
    with mpmath.workdps(400):
        g = -exact.form(exact.numbers(x), exact.numbers(y), sig) / mpmath.mpf(alpha) ** 2
    return x, y, g


FAR_SIGS = [Signature(4, 1), Signature(3, 2), Signature.of([-1, 1, 1, -1, 1, -1])]


@pytest.mark.parametrize("sig", FAR_SIGS, ids=str)
@pytest.mark.parametrize("alpha", [1.0, 0.3])
@pytest.mark.parametrize(
    ("dtype", "length"),
    [(np.float32, 9.0), (np.float32, 36.0)] + [(np.float64, r) for r in (9.0, 20.0, 36.0, 300.0)],
)
def test_far_points_keep_their_digits(sig, alpha, dtype, length):
    """The errors are those of <x, y>: u |x| |y|, not u |y|^2."""
    for seed in range(4):
        x, y, g = far_pair(sig, alpha, dtype, length, seed)
        sizes = [float(np.linalg.norm(point.astype(float) / alpha)) for point in (x, y)]
        share = sizes[0] * float(sizes[1] / g)  # the error of g over g and u
        bound = float(8 * sig.n * unit(dtype) * share)
        with mpmath.workdps(400):
            wanted = exact.doubles(exact.log(exact.numbers(x), exact.numbers(y), sig, alpha))
            apart = float(alpha * mpmath.acosh(g))
        found = log(x, y, sig, alpha=alpha).astype(float)
        assert np.abs(found - wanted).max() <= bound * np.abs(wanted).max()
        assert distance(x, y, sig, alpha=alpha) == pytest.approx(apart, rel=bound)


@pytest.mark.parametrize("sig", SIGS, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("length", [0.0, 1e-9, 1.0, 6.0])
def test_coordinates_at_the_origin_against_mpmath(sig, dtype, length):
    """exp0 is exp at the origin, and log0 its inverse up to half of a closed geodesic."""
    alpha = 0.7
    rng = np.random.default_rng(21)
    v = alpha * rng.standard_normal((8, sig.n - 1))
    v = (length * v / np.linalg.norm(v, axis=1, keepdims=True)).astype(dtype)
    found = exp0(v, sig, alpha=alpha)
    assert found.dtype == dtype
    at = sig.negative[0]
    with mpmath.workdps(exact.DIGITS):
        o = [mpmath.mpf(alpha if k == at else 0) for k in range(sig.n)]
        for k in range(len(v)):
            step = exact.numbers(np.insert(v[k], at, 0.0))
            wanted = exact.doubles(exact.exp(o, step, sig, alpha))
            bound = 4 * sig.n * unit(dtype) * exp_bound(o, step, sig, alpha)
            assert np.abs(found[k] - wanted).max() <= bound
    w = np.sum(v.astype(float) ** 2 * np.delete(sig.signs, at), axis=1) / alpha**2
    short = w > -2.5
    # log0 moves by relative errors u of the point times |x|^2 / alpha^2
    size = 1 + np.square(found[short] / alpha).sum(axis=1, keepdims=True).astype(float)
    error = np.abs(log0(found[short], sig, alpha=alpha) - v[short].astype(float))
    assert (error <= 40 * sig.n * unit(dtype) * max(length, alpha) * size).all()


# -- derivatives


LENGTHS = [0.0, 1e-9, 0.3, 0.99, 1.01, 3.0]


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("kind", ["spacelike", "timelike", "null"])
def test_derivatives_of_exp(length, kind):
    sig = Signature(2, 2)
    direction = {"spacelike": [0.6, 0.8, 0, 0], "timelike": [0, 0, 1, 0], "null": [0.6, 0.8, 1, 0]}
    x = torch.tensor([[0.0, 0.0, 0.0, 1.0]], dtype=torch.float64, requires_grad=True)
    v = length * torch.tensor([direction[kind]], dtype=torch.float64)
    v.requires_grad_()
    signs = sig.vector(x)
    assert torch.autograd.gradcheck(lambda a, b: exp_at(a, b, signs, 1.3), (x, v))
    assert torch.autograd.gradgradcheck(lambda a, b: exp_at(a, b, signs, 1.3), (x, v))


@pytest.mark.parametrize("length", [1e-4, 0.2, 0.5, 1.2, 1.9])
@pytest.mark.parametrize("kind", ["spacelike", "timelike", "null"])
@pytest.mark.parametrize("turned", [False, True])
def test_derivatives_of_log_and_transport(length, kind, turned):
    sig = Signature(2, 2)
    direction = {"spacelike": [0.6, 0.8, 0, 0], "timelike": [0, 0, 1, 0], "null": [0.6, 0.8, 1, 0]}
    x = torch.tensor([[0.0, 0.0, 0.0, 1.0]], dtype=torch.float64)
    v = length * torch.tensor([direction[kind]], dtype=torch.float64)
    signs = sig.vector(x)
    y = exp_at(x, v, signs, 1.0)
    if turned:  # far from the axes, where the other of y - x and y + x may be the shorter
        V = jorth.random_point(sig, cond=20.0, seed=13, dtype=torch.float64).mT
        x, y, v = x @ V, y @ V, v @ V
    x, y, v = (a.detach().requires_grad_() for a in (x, y, v))
    assert torch.autograd.gradcheck(lambda a, b: log_at(a, b, signs, 1.0), (x, y), atol=1e-4)
    assert torch.autograd.gradcheck(lambda *a: transport_at(*a, signs, 1.0), (x, y, v), atol=1e-4)


def test_derivatives_of_log_are_finite_at_the_same_point_and_nowhere_else_lost():
    sig = Signature(2, 2)
    x = torch.from_numpy(lift(np.array([0.3, -0.4, 0.5, 0.1]), sig)).requires_grad_()
    v = log(x, x.detach(), sig)
    v.sum().backward()
    assert v.abs().max() == 0
    assert torch.isfinite(x.grad).all()
    apart = torch.stack([x.detach(), -x.detach()])
    found = log_at(x, apart, sig.vector(x), 1.0)
    assert torch.isnan(found[1]).all()
    assert torch.equal(found[0], v.detach())
    gradient = torch.autograd.grad(found[0].sum(), x)[0]
    assert torch.isfinite(gradient).all()


# -- bad input

SIG = Signature(2, 2)
ONE = np.array([0.0, 0.0, 1.0, 0.0])
FAR = np.array([3.0, 0.0, -np.sqrt(10.0), 0.0])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: log0(-ONE, SIG), ValueError, "x must be joined to the origin by a geodesic"),
        (lambda: log(ONE, -ONE, SIG), ValueError, "y must be joined to x by a geodesic"),
        (lambda: exp(np.ones((2, 4)), np.ones((3, 4)), SIG), ValueError, "v must broadcast"),
        (lambda: origin(Signature(3, 0)), ValueError, "signature must have q of at least 1"),
        (lambda: origin(SIG, dtype=torch.float16), TypeError, "dtype must be torch.float64"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
