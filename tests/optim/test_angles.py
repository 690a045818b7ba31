"""The step by angles: what lr means, gains, averages, clipping, the norm that holds."""

import math
import warnings

import numpy as np
import pytest
import torch

import jorth
from jorth import Signature
from jorth.optim import JOBCD
from jorth.optim.jobcd import FIRST_GAIN, LARGEST_ANGLE
from tests.optim.problems import SIG


def parameter(signature, cond=4.0, dtype=torch.float64, **options):
    return torch.nn.Parameter(jorth.random_point(signature, cond=cond, dtype=dtype, **options))


def gradient_of(X, S, signature):
    """A gradient with J G X^T = S, so that the slopes are the skew S: G = J S X^-T = J S J X J."""
    s = signature.vector(X)
    return (s[:, None] * S * s) @ X.detach() * s


def skew(n, seed):
    draw = torch.Generator().manual_seed(seed)
    S = torch.randn((n, n), generator=draw, dtype=torch.float64)
    return S - S.mT


def step(optimizer, X, G):
    X.grad = G.to(X.dtype)
    optimizer.step()


# -- the angle


def turned_by(signature, X0, size, **options):
    """The angle or rapidity of the first step in the only plane, by rows and by columns alike."""
    X = torch.nn.Parameter(X0.clone())
    S = torch.tensor([[0.0, size], [-size, 0.0]], dtype=torch.float64)
    step(JOBCD([X], signature, gain_rate=0.0, **options), X, gradient_of(X, S, signature))
    angle = math.asin if signature.q == 0 else math.asinh
    return abs(angle(float((X.detach() @ jorth.inverse(X0, signature))[1, 0])))


@pytest.mark.parametrize("cond", [1.0, 100.0, 1e6])
@pytest.mark.parametrize("size", [1e-30, 1.0, 1e30])
@pytest.mark.parametrize("lr", [1e-4, 0.01])
def test_the_learning_rate_is_an_angle_whatever_the_norms(lr, size, cond):
    """X is turned by lr on both sides, or boosted by its reach, at any X and gradient."""
    rotated = turned_by(Signature(2, 0), torch.eye(2, dtype=torch.float64), size, lr=lr)
    assert rotated == pytest.approx(2 * lr, rel=1e-4)  # eps is 1e-5
    X0 = jorth.random_point(Signature(1, 1), cond=cond, dtype=torch.float64, seed=5)
    boosted = turned_by(Signature(1, 1), X0, size, lr=lr)
    assert boosted == pytest.approx(0.5 * lr, rel=1e-4 + 1e-13 * cond / lr)


def test_angles_are_clipped():
    for signature in (Signature(2, 0), Signature(1, 1)):
        X0 = torch.eye(2, dtype=torch.float64)
        found = turned_by(signature, X0, 1.0, lr=3.0)
        assert found == pytest.approx(2 * LARGEST_ANGLE, rel=1e-12)


# -- the gain


def test_the_gain_grows_while_slopes_agree_and_shrinks_while_they_turn():
    for cosine in (1, -1):
        X = parameter(SIG)
        optimizer = JOBCD([X], SIG, lr=1e-6, momentum=0.0)
        S = skew(SIG.n, 2)  # of many sizes: D and S / r are parallel still
        for turn in range(8):
            step(optimizer, X, gradient_of(X, S * cosine**turn, SIG))
        gain = optimizer.state[X]["gain"]
        assert gain.shape == (1, 2, 2)
        wanted = FIRST_GAIN
        for _ in range(7):
            wanted *= math.exp(0.05 * cosine * (1 + 4 / (1 + wanted**2)))
        assert torch.allclose(gain[0, 0], torch.full_like(gain[0, 0], wanted), rtol=1e-4)


def test_short_runs_move_as_far_as_their_rate_says():
    """One boost whose gradient never changes: 50 steps of lr = 0.01 go farther than 50 lr."""
    X = torch.nn.Parameter(torch.eye(2, dtype=torch.float64))
    optimizer = JOBCD([X], Signature(1, 1))
    for _ in range(50):
        step(optimizer, X, gradient_of(X, skew(2, 2), Signature(1, 1)))
    assert math.acosh(float(X.detach()[0, 0])) > 1.0


