"""Criteria: what they say of values that rise, of limits that meet,
and of arguments that make no sense."""

import json
import math

import numpy as np
import pytest
from click.testing import CliRunner

import jorth
from jorth import Signature
from jorth.cli import main
from jorth.estimators import LorentzAligner
from jorth.solvers.result import COLUMNS, History
from jorth.solvers.stopping import Improvement
from jorth.stopping import GradientNorm, NormAbove, RelativeDecrease, ValueBelow
from tests.solvers.registry import case


def report(*values, known=True):
    history = History.__new__(History)
    history.rows = [[value if name == "value" else 0.0 for name in COLUMNS] for value in values]
    history.iteration, history.value = len(values) - 1, values[-1]
    history.gradient_norm = 1.0 if known else math.nan
    return history


@pytest.mark.parametrize("sign", [1, -1])
def test_a_value_that_rises_has_not_decreased(sign):
    decrease = RelativeDecrease(1e-3)
    assert not decrease.met(report(sign * 1.0, sign * 1.0 + 1.0))
    assert not decrease.met(report(sign * 1.0, sign * 1.0 + 1e-9))
    assert decrease.met(report(sign * 1.0, sign * 1.0))
    assert decrease.met(report(sign * 1.0, sign * 1.0 - 1e-4))
    assert not decrease.met(report(sign * 1.0, sign * 1.0 - 1e-2))


@pytest.mark.parametrize(
    ("criterion", "arguments"),
    [
        (GradientNorm, (math.nan,)), (RelativeDecrease, (-1,)), (RelativeDecrease, (0.1, 0)),
        (ValueBelow, ("low",)), (NormAbove, (10**400,)),
    ],
)  # fmt: skip
def test_arguments_that_make_no_sense(criterion, arguments):
    with pytest.raises((ValueError, TypeError), match=" must be "):
        criterion(*arguments)


def test_criteria_combine():
    this = case("procrustes noisy")

    def run(stop):
        return jorth.minimize(
            this.objective, signature=this.signature, method="gs-jobcd",
            gradient_tolerance=0.0, stop=stop,
        )  # fmt: skip

    assert "relative decrease" in run(NormAbove(1e9) | RelativeDecrease(1e-6)).message


def test_a_better_value_or_a_much_better_gradient_is_an_improvement():
    eps = float(np.finfo(float).eps)
    improvement = Improvement()
    assert improvement.update(1.0, 1.0, eps) == 0
    for idle in range(1, 50):
        assert improvement.update(1.0, 0.995, eps) == idle
    assert improvement.update(0.5, 1.0, eps) == 0  # the value
    for idle in range(1, 50):
        assert improvement.update(0.5, 0.999, eps) == idle
    assert improvement.update(0.6, 0.9, eps) == 0  # the gradient
    for idle in range(1, 51):
        assert improvement.update(0.6, 0.9, eps) == idle


def test_there_is_one_default_tolerance(tmp_path):
    """`minimize`, `procrustes`, the estimators and the program all say the same number."""
    rng = np.random.default_rng(0)
    sig = Signature(3, 2)
    source = rng.standard_normal((20, 5))
    target = source @ jorth.random_point(sig, cond=3.0, seed=1) + 0.1 * rng.standard_normal((20, 5))
    np.save(tmp_path / "source.npy", source)
    np.save(tmp_path / "target.npy", target)
    files = [str(tmp_path / name) for name in ("source.npy", "target.npy")]
    output = str(tmp_path / "X.npy")
    arguments = ["solve", "procrustes", *files, "-s", "3,2", "-o", output]
    assert CliRunner().invoke(main, arguments).exit_code == 0
    messages = [
        jorth.minimize(jorth.Procrustes(source, target), signature=sig).message,
        jorth.procrustes(source, target, sig).message,
        LorentzAligner(signature=sig).fit(source, target).result_.message,
        json.loads((tmp_path / "X.json").read_text())["message"],
    ]
    assert all("is at most 1e-07 of its scale" in message for message in messages)
