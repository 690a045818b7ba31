"""The centroid: its definition at 80 digits, what it minimises, and where it does not exist."""

import mpmath
import numpy as np
import pytest
import torch

import jorth
from jorth import Signature
from jorth.ultrahyperbolic import centroid, exp, inner, lift, membership, project_tangent
from jorth.ultrahyperbolic.means import centroid_at
from tests.ultrahyperbolic import exact

SIGS = [
    Signature(4, 1),
    Signature.lorentz(4, time="first"),
    Signature(3, 2),
    Signature(0, 3),
    Signature.of([-1, 1, 1, -1, 1, -1]),
]


def cloud(sig, count, seed=0, alpha=1.0, spread=0.4):
    """Points of U around its origin, so that their sums are timelike."""
    x = spread * np.random.default_rng(seed).standard_normal((count, sig.n))
    x[:, sig.negative[0]] += 1.0
    return lift(alpha * x, sig, alpha=alpha)


def exact_centroid(points, weights, sig, alpha):
    with mpmath.workdps(exact.DIGITS):
        columns = [exact.numbers(column) for column in points.T]
        w = exact.numbers(weights)
        s = [mpmath.fsum(a * b for a, b in zip(w, column, strict=True)) for column in columns]
        factor = mpmath.mpf(alpha) / mpmath.sqrt(-exact.form(s, s, sig))
        return exact.doubles([factor * entry for entry in s])


@pytest.mark.parametrize("sig", SIGS, ids=str)
@pytest.mark.parametrize("alpha", [1.0, 0.3])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_centroid_against_mpmath(sig, alpha, dtype):
    x = cloud(sig, 7, seed=1, alpha=alpha).astype(dtype)
    w = np.random.default_rng(2).uniform(0.1, 1.0, 7).astype(dtype)
    found = centroid(x, sig, weights=w, alpha=alpha)
    assert found.dtype == dtype
    wanted = exact_centroid(x, w, sig, alpha)
    u = np.finfo(dtype).eps / 2
    # the points are on U to 4 u |x|^2, which the two formulas read differently
    bound = 20 * sig.n * u * np.linalg.norm(wanted) * np.square(x / alpha).sum(1).max()
    assert np.abs(found - wanted).max() <= bound
    assert membership(found, sig, alpha=alpha) <= 20 * sig.n * u
    equal = centroid(x, sig, alpha=alpha)
    np.testing.assert_allclose(equal, centroid(x, sig, weights=3 * np.ones_like(w), alpha=alpha))


def test_near_points_far_out_keep_their_digits():
    """In float32 the direct formula has no correct digit of the length of s here."""
    sig = Signature(2, 1)
    with mpmath.workdps(40):
        x = [[mpmath.sinh(9 + k / 1024), 0, mpmath.cosh(9 + k / 1024)] for k in range(3)]
        points = np.array([exact.doubles(row) for row in x], dtype=np.float32)
    # a point without weight far from them does no harm
    points = np.concatenate([points, np.array([[0, 0, 1]], dtype=np.float32)])
    found = centroid(points, sig, weights=np.array([1, 1, 1, 0], dtype=np.float32))
    far = lift(found.astype(float), sig)
    # their sum is a multiple of the middle point; rounding moves <d, d> by |d| u |x| or 1e-3
    np.testing.assert_allclose(far[0], np.sinh(9 + 1 / 1024), rtol=1e-3)


@pytest.mark.parametrize("sig", [Signature(4, 1), Signature(0, 3), Signature(3, 2)], ids=str)
def test_centroid_is_stationary(sig):
    """sum w_i <x_i - c, x_i - c> does not change to first order along any tangent vector."""
    x = cloud(sig, 6, seed=3)
    w = np.random.default_rng(4).uniform(0.1, 1.0, 6)
    c = centroid(x, sig, weights=w)
    for seed in range(5):
        v = project_tangent(c, np.random.default_rng(seed).standard_normal(sig.n), sig)
        slope = inner(x, v[None], sig) @ w
        assert abs(slope) <= 1e-13
    if sig.q == 1:  # and a minimum there
        other = exp(c, 0.01 * v, sig)
        assert -inner(x, other[None], sig) @ w > -inner(x, c[None], sig) @ w


@pytest.mark.parametrize("sig", SIGS, ids=str)
def test_centroid_moves_with_isometries(sig):
    x = cloud(sig, 5, seed=6)
    w = np.random.default_rng(7).uniform(0.1, 1.0, 5)
    V = jorth.random_point(sig, cond=4.0, seed=8).T
    found = centroid(x @ V, sig, weights=w)
    np.testing.assert_allclose(found, centroid(x, sig, weights=w) @ V, atol=1e-12)


def test_derivatives():
    sig = Signature(2, 2)
    x = torch.from_numpy(cloud(sig, 4, seed=9, alpha=1.2)).requires_grad_()
    w = torch.tensor([0.3, 0.5, 0.1, 1.0], dtype=torch.float64, requires_grad=True)
    signs = sig.vector(x)
    assert torch.autograd.gradcheck(lambda a, b: centroid_at(a, b, signs, 1.2), (x, w))
    # along U both have the same derivatives
    lifted = lambda a: lift(a, sig)  # noqa: E731
    free = (x.detach() / 1.2).requires_grad_()
    s = w @ lifted(free)
    direct = s / (-inner(s, s, sig)).sqrt().unsqueeze(-1)
    (wanted,) = torch.autograd.grad(direct.sin().sum(), free)
    (found,) = torch.autograd.grad(centroid_at(lifted(free), w, signs, 1.0).sin().sum(), free)
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-12)


def test_batches_and_what_has_no_centroid():
    sig = Signature(2, 2)
    x = torch.from_numpy(cloud(sig, 12, seed=10).reshape(3, 4, 4))
    w = torch.rand(5, 1, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    found = centroid(x, sig, weights=w)
    assert found.shape == (5, 3, 4)
    torch.testing.assert_close(found[2, 1], centroid(x[1], sig, weights=w[2, 0]))
    opposite = torch.stack([x[0, 0], -x[0, 0]])
    one = torch.ones(2, dtype=torch.float64)
    assert torch.isnan(centroid_at(opposite, one, sig.vector(x), 1.0)).all()
    with pytest.raises(ValueError, match=r"must be such that .* got 1 sums"):
        centroid(opposite, sig)


CASES = {
    "one point": (lambda: centroid(np.ones(4), Signature(2, 2)), ValueError, r"points must have shape \(..., m, 4\)"),
    "no points": (lambda: centroid(np.ones((0, 4)), Signature(2, 2)), ValueError, "with m of at least 1"),
    "weights": (lambda: centroid(np.ones((3, 4)), Signature(2, 2), weights=np.ones(2)), ValueError, r"weights must have shape \(..., 3\)"),
    "dtype": (lambda: centroid(np.ones((3, 4)), Signature(2, 2), weights=np.ones(3, np.float32)), TypeError, "weights must have the dtype and device of points"),
    "q": (lambda: centroid(np.ones((3, 4)), Signature(4, 0)), ValueError, "signature must have q of at least 1"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_error_names_the_argument(name):
    call, error, message = CASES[name]
    with pytest.raises(error, match=message):
        call()
