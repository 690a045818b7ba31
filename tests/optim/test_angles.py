"""The step by angles: what lr means, how the gain learns, decay, clipping, the norm that holds."""

import itertools
import math
import warnings

import numpy as np
import pytest
import scipy.linalg
import torch

import jorth
from jorth import Signature
from jorth.optim import JOBCD, VRJOBCD
from jorth.optim.weight_decay import decay_angles, rapidities
from jorth.plane.averages import SlopeAverages
from tests.optim.problems import PAPER, SIG

LORENTZ = Signature.lorentz(4, time="last")


def parameter(signature, cond=4.0, dtype=torch.float64, **options):
    return torch.nn.Parameter(jorth.random_point(signature, cond=cond, dtype=dtype, **options))


def gradient_of(X, S, signature):
    """A gradient with J G X^T = S, so that the slopes are the skew S: G = J S X^-T = J S J X J."""
    s = signature.vector(X)
    return (s[:, None] * S * s) @ X.detach() * s


def skew(n, seed, batch=()):
    draw = torch.Generator().manual_seed(seed)
    S = torch.randn((*batch, n, n), generator=draw, dtype=torch.float64)
    return S - S.mT


def step(optimizer, X, G):
    X.grad = G.to(X.dtype)
    optimizer.step()


# -- the angle


@pytest.mark.parametrize("cond", [1.0, 100.0, 1e6])
@pytest.mark.parametrize("size", [1e-30, 1.0, 1e30])
@pytest.mark.parametrize("lr", [1e-4, 0.01])
def test_the_learning_rate_is_an_angle_whatever_the_norms(lr, size, cond):
    """One plane alone: X is turned by lr there, or boosted by its reach, at any X and gradient."""
    signature = Signature(2, 1)
    X0 = jorth.random_point(signature, cond=cond, dtype=torch.float64, seed=5)
    for (i, j), angle in {(0, 1): lr, (0, 2): lr * 0.25 / math.sqrt(2)}.items():
        X = torch.nn.Parameter(X0.clone())
        S = torch.zeros(3, 3, dtype=torch.float64)
        S[i, j], S[j, i] = size, -size
        optimizer = JOBCD([X], signature, lr=lr, side="left", gain_rate=0.0)
        step(optimizer, X, gradient_of(X, S, signature))
        T = X.detach() @ jorth.inverse(X0, signature)
        found = scipy.linalg.logm(T.numpy()) if cond < 1e3 else (T - torch.eye(3)).numpy()
        bound = 1e-5 + 1e-14 * cond / lr + (0 if cond < 1e3 else lr)  # eps is 1e-5
        assert abs(abs(found[i, j]) / angle - 1) < bound


def test_steps_on_both_sides_turn_rows_and_columns():
    """X' = T X T', where T X and X T' are the steps of one side."""
    X0 = jorth.random_point(SIG, cond=9.0, dtype=torch.float64, seed=1)
    G = skew(SIG.n, 3) + 1.0
    kept = {}
    for side in ("left", "right", "both"):
        X = torch.nn.Parameter(X0.clone())
        step(JOBCD([X], SIG, lr=0.1, side=side, gain_rate=0.0), X, G)
        new = X.detach()
        kept[side] = new
        assert jorth.residual(new, SIG) < 100 * SIG.n * 2.0**-53
    left = kept["left"] @ jorth.inverse(X0, SIG)
    both = left @ kept["right"]
    assert (kept["both"] - both).abs().max() < 1e-12


@pytest.mark.parametrize("max_angle", [0.01, 0.3])
def test_angles_are_clipped(max_angle):
    X0 = torch.eye(2, dtype=torch.float64)
    for signature, turn in ((Signature(2, 0), math.asin), (Signature(1, 1), math.asinh)):
        X = torch.nn.Parameter(X0.clone())
        S = torch.tensor([[0.0, 1e9], [-1e9, 0.0]], dtype=torch.float64)
        options = {"curvature": "scheduled", "side": "left", "max_angle": max_angle}
        step(JOBCD([X], signature, **options), X, gradient_of(X, S, signature))
        assert abs(turn(float(X.detach()[1, 0]))) == pytest.approx(max_angle, rel=1e-12)


# -- the gain


def test_the_gain_grows_while_slopes_agree_and_shrinks_while_they_turn():
    for sign, rate in ((1, 0.05), (-1, -0.05)):
        X = parameter(SIG)
        optimizer = JOBCD([X], SIG, lr=1e-6, momentum=0.0, side="left")
        S = skew(SIG.n, 2).sign()  # of one size, so that D is parallel to S
        for turn in range(8):
            step(optimizer, X, gradient_of(X, S * sign**turn, SIG))
        gain = optimizer.state[X]["gain"]
        assert gain.shape == (1, 2)
        wanted = 0.1 * math.exp(7 * rate)
        assert torch.allclose(gain, torch.full_like(gain, wanted), rtol=1e-4)


