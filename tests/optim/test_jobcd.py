"""JOBCD in a training loop: what it reaches, what it keeps, how it resumes."""

import math

import numpy as np
import pytest
import torch

import jorth
from jorth import Signature
from jorth.optim import JOBCD
from jorth.optim.rounds import numbered_rounds
from jorth.plane import tournament
from jorth.plane.rounds import Majoriser
from tests.optim.problems import (
    PAPER,
    SIG,
    STRATEGIES,
    Alignment,
    optimizer_of,
    random_batch,
    train,
)


def optimum(model):
    objective = jorth.Procrustes(model.source.numpy(), model.target.numpy())
    return jorth.minimize(objective, signature=model.signature, gradient_tolerance=1e-10).value


# -- what one step is


def rotation_or_boost(i, j, parameter):
    V = np.eye(SIG.n)
    if SIG.signs[i] == SIG.signs[j]:
        V[np.ix_([i, j], [i, j])] = [
            [math.cos(parameter), -math.sin(parameter)],
            [math.sin(parameter), math.cos(parameter)],
        ]
    else:
        V[np.ix_([i, j], [i, j])] = [
            [math.cosh(parameter), math.sinh(parameter)],
            [math.sinh(parameter), math.cosh(parameter)],
        ]
    return V


@pytest.mark.parametrize("lr", [1e-3, 0.1, 10.0])
@pytest.mark.parametrize("side", ["left", "right"])
def test_one_round_minimises_the_majoriser_over_each_pair(lr, side):
    """Independent oracle: a fine grid over the angle or rapidity of each pair, the others held."""
    X0, G = random_batch(count=1, cond=4.0)
    X = torch.nn.Parameter(X0[0].clone())
    X.grad = G[0].clone()
    options = PAPER | {"matching": "random", "rounds_per_gradient": 1, "seed": 3}
    JOBCD([X], SIG, lr=lr, side=side, **options).step()
    (pairs,) = numbered_rounds(SIG.n, "random", 1, 3, 0)
    start, moved, gradient = X0[0].numpy(), X.detach().numpy(), G[0].numpy()
    if side == "right":
        start, moved, gradient = start.T, moved.T, gradient.T

    def majoriser(Y):
        return ((Y - start) * gradient).sum() + ((Y - start) ** 2).sum() / (2 * lr)

    value = majoriser(moved)
    for i, j in pairs:
        trials = [majoriser(rotation_or_boost(i, j, mu) @ moved) for mu in np.linspace(-3, 3, 601)]
        assert value <= min(trials) + 1e-12 * (1 + abs(value))
    assert value < majoriser(start)


@pytest.mark.parametrize("all_components", [False, True])
@pytest.mark.parametrize("L", [0.01, 1.0, 100.0])
def test_compiled_rounds_equal_batched_rounds(all_components, L):
    X, G = random_batch()
    rounds = tournament(SIG.n, seed=3)
    engine = Majoriser(SIG, all_components)
    compiled, promised = engine.compiled_rounds(X, G, L, rounds)
    batched, decrease = engine.torch_rounds(X, G, L, rounds)
    assert (compiled - batched).abs().max() < 1e-13 * max(1.0, float(compiled.abs().max()) ** 2)
    assert (compiled - X).abs().max() > 1e-3
    torch.testing.assert_close(promised, decrease, rtol=1e-12, atol=0)
    fallen = -((compiled - X) * (G + L / 2 * (compiled - X))).sum(dim=(1, 2))
    torch.testing.assert_close(promised, fallen, rtol=1e-9, atol=0)


@pytest.mark.parametrize(
    "name", ["default", "one side", "paper", "right", "random", "per matrix", "per plane"]
)
def test_a_batch_equals_one_by_one(name):
    options = {"lr": 0.1} | STRATEGIES[name]
    together = Alignment(SIG, batch=(2, 2))
    train(together, JOBCD([together.weight], SIG, **options), 5)
    apart = Alignment(SIG, batch=(2, 2)).weight.detach().reshape(4, SIG.n, SIG.n)
    single = [torch.nn.Parameter(matrix.clone()) for matrix in apart]
    optimizer = JOBCD(single, SIG, **options)
    for _ in range(5):
        optimizer.zero_grad()
        stacked = torch.stack(single).reshape(together.weight.shape)
        torch.func.functional_call(together, {"weight": stacked}, ()).backward()
        optimizer.step()
    assert torch.equal(
        torch.stack([p.detach() for p in single]), together.weight.detach().reshape(4, SIG.n, SIG.n)
    )
    assert not torch.equal(single[0], single[1])


