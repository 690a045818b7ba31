"""The warning when a plain optimiser has moved a J-orthogonal parameter off the group."""

import copy
import gc
import pickle
import warnings
import weakref

import pytest
import torch

import jorth
from jorth import Signature
from jorth.nn import JOrthogonalLinear, declare, watch
from jorth.nn.watch import off_group
from jorth.optim import JOBCD, VRJOBCD, split_parameters

SIG = Signature(3, 2)


def layer(dtype=torch.float32, cond=2.0):
    return JOrthogonalLinear(SIG, cond=cond, dtype=dtype)


def steps(model, optimizer, count=1):
    """Steps on a loss whose gradient is not along the group; the messages of all warnings."""
    x = torch.arange(15.0).reshape(3, 5).sin().to(next(model.parameters()))

    def closure():
        optimizer.zero_grad()
        loss = (model(x) - 1).square().mean()
        loss.backward()
        return loss

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(count):
            optimizer.step(closure)
    return [str(warning.message) for warning in caught]


PLAIN = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.01),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "Adam foreach": lambda p: torch.optim.Adam(p, lr=0.01, foreach=True),
    "Adam fused": lambda p: torch.optim.Adam(p, lr=0.01, fused=True),
    "Adam, tensor lr": lambda p: torch.optim.Adam(p, lr=torch.tensor(0.01)),
    "LBFGS": lambda p: torch.optim.LBFGS(p),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", PLAIN)
def test_plain_optimisers_give_one_warning(name, dtype):
    model = layer(dtype)
    (message,) = steps(model, PLAIN[name](model.parameters()), 20)
    kind = name.split(" ")[0].rstrip(",")
    for part in (
        f"JOrthogonalLinear.weight (5, 5) has left the group after a step of {kind}",
        "J-orthogonal for Signature(3, 2)",
        "scaled residual is 0.",
        "jorth.optim.split_parameters(model)",
        "jorth.nn.cs_parametrization",
    ):
        assert part in message


def test_the_residual_of_the_message_is_that_of_the_parameter():
    model = layer(torch.float64)
    (message,) = steps(model, PLAIN["SGD"](model.parameters()))
    found = jorth.residual(model.weight.detach(), SIG)
    assert f"scaled residual is {found:.2g}." in message


def test_the_warning_points_at_the_step():
    model = layer()
    optimizer = PLAIN["Adam"](model.parameters())
    model(torch.ones(5)).sum().backward()
    with pytest.warns(RuntimeWarning, match="has left the group") as caught:
        optimizer.step()
    assert caught[0].filename == __file__


def test_every_optimiser_warns_for_itself():
    model = layer()
    first, second = (PLAIN["Adam"](model.parameters()) for _ in range(2))
    assert [len(steps(model, optimizer, 4)) for optimizer in (first, second, first)] == [1, 1, 0]


def test_slow_drift_is_noticed_later():
    """After 2^k steps, whichever k it is that makes it large."""
    model = layer(torch.float64)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-10)
    (message,) = steps(model, optimizer, 1024)
    count = int(message.split("after ")[1].split(" ")[0])
    assert count in [2**k for k in range(3, 11)]


def trained(kind, model):
    return kind(split_parameters(model).j_orthogonal, lr=0.05)


def frozen(model):
    model.weight.requires_grad_(False)
    return torch.optim.Adam(model.parameters(), lr=0.1)


def parametrised(model):
    jorth.nn.exponential_parametrization(model, "weight", SIG)
    return torch.optim.Adam(model.parameters(), lr=0.1)


