"""The parameters of a model in groups, and one optimiser for all: steps, scheduler, state."""

import copy
import io
import pickle
from functools import partial

import pytest
import torch
from torch import nn

import jorth
from jorth.nn import JOrthogonalLinear, declare
from jorth.optim import JOBCD, VRJOBCD, ModelOptimizer, split_parameters

SIG = jorth.Signature(3, 2)
ADAM = partial(torch.optim.AdamW, lr=0.02)


def network() -> nn.Module:
    torch.manual_seed(0)
    layer = jorth.nn.JOrthogonalLinear(SIG, seed=1)
    return nn.Sequential(layer, nn.Tanh(), nn.Linear(5, 4), nn.Linear(4, 1))


def train(model, optimizers, steps, scheduler=None, seed=3):
    x = torch.randn(64, 5, generator=torch.Generator().manual_seed(seed))
    for _ in range(steps):
        for optimizer in optimizers:
            optimizer.zero_grad()
        (model(x) - x[:, :1].sin()).square().mean().backward()
        for optimizer in optimizers:
            optimizer.step()
        if scheduler is not None:
            scheduler.step()


def same(a, b):
    pairs = zip(a.state_dict().items(), b.state_dict().items(), strict=True)
    return all(torch.equal(x, y) and m == n for (m, x), (n, y) in pairs)


def test_steps_are_those_of_two_optimisers():
    one, two = network(), network()
    split = split_parameters(two)
    train(one, [ModelOptimizer(one, ADAM, lr=0.03)], 7)
    train(two, [JOBCD(split.j_orthogonal, lr=0.03), ADAM(split.others)], 7)
    assert same(one, two)
    assert not same(one, network())


def test_one_scheduler_moves_both_learning_rates():
    model = network()
    optimizer = ModelOptimizer(model, ADAM, lr=0.03)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    train(model, [optimizer], 2, scheduler)
    assert [group["lr"] for group in optimizer.param_groups] == [0.03 / 4, 0.02 / 4]
    assert [part.param_groups[0]["lr"] for part in optimizer.parts] == [0.03 / 4, 0.02 / 4]


@pytest.mark.parametrize("how", ["state_dict", "pickle", "deepcopy"])
def test_a_run_resumes_bit_for_bit(how):
    whole = network()
    train(whole, [ModelOptimizer(whole, ADAM)], 9)

    model = network()
    optimizer = ModelOptimizer(model, ADAM)
    train(model, [optimizer], 4)
    if how == "state_dict":
        file = io.BytesIO()
        torch.save([model.state_dict(), optimizer.state_dict()], file)
        file.seek(0)
        weights, state = torch.load(file)  # takes nothing but plain data
        model = network()
        model.load_state_dict(weights)
        optimizer = ModelOptimizer(model, ADAM)
        optimizer.load_state_dict(state)
    elif how == "pickle":
        model, optimizer = pickle.loads(pickle.dumps([model, optimizer]))
    else:
        model, optimizer = copy.deepcopy([model, optimizer])
    train(model, [optimizer], 5)
    assert same(model, whole)


def test_added_groups_are_moved_by_their_part():
    model, more = network(), network()
    optimizer = ModelOptimizer(model, ADAM)
    optimizer.add_param_group({"params": list(more[2].parameters()), "lr": 0.5})
    optimizer.add_param_group({"params": [more[0].weight], "signature": SIG, "lr": 0.5})
    assert [len(part.param_groups) for part in optimizer.parts] == [2, 2]
    before = copy.deepcopy(more)
    train(more, [optimizer], 3)
    assert not torch.equal(more[2].weight, before[2].weight)
    assert not torch.equal(more[0].weight, before[0].weight)
    assert jorth.residual(more[0].weight.detach(), SIG) < 1e-5
    assert torch.equal(more[3].weight, before[3].weight)  # nobody has it
    again = ModelOptimizer(network(), ADAM)
    again.add_param_group({"params": list(network()[2].parameters())})
    again.add_param_group({"params": [network()[0].weight], "signature": SIG})
    again.load_state_dict(optimizer.state_dict())
    rates = [[group["lr"] for group in part.param_groups] for part in again.parts]
    assert rates == [[0.01, 0.5], [0.02, 0.5]]


def test_a_closure_is_called_once_and_its_loss_returned():
    model, calls = network(), []
    optimizer = ModelOptimizer(model)

    def closure():
        calls.append(0)
        optimizer.zero_grad()
        loss = model(torch.ones(2, 5)).square().sum()
        loss.backward()
        return loss

    before = model(torch.ones(2, 5)).square().sum()
    assert optimizer.step(closure) == before
    assert len(calls) == 1
    assert model(torch.ones(2, 5)).square().sum() < before


