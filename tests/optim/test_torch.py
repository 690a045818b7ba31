"""JOBCD as an optimiser of torch: states, groups, closures, and what torch builds around it."""

import subprocess
import sys

import pytest
import torch
from torch.optim import lr_scheduler

import jorth
from jorth import Signature
from jorth.optim import JOBCD
from tests.optim.problems import SIG, STRATEGIES, Alignment, optimizer_of, train

OPTIONS = {"lr": 0.05, "momentum": 0.9}

# -- schedulers

SCHEDULERS = {
    "LambdaLR": lambda o: lr_scheduler.LambdaLR(o, lambda k: 1 / (k + 1)),
    "OneCycleLR": lambda o: lr_scheduler.OneCycleLR(o, max_lr=0.1, total_steps=12),
    "SequentialLR": lambda o: lr_scheduler.SequentialLR(
        o, [lr_scheduler.ConstantLR(o, 0.1), lr_scheduler.ExponentialLR(o, 0.9)], milestones=[3]
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
    assert (len({momentum for _, momentum in seen}) > 1) == (name == "OneCycleLR")
    assert torch.equal(model.weight, by_hand.weight)
    assert (model.weight.detach() - torch.eye(SIG.n)).norm() > 0.05


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