def test_small_steps_descend_along_the_riemannian_gradient():
    """To first order a whole tournament moves X by -lr J S X in the invariant metric."""
    X0, G = random_batch(count=3)
    X = torch.nn.Parameter(X0.clone())
    X.grad = G.clone()
    JOBCD([X], SIG, lr=1e-7, curvature="scheduled", side="left").step()
    wanted = -1e-7 * jorth.riemannian_gradient(X0, G, SIG)
    assert (X.detach() - X0 - wanted).abs().max() < 1e-4 * wanted.abs().max()


@pytest.mark.parametrize("curvature", ["per-matrix", "per-plane"])
def test_adaptive_curvature_is_blind_to_the_scale_of_the_gradient(curvature):
    X0, G = random_batch(count=3)
    ends = []
    for scale in (1.0, 2.0**12):
        X = torch.nn.Parameter(X0.clone())
        optimizer = JOBCD([X], SIG, lr=0.01, curvature=curvature, momentum=0.5)
        for _ in range(3):
            X.grad = scale * G
            optimizer.step()
        ends.append(X.detach())
    assert torch.allclose(ends[0], ends[1], rtol=0, atol=1e-12 * float(X0.abs().max()))


def test_per_plane_steps_are_adams():
    """The first step of Adam is lr times a sign: here in every plane, as an angle; the boosts of a
    row, as a rapidity, have a quarter of it together."""
    X0, G = random_batch(count=2)
    X = torch.nn.Parameter(X0.clone())
    X.grad = G.clone()
    JOBCD([X], SIG, lr=1e-6, side="left", gain_rate=0.0, eps=0.0).step()
    s = SIG.vector(X0)
    S = jorth.riemannian_gradient(X0, G, SIG) @ jorth.inverse(X0, SIG)
    K = (X.detach() - X0) @ jorth.inverse(X0, SIG)
    reach = torch.where(s[:, None] == s, 1.0, 0.25 / math.sqrt(3)) * (1 - torch.eye(SIG.n))
    assert (K + 1e-6 * reach * S.sign()).abs().max() < 1e-4 * 1e-6
    assert (s[:, None] * K + (s[:, None] * K).mT).abs().max() < 1e-10


# -- where it leads


@pytest.mark.parametrize("name", STRATEGIES)
def test_reaches_the_optimum(name):
    model = Alignment(SIG)
    options = {"lr": 1 / model.curvature()} | STRATEGIES[name]
    best, optimizer = optimum(model), JOBCD([model.weight], SIG, **options)
    values = train(model, optimizer, 50)
    while values[-1] - best > 5e-5 and len(values) < 1500:
        values += train(model, optimizer, 50)
    assert values[0] - values[-1] > 0.1
    assert 0 <= values[-1] - best + 1e-12 < 1e-4
    assert jorth.residual(model.weight.detach(), SIG) < 100 * SIG.n * 2.0**-53
    if name != "all components":
        assert jorth.component(model.weight.detach(), SIG) == (1, 1)


@pytest.mark.parametrize(
    "name", ["paper", "right", "random", "greedy", "all components", "three rounds"]
)
def test_descends_on_every_step_when_lr_is_one_over_the_curvature(name):
    model = Alignment(SIG)
    values = train(model, optimizer_of(model, **STRATEGIES[name]), 60)
    assert np.all(np.diff(values) <= 1e-14)


