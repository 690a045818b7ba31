"""JOBCD as an optimiser of torch: states, groups, closures, and what torch builds around it."""

import copy
import math
import pickle
import subprocess
import sys
import warnings

import pytest
import torch
from torch.optim import lr_scheduler, swa_utils

import jorth
from jorth import Signature
from jorth.optim import JOBCD
from tests.optim.problems import SIG, STRATEGIES, Alignment, optimizer_of, train

OPTIONS = {"lr": 0.05, "momentum": 0.9}

# -- schedulers

SCHEDULERS = {
    "LambdaLR": lambda o: lr_scheduler.LambdaLR(o, lambda k: 1 / (k + 1)),
    "MultiplicativeLR": lambda o: lr_scheduler.MultiplicativeLR(o, lambda k: 0.9),
    "StepLR": lambda o: lr_scheduler.StepLR(o, 2),
    "MultiStepLR": lambda o: lr_scheduler.MultiStepLR(o, [2, 4]),
    "ConstantLR": lambda o: lr_scheduler.ConstantLR(o, total_iters=3),
    "LinearLR": lambda o: lr_scheduler.LinearLR(o, start_factor=0.1, total_iters=4),
    "ExponentialLR": lambda o: lr_scheduler.ExponentialLR(o, 0.8),
    "PolynomialLR": lambda o: lr_scheduler.PolynomialLR(o, total_iters=10),
    "CosineAnnealingLR": lambda o: lr_scheduler.CosineAnnealingLR(o, 8),
    "CosineAnnealingWarmRestarts": lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 3),
    "SWALR": lambda o: swa_utils.SWALR(o, swa_lr=0.01, anneal_epochs=4),
    "CyclicLR": lambda o: lr_scheduler.CyclicLR(o, 0.01, 0.1, step_size_up=3),
    "OneCycleLR": lambda o: lr_scheduler.OneCycleLR(o, max_lr=0.1, total_steps=12),
    "SequentialLR": lambda o: lr_scheduler.SequentialLR(
        o, [lr_scheduler.ConstantLR(o, 0.1), lr_scheduler.ExponentialLR(o, 0.9)], milestones=[3]
    ),
    "ChainedScheduler": lambda o: lr_scheduler.ChainedScheduler(
        [lr_scheduler.ConstantLR(o, 0.5), lr_scheduler.ExponentialLR(o, 0.9)]
    ),
}


@pytest.mark.parametrize("kind", [float, torch.tensor], ids=["number", "tensor"])
@pytest.mark.parametrize("name", SCHEDULERS)
def test_schedulers_set_the_options_of_a_step(name, kind):
    """A run that is given the same lr and momentum by hand is the same."""
    model, by_hand = Alignment(SIG), Alignment(SIG)
    optimizer = JOBCD([model.weight], SIG, **(OPTIONS | {"lr": kind(0.05)}))
    scheduler = SCHEDULERS[name](optimizer)
    reference = JOBCD([by_hand.weight], SIG, **OPTIONS)
    seen = []
    for _ in range(6):
        group = optimizer.param_groups[0]
        seen.append((float(group["lr"]), float(group["momentum"])))
        reference.param_groups[0].update(lr=seen[-1][0], momentum=seen[-1][1])
        train(model, optimizer, 1)
        train(by_hand, reference, 1)
        scheduler.step()
    assert len({lr for lr, _ in seen}) > 1
    cycles = name in ("CyclicLR", "OneCycleLR")
    assert (len({momentum for _, momentum in seen}) > 1) == cycles
    assert torch.equal(model.weight, by_hand.weight)
    assert (model.weight.detach() - torch.eye(SIG.n)).norm() > 0.05


# -- GradScaler


def scaled_step(model, optimizer, scaler, bound=None, spoil=False):
    optimizer.zero_grad()
    scaler.scale(model()).backward()
    if spoil:
        model.weight.grad[0, 0] = math.inf
    if bound is not None:
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), bound)
    scaler.step(optimizer)
    scaler.update()


