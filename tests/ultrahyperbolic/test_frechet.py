"""The Frechet mean: its error at 80 digits, what it minimises, isometries, its derivative; and that
exp and log, of which it is made, are inverse and differentiable twice."""

import mpmath
import numpy as np
import pytest
import torch

import jorth
from jorth import Signature
from jorth.ultrahyperbolic import exp, frechet_mean, lift, log, membership, project_tangent
from tests.ultrahyperbolic import exact

SIGS = [
    Signature(4, 1),
    Signature.lorentz(4, time="first"),
    Signature(3, 2),
    Signature(0, 3),
    Signature.of([-1, 1, 1, -1, 1, -1]),
]
HYPERBOLIC = [sig for sig in SIGS if sig.q == 1]
UNIT = 2.0**-53


def cloud(sig, count=6, seed=0, alpha=1.0, spread=0.3):
    """Points of U around its origin; on one sheet where there are two."""
    x = spread * np.random.default_rng(seed).standard_normal((count, sig.n))
    time = sig.negative[0]
    x[:, time] += 1.0
    if sig.q == 1:
        x[:, time] = np.abs(x[:, time])
    return lift(alpha * x, sig, alpha=alpha)


def exact_error(mean, points, weights, sig, alpha):
    """|sum w_i log(x, x_i)| at 80 digits, which is at least the distance of x from the mean.

    For q = 1 the derivative of the sum is at least sum w_i = 1 along every geodesic.
    """
    with mpmath.workdps(exact.DIGITS):
        x = exact.lifted(mean, sig, alpha)
        logs = [exact.log(x, exact.lifted(y, sig, alpha), sig, alpha) for y in points]
        w = exact.numbers(weights)
        total = [
            mpmath.fsum(a * b for a, b in zip(w, v, strict=True)) for v in zip(*logs, strict=True)
        ]
        return float(mpmath.sqrt(abs(exact.form(total, total, sig))) / mpmath.fsum(w))


@pytest.mark.parametrize("sig", HYPERBOLIC, ids=str)
@pytest.mark.parametrize("alpha", [1.0, 0.3])
@pytest.mark.parametrize("spread", [1e-6, 0.5, 30.0])
def test_the_error_at_80_digits(sig, alpha, spread):
    x = cloud(sig, seed=1, alpha=alpha, spread=spread)
    w = np.random.default_rng(2).uniform(0.1, 1.0, len(x))
    found = frechet_mean(x, sig, weights=w, alpha=alpha)
    # rounding of x and of the x_i moves them by u |x| in coordinates, u |x|^2 in length
    largest = max(np.linalg.norm(found), np.linalg.norm(x, axis=1).max()) / alpha
    bound = 20 * sig.n * UNIT * alpha * np.linalg.norm(found / alpha) * largest
    assert exact_error(found, x, w, sig, alpha) <= bound
    assert membership(found, sig, alpha=alpha) <= 10 * UNIT


@pytest.mark.parametrize("sig", SIGS, ids=str)
def test_logarithms_cancel(sig):
    x = cloud(sig, seed=3)
    w = np.random.default_rng(4).uniform(0.1, 1.0, len(x))
    for scale in (1.0, 1e-200, 1e200):
        found = frechet_mean(x, sig, weights=scale * w)
        assert np.linalg.norm(w @ log(found[None], x, sig)) <= 200 * UNIT * w.sum()


@pytest.mark.parametrize("sig", SIGS, ids=str)
def test_it_moves_with_isometries(sig):
    x = cloud(sig, seed=6)
    R = jorth.random_point(sig, cond=9.0, seed=7)
    moved = frechet_mean(x @ R.T, sig)
    np.testing.assert_allclose(moved, R @ frechet_mean(x, sig), atol=1e-12)


@pytest.mark.parametrize("sig", SIGS, ids=str)
def test_its_derivative_is_that_of_the_implicit_function(sig):
    x = torch.from_numpy(cloud(sig, 4, seed=9, alpha=1.2)).requires_grad_()
    w = torch.tensor([0.2, 1.0, 0.5, 0.7], dtype=torch.float64, requires_grad=True)

    def mean(x, w):
        return frechet_mean(lift(x, sig, alpha=1.2), sig, weights=w, alpha=1.2)

    assert torch.autograd.gradcheck(mean, (x, w))
    found = frechet_mean(x, sig, alpha=1.2)
    assert torch.equal(found, frechet_mean(x.detach(), sig, alpha=1.2))
    with pytest.raises(RuntimeError, match="FrechetMean has first derivatives only"):
        torch.autograd.grad(found.sum(), x, create_graph=True)


def test_what_has_no_mean():
    sig = Signature(2, 1)
    x = cloud(sig, 3)
    with pytest.raises(ValueError, match=r"points must be on one sheet .* 1 of 2 sets"):
        frechet_mean(np.stack([x, x * np.array([[1, 1, -1], [1, 1, 1], [1, 1, 1]])]), sig)
    apart = lift(np.array([[2.0, 0, 1, 0], [2.0, 0, -1, 0]]), Signature(2, 2))  # on no geodesic
    with pytest.raises(ValueError, match="points must be near each other"):
        frechet_mean(apart, Signature(2, 2))
    for weights in ([1, 1, -1], [0, 0, 0]):
        with pytest.raises(ValueError, match="weights must be at least 0 with a positive sum"):
            frechet_mean(x, sig, weights=weights)
    with pytest.raises(ValueError, match=r"points, .* such that <x, x> = -alpha\^2, got .* 0.75"):
        frechet_mean([[0.0, 0.0, 1.0]], sig, alpha=0.5)
    with pytest.raises(ValueError, match="signature must have q of at least 1"):
        frechet_mean(x, Signature(3, 0))


@pytest.mark.parametrize("sig", SIGS, ids=str)
def test_log_undoes_exp_and_both_have_two_derivatives(sig):
    x = cloud(sig, 3, seed=10)
    v = project_tangent(x, np.random.default_rng(11).uniform(-1, 1, x.shape), sig)
    np.testing.assert_allclose(log(x, exp(x, v, sig), sig), v, atol=1e-13)
    x, v = (torch.from_numpy(one[0]).requires_grad_() for one in (x, v))
    y = exp(x, v, sig).detach().requires_grad_()
    for function, arguments in ((exp, (x, v)), (log, (x, y))):
        assert torch.autograd.gradcheck(lambda a, b, f=function: f(a, b, sig), arguments)
        assert torch.autograd.gradgradcheck(lambda a, b, f=function: f(a, b, sig), arguments)
