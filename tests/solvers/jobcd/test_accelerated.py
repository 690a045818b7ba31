"""Accelerated GS-JOBCD and J-JOBCD: the extrapolation, the frame, the decrease of every iteration,
and where they fall back to the plain methods."""

import numpy as np
import pytest
import scipy.linalg
import torch

import jorth
from jorth import AcceleratedGaussSeidel, AcceleratedJacobi, GaussSeidel, Jacobi, Signature, Status
from jorth.objectives import QuadraticForm
from jorth.solvers.jobcd.anderson import Anderson, before_the_pole, relative_move
from jorth.solvers.jobcd.frame import LARGEST, balanced_frame
from tests.solvers.registry import case

UNIT = 2.0**-53
SOLVERS = [AcceleratedGaussSeidel, AcceleratedJacobi]
FRAMES = ["balanced", "none"]
SIG = Signature.of([1, -1, 1, 1, -1, -1, 1, 1])


def algebra(sig, rng, size=1.0):
    """A random K with J K skew."""
    M = rng.standard_normal((sig.n, sig.n))
    return size * sig.signs[:, None] * (M - M.T) / 2


def symmetric(rng, n, shift=0.2):
    M = rng.standard_normal((n, n))
    return M @ M.T / n + shift * np.eye(n)


def planted(n, p, condition=3.0, seed=1000):
    sig = Signature(p, n - p)
    source, target, _ = jorth.datasets.planted_procrustes(
        2 * n, sig, noise=0.1, source_condition=condition, seed=seed
    )
    return jorth.Procrustes(source, target), sig


# -- Anderson's method


def test_a_move_is_the_logarithm_to_third_order():
    X = jorth.random_point(SIG, cond=5.0, seed=1)
    signs = SIG.signs.astype(float)
    errors = []
    for size in (1e-1, 1e-2):
        K = algebra(SIG, np.random.default_rng(2), size)
        Y = scipy.linalg.expm(K) @ X
        found = relative_move(Y, X, signs)
        JK = signs[:, None] * found
        assert abs(JK + JK.T).max() == 0  # J-skew to the bit
        errors.append(np.linalg.norm(found - K))
    assert 900 < errors[0] / errors[1] < 1100


@pytest.mark.parametrize("memory", [2, 3])
def test_an_affine_map_is_solved_once_enough_is_remembered(memory):
    """Commuting boosts: the algebra is flat, and a move is affine in the rapidities."""
    sig = Signature(3, 3)
    M = np.diag([0.9, 0.5, -0.3])[:memory, :memory]
    goal = np.array([0.3, -0.2, 0.4])[:memory]

    def boosts(w):
        K = np.zeros((6, 6))
        for i, rapidity in enumerate(w):
            K[i, i + 3] = K[i + 3, i] = rapidity
        return K

    anderson = Anderson()
    w = np.zeros(memory)
    for _ in range(memory + 1):
        K = boosts((M - np.eye(memory)) @ (w - goal))
        anderson.settle(anderson.propose(K, memory, sig))
        w = w + [anderson.step[i, i + 3] for i in range(memory)]
    # the damping is a part 1e-12 of a Gram matrix, whose condition is squared
    assert abs(w - goal).max() < 1e-6


def test_the_oldest_sweeps_are_forgotten():
    rng = np.random.default_rng(3)
    moves = [algebra(SIG, rng, 0.01) for _ in range(9)]
    long, short = Anderson(), Anderson()
    for K in moves[:-4]:
        long.propose(K, 3, SIG)
        long.settle(K)
    for K in moves[-4:]:
        found, expected = long.propose(K, 3, SIG), short.propose(K, 3, SIG)
        long.settle(K)
        short.settle(K)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_after_a_refused_step_the_past_is_forgotten():
    rng = np.random.default_rng(14)
    moves = [algebra(SIG, rng, 0.01) for _ in range(5)]
    long, short = Anderson(), Anderson()
    for K in moves[:3]:
        long.propose(K, 3, SIG)
        long.settle(K)
    for K in moves[3:]:
        found, expected = long.propose(K, 3, SIG), short.propose(K, 3, SIG)
        assert long.settle(None) == short.settle(None)
    np.testing.assert_array_equal(found, expected)


def test_equal_sweeps_give_no_step():
    anderson = Anderson()
    K = algebra(SIG, np.random.default_rng(4), 0.01)
    for _ in range(4):
        assert anderson.propose(K, 3, SIG) is None
        anderson.settle(None)


def test_no_step_comes_near_the_pole():
    K = np.zeros((4, 4))
    K[0, 3] = K[3, 0] = 1.3
    turn = np.zeros_like(K)
    turn[0, 1], turn[1, 0] = 50.0, -50.0
    assert before_the_pole(K, Signature(2, 2))
    assert not before_the_pole(1.2 * K, Signature(2, 2))
    assert before_the_pole(turn, Signature(2, 2))
    assert before_the_pole(turn, Signature(4, 0))


