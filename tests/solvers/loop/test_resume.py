"""A run in parts is the run in one piece: point, counts,
status and every column of the history but time."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

import jorth
from jorth import CheckpointMismatch, Signature, Status
from jorth.solvers.problem import AbstractSolver, State
from tests.solvers.registry import SOLVERS, case

STEPS = 14


def assert_same_run(resumed, straight):
    np.testing.assert_array_equal(np.asarray(resumed.x), np.asarray(straight.x))
    for column in straight.history.keys() - {"time"}:
        np.testing.assert_array_equal(
            resumed.history[column], straight.history[column], err_msg=column
        )
    assert (np.diff(resumed.history["time"]) >= 0).all()
    same = dict(x=None, history={}, time=0.0)
    assert repr(replace(resumed, **same)) == repr(replace(straight, **same))


def thin():
    """A tall X."""
    rng = np.random.default_rng(8)
    M = rng.standard_normal((7, 7))
    sig = Signature(4, 3)
    x0 = jorth.random_point(sig, cond=3.0, seed=3)[:, :4].copy()
    return jorth.Quadratic(M @ M.T), dict(signature=sig, x0=x0)


def single():
    source, target, _ = jorth.datasets.planted_procrustes(20, Signature(3, 3), noise=0.1, seed=1)
    objective = jorth.Procrustes(source.astype(np.float32), target.astype(np.float32))
    return objective, dict(signature=Signature(3, 3))


def of_registry(name):
    this = case(name)
    return this.objective, dict(signature=this.signature, x0=this.x0)


PROBLEMS = {
    "square": lambda: of_registry("procrustes noisy"),
    "a function": lambda: of_registry("autograd"),
    "thin": thin,
    "float32": single,
}
CASES = [
    (problem, name)
    for problem in PROBLEMS
    for name, solver in SOLVERS.items()
    if not (problem == "thin" and (not solver.thin or getattr(solver, "side", "left") != "left"))
    and not (name.startswith("vr") and problem in ("thin", "a function"))
    and not (problem in ("thin", "float32") and name.startswith("exponential"))
]


@pytest.mark.parametrize(("problem", "name"), CASES)
def test_every_method_in_three_parts(problem, name, tmp_path):
    objective, options = PROBLEMS[problem]()
    options |= dict(method=SOLVERS[name], gradient_tolerance=0.0, seed=7)
    # a callback: without one a compiled method takes several iterations at once, whose values are
    # those of a straight run up to rounding
    straight = jorth.minimize(
        objective, max_iterations=STEPS, callback=lambda X, row: None, **options
    )
    for limit in (4, 9, STEPS):
        resumed = jorth.minimize(objective, max_iterations=limit, checkpoint=tmp_path, **options)
    assert_same_run(resumed, straight)


@pytest.mark.parametrize(
    "name", ["gs sweep", "j tournament", "vr", "umcm", "admm", "csdm", "lbfgs"]
)
def test_cut_inside_a_step_and_resumed(name, tmp_path):
    this = case("procrustes noisy")
    options = dict(signature=this.signature, method=SOLVERS[name], gradient_tolerance=0.0)
    straight = jorth.minimize(this.objective, max_iterations=STEPS, **options)
    for evaluations in (3, 6):
        jorth.minimize(this.objective, max_evaluations=evaluations, checkpoint=tmp_path, **options)
    resumed = jorth.minimize(this.objective, max_iterations=STEPS, checkpoint=tmp_path, **options)
    np.testing.assert_array_equal(resumed.x, straight.x)
    for column in ("iteration", "value", "gradient_norm", "norm", "residual"):
        np.testing.assert_array_equal(
            resumed.history[column], straight.history[column], err_msg=column
        )


def distance(X):
    return (X - 2).square().sum()


class Idle(AbstractSolver):
    """Steps that go nowhere, and cost a gradient."""

    name = "idle"

    def __repr__(self):
        return "Idle()"

    def step(self, problem, state):
        problem.objective.value_and_gradient(state.X)


def test_a_stall_is_counted_once_however_often_the_run_is_cut(tmp_path):
    """Each cut comes within a step: the iteration before it is looked at again."""
    options = dict(signature=Signature(2, 1), method=Idle(), gradient_tolerance=0.0)
    options["checkpoint"] = tmp_path
    for evaluations in range(5, 50, 5):
        jorth.minimize(distance, max_evaluations=evaluations, **options)
    resumed = jorth.minimize(distance, **options)
    assert resumed.status is Status.STALLED
    assert resumed.iterations == 50
    np.testing.assert_array_equal(resumed.history["iteration"], np.arange(51))


@dataclass
class LostState(State):
    steps: int = 0


class Lost(AbstractSolver):
    """A step to a feasible point, then off to where nothing can be polished."""

    name = "lost"
    feasible = False

    state_type = LostState

    def __repr__(self):
        return "Lost()"

    def step(self, problem, state):
        state.steps += 1
        nearby = torch.tensor([[1.25, 0.75], [0.75, 1.25]], dtype=state.X.dtype)
        state.X.copy_(nearby if state.steps == 1 else torch.zeros_like(nearby))
        state.value, state.gradient = problem.objective.value_and_gradient(state.X)


def test_the_last_point_that_could_be_scored_is_remembered(tmp_path):
    options = dict(signature=Signature(1, 1), method=Lost(), gradient_tolerance=0.0)
    straight = jorth.minimize(distance, max_iterations=5, **options)
    assert "x is that of iteration 1" in straight.message
    for limit in (3, 5):
        resumed = jorth.minimize(distance, max_iterations=limit, checkpoint=tmp_path, **options)
    assert_same_run(resumed, straight)


@pytest.mark.parametrize("kind", [np.random.PCG64, np.random.MT19937])
def test_a_generator_as_seed_is_known_by_its_state(kind, tmp_path):
    this = case("procrustes noisy")
    options = dict(signature=this.signature, method="vr-j-jobcd", gradient_tolerance=0.0)

    def run(limit, seed, checkpoint=None):
        generator = np.random.Generator(kind(seed))
        return jorth.minimize(
            this.objective, max_iterations=limit, seed=generator, checkpoint=checkpoint, **options
        )

    run(6, 1, tmp_path)
    for other in (2, 1):
        used = np.random.Generator(kind(other))
        used.random()
        with pytest.raises(CheckpointMismatch, match="seed is"):
            jorth.minimize(this.objective, seed=used, checkpoint=tmp_path, **options)
    assert_same_run(run(STEPS, 1, tmp_path), run(STEPS, 1))


@pytest.mark.parametrize("method", ["gs-jobcd", "j-jobcd", "umcm", "riemannian-lbfgs"])
@pytest.mark.parametrize("steps", [1, 5])
def test_another_objective_that_agrees_at_the_start(method, steps, tmp_path):
    """f + c ||X - I||^2 from I: neither value nor gradient at the start depends on c."""
    A = torch.diag(torch.arange(1.0, 5.0, dtype=torch.float64))
    A[0, 3] = 0.7

    def run(c, **options):
        identity = torch.eye(4, dtype=torch.float64)
        return jorth.minimize(
            lambda X: (X * (A @ X)).sum() + c * (X - identity).square().sum(),
            signature=Signature(2, 2),
            method=method,
            gradient_tolerance=0.0,
            checkpoint=tmp_path,
            **options,
        )

    first = run(0.0, max_iterations=steps)
    for c in (5.0, 1e-3):
        with pytest.raises(CheckpointMismatch, match=r"at the saved point is .* there and .* here"):
            run(c)
    assert run(0.0, max_iterations=steps + 1).iterations >= first.iterations
