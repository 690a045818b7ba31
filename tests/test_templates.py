"""The templates for solvers and objectives of one's own pass the tests of the library's."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import jorth
from jorth.objectives import AbstractObjective, QuadraticForm, check_objective
from tests.planted import near_procrustes
from tests.solvers import registry
from tests.solvers.test_every_solver import test_reaches_the_optimum as reaches_the_optimum

EXAMPLES = Path(__file__).parent.parent / "examples"


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # as dataclasses ask for it
    spec.loader.exec_module(module)
    return module


Descent = load("own_solver").Descent
RobustAlignment = load("own_objective").RobustAlignment


@pytest.fixture
def robust():
    """The objective of the template, with its minimum in the identity component."""
    signature = jorth.Signature(4, 2)
    source, target, _ = near_procrustes(30, signature, source_condition=3.0, noise=0.0, seed=1)
    objective = RobustAlignment(torch.from_numpy(source), torch.from_numpy(target))
    return registry.Case(objective, signature, 0.0, finite_sum=True)


@pytest.mark.parametrize("problem", registry.PROBLEMS)
def test_the_solver_reaches_every_optimum(monkeypatch, problem):
    monkeypatch.setitem(registry.SOLVERS, "own", Descent())
    reaches_the_optimum("own", problem)


@pytest.mark.parametrize("solver", ["j tournament", "csdm", "cg", "lbfgs", "newton", "vr", "own"])
def test_every_kind_of_solver_minimises_the_objective(monkeypatch, robust, solver):
    monkeypatch.setitem(registry.SOLVERS, "own", Descent())
    monkeypatch.setattr("tests.solvers.test_every_solver.case", lambda name: robust)
    reaches_the_optimum(solver, "robust")


def test_a_run_of_the_solver_resumes(tmp_path):
    this = registry.case("procrustes noisy")
    options = dict(signature=this.signature, checkpoint_interval=0, gradient_tolerance=1e-9)
    part = dict(checkpoint=tmp_path, **options)
    jorth.minimize(this.objective, method=Descent(), max_iterations=5, **part)
    resumed = jorth.minimize(this.objective, method=Descent(), max_iterations=12, **part)
    whole = jorth.minimize(this.objective, method=Descent(), max_iterations=12, **options)
    np.testing.assert_array_equal(resumed.x, whole.x)


def test_another_method_goes_on_from_the_solver():
    this = registry.case("trace")
    options = dict(signature=this.signature)
    first = jorth.minimize(this.objective, method=Descent(memory=0.0), max_iterations=3, **options)
    found = jorth.minimize(this.objective, first.x, method="riemannian-newton", **options)
    assert found.value == pytest.approx(this.optimum, rel=1e-9)
    assert found.value < first.value


# -- checks of an objective


def point(shape=(6, 6)):
    return np.random.default_rng(0).standard_normal(shape)


@pytest.mark.parametrize("problem", registry.PROBLEMS)
def test_all_objectives_are_what_they_say(problem):
    this = registry.case(problem)
    assert check_objective(this.objective, point((this.signature.n,) * 2)) < 1e-7


def test_the_template_is_what_it_says(robust):
    assert check_objective(robust.objective, point()) < 1e-7


class Quartic(AbstractObjective):
    """f = |X|^4 / 4 with faults on request."""

    def __init__(self, **faults):
        for name, value in faults.items():
            setattr(self, name, value)

    def value_and_gradient(self, X):
        return X.square().sum() ** 2 / 4, X.square().sum() * X


def with_gradient(change):
    def both(X):
        value, gradient = Quartic().value_and_gradient(X)
        return value, change(gradient)

    return Quartic(value_and_gradient=both)


FORM = QuadraticForm(torch.eye(6, dtype=torch.float64), None, None)


@pytest.mark.parametrize(
    ("objective", "message"),
    [
        (with_gradient(lambda G: -G), "gradient differs from the slopes"),
        (with_gradient(lambda G: 1.001 * G), "gradient differs from the slopes"),
        (with_gradient(lambda G: G * torch.nan), "gradient differs from the slopes"),
        (with_gradient(lambda G: G[:2]), r"the gradient must have shape \(6, 6\), got \(2, 6\)"),
        (Quartic(samples=2, sample_gradient=lambda X, index: X), "sample_gradient differs"),
        (Quartic(quadratic=lambda: FORM), "quadratic differs"),
        (Quartic(curvature=lambda: 1.0), "curvature is too small"),
        (Quartic(value_and_gradient=lambda X: (X.mul_(2).sum(), X)), "must not change X"),
    ],
)
def test_faults_are_found(objective, message):
    with pytest.raises(ValueError, match=message):
        check_objective(objective, point())


def test_functions_are_checked_too():
    assert check_objective(lambda X: X.square().sum().sin(), point((3, 2))) < 1e-7
    with pytest.raises(TypeError, match="objective must be a jorth objective or a function"):
        check_objective(3, point())
    with pytest.raises(ValueError, match=r"X must be a matrix \(n, k\)"):
        check_objective(Quartic(), np.ones(3))