def test_an_extrapolation_beyond_the_pole_is_not_proposed():
    """A map that goes a hundredth of the way: one difference is enough to find its goal."""
    boost = np.array([[0.0, 1.0], [1.0, 0.0]])
    for goal, allowed in ((1.2, True), (3.0, False)):
        anderson = Anderson()
        assert anderson.propose(0.01 * goal * boost, 1, Signature(1, 1)) is None
        anderson.settle(None)
        step = anderson.propose(0.0099 * goal * boost, 1, Signature(1, 1))
        if allowed:
            np.testing.assert_allclose(step, 0.99 * goal * boost, rtol=1e-9)
        else:
            assert step is None


# -- the frame


def geometric_mean(A, B):
    """A # B by its definition, A (A^-1 B)^(1/2)."""
    return A @ np.real(scipy.linalg.sqrtm(np.linalg.solve(A, B)))


@pytest.mark.parametrize("with_d", [False, True])
@pytest.mark.parametrize("sig", [SIG, Signature(8, 0), Signature(0, 8)])
def test_the_frame_diagonalises_the_geometric_mean(sig, with_d):
    rng = np.random.default_rng(5)
    n = sig.n
    A, C = symmetric(rng, n), rng.standard_normal((n, n))
    D = symmetric(rng, n) if with_d else None
    X = jorth.random_point(sig, cond=5.0, seed=2)
    tensors = [None if part is None else torch.from_numpy(part) for part in (A, C, D)]
    signs = sig.signs.astype(float)
    frame = balanced_frame(QuadraticForm(*tensors), X, signs)
    W = frame.W
    assert jorth.residual(W, sig) <= 100 * n * UNIT
    assert jorth.residual(frame.Z, sig) <= 100 * n * UNIT
    np.testing.assert_allclose(frame.point, X, atol=1e-12)
    B = signs[:, None] * (X @ (np.eye(n) if D is None else D) @ X.T) * signs
    mean = W.T @ geometric_mean(A, B) @ W
    size = np.sqrt(np.diag(mean))
    np.testing.assert_allclose(mean / size / size[:, None], np.eye(n), atol=1e-9)
    np.testing.assert_allclose(frame.A, W.T @ A @ W, atol=1e-11)
    check_values(frame, sig, A, C, D)


def check_values(frame, sig, A, C, D):
    """f is the same function in the frame."""

    def f(X):
        return 0.5 * np.trace(X.T @ A @ X @ (np.eye(sig.n) if D is None else D)) + (C * X).sum()

    end = jorth.random_point(sig, cond=2.0, seed=3)
    rise = f(frame.W @ end) - f(frame.W @ frame.Z)
    assert frame.rise(frame.Z, end) == pytest.approx(rise, rel=1e-10)


@pytest.mark.parametrize("kind", ["indefinite", "semidefinite", "zero", "steep"])
def test_there_is_a_frame_for_every_form(kind):
    """Any J-orthogonal frame is allowed; without a good one the coordinates stay as they are."""
    rng = np.random.default_rng(6)
    n = SIG.n
    M = rng.standard_normal((n, n))
    A = {
        "indefinite": M + M.T,
        "semidefinite": M[:, :3] @ M[:, :3].T,
        "zero": np.zeros((n, n)),
        "steep": np.diag(np.geomspace(1e-150, 1e150, n)),
    }[kind]
    X = jorth.random_point(SIG, cond=3.0, seed=4)
    form = QuadraticForm(torch.from_numpy(A), None, None)
    frame = balanced_frame(form, X, SIG.signs.astype(float))
    assert (frame.W is None) == (kind == "zero")
    assert jorth.residual(frame.Z, SIG) <= 100 * n * UNIT
    assert np.linalg.norm(frame.Z) ** 2 <= 2 * LARGEST * n
    np.testing.assert_allclose(frame.point, X, atol=1e-11)