def test_a_scaler_leaves_out_a_step_that_is_not_finite():
    """The optimiser is not called: no warning, no count, no state; the scale is halved."""
    model, clean = Alignment(SIG), Alignment(SIG)
    optimizers = [JOBCD([m.weight], SIG, **OPTIONS) for m in (model, clean)]
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=1000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for turn in range(4):
            scaled_step(model, optimizers[0], scaler, spoil=turn == 2)
    train(clean, optimizers[1], 3)
    assert scaler.get_scale() == 2.0
    assert optimizers[0].param_groups[0]["turn"] == 3
    assert optimizers[0].state[model.weight]["not_finite"] == 0
    assert torch.allclose(model.weight, clean.weight, rtol=0, atol=1e-14)


# -- copies


# -- hooks


# -- groups and gradients


def test_a_group_added_in_the_middle_of_a_run():
    other = Signature(3, 2)
    first, second = Alignment(SIG), Alignment(other, seed=3)
    optimizer = JOBCD([first.weight], SIG, **OPTIONS)
    train(first, optimizer, 4)
    optimizer.add_param_group({"params": second.weight, "signature": other, "lr": 0.01})
    lone = Alignment(other, seed=3)
    alone = JOBCD([lone.weight], other, **(OPTIONS | {"lr": 0.01}))
    for _ in range(3):
        optimizer.zero_grad()
        (first() + second()).backward()
        optimizer.step()
    train(lone, alone, 3)
    assert [group["turn"] for group in optimizer.param_groups] == [7, 3]
    assert torch.equal(second.weight, lone.weight)
    fresh = JOBCD(
        [
            {"params": [("first", first.weight)]},
            {"params": [("second", second.weight)], "signature": other},
        ],
        SIG,
    )
    fresh.load_state_dict(optimizer.state_dict())
    assert [group["lr"] for group in fresh.param_groups] == [0.05, 0.01]


@pytest.mark.parametrize("kind", [JOBCD, jorth.optim.VRJOBCD])
def test_a_default_device_without_data(kind):
    model, other = Alignment(SIG), Alignment(SIG)

    def closure(own):
        optimizer.zero_grad()
        loss = own()
        loss.backward()
        return loss

    with torch.device("meta"):
        optimizer = kind([model.weight], SIG)
        for _ in range(3):
            optimizer.step(lambda: closure(model))
        optimizer.load_state_dict(optimizer.state_dict())
        kind([torch.nn.Parameter(torch.empty(SIG.n, SIG.n))], SIG)  # to be filled later
    optimizer = kind([other.weight], SIG)
    for _ in range(3):
        optimizer.step(lambda: closure(other))
    assert torch.equal(model.weight, other.weight)


def by_pickle(pair):
    return pickle.loads(pickle.dumps(pair))


@pytest.mark.parametrize("way", [copy.deepcopy, by_pickle])
@pytest.mark.parametrize("kind", [JOBCD, jorth.optim.VRJOBCD])
def test_a_copied_run_goes_on_bit_for_bit(way, kind):
    model = Alignment(SIG, batch=(2,))
    optimizer = kind([model.weight], SIG, **OPTIONS)

    def more(model, optimizer):
        def closure():
            optimizer.zero_grad()
            loss = model()
            loss.backward()
            return loss

        return [optimizer.step(closure).item() for _ in range(4)]

    more(model, optimizer)
    twin, twins = way((model, optimizer))
    before = twin.weight.detach().clone()
    assert more(model, optimizer)
    assert torch.equal(twin.weight, before)
    more(twin, twins)
    assert torch.equal(model.weight, twin.weight)
    for name, value in optimizer.state[model.weight].items():
        assert torch.equal(value, twins.state[twin.weight][name])


# -- states, groups, closures


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


# -- compiled models


COMPILED = """
import torch
from jorth import Signature
from jorth.optim import JOBCD, VRJOBCD

for kind in (JOBCD, VRJOBCD):
    ends = []
    for compile in (lambda f: f, lambda f: torch.compile(f, backend="eager")):
        torch._dynamo.reset()
        X = torch.nn.Parameter(torch.eye(3))
        optimizer = kind([X], Signature(2, 1))

        def closure():
            optimizer.zero_grad()
            loss = (X - 2).square().sum()
            loss.backward()
            return loss

        step = compile(lambda: optimizer.step(closure))
        for _ in range(3):
            step()
        ends.append(X.detach())
    assert torch.equal(*ends), kind
"""


def test_steps_in_compiled_functions():
    """In a fresh process, where nothing has been compiled before Dynamo comes to it."""
    subprocess.run([sys.executable, "-W", "ignore", "-c", COMPILED], check=True)