def test_rotations_and_boosts_have_gains_of_their_own():
    X = parameter(SIG)
    optimizer = JOBCD([X], SIG, lr=1e-6, momentum=0.0, side="left")
    s = SIG.vector(X)
    boosts = (s[:, None] != s).double()
    S = skew(SIG.n, 2)
    for turn in range(5):
        step(optimizer, X, gradient_of(X, S * (1 - boosts) + (-1) ** turn * S * boosts, SIG))
    rotation, boost = optimizer.state[X]["gain"].flatten().tolist()
    assert rotation > 0.1 > boost


def test_the_gain_is_bounded_and_rests_at_rate_zero():
    for rate, least, most in ((0.9, 90.0, 100.0), (0.0, 1.0, 1.0)):
        X = parameter(SIG)
        optimizer = JOBCD([X], SIG, lr=1e-12, gain_rate=rate)
        S = skew(SIG.n, 2)
        for _ in range(30):
            step(optimizer, X, gradient_of(X, S, SIG))
        left = optimizer.state[X]["gain"][0]
        assert (left >= least).all()
        assert (left <= most).all()


# -- averages


@pytest.mark.parametrize("seed", [0, 1])
def test_averages_are_weighted_means_also_where_the_decay_changes(seed):
    rng = np.random.default_rng(seed)
    slopes = [skew(3, int(rng.integers(1000))) for _ in range(12)]
    betas = rng.uniform(0.0, 0.95, 12)
    averages = SlopeAverages.zeros(slopes[0])
    for S, beta in zip(slopes, betas, strict=True):
        averages.update(S, momentum=beta, decay=0.5 + beta / 2)
    for power, decays in ((1, betas), (2, 0.5 + betas / 2)):
        weights = [(1 - decays[k]) * np.prod(decays[k + 1 :]) for k in range(12)]
        mean = sum(w * S.numpy() ** power for w, S in zip(weights, slopes, strict=True))
        mean /= sum(weights)
        if power == 1:
            M = mean
    D = averages.direction()
    off = ~np.eye(3, dtype=bool)
    np.testing.assert_allclose(D.numpy()[off], (M / np.sqrt(mean + np.eye(3)))[off], rtol=1e-10)


@pytest.mark.parametrize("options", [{}, PAPER], ids=["angles", "paper"])
def test_momentum_may_be_switched_on_and_off(options):
    """With slopes that stay the same, momentum changes nothing, whenever it begins."""
    ends = []
    for changes in ({}, {3: 0.9, 6: 0.5, 8: 0.0}):
        X = parameter(SIG, seed=4)
        fixed = {"lr": 1e-3, "momentum": 0.0, "gain_rate": 0.0, "side": "left"}
        optimizer = JOBCD([X], SIG, **options | fixed)
        S = skew(SIG.n, 7)
        for turn in range(10):
            optimizer.param_groups[0]["momentum"] = changes.get(
                turn, optimizer.param_groups[0]["momentum"]
            )
            step(optimizer, X, gradient_of(X, S, SIG))
        ends.append(X.detach())
    assert (ends[0] - ends[1]).abs().max() < 1e-10


def test_one_cycle_changes_momentum_and_rate():
    X = parameter(SIG)
    optimizer = JOBCD([X], SIG)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=0.03, total_steps=20, base_momentum=0.8, max_momentum=0.95
    )
    seen = []
    for _ in range(20):
        step(optimizer, X, skew(SIG.n, 1))
        seen.append((optimizer.param_groups[0]["lr"], optimizer.param_groups[0]["momentum"]))
        if len(seen) < 20:
            schedule.step()
    assert max(lr for lr, _ in seen) == pytest.approx(0.03)
    assert min(m for _, m in seen) == pytest.approx(0.8)
    assert jorth.residual(X.detach(), SIG) < 100 * SIG.n * 2.0**-53


# -- weight decay


@pytest.mark.parametrize("signature", [LORENTZ, SIG, Signature(2, 4), Signature(3, 3)])
@pytest.mark.parametrize("cond", [1.0, 1.0001, 30.0, 1e6])
def test_rapidities_are_half_the_logarithm(signature, cond):
    X = jorth.random_point(signature, cond=cond, batch=(2,), seed=3)
    for matrix, found in zip(X, rapidities(torch.as_tensor(X), signature).numpy(), strict=True):
        values, vectors = np.linalg.eigh(matrix @ matrix.T)
        wanted = (vectors * np.log(values) / 2) @ vectors.T
        if cond > 1e3:  # small eigenvalues of X X^T lose digits; B is compared by what it does
            assert np.abs(np.linalg.eigvalsh(found)).max() == pytest.approx(math.log(cond) / 2)
        else:
            np.testing.assert_allclose(found, wanted, atol=1e-12 * cond)