def test_no_frame_is_made_of_infinite_numbers():
    A = torch.full((8, 8), 1e308, dtype=torch.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        frame = balanced_frame(QuadraticForm(A, None, None), 2 * np.eye(8), SIG.signs.astype(float))
    assert frame.W is None


def test_frames_are_feasible_to_rounding():
    """The eigenvectors alone leave u cond(G), here 1e4 to 1e6 u: 8 n u and more."""
    sig = Signature(4, 4)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        turns = [np.linalg.qr(rng.standard_normal((4, 4)))[0] for _ in range(2)]
        blocks = [Q @ np.diag(np.geomspace(1e-6, 1.0, 4)) @ Q.T for Q in turns]
        form = QuadraticForm(torch.from_numpy(scipy.linalg.block_diag(*blocks)), None, None)
        frame = balanced_frame(form, np.eye(8), sig.signs.astype(float))
        assert jorth.residual(frame.W, sig) <= 2 * sig.n * UNIT


# -- the methods


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("name", ["procrustes noisy", "general quadratic"])
def test_every_iteration_lowers_f_by_at_least_as_much_as_its_sweep(solver, name, kind):
    """f(X_new) <= f(S(X)), evaluated by the objective itself."""
    this = case(name)
    after = []

    class Watched(solver):
        def sweep(self, problem, state, frame):
            Z = super().sweep(problem, state, frame)
            X = Z if frame.W is None else frame.W @ Z
            after.append(this.objective.value(torch.from_numpy(X)).item())
            return Z

    result = jorth.minimize(
        this.objective,
        signature=this.signature,
        method=Watched(frame=kind),
        gradient_tolerance=0.0,
        max_iterations=25,
    )
    value = result.history["value"]
    size = abs(value).max() * result.history["norm"].max() ** 2
    rounding = 10 * this.signature.n * UNIT * size
    assert len(after) == result.iterations
    assert (value[1:] <= np.array(after) + rounding).all()
    assert (np.array(after) <= value[:-1] + rounding).all()
    assert (value[1:] < np.array(after) - rounding).any()  # extrapolated steps were taken


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_new_frame_begins_without_a_memory(solver):
    """Moves in another frame are those of another map."""
    objective, sig = planted(20, 10, condition=30.0)
    seen = []

    class Watched(solver):
        def sweep(self, problem, state, frame):
            anderson = state.acceleration.anderson
            if not seen or frame is not seen[-1]:
                assert anderson.used == anderson.turn == 0
                assert anderson.move is None
                assert anderson.step is None
                seen.append(frame)
            return super().sweep(problem, state, frame)

    method = Watched()
    jorth.minimize(
        objective, signature=sig, method=method, gradient_tolerance=0.0, max_iterations=20
    )
    assert len(seen) >= 2


@pytest.mark.parametrize("size", [1, 4])
def test_all_sweeps_have_the_same_order(size):
    objective, sig = planted(12, 6)
    orders = []

    class Watched(AcceleratedGaussSeidel):
        def sweep(self, problem, state, frame):
            Z = super().sweep(problem, state, frame)
            orders.append(state.acceleration.order.copy())
            return Z

    method = Watched(block_size=size)
    jorth.minimize(
        objective, signature=sig, method=method, gradient_tolerance=0.0, max_iterations=4
    )
    assert len(orders) == 4
    np.testing.assert_array_equal(orders, [orders[0]] * 4)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_function_is_lowered_by_at_least_as_much_as_by_the_plain_step(solver):
    this = case("autograd")
    after = []

    class Watched(solver):
        def sweep_on_gradients(self, problem, state):
            super().sweep_on_gradients(problem, state)
            after.append(problem.objective.objective.value(state.X).item())

    result = jorth.minimize(
        this.objective,
        signature=this.signature,
        method=Watched(),
        gradient_tolerance=0.0,
        max_iterations=20,
    )
    value = result.history["value"]
    rounding = 10 * this.signature.n * UNIT * value.max()
    assert (value[1:] <= np.array(after) + rounding).all()
    assert (np.array(after) <= value[:-1] + rounding).all()
    assert (value[1:] < np.array(after) - rounding).any()  # extrapolated steps were taken


def test_fewer_gradients_on_a_smooth_function():
    """The plain method needs 2 to 5 times as many, with one more per iteration counted."""
    sig = Signature(5, 5)
    source, target, _ = jorth.datasets.planted_procrustes(
        20, sig, noise=0.1, source_condition=10.0, seed=1000
    )
    S, T = torch.from_numpy(source), torch.from_numpy(target)
    options = dict(signature=sig, gradient_tolerance=1e-7, max_evaluations=4000)

    def f(X):
        return (1 + (S @ X - T).square()).sqrt().sum() / len(S)

    ours, plain = (
        jorth.minimize(f, method=method, **options) for method in (AcceleratedJacobi(), Jacobi())
    )
    assert ours.status is Status.CONVERGED
    assert ours.evaluations.gradient < plain.evaluations.gradient
    assert ours.value <= plain.value + 1e-12


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(("condition", "limit"), [(3.0, 25), (30.0, 60)])
def test_few_iterations_are_enough(solver, condition, limit):
    """Twice what is usual, 11 and 24; the plain method needs 100 and more than 400."""
    objective, sig = planted(50, 25, condition)
    best = jorth.minimize(
        objective, signature=sig, method="riemannian-lbfgs", gradient_tolerance=1e-10
    )
    first = best.history["value"][0]
    result = jorth.minimize(
        objective,
        signature=sig,
        method=solver(),
        gradient_tolerance=0.0,
        stop=jorth.stopping.ValueBelow(best.value + 1e-8 * (first - best.value)),
        max_iterations=limit,
    )
    assert result.status is Status.CONVERGED
    assert result.residual <= 10 * sig.n * UNIT


@pytest.mark.parametrize("block_size", ["auto", 1])
def test_blocks_of_rows(block_size):
    objective, sig = planted(200, 150)
    result = jorth.minimize(
        objective,
        signature=sig,
        method=AcceleratedGaussSeidel(block_size=block_size),
        gradient_tolerance=1e-8,
        max_iterations=60,
    )
    assert result.status is Status.CONVERGED
    assert result.residual <= 10 * sig.n * UNIT


@pytest.mark.parametrize("kind", FRAMES)
def test_a_start_of_large_condition_stays_feasible(kind):
    objective, sig = planted(10, 6)
    x0 = jorth.random_point(sig, cond=1e10, seed=5)
    result = jorth.minimize(
        objective, x0, signature=sig, method=AcceleratedGaussSeidel(frame=kind), max_iterations=200
    )
    largest = result.history["norm"].max()
    assert result.value < 1e-9 * result.history["value"][0]
    assert result.residual <= 100 * sig.n * UNIT * largest**2


PLAIN = {AcceleratedGaussSeidel: GaussSeidel(order="cyclic"), AcceleratedJacobi: Jacobi()}


def assert_same_points(first, second):
    np.testing.assert_array_equal(first.history["value"], second.history["value"])
    np.testing.assert_array_equal(first.x, second.x)


@pytest.mark.parametrize("solver", SOLVERS)
def test_thin_points_take_plain_steps(solver):
    rng = np.random.default_rng(8)
    objective = jorth.Quadratic(symmetric(rng, 8), rng.standard_normal((8, 3)))
    x0 = jorth.random_point(SIG, cond=3.0, seed=3)[:, :3].copy()
    options = dict(signature=SIG, max_iterations=12, gradient_tolerance=0.0)
    ours = jorth.minimize(objective, x0, method=solver(), **options)
    assert_same_points(ours, jorth.minimize(objective, x0, method=PLAIN[solver], **options))


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_run_that_continues_on_a_concave_form_takes_plain_steps(solver):
    rng = np.random.default_rng(9)
    objective = jorth.Quadratic(-symmetric(rng, 8), rng.standard_normal((8, 8)))
    options = dict(signature=SIG, max_iterations=5, gradient_tolerance=0.0, on_unbounded="continue")
    ours = jorth.minimize(objective, method=solver(memory=0), **options)
    assert_same_points(ours, jorth.minimize(objective, method=PLAIN[solver], **options))


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kind", FRAMES)
def test_an_unbounded_form_is_found_to_be_so(solver, kind):
    rng = np.random.default_rng(10)
    for A in (-symmetric(rng, 8), rng.standard_normal((8, 8)) * 3):
        objective = jorth.Quadratic(A + A.T, rng.standard_normal((8, 8)))
        result = jorth.minimize(
            objective, signature=SIG, method=solver(frame=kind), max_iterations=500
        )
        assert result.status is Status.UNBOUNDED


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_trace_converges_quadratically(solver):
    this = case("trace")
    result = jorth.minimize(this.objective, signature=this.signature, method=solver())
    assert result.status is Status.CONVERGED
    assert result.iterations <= 8
    assert result.value == pytest.approx(this.optimum, rel=1e-12)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kind", FRAMES)
def test_a_limit_within_a_sweep(solver, kind):
    """What is done of the sweep counts: f is lower, and X is feasible."""
    objective, sig = planted(200, 100)
    inner = objective.value_and_gradient(torch.eye(200, dtype=torch.float64))[0].item()
    result = jorth.minimize(objective, signature=sig, method=solver(frame=kind), max_time=1e-9)
    assert result.status is Status.MAX_TIME
    result = jorth.minimize(objective, signature=sig, method=solver(frame=kind), max_evaluations=1)
    assert result.status is Status.MAX_EVALUATIONS
    assert result.iterations == 0
    assert result.value <= inner
    assert result.residual <= 10 * sig.n * UNIT


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kind", FRAMES)
def test_all_components_may_be_visited(solver, kind):
    this = case("procrustes")
    x0 = jorth.random_point(this.signature, cond=2.0, component=(-1, 1), seed=3)
    options = dict(signature=this.signature, max_iterations=2000)
    stay = jorth.minimize(this.objective, x0, method=solver(frame=kind), **options)
    jump = jorth.minimize(
        this.objective, x0, method=solver(components="all", frame=kind), **options
    )
    assert jorth.component(stay.x, this.signature) == (-1, 1)
    assert jorth.component(jump.x, this.signature) == (1, 1)
    assert jump.value < 1e-10 < 1e-3 < stay.value
