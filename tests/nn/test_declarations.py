"""Declarations of J-orthogonal parameters stay with their modules, whatever happens to these."""

import copy
import io
import pickle
import warnings

import pytest
import torch

from jorth import Signature
from jorth.nn import JOrthogonalLinear, cs_parametrization, declare, exponential_parametrization
from jorth.nn.declarations import declared
from jorth.nn.init import j_orthogonal_

SIG = Signature.of([1, -1, 1, 1, -1])


class Pair(torch.nn.Module):
    """A declared batch of matrices, and a number of the same size that is not."""

    def __init__(self):
        super().__init__()
        self.turns = torch.nn.Parameter(torch.empty(2, SIG.n, SIG.n))
        self.scales = torch.nn.Parameter(torch.ones(2, SIG.n, SIG.n))
        declare(self, "turns", SIG)
        j_orthogonal_(self.turns, SIG, cond=2.0)

    def forward(self, x):
        return (self.turns @ x[..., None])[..., 0].sum(-2)


def model():
    return torch.nn.Sequential(JOrthogonalLinear(SIG), torch.nn.Linear(5, 5), Pair())


def kinds(module):
    return {entry.name: (entry.signature, entry.columns) for entry in declared(module)}


WANTED = {"0.weight": (SIG, SIG), "2.turns": (SIG, SIG)}


def saved_and_loaded(module):
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


def with_state(module):
    other = model()
    other.load_state_dict(module.state_dict(), assign=True)
    return other


@pytest.mark.parametrize(
    "change",
    [
        copy.deepcopy,
        copy.copy,
        lambda module: pickle.loads(pickle.dumps(module)),
        lambda module: copy.deepcopy(copy.deepcopy(module)),
        saved_and_loaded,
        with_state,
        lambda module: module.to(torch.float64),
        lambda module: module.to("meta"),
        lambda module: module.to_empty(device="cpu"),
        lambda module: module.requires_grad_(False),
        lambda module: copy.deepcopy(module).share_memory(),
    ],
)
def test_declarations_survive(change):
    module = change(model())
    assert kinds(module) == WANTED
    own = dict(module.named_parameters())
    assert all(entry.parameter is own[entry.name] for entry in declared(module))


def test_wrappers():
    plain = model()
    compiled = torch.compile(plain, backend="eager")
    assert kinds(compiled) == {f"_orig_mod.{name}": pair for name, pair in WANTED.items()}
    parallel = torch.nn.DataParallel(plain)
    assert kinds(parallel) == {f"module.{name}": pair for name, pair in WANTED.items()}


@pytest.mark.parametrize("parametrize", [cs_parametrization, exponential_parametrization])
def test_a_declaration_rests_while_the_parameter_is_parametrised(parametrize):
    module = model()
    parametrize(module[0], "weight", SIG)
    assert list(kinds(module)) == ["2.turns"]
    assert list(kinds(copy.deepcopy(module))) == ["2.turns"]
    torch.nn.utils.parametrize.remove_parametrizations(module[0], "weight")
    assert kinds(module) == WANTED


def test_a_new_parameter_of_the_same_name_is_declared():
    module = model()
    module[0].weight = torch.nn.Parameter(torch.eye(5))
    assert declared(module)[0].parameter is module[0].weight


def test_shared_parameters_are_found_once():
    first, second = JOrthogonalLinear(SIG), JOrthogonalLinear(SIG)
    second.weight = first.weight
    assert list(kinds(torch.nn.Sequential(first, second, first))) == ["0.weight"]
    declare(second, "weight", Signature(5, 0))
    with pytest.raises(
        ValueError, match=r"0.weight and 1.weight are one parameter .* one signature"
    ):
        declared(torch.nn.Sequential(first, second))


def test_thin_parameters():
    module = torch.nn.Linear(2, 5)
    declare(module, "weight", SIG, columns=Signature(1, 1))
    assert kinds(module) == {"weight": (SIG, Signature(1, 1))}


LINEAR = torch.nn.Linear
BAD = {
    "module": (lambda: declare(5, "weight", SIG), TypeError, "module must be .*, got "),
    "name": (lambda: declare(LINEAR(5, 5), "wait", SIG), ValueError, "name must be that of a parameter of Linear, got 'wait'"),
    "signature": (lambda: declare(LINEAR(5, 5), "weight", (3, 2)), TypeError, "signature must be a jorth.Signature, got "),
    "columns": (lambda: declare(LINEAR(5, 5), "weight", SIG, columns=5), TypeError, "columns must be a jorth.Signature, got "),
    "more columns": (lambda: declare(LINEAR(4, 5), "weight", SIG, columns=Signature(4, 0)), ValueError, r"columns must have no more signs than .*, got Signature\(4, 0\)"),
    "shape": (lambda: declare(LINEAR(4, 5), "weight", SIG), ValueError, r"weight must be floating-point numbers of shape \(..., 5, 5\)"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_declarations(name):
    call, error, message = BAD[name]
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("bad", ["rounded", "nan"])
def test_loading_warns_of_a_weight_that_has_left_the_group(bad):
    layer = JOrthogonalLinear(Signature(3, 2), seed=1)
    good = copy.deepcopy(layer.state_dict())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        layer.load_state_dict(good)
    weight = good["weight"].half().float() if bad == "rounded" else good["weight"] * torch.nan
    with pytest.warns(RuntimeWarning, match=r"JOrthogonalLinear\.weight, .* jorth\.polish"):
        layer.load_state_dict(good | {"weight": weight})