@pytest.mark.parametrize("side", ["left", "right", "both"])
def test_weight_decay_shrinks_rapidities_and_keeps_rotations(side):
    """Without slopes, a step takes exp(B) Q to exp((1 - lr weight_decay) B) Q."""
    X0 = jorth.random_point(LORENTZ, cond=25.0, dtype=torch.float64, seed=2)
    X = torch.nn.Parameter(X0.clone())
    optimizer = JOBCD([X], LORENTZ, lr=1e-3, weight_decay=1.0, side=side)
    for _ in range(100):
        step(optimizer, X, torch.zeros(4, 4))
    before, after = (jorth.cs_decomposition(Y, LORENTZ).mu for Y in (X0, X.detach()))
    assert float(after / before) == pytest.approx((1 - 1e-3) ** 100, rel=1e-4)
    assert jorth.residual(X.detach(), LORENTZ) < 100 * 4 * 2.0**-53
    Q0, Q = (torch.matrix_exp(-rapidities(Y[None], LORENTZ)[0]) @ Y for Y in (X0, X.detach()))
    assert (Q - Q0).abs().max() < 1e-3


def test_weight_decay_towards_the_identity_undoes_rotations_too():
    X0 = jorth.random_point(SIG, cond=4.0, dtype=torch.float64, seed=6)
    X = torch.nn.Parameter(X0.clone())
    optimizer = JOBCD([X], SIG, lr=0.1, weight_decay=1.0, decay_towards="identity")
    for _ in range(400):
        step(optimizer, X, torch.zeros(SIG.n, SIG.n))
    assert (X.detach() - torch.eye(SIG.n)).abs().max() < 1e-3 < (X0 - torch.eye(SIG.n)).abs().max()
    angles = decay_angles(torch.eye(SIG.n)[None], SIG, "identity")
    assert torch.equal(angles, torch.zeros(1, SIG.n, SIG.n, dtype=torch.float64))


@pytest.mark.parametrize("signature", [Signature(10, 1), Signature(5, 5)])
@pytest.mark.parametrize("towards", ["compact", "identity"])
def test_weight_decay_never_makes_a_matrix_grow(signature, towards):
    """At any rate and any norm: at most a quarter is taken off at a time."""
    X = parameter(signature, cond=1e6, seed=1)
    optimizer = JOBCD([X], signature, lr=1.0, weight_decay=5.0, decay_towards=towards)
    norms = []
    for _ in range(80):
        norms.append(float(torch.linalg.matrix_norm(X.detach(), ord=2)))
        step(optimizer, X, torch.zeros(signature.n, signature.n))
    assert all(b <= a * (1 + 1e-9) for a, b in itertools.pairwise(norms))
    assert norms[-1] < 1.5


# -- the norm that holds


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_norm_is_held_and_rotations_go_on(dtype):
    """A loss that pulls a boost outwards without end, and a rotation to an angle of one."""
    signature, limit = Signature(2, 1), 50.0
    X = parameter(signature, cond=2.0, dtype=dtype, seed=8)  # the identity would be critical
    optimizer = JOBCD([X], signature, lr=0.05, max_norm=limit)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(400):
            optimizer.zero_grad()
            (-X[2, 2] + 300 * (X[0, 0] / X[:2, 0].norm() - math.cos(1.0)) ** 2).backward()
            optimizer.step()
            assert torch.linalg.matrix_norm(X.detach()) <= limit * (1 + 1e-6)
    assert torch.linalg.matrix_norm(X.detach()) > 0.5 * limit
    turned = float(X.detach()[0, 0] / X.detach()[:2, 0].norm())
    assert turned == pytest.approx(math.cos(1.0), abs=0.05)
    held = optimizer.param_groups[0]["too_far"]
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


# -- gradients of any size


