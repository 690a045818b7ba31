"""JOBCD as an optimiser of torch: states, groups, schedulers, closures, clipping,
what has no gradient."""

import copy
import math

import numpy as np
import pytest
import torch

import jorth
from jorth import Signature
from jorth.optim import JOBCD
from jorth.optim.rounds import numbered_rounds
from jorth.plane.pairs import rounds_in_tournament
from tests.optim.problems import SIG, STRATEGIES, Alignment, optimizer_of, train


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", STRATEGIES)
def test_state_dict_continues_bit_for_bit(name, dtype, tmp_path):
    options = {"lr": 0.1} | STRATEGIES[name]
    model = Alignment(SIG, batch=(2,), dtype=dtype)
    optimizer = JOBCD([model.weight], SIG, **options)
    train(model, optimizer, 7)
    torch.save(
        {"model": model.state_dict(), "optimizer": optimizer.state_dict()},
        tmp_path / "checkpoint.pt",
    )
    train(model, optimizer, 5)

    saved = torch.load(tmp_path / "checkpoint.pt", weights_only=True)
    resumed = Alignment(SIG, batch=(2,), dtype=dtype)
    resumed.load_state_dict(saved["model"])
    fresh = JOBCD([resumed.weight], SIG, seed=99)
    fresh.load_state_dict(saved["optimizer"])
    train(resumed, fresh, 5)
    assert torch.equal(resumed.weight, model.weight)
    assert fresh.state_dict()["param_groups"] == optimizer.state_dict()["param_groups"]


def test_a_copy_continues_by_itself():
    model = Alignment(SIG)
    optimizer = optimizer_of(model, momentum=0.9)
    train(model, optimizer, 3)
    twin, twin_optimizer = copy.deepcopy((model, optimizer))
    assert train(model, optimizer, 3) == train(twin, twin_optimizer, 3)


def test_groups_have_signatures_of_their_own():
    first, second = Signature(3, 2), Signature.lorentz(4)
    models = [Alignment(first), Alignment(second, seed=5, dtype=torch.float32)]
    optimizer = JOBCD(
        [
            {"params": [models[0].weight], "signature": first},
            {"params": [models[1].weight], "signature": second, "lr": 0.5},
        ]
    )
    for _ in range(20):
        optimizer.zero_grad()
        sum(model().double() for model in models).backward()
        optimizer.step()
    alone = [Alignment(first), Alignment(second, seed=5, dtype=torch.float32)]
    for model, lr in zip(alone, (1e-2, 0.5), strict=True):
        train(model, JOBCD([model.weight], model.signature, lr=lr), 20)
    for model, other in zip(models, alone, strict=True):
        assert torch.equal(model.weight, other.weight)


def test_a_scheduler_sets_the_curvature():
    model, scheduled = Alignment(SIG), Alignment(SIG)
    optimizer = JOBCD([scheduled.weight], SIG, lr=0.4)
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda epoch: 0.0 if epoch == 0 else 0.5**epoch
    )
    for lr in (0.0, 0.2, 0.1):
        before = scheduled.weight.detach().clone()
        train(scheduled, optimizer, 1)
        scheduler.step()
        assert torch.equal(before, scheduled.weight) == (lr == 0)
    by_hand = JOBCD([model.weight], SIG, lr=0.0)
    for lr in (0.0, 0.2, 0.1):
        by_hand.param_groups[0]["lr"] = lr
        train(model, by_hand, 1)
    assert torch.equal(model.weight, scheduled.weight)


def test_closure_is_called_once_with_gradients():
    model, other = Alignment(SIG), Alignment(SIG)
    optimizer, calls = optimizer_of(model), []

    def closure():
        calls.append(torch.is_grad_enabled())
        optimizer.zero_grad()
        loss = model()
        loss.backward()
        return loss

    value = optimizer.step(closure)
    assert calls == [True]
    assert train(other, optimizer_of(other), 1) == [value.item()]
    assert torch.equal(model.weight, other.weight)


