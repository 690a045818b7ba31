"""Riemannian methods: few iterations where it is preconditioned, whatever the conditioning;
the pole is not passed."""

import numpy as np
import pytest
import torch

import jorth
from jorth import RiemannianCG, RiemannianLBFGS, RiemannianNewton, RiemannianSD, Signature, Status
from jorth.datasets import planted_procrustes
from jorth.group.gradient import skew_gradient
from jorth.solvers.problem import CountedObjective, Problem, as_objective
from jorth.solvers.riemannian.line_search import Line, Trial, _secant, _shorter, inner, search
from jorth.solvers.riemannian.preconditioner import Preconditioner
from tests.planted import near_procrustes


@pytest.mark.parametrize("scale", [1.0, 1e150, 1e-150])
@pytest.mark.parametrize(("spread", "unit"), [(1.0, 2.0**-24), (1e4, 2.0**-53)])
def test_preconditioner_inverts_the_curvature(spread, unit, scale):
    """The metric applied to (J A J S Y + Y S J A J) / 2, Y = X X^T, gives S back.

    In single precision where the curvature is well conditioned, else in double; at any scale of f.
    """
    sig = Signature(4, 3)
    rng = np.random.default_rng(0)
    M = rng.standard_normal((7, 7))
    grades = np.geomspace(1.0, spread, 7) ** 0.5
    A = scale * (M @ M.T + 0.1 * np.eye(7)) * grades[:, None] * grades
    X = jorth.random_point(sig, cond=20.0, seed=1)
    S = rng.standard_normal((7, 7))
    S = S - S.T
    J, Y = np.diag(sig.signs.astype(float)), X @ X.T
    image = (J @ A @ J @ S @ Y + Y @ S @ J @ A @ J) / 2
    point, preconditioner = torch.from_numpy(X), Preconditioner()
    arguments = (jorth.Quadratic(A).quadratic(), sig.vector(point), point)
    assert preconditioner.renew(*arguments)
    assert not preconditioner.renew(*arguments)
    found = preconditioner.apply(torch.from_numpy(image))
    assert preconditioner.basis[0].dtype is (torch.float32 if spread == 1 else torch.float64)
    loss = 10 * unit * np.linalg.cond(X.T @ A @ X)
    assert np.linalg.norm(found.numpy() - S) <= loss * np.linalg.norm(S)


@pytest.mark.parametrize("source_condition", [3.0, 30.0, 300.0])
@pytest.mark.parametrize("point_condition", [10.0, 100.0])
def test_few_iterations_at_any_conditioning(source_condition, point_condition):
    sig = Signature(12, 8)
    source, target, X = near_procrustes(
        60, sig, source_condition=source_condition, point_condition=point_condition, seed=1
    )
    result = jorth.minimize(
        jorth.Procrustes(source, target), signature=sig, method="riemannian-lbfgs",
        gradient_tolerance=1e-10,
    )  # fmt: skip
    assert result.status is Status.CONVERGED
    assert (
        result.iterations <= 120
    )  # found: 12 to 90, the most at 300 and 100; without the preconditioner thousands
    assert np.abs(result.x - X).max() <= 1e-10 * source_condition**2 * point_condition
    assert jorth.component(result.x, sig) == (1, 1)


def dense_inverse_hessian(pairs, first, size):
    """BFGS from its definition:
    H <- (I - rho s y^T) H (I - rho y s^T) + rho s s^T, oldest pair first."""
    H, identity = first * np.eye(size), np.eye(size)
    for s, y in pairs:
        rho = 1 / (s @ y)
        H = (identity - rho * np.outer(s, y)) @ H @ (
            identity - rho * np.outer(y, s)
        ) + rho * np.outer(s, s)
    return H