FEASIBLE = {
    "JOBCD": lambda model: trained(JOBCD, model),
    "VRJOBCD": lambda model: trained(VRJOBCD, model),
    "lr = 0": lambda model: torch.optim.Adam(model.parameters(), lr=0.0),
    "lr = 0, tensor": lambda model: torch.optim.Adam(model.parameters(), lr=torch.tensor(0.0)),
    "frozen": frozen,
    "parametrised": parametrised,
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", FEASIBLE)
def test_no_warning_where_nothing_leaves_the_group(name, dtype):
    model = torch.nn.Sequential(layer(dtype), torch.nn.Linear(5, 5, dtype=dtype))
    optimizer = FEASIBLE[name](model[0])
    assert steps(model, optimizer, 64) == []


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kind", ["RiemannianAdam", "RiemannianSGD"])
def test_no_warning_for_the_manifold_in_geoopt(kind, dtype):
    geoopt = pytest.importorskip("geoopt")
    from jorth.adapters.geoopt import JOrthogonal

    model = layer(dtype)
    start = model.weight.detach().clone()
    model.weight = geoopt.ManifoldParameter(start.clone(), manifold=JOrthogonal(SIG))
    optimizer = getattr(geoopt.optim, kind)(model.parameters(), lr=0.01)
    assert steps(model, optimizer, 512) == []
    assert not torch.equal(model.weight, start)
    (message,) = steps(model, torch.optim.SGD(model.parameters(), lr=0.01), 4)
    assert "has left the group" in message


def test_no_warning_for_large_norms_in_float32():
    model = JOrthogonalLinear(SIG, batch=(50,), cond=1e6)
    assert float(torch.linalg.matrix_norm(model.weight.detach(), 2).min()) > 900
    assert off_group(model.weight, SIG, SIG) is None
    with torch.no_grad():
        model.weight[7] += 10.0
    worst = float(jorth.residual(model.weight.detach(), SIG).max())
    assert off_group(model.weight, SIG, SIG) == pytest.approx(worst, rel=1e-12)


def test_points_on_the_group_are_cleared_by_one_product(monkeypatch):
    """Not by the residual itself, which takes singular values."""
    monkeypatch.setattr(watch, "residual", None)
    for cond in (1.0, 100.0, 1e6):
        assert off_group(layer(cond=cond).weight, SIG, SIG) is None


def test_half_precision_is_judged_by_its_own_digits():
    model = layer().to(torch.bfloat16)
    assert off_group(model.weight, SIG, SIG) is None
    assert len(steps(model, torch.optim.SGD(model.parameters(), lr=1.0), 4)) == 1


def test_thin_parameters_are_looked_at():
    module = torch.nn.Linear(2, 5, bias=False, dtype=torch.float64)
    module.weight.data = torch.eye(5, dtype=torch.float64)[:, [0, 4]]
    declare(module, "weight", SIG, columns=Signature(1, 1))
    assert off_group(module.weight, SIG, Signature(1, 1)) is None
    module.weight.grad = torch.ones_like(module.weight)
    with pytest.warns(RuntimeWarning, match="Linear.weight .* has left the group"):
        torch.optim.SGD(module.parameters(), lr=0.1).step()


def test_parameters_of_others_and_unused_ones_are_left_alone():
    model, other = layer(), torch.nn.Linear(5, 5)
    with torch.no_grad():
        model.weight.mul_(2)  # off the group, by no optimiser
    assert steps(other, torch.optim.SGD(other.parameters(), lr=0.1), 8) == []
    both = [*other.parameters(), *model.parameters()]
    assert steps(other, torch.optim.SGD(both, lr=0.1), 8) == []


@pytest.mark.parametrize("name", ["lr = 0", "lr = 0, tensor", "frozen"])
def test_an_optimiser_that_moves_nothing_is_not_to_blame(name):
    model = torch.nn.Sequential(layer(), torch.nn.Linear(5, 5))
    with torch.no_grad():
        model[0].weight.mul_(2)
    model(torch.ones(5)).sum().backward()  # a frozen parameter may have an old gradient
    optimizer = FEASIBLE[name](model[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer.step()


@pytest.mark.parametrize(
    "change",
    [copy.deepcopy, lambda pair: pickle.loads(pickle.dumps(pair))],
    ids=["deepcopy", "pickle"],
)
def test_copies_of_models_and_optimisers_warn(change):
    model = layer()
    optimizer = PLAIN["Adam"](model.parameters())
    twin, twin_optimizer = change((model, optimizer))
    del model, optimizer
    assert len(steps(twin, twin_optimizer, 4)) == 1


def test_nothing_is_kept_alive():
    model = layer()
    optimizer = PLAIN["Adam"](model.parameters())
    steps(model, optimizer, 2)
    references = [weakref.ref(model), weakref.ref(model.weight)]
    before = len(watch._watched)
    gc.disable()  # without cycles nothing waits for the collector
    try:
        del model, optimizer
        gone = references[0]() is None
    finally:
        gc.enable()
    gc.collect()  # torch's optimisers are cycles
    assert gone
    assert all(reference() is None for reference in references)
    assert len(watch._watched) < before


@pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is:DeprecationWarning")
def test_compiled_models_and_steps():
    model = torch.nn.Sequential(layer(), torch.nn.Linear(5, 5))
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    assert len(steps(compiled, torch.optim.SGD(compiled.parameters(), lr=0.01), 4)) == 1
    x = torch.ones(2, 5)
    assert torch.equal(compiled(x), model(x))

    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    step = torch.compile(optimizer.step, backend="eager")
    before = model[0].weight.detach().clone()
    model(x).sum().backward()
    step()
    assert not torch.equal(before, model[0].weight)
