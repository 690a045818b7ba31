"""Torch's schedulers of learning rates on JOBCD, beside the same ones on torch's SGD."""

import copy
import math

import pytest
import torch
from torch.optim import lr_scheduler, swa_utils

from jorth.optim import JOBCD
from tests.optim.problems import SIG, Alignment, train

STEPS = 8


def swa(optimizer, lr=0.05, **options):
    return swa_utils.SWALR(optimizer, swa_lr=lr, anneal_epochs=4, **options)


def one_cycle(optimizer):
    return lr_scheduler.OneCycleLR(
        optimizer, max_lr=0.2, total_steps=STEPS + 1, cycle_momentum=False
    )


def in_sequence(optimizer):
    parts = [lr_scheduler.ConstantLR(optimizer, 0.1, 3), lr_scheduler.ExponentialLR(optimizer, 0.5)]
    return lr_scheduler.SequentialLR(optimizer, parts, [3])


SCHEDULERS = {
    "SWALR": swa,
    "SWALR linear": lambda o: swa(o, lr=0.0, anneal_strategy="linear"),
    "warm up": lambda o: lr_scheduler.LinearLR(o, start_factor=1e-3, total_iters=5),
    "cosine": lambda o: lr_scheduler.CosineAnnealingLR(o, T_max=6),
    "warm restarts": lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, T_0=3),
    "one cycle": one_cycle,
    "cyclic": lambda o: lr_scheduler.CyclicLR(o, 0.01, 0.1, step_size_up=2, cycle_momentum=False),
    "step": lambda o: lr_scheduler.StepLR(o, step_size=2),
    "in sequence": in_sequence,
}


def rates(optimizer, scheduler, step):
    """The learning rates that the scheduler sets, each followed by a step."""
    found = []
    for _ in range(STEPS):
        found.append(float(optimizer.param_groups[0]["lr"]))
        step()
        scheduler.step()
    return found


@pytest.mark.parametrize("lr", [0.1, torch.tensor(0.1)], ids=["number", "tensor"])
@pytest.mark.parametrize("name", SCHEDULERS)
def test_rates_are_those_of_torch_and_are_used(name, lr):
    model = Alignment(SIG)
    optimizer = JOBCD([model.weight], SIG, lr=copy.deepcopy(lr))
    found = rates(optimizer, SCHEDULERS[name](optimizer), lambda: train(model, optimizer, 1))
    plain = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=copy.deepcopy(lr))
    assert found == pytest.approx(rates(plain, SCHEDULERS[name](plain), plain.step))
    twin = Alignment(SIG)
    by_hand = JOBCD([twin.weight], SIG, lr=0.1)
    for rate in found:
        by_hand.param_groups[0]["lr"] = rate
        train(twin, by_hand, 1)
    assert torch.equal(model.weight, twin.weight)


def test_on_a_plateau():
    model = Alignment(SIG)
    optimizer = JOBCD([model.weight], SIG, lr=0.1)
    scheduler = lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
    for value in (1.0, 2.0, 2.0):
        train(model, optimizer, 1)
        scheduler.step(value)
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.01)


def test_groups_have_rates_of_their_own_and_states_are_restored():
    models = [Alignment(SIG), Alignment(SIG, seed=3)]
    groups = [{"params": [m.weight], "lr": lr} for m, lr in zip(models, (0.1, 0.2), strict=True)]
    optimizer = JOBCD(groups, SIG)
    scheduler = swa_utils.SWALR(optimizer, swa_lr=[0.01, 0.02], anneal_epochs=4)
    for _ in range(2):
        optimizer.step()
        scheduler.step()
    assert [group["lr"] for group in optimizer.param_groups] == pytest.approx(
        [
            0.01 + 0.09 * (1 + math.cos(math.pi / 2)) / 2,
            0.02 + 0.18 * (1 + math.cos(math.pi / 2)) / 2,
        ]
    )
    saved = copy.deepcopy((optimizer.state_dict(), scheduler.state_dict()))
    fresh = JOBCD([{"params": group["params"]} for group in groups], SIG)
    resumed = swa_utils.SWALR(fresh, swa_lr=0.5)
    fresh.load_state_dict(saved[0])
    resumed.load_state_dict(saved[1])
    for _ in range(3):
        optimizer.step()
        scheduler.step()
        fresh.step()
        resumed.step()
        assert resumed.get_last_lr() == scheduler.get_last_lr()
    assert scheduler.get_last_lr() == pytest.approx([0.01, 0.02])