@pytest.mark.parametrize(
    ("signature", "batch"), [(Signature(3, 1), ()), (Signature(5, 3), (2,)), (Signature(32, 1), ())]
)
@pytest.mark.parametrize("steps", [500, pytest.param(100_000, marks=pytest.mark.slow)])
def test_feasible_after_steps_on_gradients_of_any_size(signature, batch, steps):
    """Sizes from 1e-30 to 1e30, NaN once: that step is left out, and the parameter is unharmed."""
    n = signature.n
    X = torch.nn.Parameter(
        jorth.random_point(signature, cond=4.0, batch=batch, dtype=torch.float32, seed=1)
    )
    start = X.detach().clone()
    optimizer = JOBCD([X], signature)
    draw = torch.Generator().manual_seed(0)
    noise = torch.randn((64, *X.shape), generator=draw)
    sizes = 10.0 ** (60 * torch.rand(1000, generator=draw, dtype=torch.float64) - 30)
    travelled, last = 0.0, start
    for turn in range(steps):
        pull = X.detach() - start  # the noise alone would carry X away
        X.grad = (noise[turn % 64] + pull) * float(sizes[turn % 1000])
        if turn == 100:
            X.grad[..., 0, 1] = math.nan
            before = X.detach().clone()
            with pytest.warns(RuntimeWarning, match="a gradient is not finite"):
                optimizer.step()
            assert torch.equal(X, before)
            continue
        optimizer.step()
        if turn % 50 == 0:
            travelled += float((X.detach() - last).norm())
            last = X.detach().clone()
    assert travelled > 1e-4 * steps
    residual = torch.as_tensor(jorth.residual(X.detach(), signature)).max()
    assert residual < 100 * n * 2.0**-24
    assert optimizer.param_groups[0]["not_finite"] == (2 if batch else 1)


# -- options that change during a run


@pytest.mark.parametrize("metric", ["invariant", "embedding"])
def test_a_parameter_of_another_size_is_refused_before_a_step(metric):
    signature = Signature(4, 2)
    for size in (4, 7):
        X = torch.nn.Parameter(torch.eye(6))
        optimizer = JOBCD([X], signature, metric=metric)
        X.data = torch.eye(size)
        X.grad = torch.ones(size, size)
        with pytest.raises(
            ValueError, match=r"parameter 0 of the group must have shape \(..., 6, k"
        ):
            optimizer.step()
    X = torch.nn.Parameter(torch.eye(6))
    optimizer = JOBCD([X], signature, metric=metric)
    optimizer.param_groups[0]["signature"] = Signature(3, 2)
    X.grad = torch.ones(6, 6)
    with pytest.raises(ValueError, match=r"must have shape \(..., 5, k"):
        optimizer.step()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("curvature", "bogus", "curvature must be one of"),
        ("momentum", 1.5, "momentum must be a number in"),
        ("weight_decay", -1.0, "weight_decay must be a number in"),
        ("lr", None, "lr must be a number in"),
        ("metric", "embedding", 'side must be "left" or "right"'),
        ("rounds_per_gradient", 0, "rounds_per_gradient must be at least 1"),
    ],
)
def test_options_are_checked_where_they_change(name, value, message):
    X = parameter(SIG)
    optimizer = JOBCD([X], SIG)
    step(optimizer, X, skew(SIG.n, 1))
    before = X.detach().clone()
    optimizer.param_groups[0][name] = value
    with pytest.raises((TypeError, ValueError), match=message):
        step(optimizer, X, skew(SIG.n, 1))
    assert torch.equal(X, before)


def test_options_may_change_during_a_run():
    X = parameter(SIG)
    optimizer = JOBCD([X], SIG)
    for changed in ({"side": "left"}, {"side": None}, {"curvature": "per-matrix"}, {"lr": 1}):
        optimizer.param_groups[0].update(changed)
        before = X.detach().clone()
        step(optimizer, X, skew(SIG.n, 1))
        assert not torch.equal(X, before)
    assert optimizer.param_groups[0]["side"] == "both"


def test_a_state_without_some_options_takes_those_of_the_optimiser():
    X, Y = parameter(SIG), parameter(SIG)
    optimizer = JOBCD([X], SIG, gain_rate=0.2)
    step(optimizer, X, skew(SIG.n, 1))
    saved = optimizer.state_dict()
    del saved["param_groups"][0]["gain_rate"]
    other = JOBCD([Y], SIG, gain_rate=0.3)
    other.load_state_dict(saved)
    step(other, Y, skew(SIG.n, 1))
    assert other.param_groups[0]["gain_rate"] == 0.3
    assert other.param_groups[0]["turn"] == 2
    varied = VRJOBCD([Y], SIG, probability=0.4)
    varied.load_state_dict(saved)
    assert varied.param_groups[0]["probability"] == 0.4
    adam = torch.optim.Adam([torch.nn.Parameter(X.detach().clone())])
    with pytest.raises(ValueError, match="state_dict must be one of JOBCD, got one without"):
        other.load_state_dict(adam.state_dict())


def test_one_probability_for_all_groups():
    groups = [{"params": [parameter(SIG)], "probability": 1.0}]
    with pytest.raises(ValueError, match="probability must be one for all groups"):
        VRJOBCD(groups, SIG)
