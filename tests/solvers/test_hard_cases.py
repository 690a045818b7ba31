"""What hostile use showed: limits between records, far starts,
checkpoints of runs that end badly, user code."""

import numpy as np
import pytest
import torch

import jorth
import jorth.objectives
from jorth import GaussSeidel, Jacobi, Signature, Status, VarianceReduced

SIG = Signature(3, 3)
SOURCE, TARGET, _ = jorth.datasets.planted_procrustes(40, SIG, noise=0.1, seed=1)
PROCRUSTES = jorth.Procrustes(SOURCE, TARGET)


@pytest.mark.parametrize(
    "method", [GaussSeidel(side="right"), Jacobi(side="right"), VarianceReduced(side="right")]
)
def test_right_steps_need_a_square_x(method):
    x0 = jorth.random_point(SIG, columns=(1, 2), seed=1)
    objective = jorth.FiniteSum(lambda X, rows: (rows @ X).square().sum() / len(rows), SOURCE)
    with pytest.raises(ValueError, match='side must be "left" for a thin x0'):
        jorth.minimize(objective, x0, signature=SIG, method=method)


def test_limits_hold_between_the_records_of_a_stochastic_run():
    rows = np.random.default_rng(0).standard_normal((100_000, 4))
    objective = jorth.FiniteSum(lambda X, b: (b @ X).square().sum() / len(b), rows)
    options = dict(signature=Signature(2, 2), method="vr-j-jobcd")
    result = jorth.minimize(objective, max_iterations=5, **options)
    assert result.iterations == 5
    assert result.status is Status.MAX_ITERATIONS
    assert result.history["value"][-1] == result.value
    timed = jorth.minimize(objective, max_time=0.01, gradient_tolerance=0.0, **options)
    assert timed.status is Status.MAX_TIME


@pytest.mark.parametrize("method", ["gs-jobcd", "j-jobcd", "riemannian-lbfgs"])
@pytest.mark.parametrize("cond", [1e6, 1e12, 1e17])
def test_far_starts_of_bounded_problems_are_not_unbounded(method, cond):
    x0 = jorth.random_point(SIG, cond=cond, seed=4)
    options = dict(signature=SIG, method=method, max_iterations=600, max_time=20)
    result = jorth.minimize(PROCRUSTES, x0, **options)
    assert result.status is not Status.UNBOUNDED
    assert result.value < 1e-3 * result.history["value"][0]
    if cond >= 1e12:  # the drift of the way back is said
        assert "polish" in result.message
    if cond == 1e12:  # and can be mended; at 1e17 the start itself has no digits of feasibility
        assert jorth.residual(jorth.polish(result.x, SIG), SIG) < 1e-14


def test_an_exception_from_the_user_leaves_a_checkpoint(tmp_path):
    calls = []

    def failing(X):
        calls.append(1)
        if len(calls) == 12:
            raise RuntimeError("out of patience")
        return (X - 2).square().sum()

    options = dict(signature=SIG, method="j-jobcd", gradient_tolerance=0.0, max_iterations=20)
    options["checkpoint"] = tmp_path
    with pytest.raises(RuntimeError, match="out of patience"):
        jorth.minimize(failing, **options)
    resumed = jorth.minimize(failing, **options)
    straight = jorth.minimize(lambda X: (X - 2).square().sum(), **(options | {"checkpoint": None}))
    np.testing.assert_array_equal(np.asarray(resumed.x), np.asarray(straight.x))


@pytest.mark.parametrize("method", ["gs-jobcd", "j-jobcd", "vr-j-jobcd", "riemannian-lbfgs"])
@pytest.mark.parametrize("broken", ["value", "gradient"])
def test_either_a_value_or_a_gradient_that_is_not_finite_ends_the_run(method, broken):
    """Finite at first, then NaN in one of the two."""

    class Breaking(jorth.objectives.AbstractObjective):
        samples = 50
        calls = 0

        def value_and_gradient(self, X):
            self.calls += 1
            bad = torch.nan if self.calls > 3 else 1.0
            value, gradient = (X - 2).square().sum(), 2 * (X - 2)
            return (value * bad, gradient) if broken == "value" else (value, gradient * bad)

        def sample_gradient(self, X, index):
            return 2 * (X - 2)

    options = dict(signature=SIG, gradient_tolerance=0.0, max_iterations=5000, seed=1)
    result = jorth.minimize(Breaking(), method=method, **options)
    assert result.status is Status.NON_FINITE
    assert np.isfinite(np.asarray(result.x)).all()


def test_the_curvature_estimate_falls_again_where_it_was_too_large():
    """A bound of 1e4 on a function of curvature 2: backtracking must find its way down."""

    class Cautious(jorth.objectives.AutogradObjective):
        def curvature(self):
            return 1e4

    x0, f = jorth.random_point(SIG, seed=3), Cautious(lambda X: X.square().sum())
    options = dict(signature=SIG, method="j-jobcd", gradient_tolerance=1e-8)
    result = jorth.minimize(f, x0, **options)
    assert result.status is Status.CONVERGED
    assert result.iterations < 400  # at a fixed 1e4 it would take tens of thousands
