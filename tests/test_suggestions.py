"""Names that are nearly right, and calls whose arguments do not fit."""

import copy
import pickle

import numpy as np
import pytest
import torch

import jorth
from jorth import Signature, kge, nn, optim
from jorth._inputs import Explained, check_keywords, explained, meant

SIG = Signature(2, 1)


@pytest.mark.parametrize(
    ("name", "valid", "wanted"),
    [
        ("Max-Iterations", ["max_iterations"], "max_iterations"),
        ("max_iter", ["max_time", "max_iterations"], "max_iterations"),
        ("cifra", ["mnist", "cifar"], "cifar"),
        ("sweeps", ["seed", "stop"], None),
        ("x" * 1000, ["x"], None),
        (3, ["3"], None),
    ],
)
def test_what_is_meant(name, valid, wanted):
    assert meant(name, valid) == wanted


def test_long_lists_of_names_are_cut():
    with pytest.raises(TypeError) as caught:
        check_keywords("f", ["zeal"], [f"argument_{k}" for k in range(500)])
    assert len(str(caught.value)) < 400


@explained
def three(first, second, signature, *, option=1):
    return first, second, signature, option


def test_a_misspelt_argument_is_named_with_what_was_meant():
    with pytest.raises(TypeError, match="three has no argument 'optoin'; did you mean 'option'"):
        three(1, 2, SIG, optoin=3)
    with pytest.raises(TypeError, match="has no argument 'tol'; it has objective, x0"):
        jorth.minimize(jorth.Quadratic(np.eye(3)), signature=SIG, tol=1)


def test_calls_that_fit_go_through():
    assert three(1, 2, SIG) == (1, 2, SIG, 1)
    assert three(1, signature=SIG, second=2, option=4) == (1, 2, SIG, 4)
    assert three.__name__ == "three"


class Base(Explained):
    def __init__(self, needed, *, kept=0):
        self.given = needed, kept


class Open(Base):
    def __init__(self, needed, *, own=0, **others):
        super().__init__(needed, **others)


class Wide(Explained):
    def __init__(self, **anything):
        self.given = anything


def test_constructors_pass_names_on_to_the_class_below():
    assert Open(1, own=2, kept=3).given == (1, 3)
    assert Wide(any=1).given == {"any": 1}
    with pytest.raises(TypeError, match="Open has no argument 'kep'; did you mean 'kept'"):
        Open(1, kep=3)


@pytest.mark.parametrize(
    "value",
    [
        jorth.GaussSeidel(theta=0.1),
        SIG,
        kge.Config(p=3),
        jorth.Quadratic(np.eye(3)),
        nn.JOrthogonalLinear(SIG),
        optim.JOBCD(nn.JOrthogonalLinear(SIG).parameters(), SIG),
        kge.UltraE(4, 2, signature=SIG),
    ],
    ids=lambda value: type(value).__name__,
)
def test_copies_and_pickles(value):
    for other in (copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
        assert type(other) is type(value)


# -- errors of the user's own functions


def failing(error):
    def objective(X):
        raise error

    return objective


@pytest.mark.parametrize(
    "error",
    [ZeroDivisionError("own"), ValueError("own"), RuntimeError("own"), KeyError("own")],
    ids=lambda error: type(error).__name__,
)
def test_errors_of_an_objective_are_not_replaced(error):
    with pytest.raises(type(error), match="own"):
        jorth.minimize(failing(error), signature=SIG)
    with pytest.raises(type(error), match="own"):
        jorth.minimize(jorth.Objective(failing(error), failing(error)), signature=SIG)


def test_the_cause_of_an_explained_error_is_kept():
    with pytest.raises(ValueError, match="objective must accept X") as caught:
        jorth.minimize(lambda X: (torch.ones(3, 3) @ X).sum(), signature=SIG)
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_an_x0_of_the_data_mends_it():
    start = torch.eye(3)
    found = jorth.minimize(
        lambda X: (torch.eye(3) @ X).square().sum(), start, signature=SIG, method="umcm",
        max_iterations=1,
    )  # fmt: skip
    assert found.x.dtype == torch.float32
