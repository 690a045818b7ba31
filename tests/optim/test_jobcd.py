"""JOBCD in a training loop: what it reaches, what it keeps, how it resumes."""

import math

import numpy as np
import pytest
import torch

import jorth
from jorth.optim import JOBCD
from jorth.optim.jobcd import rounds_of_step
from tests.optim.problems import (
    PAPER,
    SIG,
    STRATEGIES,
    Alignment,
    optimizer_of,
    random_batch,
    train,
)
from tests.plane.reference import family


def optimum(model):
    objective = jorth.Procrustes(model.source.numpy(), model.target.numpy())
    return jorth.minimize(objective, signature=model.signature, gradient_tolerance=1e-10).value


# -- what one step is


def rotation_or_boost(i, j, mu):
    V, equal = np.eye(SIG.n), SIG.signs[i] == SIG.signs[j]
    x, y = (np.cos(mu), np.sin(mu)) if equal else (np.cosh(mu), np.sinh(mu))
    V[np.ix_([i, j], [i, j])] = family("rotation" if equal else "boost", x, y)
    return V


@pytest.mark.parametrize("lr", [1e-3, 0.1, 10.0])
def test_one_round_minimises_the_majoriser_over_each_pair(lr):
    """Independent oracle: a fine grid over the angle or rapidity of each pair, the others held."""
    X0, G = random_batch(count=1, cond=4.0)
    X = torch.nn.Parameter(X0[0].clone())
    X.grad = G[0].clone()
    options = PAPER | {"rounds_per_gradient": 1, "seed": 3}
    optimizer = JOBCD([X], SIG, lr=lr, **options)
    (pairs,) = rounds_of_step(optimizer.param_groups[0])
    optimizer.step()
    start, moved, gradient = X0[0].numpy(), X.detach().numpy(), G[0].numpy()

    def majoriser(Y):
        return ((Y - start) * gradient).sum() + ((Y - start) ** 2).sum() / (2 * lr)

    value = majoriser(moved)
    for i, j in pairs:
        trials = [majoriser(rotation_or_boost(i, j, mu) @ moved) for mu in np.linspace(-3, 3, 601)]
        assert value <= min(trials) + 1e-12 * (1 + abs(value))
    assert value < majoriser(start)


@pytest.mark.parametrize("name", STRATEGIES)
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


def test_the_first_step_is_adams():
    """The first step of Adam is lr times a sign: here in every plane of rows and of columns, as an
    angle; the boosts of a row, as a rapidity, have a quarter of it together."""
    X0, G = random_batch(count=2)
    X = torch.nn.Parameter(X0.clone())
    X.grad = G.clone()
    JOBCD([X], SIG, lr=1e-6, gain_rate=0.0, eps=0.0).step()
    s = SIG.vector(X0)
    inverse = jorth.inverse(X0, SIG)
    reach = torch.where(s[:, None] == s, 1.0, 0.25 / math.sqrt(3)) * (1 - torch.eye(SIG.n))
    rows = reach * (jorth.riemannian_gradient(X0, G, SIG) @ inverse).sign()
    columns = reach * (jorth.riemannian_gradient(X0.mT, G.mT, SIG) @ inverse.mT).sign()
    wanted = -1e-6 * (rows @ X0 + X0 @ columns.mT)
    assert (X.detach() - X0 - wanted).abs().max() < 1e-3 * wanted.abs().max()


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
    if "components" not in STRATEGIES[name]:
        assert jorth.component(model.weight.detach(), SIG) == (1, 1)


@pytest.mark.parametrize("name", [name for name in STRATEGIES if "paper" in name])
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