def test_clipped_gradients_shorten_the_step():
    lengths = []
    for bound in (1e-3, 1e-2):
        model = Alignment(SIG)
        optimizer = optimizer_of(model, lr=0.1)
        model().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), bound)
        optimizer.step()
        lengths.append(float((model.weight.detach() - torch.eye(SIG.n)).norm()))
    assert lengths[0] <= 1.01 * 0.1 * 1e-3  # at the identity a step is at most lr ||G||
    assert lengths[1] / lengths[0] == pytest.approx(10, rel=0.05)


def test_beside_adam_under_autocast():
    torch.manual_seed(0)
    layer = jorth.nn.JOrthogonalLinear(SIG)
    head = torch.nn.Linear(SIG.n, 1)
    optimizers = [JOBCD([layer.weight], SIG, lr=0.05), torch.optim.Adam(head.parameters(), lr=0.05)]
    x, losses = torch.randn(64, SIG.n), []
    y = x[:, :1] * 2 - x[:, 1:2]
    for _ in range(60):
        for optimizer in optimizers:
            optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = torch.nn.functional.mse_loss(head(layer(x)).float(), y)
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.05 * losses[0]
    assert layer.weight.dtype == torch.float32
    assert jorth.residual(layer.weight.detach(), SIG) < 100 * SIG.n * 2.0**-24


@pytest.mark.parametrize("name", ["default", "per plane", "greedy"])
def test_a_matrix_without_a_finite_gradient_rests(name):
    model, clean = Alignment(SIG, batch=(3,)), Alignment(SIG, batch=(3,))
    optimizers = [
        JOBCD([m.weight], SIG, **({"lr": 0.1} | STRATEGIES[name])) for m in (model, clean)
    ]
    for m, optimizer in zip((model, clean), optimizers, strict=True):
        train(m, optimizer, 1)  # so that there is momentum
        optimizer.zero_grad()
        m().backward()
    before = model.weight.detach().clone()
    model.weight.grad[1, 2, 2] = math.nan
    with pytest.warns(RuntimeWarning, match="a gradient is not finite"):
        optimizers[0].step()
    optimizers[1].step()
    assert torch.equal(model.weight[1], before[1])
    if name != "greedy":
        assert torch.equal(model.weight[::2], clean.weight[::2])
    assert np.isfinite(train(model, optimizers[0], 2)).all()
    assert not torch.equal(model.weight[1], before[1])


def test_parameters_without_a_gradient_are_left_alone():
    used, unused = (torch.nn.Parameter(torch.eye(SIG.n)) for _ in range(2))
    optimizer = JOBCD([unused, used], SIG, lr=0.1, momentum=0.5)
    for _ in range(2):
        optimizer.zero_grad()
        (used * torch.arange(25.0).reshape(5, 5)).sum().backward()
        optimizer.step()
    assert torch.equal(unused, torch.eye(SIG.n))
    assert not torch.equal(used, torch.eye(SIG.n))
    assert list(optimizer.state_dict()["state"]) == [1]


@pytest.mark.parametrize(
    "signature", [Signature(1, 0), Signature(3, 0), Signature(0, 3), Signature(1, 1)]
)
def test_small_and_definite_signatures(signature):
    X = torch.nn.Parameter(torch.eye(signature.n))
    optimizer = JOBCD([X], signature, lr=0.1)
    X.grad = torch.arange(float(signature.n**2)).reshape(signature.n, -1)
    optimizer.step()
    assert jorth.residual(X.detach(), signature) < 1e-6
    assert torch.equal(X, torch.eye(signature.n)) == (signature.n == 1)


# -- pairings


@pytest.mark.parametrize("n", [2, 5, 6])
def test_tournaments_go_on_where_they_stopped(n):
    pieces = np.concatenate(
        [
            numbered_rounds(n, "tournament", 2, 7, turn)
            for turn in range(2 * rounds_in_tournament(n))
        ]
    )
    for start in range(0, len(pieces), rounds_in_tournament(n)):
        met = {
            tuple(sorted(pair))
            for pair in pieces[start : start + rounds_in_tournament(n)].reshape(-1, 2).tolist()
        }
        assert len(met) == n * (n - 1) // 2
    assert not np.array_equal(
        numbered_rounds(6, "random", 1, 7, 0), numbered_rounds(6, "random", 1, 8, 0)
    )