def test_two_loop_recursion_is_bfgs():
    rng = np.random.default_rng(4)
    solver = RiemannianLBFGS(memory=3)
    point = torch.eye(4, dtype=torch.float64)
    state = solver.state_type(point, 0.0, point)
    pairs = []
    for _ in range(5):  # more than it keeps
        M = rng.standard_normal((4, 4))
        s = M - M.T
        y = s + 0.1 * (lambda K: K - K.T)(rng.standard_normal((4, 4)))
        zero, step, change = (
            torch.zeros(4, 4, dtype=torch.float64),
            torch.from_numpy(s),
            torch.from_numpy(y),
        )
        trial = Trial(1.0, step, point, 0.0, point, change)
        state.memory = solver.remember(state, Line(zero, step), trial)
        pairs.append((s.ravel(), y.ravel()))
    s, y = pairs[-1]
    H = dense_inverse_hessian(pairs[-3:], (s @ y) / (y @ y), 16)
    g = rng.standard_normal((4, 4))
    found = solver.direction(state, torch.from_numpy(g))
    np.testing.assert_allclose(found.numpy().ravel(), -H @ g.ravel(), rtol=1e-10)


def downhill(function, method=RiemannianSD, signs=(1, -1)):
    """A problem, a state at the identity, and the line along minus the gradient there."""
    sig = Signature.of(signs)
    objective = CountedObjective(as_objective(function))
    X = torch.eye(sig.n, dtype=torch.float64)
    problem = Problem(objective, sig, sig.vector(X), np.random.default_rng(0))
    state = method.state_type(X, *objective.value_and_gradient(X), size=1.0)
    g = skew_gradient(X, state.gradient, problem.signs)
    return problem, state, Line(g, -g)


def test_the_line_search_flattens_the_slope():
    """Armijo alone takes the first step that is offered;
    strong Wolfe goes on to where the slope is small."""
    target = torch.from_numpy(jorth.random_point(Signature(1, 1), cond=2.0, seed=0))
    problem, state, line = downhill(lambda X: (X - target).square().sum())
    short = search(problem, state, line, first=0.05)
    assert short.t == 0.05
    assert short.value <= state.value + 1e-4 * short.t * line.slope
    flat = search(problem, state, line, first=0.05, flatten=0.3)
    assert abs(inner(flat.g, line.direction)) <= 0.3 * abs(line.slope)
    assert flat.value < short.value


@pytest.mark.parametrize(("method", "fraction"), [(RiemannianCG, 0.3), (RiemannianLBFGS, 0.7)])
def test_who_asks_for_the_strong_wolfe_condition(method, fraction):
    """A first step that is far too short: steepest descent takes it, the others look further."""
    target = torch.from_numpy(jorth.random_point(Signature(1, 1), cond=2.0, seed=0))

    def searched(method):
        problem, state, line = downhill(lambda X: (X - target).square().sum(), method)
        state.size = 100.0
        return method().search(problem, state, line), line

    assert searched(RiemannianSD)[0].t == 0.01
    trial, line = searched(method)
    assert abs(inner(trial.g, line.direction)) <= fraction * abs(line.slope)


def test_the_line_search_asks_for_a_decrease_in_proportion():
    """A step that only comes down to the reference is refused, as are shorter ones;
    below a high one any will do."""
    problem, state, line = downhill(lambda X: X[0, 1])
    taken = search(problem, state, line, first=0.1)
    assert taken.t == 0.1
    assert search(problem, state, line, first=0.1, reference=taken.value) is None
    risen = search(
        problem, state, Line(line.g, -line.direction), first=0.1, reference=state.value + 1.0
    )
    assert risen.value > state.value


def test_slopes_decide_where_values_are_rounding():
    """f = 1e16 + a parabola: no value tells steps apart,
    and the search still finds where the slope falls."""
    target = torch.from_numpy(jorth.random_point(Signature(1, 1), cond=1.5, seed=0))
    problem, state, line = downhill(lambda X: (X - target).square().sum() + 1e16)
    found = search(problem, state, line, first=1e-6)
    assert abs(inner(found.g, line.direction)) <= 0.9 * abs(line.slope)