def test_a_model_of_declared_parameters_alone_needs_no_other():
    layer = jorth.nn.JOrthogonalLinear(SIG, bias=False, seed=0)
    assert len(ModelOptimizer(layer).parts) == 1


def test_what_cannot_be():
    with pytest.raises(ValueError, match=r"a parameter that jorth\.nn\.declare"):
        ModelOptimizer(nn.Linear(2, 2))
    with pytest.raises(TypeError, match=r"others must be a function of parameter groups .* got 3"):
        ModelOptimizer(network(), 3)
    alone = ModelOptimizer(jorth.nn.JOrthogonalLinear(SIG, bias=False))
    with pytest.raises(ValueError, match=r"param_group must have a signature"):
        alone.add_param_group({"params": [nn.Parameter(torch.ones(2))]})
    state = ModelOptimizer(network()).state_dict()
    state["param_groups"][0]["signature"] = [1, 1, 1, 1, -1]
    with pytest.raises(ValueError, match="state_dict must be of"):
        ModelOptimizer(network()).load_state_dict(state)


# -- groups

OTHER = jorth.Signature.lorentz(4)


class Several(nn.Module):
    """Two signatures, biases, a declared parameter and a head."""

    def __init__(self):
        super().__init__()
        self.first = JOrthogonalLinear(SIG, bias=True)
        self.head = nn.Linear(SIG.n, OTHER.n)
        self.second = JOrthogonalLinear(OTHER, batch=(2,))
        self.third = JOrthogonalLinear(SIG)
        self.turn = nn.Parameter(torch.eye(OTHER.n))
        declare(self, "turn", OTHER)

    def forward(self, x):
        y = self.head(self.third(self.first(x).tanh())) @ self.turn
        return self.second(y[..., None, :].expand(*y.shape[:-1], 2, y.shape[-1]))


def names(model, groups):
    own = {id(p): name for name, p in model.named_parameters()}
    return [[own[id(p)] for p in group["params"]] for group in groups]


def test_one_group_per_signature():
    model = Several()
    split = split_parameters(model)
    assert names(model, split.j_orthogonal) == [
        ["turn", "second.weight"],
        ["first.weight", "third.weight"],
    ]
    assert [group["signature"] for group in split.j_orthogonal] == [OTHER, SIG]
    assert names(model, split.others) == [["first.bias", "head.weight", "head.bias"]]


def test_every_parameter_is_in_one_group():
    model = Several()
    model.third.weight = model.first.weight
    model.again = model.head
    split = split_parameters(model)
    found = [p for groups in split for group in groups for p in group["params"]]
    assert len(found) == len({id(p) for p in found}) == len(list(model.parameters()))


@pytest.mark.parametrize(
    "parametrize", [jorth.nn.cs_parametrization, jorth.nn.exponential_parametrization]
)
def test_free_weights_are_others(parametrize):
    model = Several()
    parametrize(model.first, "weight", SIG)
    split = split_parameters(model)
    assert names(model, split.j_orthogonal) == [["turn", "second.weight"], ["third.weight"]]
    free = {name for name, _ in model.named_parameters() if "parametrizations" in name}
    assert len(free) > 0
    assert free <= set(names(model, split.others)[0])


def test_empty_sides():
    alone = split_parameters(JOrthogonalLinear(SIG))
    assert alone.others == [{"params": []}]
    optimizer = torch.optim.Adam(alone.others)
    optimizer.step()
    optimizer.load_state_dict(optimizer.state_dict())
    plain = split_parameters(nn.Linear(3, 3))
    assert plain.j_orthogonal == []
    with pytest.raises(ValueError, match="empty parameter list"):
        JOBCD(plain.j_orthogonal)


@pytest.mark.parametrize("kind", [JOBCD, VRJOBCD])
def test_other_parameters_of_a_model_are_refused_with_advice(kind):
    model = nn.Sequential(JOrthogonalLinear(SIG), nn.Linear(SIG.n, SIG.n))
    with pytest.raises(ValueError, match=r"params\[1\] must be J-orthogonal.*split_parameters"):
        kind(model.parameters(), SIG)
    with pytest.raises(ValueError, match=r"params\[1\] must have shape.*split_parameters"):
        kind(JOrthogonalLinear(SIG, bias=True).parameters(), SIG)
    with pytest.raises(TypeError, match=r"model must be a torch.nn.Module, got generator"):
        split_parameters(model.parameters())


@pytest.mark.parametrize("kind", [JOBCD, VRJOBCD])
def test_optimisers_leave_the_groups_of_a_split_as_they_are(kind):
    split = split_parameters(JOrthogonalLinear(SIG))
    for lr in (0.1, 0.2):  # twice, with options of their own
        (group,) = kind(split.j_orthogonal, lr=lr).param_groups
        assert group["lr"] == lr
    assert [set(group) for group in split.j_orthogonal] == [{"params", "signature"}]
