"""The pseudo-hyperboloid: lift, membership, distances against mpmath,
and finite derivatives everywhere."""

import mpmath
import numpy as np
import pytest
import torch

from jorth import Signature
from jorth.ultrahyperbolic import distance, lift, lift_at, membership, origin, slices

SIGS = [Signature(3, 2), Signature(4, 1), Signature(0, 4), Signature.of([-1, 1, 1, -1, 1, -1])]


def points(sig, count, seed=0, spread=1.0):
    x = np.random.default_rng(seed).standard_normal((count, sig.n)) * spread
    return lift(x, sig)


@pytest.mark.parametrize("sig", SIGS, ids=str)
@pytest.mark.parametrize("alpha", [1.0, 0.3, 20.0])
@pytest.mark.parametrize("spread", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_lift_lands_on_the_manifold(sig, alpha, spread, dtype):
    x = (np.random.default_rng(1).standard_normal((50, sig.n)) * spread).astype(dtype)
    y = lift(x, sig, alpha=alpha)
    assert y.dtype == dtype
    assert membership(y, sig, alpha=alpha).max() <= 40 * np.finfo(dtype).eps
    np.testing.assert_array_equal(y[:, sig.positive], x[:, sig.positive])
    t, u = x[:, sig.negative], y[:, sig.negative]
    cosines = (t * u).sum(1) / (np.linalg.norm(t, axis=1) * np.linalg.norm(u, axis=1))
    np.testing.assert_allclose(cosines, 1.0, rtol=1e-5)


@pytest.mark.parametrize("sig", [*SIGS, Signature.of([-1, -1, 1, 1, 1])], ids=str)
def test_lift_at_slices_or_indices_is_lift_with_its_gradient(sig):
    random = torch.Generator().manual_seed(4)
    x = torch.randn(7, sig.n, generator=random, dtype=torch.float64)
    indices = sig.positions(x.device)
    places = [indices] if slices(sig) is None else [indices, slices(sig)]
    factor = torch.randn(7, sig.n, generator=random, dtype=torch.float64)
    expected = lift(x.requires_grad_(), sig, alpha=1.3)
    (slope,) = torch.autograd.grad((expected * factor).sum(), x)
    for plus, minus in places:
        found = lift_at(x, plus, minus, 1.3)
        torch.testing.assert_close(found, expected, rtol=1e-14, atol=1e-14)
        (ours,) = torch.autograd.grad((found * factor).sum(), x)
        torch.testing.assert_close(ours, slope, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("sig", SIGS, ids=str)
def test_lift_of_coordinates_is_that_of_the_origin_plus_these(sig):
    v = np.random.default_rng(5).standard_normal((20, sig.n - 1))
    whole = origin(sig, alpha=1.5) + np.insert(v, sig.negative[0], 0.0, axis=1)
    np.testing.assert_array_equal(lift(v, sig, alpha=1.5), lift(whole, sig, alpha=1.5))


def exact_distance(x, y, sig, alpha):
    """From the double inputs, at 60 digits, by the definition."""
    with mpmath.workdps(60):
        g = mpmath.fsum(
            int(s) * mpmath.mpf(a) * mpmath.mpf(b) for s, a, b in zip(sig.signs, x, y, strict=True)
        )
        g = abs(g / mpmath.mpf(alpha) ** 2)
        return float(alpha * (mpmath.acosh(g) if g >= 1 else mpmath.acos(g)))


@pytest.mark.parametrize("sig", SIGS, ids=str)
@pytest.mark.parametrize("alpha", [1.0, 0.5])
def test_distance_against_mpmath(sig, alpha):
    rng = np.random.default_rng(3)
    x = lift(rng.standard_normal((40, sig.n)), sig, alpha=alpha)
    y = lift(rng.standard_normal((40, sig.n)), sig, alpha=alpha)
    found = distance(x, y, sig, alpha=alpha)
    wanted = [exact_distance(a, b, sig, alpha) for a, b in zip(x, y, strict=True)]
    np.testing.assert_allclose(
        found, wanted, rtol=1e-12, atol=1e-7
    )  # the definition is ill-conditioned at |g| = 1


@pytest.mark.parametrize("apart", [1e-2, 1e-5, 1e-9])
@pytest.mark.parametrize("antipodal", [False, True])
def test_near_points_keep_their_digits(apart, antipodal):
    """On the hyperboloid of radius 1 along a geodesic the distance is the parameter, however
    small."""
    sig = Signature(2, 1)
    at = 0.7
    x = np.array([np.sinh(at), 0.0, np.cosh(at)])
    y = np.array([np.sinh(at + apart), 0.0, np.cosh(at + apart)])
    y = -y if antipodal else y
    # rounding of the points themselves allows u / apart
    assert distance(x, y, sig) == pytest.approx(apart, rel=4e-16 / apart + 1e-14)


def test_gradients_agree_with_finite_differences():
    sig = Signature(3, 2)
    x = torch.randn(
        4, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
    ).requires_grad_()
    y = torch.randn(
        4, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1)
    ).requires_grad_()
    assert torch.autograd.gradcheck(lambda a: lift(a, sig), x)
    assert torch.autograd.gradcheck(lambda a, b: distance(lift(a, sig), lift(b, sig), sig), (x, y))


def hard_pairs():
    sig = Signature(2, 2)
    x = lift(np.array([0.3, -0.4, 0.5, 0.1]), sig)
    null = np.array(
        [1.0, 0.0, 1.0, 0.0]
    )  # <null, null> = 0: x + c null with <x, null> = 0 is joined by a null geodesic
    x0 = lift(np.array([0.0, 0.0, 0.0, 1.0]), sig)
    tiny = lift(np.array([0.3, -0.4, 5e-200, 1e-200]), sig)
    return sig, {
        "coincident": (x, x),
        "antipodal": (x, -x),
        "nearly coincident": (x, lift(x + 1e-12, sig)),
        "null geodesic": (x0, x0 + 2.0 * null),
        "|g| just above 1": (x0, x0 + 2.0 * null + 1e-15),
        "|g| just below 1": (x0, x0 + 2.0 * null - 1e-15),
        "t near 0": (x, tiny),
        "far": (lift(np.array([1e100, 0.0, 1.0, 0.0]), sig), x),
    }


@pytest.mark.parametrize("name", list(hard_pairs()[1]))
def test_derivatives_are_finite_at_the_hard_points(name):
    sig, pairs = hard_pairs()
    x, y = (torch.from_numpy(p).requires_grad_() for p in pairs[name])
    d = distance(x, y, sig)
    d.backward()
    assert torch.isfinite(d)
    assert torch.isfinite(x.grad).all()
    assert torch.isfinite(y.grad).all()
    if name in ("coincident", "antipodal", "null geodesic"):
        assert d.item() == 0
        assert x.grad.abs().max() == 0


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: lift(np.zeros(4), Signature(2, 2)), ValueError, "x must have t != 0 in every row"),
        (lambda: lift(np.ones(2), Signature(2, 2)), ValueError, r"x must have shape \(..., 4\)"),
        (lambda: lift(np.ones(2), Signature(2, 0)), ValueError, "must have q of at least 1"),
        (lambda: distance(np.ones(4), "one", Signature(2, 2)), TypeError, "y must be an array"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