def test_rotations_and_boosts_have_gains_of_their_own():
    X = parameter(SIG)
    optimizer = JOBCD([X], SIG, lr=1e-6, momentum=0.0)
    s = SIG.vector(X)
    boosts = (s[:, None] != s).double()
    S = skew(SIG.n, 2)
    for turn in range(5):
        step(optimizer, X, gradient_of(X, S * (1 - boosts) + (-1) ** turn * S * boosts, SIG))
    rotation, boost = optimizer.state[X]["gain"][0, 0].tolist()
    assert rotation > FIRST_GAIN > boost


def test_the_gain_is_bounded_and_rests_at_rate_zero():
    for rate, least, most in ((0.9, 90.0, 100.0), (0.0, 1.0, 1.0)):
        X = parameter(SIG)
        optimizer = JOBCD([X], SIG, lr=1e-12, gain_rate=rate)
        S = skew(SIG.n, 2)
        for _ in range(30):
            step(optimizer, X, gradient_of(X, S, SIG))
        left = optimizer.state[X]["gain"][0, 0]
        assert (left >= least).all()
        assert (left <= most).all()


# -- averages


@pytest.mark.parametrize("seed", [0, 1])
def test_averages_are_weighted_means_also_where_the_decay_changes(seed):
    """At lr = 0 X rests; slopes of alike sizes are not limited."""
    rng = np.random.default_rng(seed)
    X = parameter(SIG)
    optimizer = JOBCD([X], SIG, lr=0.0)
    betas = rng.uniform(0.0, 0.95, 12)
    slopes = [
        np.triu(rng.uniform(0.6, 1.4, (5, 5)) * rng.choice([-1, 1], (5, 5)), 1) for _ in betas
    ]
    for S, beta in zip(slopes, betas, strict=True):
        optimizer.param_groups[0].update(momentum=beta, decay=0.5 + beta / 2)
        step(optimizer, X, gradient_of(X, torch.tensor(S - S.T), SIG))
    state = optimizer.state[X]
    for power, name, decays in ((1, "momentum", betas), (2, "root", 0.5 + betas / 2)):
        weights = [(1 - decays[k]) * np.prod(decays[k + 1 :]) for k in range(12)]
        mean = sum(w * S**power for w, S in zip(weights, slopes, strict=True)) / sum(weights)
        found = state[name][0, 0] ** power / state[f"{name}_weight"][0, 0]
        np.testing.assert_allclose(np.triu(found), mean, rtol=1e-10)


# -- the norm that holds


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_norm_is_held_and_rotations_go_on(dtype):
    """A loss that pulls a boost outwards without end, and a rotation to an angle of one."""
    signature, limit = Signature(2, 1), 50.0
    X = parameter(signature, cond=2.0, dtype=dtype, seed=8)  # the identity would be critical
    drift = 8 * torch.finfo(dtype).eps / 2 * limit**2  # what may be taken away after the check
    optimizer = JOBCD([X], signature, lr=0.05, max_norm=limit)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(400):
            optimizer.zero_grad()
            (-X[2, 2] + 300 * (X[0, 0] / X[:2, 0].norm() - math.cos(1.0)) ** 2).backward()
            optimizer.step()
            assert torch.linalg.matrix_norm(X.detach()) <= limit * (1 + drift)
    assert torch.linalg.matrix_norm(X.detach()) > 0.5 * limit
    turned = float(X.detach()[0, 0] / X.detach()[:2, 0].norm())
    assert turned == pytest.approx(math.cos(1.0), abs=0.05)
    held = optimizer.state[X]["too_far"]
    assert held > 10
    (message,) = [str(w.message) for w in caught]
    assert "beyond ||X|| = 50" in message
    assert "1 of 1 matrices turn without their boosts" in message


def test_a_held_matrix_comes_back_when_the_loss_turns():
    X = torch.nn.Parameter(torch.eye(2))
    optimizer = JOBCD([X], Signature(1, 1), lr=0.1, max_norm=20.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for sign in [-1] * 200 + [1] * 200:
            optimizer.zero_grad()
            (sign * X.square().sum()).backward()
            optimizer.step()
    assert torch.linalg.matrix_norm(X.detach()) < 2.0
