"""Every public function with right, odd and wrong arguments."""

import warnings

import numpy as np
import pytest
import torch

import jorth
from tests.fuzz.calls import CALLS, ELSEWHERE, Call
from tests.fuzz.judge import fault_of, limits, numbers_in
from tests.fuzz.values import FORMS, NO_NUMBERS, As, as_numpy, kind_of, plain, wrong_values
from tests.public import public_names

BY_NAME = {call.name: call for call in CALLS}
SHARE = 0.4
"""Of the wrong values for an argument, this share is tried, others in every run of another seed."""


def test_no_name_is_excused_in_vain():
    assert set(public_names()) >= ELSEWHERE


def right(call, seed=0):
    return call.arguments(np.random.default_rng(seed))


@pytest.mark.parametrize("name", BY_NAME)
def test_right_arguments_are_accepted_and_left_alone(name):
    call = BY_NAME[name]
    given = plain(right(call))
    with limits():
        call.function(**given)
    fault = fault_of(call, plain(right(call, 1)), (), refused=False)
    assert not fault


@pytest.mark.parametrize("name", BY_NAME)
def test_wrong_arguments_are_named(name):
    """A clear error, or an answer of finite numbers; arrays of no numbers are always an error."""
    call, faults = BY_NAME[name], []
    rng = np.random.default_rng(len(name))
    strict = not call.non_finite
    for argument, value in right(call).items():
        kind, value = kind_of(argument, value), plain({argument: value})[argument]
        for what, wrong in wrong_values(kind, value).items():
            if rng.random() > SHARE or (wrong is None and value is None):
                continue
            given = plain(right(call)) | {argument: wrong}
            refused = strict and kind == "array" and what in NO_NUMBERS and wrong is not None
            # of two arrays that do not fit, either may be named
            named = {argument, *(arrays_of(call) if kind == "array" else ())}
            fault = fault_of(call, given, tuple(named), refused=refused)
            if fault:
                faults.append(f"{argument}: {what}: {fault}")
    assert not faults, "\n" + "\n".join(faults)


DATA_SETS = ("jorth.FiniteSum", "tuples")  # several data sets with the same rows


def arrays_of(call):
    found = {
        name: plain({name: value})[name]
        for name, value in right(call).items()
        if kind_of(name, value) == "array" and not isinstance(value, As)
    }
    return {name: as_numpy(value) for name, value in found.items()}


WITH_ARRAYS = [
    name
    for name, call in BY_NAME.items()
    if arrays_of(call) and not name.startswith("jorth.nn.") and not call.changes
]


@pytest.mark.parametrize("name", WITH_ARRAYS)
def test_every_form_of_an_array_gives_the_same_answer(name):
    call, faults = BY_NAME[name], []
    own = arrays_of(call)
    for form, change in FORMS.items():
        tensors = form.startswith("tensor")
        for argument in own:
            # tensors go with tensors, and a dtype with its own
            together = own if tensors or "float32" in form else {argument: own[argument]}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                given = plain(right(call)) | {key: change(own[key]) for key in together}
            if any(given[key] is None for key in together) or (name, form) == DATA_SETS:
                continue
            try:
                with limits():
                    found = call.function(**given)
                    wanted = call.function(**plain(right(call)))
            except (ValueError, TypeError) as error:
                if not (tensors and "sparse" in form) and "float32" not in form:
                    faults.append(f"{argument} as {form}: {error!r:.150}")
                continue
            single = "float32" in form
            if single and isinstance(found, jorth.Result):
                continue  # a few steps in lower precision lead elsewhere
            fault = difference(found, wanted, tensors, 2e-2 if single else 1e-7)
            if fault:
                faults.append(f"{argument} as {form}: {fault}")
    assert not faults, "\n" + "\n".join(faults)


def difference(found, wanted, tensors, tolerance):
    parts, others = list(numbers_in(found)), list(numbers_in(wanted))
    if len(parts) != len(others):
        return f"{[kind for kind, _ in parts]} and not {[kind for kind, _ in others]}"
    for (kind, a), (_, b) in zip(parts, others, strict=True):
        if kind.startswith("ndarray") and tensors and a.dtype.kind == "f" and a.ndim > 1:
            return f"{kind} for a tensor"
        size = np.abs(b[np.isfinite(b)]).max(initial=1.0)
        if a.shape != b.shape or not np.allclose(
            a, b, rtol=0, atol=tolerance * size, equal_nan=True
        ):
            return "another answer"
    return ""


# -- the judge itself


def raising(error):
    def function(X):
        raise error

    return function


def overwriting(X):
    X[:] = 0


@pytest.mark.parametrize(
    ("function", "sound"),
    [
        (raising(ValueError("X must be finite, got 1 NaN of 9 entries")), True),
        (raising(ValueError("XX must be finite")), False),
        (raising(ValueError("X must be finite, got array([[nan]])")), False),
        (raising(ValueError("X " + "0.1, " * 100)), False),
        (raising(np.linalg.LinAlgError("X is singular")), False),
        (raising(OverflowError("X")), False),
        (lambda X: 1.0, True),
        (lambda X: {"a": [torch.tensor(torch.inf)]}, False),
        (overwriting, False),
        (lambda X: np.empty(1 << 40), False),
    ],
)
def test_the_judge(function, sound):
    call = Call("jorth.made_up", lambda rng: {}, function)
    assert (fault_of(call, {"X": np.ones((3, 3))}, ("X",), refused=False) == "") is sound
