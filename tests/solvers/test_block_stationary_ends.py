"""With components="all" a run is CONVERGED at block stationary points only: the paper's claim."""

import numpy as np
import pytest

import jorth
from jorth import Quadratic, Signature, Status, block_stationarity, hessian_check, minimize

SIG = Signature(3, 3)
METHODS = ["gs-jobcd", "j-jobcd"]


def quadratic(seed):
    rng = np.random.default_rng(seed)
    M, N, C = rng.standard_normal((3, 6, 6))
    return Quadratic(M @ M.T / 6 + 0.1 * np.eye(6), C, N @ N.T / 6 + 0.1 * np.eye(6))


@pytest.fixture(scope="module")
def minima():
    """Strict local minima of 80 quadratics that are not block stationary: some 18."""
    found = []
    for seed in range(80):
        objective, x0 = quadratic(seed), jorth.random_point(SIG, cond=3.0, seed=seed)
        end = minimize(
            objective, x0, signature=SIG, method="riemannian-newton", gradient_tolerance=1e-10
        )
        far = end.success and block_stationarity(objective, end.x, SIG).value > 0.1
        if far and hessian_check(objective, end.x, SIG).kind == "minimum":
            found.append((objective, end))
    assert len(found) >= 5
    return found


@pytest.mark.parametrize("accelerate", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_a_minimum_that_is_not_block_stationary_is_left(minima, method, accelerate):
    options = dict(signature=SIG, method=method, accelerate=accelerate)
    for objective, end in minima:
        stay = minimize(objective, end.x, **options)
        assert stay.success
        assert stay.iterations == 0
        leave = minimize(objective, end.x, components="all", max_iterations=300, **options)
        assert leave.value < end.value - 1e-9 * abs(end.value)
        assert (np.diff(leave.history["value"]) <= 1e-12 * abs(leave.value)).all()
        if leave.success:
            assert block_stationarity(objective, leave.x, SIG).value < 1e-3


def test_the_step_in_a_plane_is_an_iteration_that_resumes(minima, tmp_path):
    objective, end = minima[0]
    options = dict(signature=SIG, method="gs-jobcd", accelerate=True, components="all")
    whole = minimize(objective, end.x, **options)
    kept = dict(options, checkpoint=tmp_path, checkpoint_interval=0.0)
    minimize(objective, end.x, max_iterations=1, **kept)
    resumed = minimize(objective, end.x, **kept)
    np.testing.assert_array_equal(resumed.x, whole.x)
    assert resumed.history["iteration"].tolist() == list(range(whole.iterations + 1))


def test_an_unbounded_plane_at_a_critical_point():
    objective = Quadratic(-np.eye(5))
    options = dict(signature=Signature(3, 2), method="gs-jobcd")
    assert minimize(objective, **options).success  # a maximum, and the start
    assert minimize(objective, components="all", **options).status is Status.UNBOUNDED
