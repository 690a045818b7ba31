"""The parameters of a model split into groups for JOBCD and for other optimisers."""

import pytest
import torch

import jorth
from jorth import Signature
from jorth.nn import JOrthogonalLinear, declare
from jorth.optim import JOBCD, VRJOBCD, split_parameters

SIG, OTHER = Signature(3, 2), Signature.lorentz(4)


class Model(torch.nn.Module):
    """Two signatures, biases, a declared parameter and a head."""

    def __init__(self):
        super().__init__()
        self.first = JOrthogonalLinear(SIG, bias=True)
        self.head = torch.nn.Linear(SIG.n, OTHER.n)
        self.second = JOrthogonalLinear(OTHER, batch=(2,))
        self.third = JOrthogonalLinear(SIG)
        self.turn = torch.nn.Parameter(torch.eye(OTHER.n))
        declare(self, "turn", OTHER)

    def forward(self, x):
        y = self.head(self.third(self.first(x).tanh())) @ self.turn
        return self.second(y[..., None, :].expand(*y.shape[:-1], 2, y.shape[-1]))


def names(model, groups):
    own = {id(p): name for name, p in model.named_parameters()}
    return [[own[id(p)] for p in group["params"]] for group in groups]


def test_one_group_per_signature():
    model = Model()
    split = split_parameters(model)
    assert names(model, split.j_orthogonal) == [
        ["turn", "second.weight"],
        ["first.weight", "third.weight"],
    ]
    assert [group["signature"] for group in split.j_orthogonal] == [OTHER, SIG]
    assert names(model, split.others) == [["first.bias", "head.weight", "head.bias"]]


def test_every_parameter_is_in_one_group():
    model = Model()
    model.third.weight = model.first.weight
    model.again = model.head
    split = split_parameters(model)
    found = [p for groups in split for group in groups for p in group["params"]]
    assert len(found) == len({id(p) for p in found}) == len(list(model.parameters()))


@pytest.mark.parametrize(
    "parametrize", [jorth.nn.cs_parametrization, jorth.nn.exponential_parametrization]
)
def test_free_weights_are_others(parametrize):
    model = Model()
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
    plain = split_parameters(torch.nn.Linear(3, 3))
    assert plain.j_orthogonal == []
    with pytest.raises(ValueError, match="empty parameter list"):
        JOBCD(plain.j_orthogonal)


@pytest.mark.parametrize("kind", [JOBCD, VRJOBCD])
def test_other_parameters_of_a_model_are_refused_with_advice(kind):
    model = torch.nn.Sequential(JOrthogonalLinear(SIG), torch.nn.Linear(SIG.n, SIG.n))
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