def test_brackets_of_the_line_search():
    assert _secant(1.0, -1.0, 1.0) == 0.5  # the zero of a line
    assert _secant(1.0, -1.0, -0.99) == 10.0
    assert _secant(1.0, -1.0, 1e9) == 0.1
    assert _secant(1.0, -1.0, -2.0) == 10.0  # steeper: far beyond
    assert _secant(1.0, -1.0, float("nan")) == 0.5
    assert _shorter(1.0, 0.0, -1.0, 1.0) == 0.25  # the vertex of -t + 2 t^2
    assert _shorter(1.0, 0.0, -1.0, 1e9) == 0.1
    assert _shorter(1.0, 0.0, -1.0, -0.5) == 0.5
    assert _shorter(1.0, 0.0, -1.0, float("inf")) == 0.5


def test_steepest_descent_remembers_a_running_mean():
    solver, g = RiemannianSD(), torch.tensor([[0.0, 2.0], [-2.0, 0.0]], dtype=torch.float64)
    state = solver.state_type(torch.eye(2, dtype=torch.float64), 10.0, g)
    state.memory = solver.remember(state, Line(g, -g), Trial(0.1, g, g, 4.0, g, 0.5 * g))
    assert state.memory.mean.value == pytest.approx((0.85 * 10.0 + 4.0) / 1.85)
    assert state.memory.t == pytest.approx(0.2)  # the slope halved: the zero is twice as far
    state.memory = solver.remember(state, Line(g, -g), Trial(0.1, g, g, 4.0, g, 2.0 * g))
    assert state.memory.t == pytest.approx(0.2)  # no curvature: twice the step


def test_pairs_without_curvature_are_not_kept():
    solver, g = RiemannianLBFGS(), torch.tensor([[0.0, 2.0], [-2.0, 0.0]], dtype=torch.float64)
    state = solver.state_type(torch.eye(2, dtype=torch.float64), 10.0, g)
    assert solver.remember(state, Line(g, -g), Trial(0.1, -g, g, 4.0, g, 2.0 * g)) == []


def test_the_preconditioner_is_for_convex_problems_near_by():
    sig = Signature(2, 2)
    near, far = (
        jorth.random_point(sig, cond=10.0, seed=1),
        jorth.random_point(sig, cond=1e6, seed=1),
    )
    for A, X, there in (
        (np.eye(4), near, True),
        (np.eye(4), far, False),
        (np.diag([1.0, 1, 1, -1]), near, False),
    ):
        point, preconditioner = torch.from_numpy(X), Preconditioner()
        preconditioner.renew(jorth.Quadratic(A).quadratic(), sig.vector(point), point)
        assert (preconditioner.basis is not None) == there


@pytest.mark.parametrize("method", [RiemannianSD, RiemannianCG, RiemannianLBFGS, RiemannianNewton])
@pytest.mark.parametrize(("known", "condition"), [(True, 1e4), (False, 100.0)])
def test_values_fall_and_the_pole_is_not_passed(method, known, condition):
    """A far target: the first directions reach beyond the pole of the Cayley transform,
    and none may cross it."""
    sig = Signature(4, 4)
    source, target, _ = planted_procrustes(
        40, sig, source_condition=2.0, point_condition=condition, noise=0.1, seed=5
    )
    objective = jorth.Procrustes(source, target)
    S, T = torch.from_numpy(source), torch.from_numpy(target)
    result = jorth.minimize(
        objective if known else lambda X: (S @ X - T).square().sum() / (2 * len(S)),
        signature=sig, method=method(), gradient_tolerance=0.0,
        max_iterations=300 if method is RiemannianSD else 3000,
        callback=lambda X, row: jorth.component(X, sig) != (1, 1),
    )  # fmt: skip
    assert "the callback asked to stop" not in result.message
    if method is RiemannianSD:  # Barzilai-Borwein steps: slow far out, and not monotone
        assert result.value < 0.2 * result.history["value"][0]
        return
    assert (
        result.gradient_norm < 1e-8 * result.history["gradient_norm"][0]
    )  # on to rounding, though f is not zero
    value, x = result.history["value"], torch.as_tensor(result.x)
    # f is known to u ||G|| ||X||; steps that are lost in it may raise f by as much
    noise = 20 * 2.0**-53 * float(objective.value_and_gradient(x)[1].norm() * x.norm())
    assert (np.diff(value) <= 1e-14 * np.abs(value[:-1]) + noise).all()