def test_other_components_are_left_and_kept():
    target = jorth.random_point(SIG, cond=2.0, component=(-1, 1), dtype=torch.float64, seed=4)
    for components, wanted in (("start", (1, 1)), ("all", (-1, 1))):
        X = torch.nn.Parameter(torch.eye(SIG.n, dtype=torch.float64))
        optimizer = JOBCD([X], SIG, **PAPER, lr=1.0, components=components)
        for _ in range(200):
            optimizer.zero_grad()
            ((X - target) ** 2).sum().div(2).backward()
            optimizer.step()
        assert jorth.component(X.detach(), SIG) == wanted


def test_maximize_mirrors():
    ends = []
    for sign, maximize in ((1, False), (-1, True)):
        model = Alignment(SIG)
        optimizer = optimizer_of(model, maximize=maximize)
        for _ in range(4):
            optimizer.zero_grad()
            (sign * model()).backward()
            optimizer.step()
        ends.append(model.weight.detach())
    assert torch.equal(*ends)


# -- feasibility


def noisy_walk(signature, steps, **options):
    """(dtype, violation over the largest squared norm met, distance travelled) of a walk in float32
    and in float64."""
    start = jorth.random_point(signature, cond=4.0, dtype=torch.float64)
    params = [
        torch.nn.Parameter(start.to(dtype, copy=True)) for dtype in (torch.float32, torch.float64)
    ]
    optimizer = JOBCD(params, signature, **options)
    noise = torch.randn(
        (100, *start.shape), generator=torch.Generator().manual_seed(0), dtype=torch.float64
    )
    largest, travelled, last = [1.0, 1.0], [0.0, 0.0], [p.detach().clone() for p in params]
    for step in range(steps):
        for k, p in enumerate(params):
            X = p.detach()
            p.grad = noise[step % 100].to(p.dtype) + (X - start.to(p.dtype))
            if step % 20 == 0:
                largest[k] = max(largest[k], float(torch.linalg.matrix_norm(X, ord=2)) ** 2)
                travelled[k] += float((X - last[k]).norm())
                last[k].copy_(X)
        optimizer.step()
    found = []
    for p, norm, path in zip(params, largest, travelled, strict=True):
        X, s = p.detach().double(), signature.vector(start)
        found.append(
            (p.dtype, float((X.mT @ (s[:, None] * X) - torch.diag(s)).abs().max()) / norm, path)
        )
    return found


@pytest.mark.parametrize(
    ("signature", "options"),
    [
        (Signature(7, 5), PAPER | {"lr": 0.05}),
        (Signature(7, 5), {"gain_rate": 0.0}),
        pytest.param(
            Signature(18, 18),
            {"metric": "embedding", "lr": 0.01, "curvature": "per-matrix"},
            marks=pytest.mark.slow,
        ),
    ],
    ids=["n = 12, paper", "n = 12", "n = 36"],
)
@pytest.mark.parametrize("steps", [1000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_feasible_after_many_steps(signature, options, steps):
    for dtype, violation, travelled in noisy_walk(signature, steps, **options):
        assert travelled > 3e-3 * steps
        assert violation < 100 * signature.n * torch.finfo(dtype).eps / 2


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_batched_rounds_stay_feasible(dtype):
    """The path of a device: every round is rounded to the dtype."""
    X, _ = random_batch(dtype, cond=4.0)
    start, draw = X.clone(), torch.Generator().manual_seed(0)
    for turn in range(100):
        G = torch.randn(X.shape, generator=draw, dtype=torch.float64).to(dtype) + (X - start)
        X = Majoriser(SIG).torch_rounds(X, G, 10.0, numbered_rounds(SIG.n, "random", 1, 0, turn)).X
    assert jorth.residual(X, SIG).max() < 100 * SIG.n * torch.finfo(dtype).eps / 2


@pytest.mark.parametrize("metric", ["embedding", "invariant"])
@pytest.mark.parametrize("curvature", ["scheduled", "per-plane"])
def test_a_batch_of_no_matrices_is_no_error(metric, curvature):
    weight = torch.nn.Parameter(torch.empty(0, 3, 3))
    optimizer = JOBCD([weight], Signature(2, 1), metric=metric, curvature=curvature)
    weight.sum().backward()
    optimizer.step()
    assert weight.shape == (0, 3, 3)
