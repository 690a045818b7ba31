"""Every solver on every problem: reaches the known optimum, stays feasible,
counts and records truthfully."""

import numpy as np
import pytest

import jorth
from jorth import GaussSeidel, Jacobi, Status, VarianceReduced
from tests.solvers.registry import PROBLEMS, SOLVERS, case

UNIT = 2.0**-53
JOBCD = ["gs-jobcd", "j-jobcd", GaussSeidel(accelerate=True), Jacobi(accelerate=True)]


FIRST = {type(method): name for name, method in reversed(SOLVERS.items())}.values()
FIRST = {*FIRST, "accelerated gs", "accelerated j"}
"""One solver of each algorithm; those with other options go through three of the problems."""
CROSSED = [
    (solver, problem)
    for solver in SOLVERS
    for problem in PROBLEMS
    if solver in FIRST or problem in ("procrustes unsorted", "general quadratic", "numpy")
]


@pytest.mark.parametrize(("solver", "problem"), CROSSED)
def test_reaches_the_optimum(solver, problem):
    this, method = case(problem), SOLVERS[solver]
    if isinstance(method, VarianceReduced) and not this.finite_sum:
        pytest.skip("not a finite sum")
    # a gradient per pair: a thousand times the work, so a looser target
    slow = this.dear and isinstance(method, GaussSeidel)
    gap_wanted = 1e-3 if slow else 1e-9
    function = this.objective
    start = jorth.minimize(function, signature=this.signature, method=method, max_iterations=0)
    target = this.optimum + gap_wanted * (start.value - this.optimum)
    stop = jorth.stopping.ValueBelow(target)
    options = dict(gradient_tolerance=0.0, stop=stop, max_iterations=20_000)
    result = jorth.minimize(function, signature=this.signature, method=method, **options)
    assert result.status is Status.CONVERGED, result
    assert result.value <= target
    assert result.value >= this.optimum - 1e-12 * max(1.0, abs(this.optimum))
    n, X = this.signature.n, np.asarray(result.x)
    largest = max(1.0, result.history["norm"].max())
    assert result.residual * max(1.0, np.linalg.norm(X, 2)) ** 2 <= 100 * n * UNIT * largest**2
    assert jorth.component(X, this.signature) == (1, 1)
    assert len({len(column) for column in result.history.values()}) == 1
    assert result.history["value"][-1] == result.value
    assert (np.diff(result.history["time"]) >= 0).all()


@pytest.mark.parametrize("problem", ["procrustes noisy", "general quadratic", "autograd"])
@pytest.mark.parametrize("solver", [n for n in SOLVERS if n.startswith(("j ", "accelerated"))])
def test_jacobi_is_monotone(solver, problem):
    this = case(problem)
    options = dict(signature=this.signature, gradient_tolerance=1e-9, max_iterations=300)
    result = jorth.minimize(this.objective, method=SOLVERS[solver], **options)
    value = result.history["value"]
    assert (np.diff(value) <= this.signature.n * 2 * UNIT * np.abs(value[:-1])).all()


@pytest.mark.parametrize("order", ["sweep", "random", "cyclic"])
def test_components_all_leaves_the_start_and_ends_no_higher(order):
    """From a start in another component of a problem planted in the identity component."""
    this = case("procrustes")
    x0 = jorth.random_point(this.signature, cond=2.0, component=(-1, 1), seed=3)
    options = dict(signature=this.signature, method="gs-jobcd", order=order)
    stay = jorth.minimize(this.objective, x0, **options)
    jump = jorth.minimize(this.objective, x0, components="all", **options)
    assert jorth.component(stay.x, this.signature) == (-1, 1)
    assert jorth.component(jump.x, this.signature) == (1, 1)
    assert jump.value < 1e-10 < 1e-3 < stay.value


@pytest.mark.parametrize("method", [*JOBCD, "vr-j-jobcd"])
def test_same_seed_same_run_and_input_unchanged(method):
    this = case("procrustes noisy")
    x0 = jorth.random_point(this.signature, cond=2.0, seed=5)
    before = x0.copy()
    options = dict(signature=this.signature, method=method, max_iterations=30)
    runs = [jorth.minimize(this.objective, x0, seed=seed, **options) for seed in (1, 1, 2)]
    first, second, other = runs
    np.testing.assert_array_equal(first.x, second.x)
    assert (first.x != other.x).any()
    np.testing.assert_array_equal(x0, before)


def test_pair_updates_are_counted():
    """Random runs count the rest."""
    this = case("procrustes")
    n = this.signature.n
    options = dict(signature=this.signature, method="gs-jobcd", max_iterations=3)
    exact = jorth.minimize(this.objective, **options)
    assert exact.evaluations.pair_updates == 3 * n * (n - 1) // 2
    assert exact.evaluations.gradient == 4  # the start and one after each sweep
