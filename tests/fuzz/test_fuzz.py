"""Every public function with bad and odd arguments: a clear error or a right answer,
never anything else."""

from collections import Counter

import numpy as np
import pytest
import torch

import jorth
from tests.fuzz.calls import Call, Case, cases
from tests.fuzz.judge import CLEAR, ELSE, RIGHT, judge
from tests.fuzz.rooms import ROOMS, run
from tests.public import public_names

QUICK = 2_500
LONG = 22_000
SHOWN = 25


def check(room, count, base):
    verdicts = run(room, count, base)
    counts = Counter(verdict.outcome for verdict in verdicts)
    print(
        f"{room}: " + ", ".join(f"{counts[outcome]} {outcome}" for outcome in (CLEAR, RIGHT, ELSE))
    )
    others = [str(verdict) for verdict in verdicts if verdict.outcome == ELSE]
    assert not others, f"{len(others)} of {len(verdicts)}:\n" + "\n".join(others[:SHOWN])
    assert min(counts[CLEAR], counts[RIGHT]) > len(verdicts) / 20, "the mutations are one-sided"


@pytest.mark.parametrize("room", ROOMS)
def test_only_clear_errors_and_right_answers(room):
    check(room, QUICK, base=0)


@pytest.mark.slow
@pytest.mark.parametrize("room", ROOMS)
def test_only_clear_errors_and_right_answers_at_length(room):
    check(room, LONG, base=1_000_000)


def test_every_public_name_is_called_or_has_a_reason():
    called = {call.public_name for module, _ in ROOMS.values() for call in module.CALLS}
    excused = {name for module, _ in ROOMS.values() for name in module.WITHOUT}
    missing = [name for name in public_names() if name not in called | excused]
    assert not missing, f"neither called nor excused: {missing}"
    assert not called & excused


# -- the judge itself


def verdict_on(function, check=lambda result, given: None, **options):
    call = Call("jorth.made_up", function, lambda rng: dict(X=np.ones((3, 3))), check, **options)
    return judge(Case(call, {"X": "one NaN"}, 0)).outcome


def raising(error):
    def function(X):
        raise error

    return function


def overwriting(X):
    X[:] = 0


@pytest.mark.parametrize(
    ("function", "outcome"),
    [
        (raising(ValueError("X must be finite, got 1 NaN of 9 entries")), CLEAR),
        (raising(jorth.PolishError("X has no factor")), CLEAR),
        (raising(ValueError("Y must be finite")), ELSE),
        (raising(ValueError("XX must be finite")), ELSE),
        (raising(ValueError("X must be finite, got array([[nan]])")), ELSE),
        (raising(ValueError("X " + "0.1, " * 100)), ELSE),
        (raising(np.linalg.LinAlgError("X is singular")), ELSE),
        (raising(IndexError("X")), ELSE),
        (raising(OverflowError("X")), ELSE),
        (lambda X: 1.0, RIGHT),
        (lambda X: X, ELSE),
        (lambda X: {"a": [torch.tensor(torch.inf)]}, ELSE),
        (overwriting, ELSE),
        (lambda X: np.empty(1 << 40), ELSE),
    ],
)
def test_the_judge(function, outcome):
    assert verdict_on(function) == outcome


def test_the_judge_ends_what_is_endless(monkeypatch):
    monkeypatch.setattr("tests.fuzz.judge.PATIENCE", 0.05)

    def endless(X):
        while True:
            pass

    assert verdict_on(endless) == ELSE


def test_a_wrong_answer_is_told():
    def wrong(result, given):
        raise AssertionError

    assert verdict_on(lambda X: 1.0, wrong) == ELSE


def test_cases_are_those_of_their_seed():
    module, _ = ROOMS["core"]
    first, again, other = (list(map(str, cases(module.CALLS, 50, base))) for base in (3, 3, 4))
    assert first == again
    assert first != other
