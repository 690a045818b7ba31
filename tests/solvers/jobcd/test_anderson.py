"""Accelerated GS-JOBCD and J-JOBCD: the extrapolation, the frame, the decrease of every iteration,
and where they fall back to the plain methods."""

import numpy as np
import pytest
import scipy.linalg
import torch

import jorth
from jorth import Signature, Status
from jorth.objectives import QuadraticForm
from jorth.solvers.jobcd import anderson
from jorth.solvers.jobcd.anderson import Acceleration, Frame, relative_move
from tests.solvers.registry import case

UNIT = 2.0**-53
METHODS = ["gs-jobcd", "j-jobcd"]
SIG = Signature.of([1, -1, 1, 1, -1, -1, 1, 1])


def accelerated(objective, sig, method, **options):
    options = dict(gradient_tolerance=0.0, accelerate=True) | options
    return jorth.minimize(objective, signature=sig, method=method, **options)


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
    errors = []
    for size in (1e-1, 1e-2):
        K = algebra(SIG, np.random.default_rng(2), size)
        found = relative_move(scipy.linalg.expm(K) @ X, X, SIG)
        JK = SIG.signs[:, None] * found
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

    method, w = Acceleration(), np.zeros(memory)
    for _ in range(memory + 1):
        method.accept(method.propose(boosts((M - np.eye(memory)) @ (w - goal)), sig, memory))
        w = w + [method.step[i, i + 3] for i in range(memory)]
    # the damping is a part 1e-12 of a Gram matrix, whose condition is squared
    assert abs(w - goal).max() < 1e-6


def run(method, moves, accepted=True):
    """The last step that is proposed after sweeps with these moves."""
    for K in moves:
        step = method.propose(K, SIG, memory=3)
        method.accept(K if accepted else None)
    return step


def test_what_is_forgotten():
    """The oldest sweeps, and all of the past after a step that was refused."""
    rng = np.random.default_rng(3)
    moves = [algebra(SIG, rng, 0.01) for _ in range(9)]
    found, expected = run(Acceleration(), moves), run(Acceleration(), moves[-4:])
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    refused, fresh = Acceleration(), Acceleration()
    run(refused, moves[:5])
    refused.accept(None)
    run(fresh, moves[4:5], accepted=False)
    np.testing.assert_array_equal(run(refused, moves[5:7]), run(fresh, moves[5:7]))
    assert run(Acceleration(), [moves[0]] * 4, accepted=False) is None  # equal sweeps say nothing


def test_an_extrapolation_beyond_the_pole_is_not_proposed():
    """A map that goes a hundredth of the way: one difference is enough to find its goal."""
    boost, sig = np.array([[0.0, 1.0], [1.0, 0.0]]), Signature(1, 1)
    for goal, allowed in ((1.2, True), (3.0, False)):
        method = Acceleration()
        for length in (0.01, 0.0099):
            step = method.propose(length * goal * boost, sig)
            method.accept(None)
        if allowed:
            np.testing.assert_allclose(step, 0.99 * goal * boost, rtol=1e-9)
        else:
            assert step is None


# -- the frame


def geometric_mean(A, B):
    """A # B by its definition, A (A^-1 B)^(1/2)."""
    return A @ np.real(scipy.linalg.sqrtm(np.linalg.solve(A, B)))


def frame_of(sig, X, A, C=None, D=None):
    tensors = [None if part is None else torch.from_numpy(part) for part in (A, C, D)]
    return Frame.at(QuadraticForm(*tensors), X, sig)


@pytest.mark.parametrize("with_d", [False, True])
@pytest.mark.parametrize("sig", [SIG, Signature(8, 0), Signature(0, 8)])
def test_the_frame_diagonalises_the_geometric_mean(sig, with_d):
    rng = np.random.default_rng(5)
    n = sig.n
    A, C = symmetric(rng, n), rng.standard_normal((n, n))
    D = symmetric(rng, n) if with_d else np.eye(n)
    X = jorth.random_point(sig, cond=5.0, seed=2)
    frame = frame_of(sig, X, A, C, D if with_d else None)
    W = frame.W
    assert jorth.residual(W, sig) <= 100 * n * UNIT
    assert jorth.residual(frame.Z, sig) <= 100 * n * UNIT
    np.testing.assert_allclose(frame.point, X, atol=1e-12)
    mean = W.T @ geometric_mean(A, sig.signs[:, None] * (X @ X.T) * sig.signs) @ W
    size = np.sqrt(np.diag(mean))
    np.testing.assert_allclose(mean / size / size[:, None], np.eye(n), atol=1e-9)

    def f(X):
        return 0.5 * np.trace(X.T @ A @ X @ D) + (C * X).sum()

    end = jorth.random_point(sig, cond=2.0, seed=3)
    rise = f(W @ end) - f(W @ frame.Z)
    assert frame.rise(frame.Z, end) == pytest.approx(rise, rel=1e-10)  # f is the same function


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
    frame = frame_of(SIG, X, A)
    assert np.array_equal(frame.W, np.eye(n)) == (kind == "zero")
    assert jorth.residual(frame.Z, SIG) <= 100 * n * UNIT
    assert np.linalg.norm(frame.Z) ** 2 <= 2e4 * n
    np.testing.assert_allclose(frame.point, X, atol=1e-11)


def test_frames_are_feasible_to_rounding():
    """The eigenvectors alone leave u cond(G), here 1e4 to 1e6 u: 8 n u and more."""
    sig = Signature(4, 4)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        turns = [np.linalg.qr(rng.standard_normal((4, 4)))[0] for _ in range(2)]
        blocks = [Q @ np.diag(np.geomspace(1e-6, 1.0, 4)) @ Q.T for Q in turns]
        frame = frame_of(sig, np.eye(8), scipy.linalg.block_diag(*blocks))
        assert jorth.residual(frame.W, sig) <= 2 * sig.n * UNIT


# -- the methods


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["procrustes noisy", "general quadratic"])
def test_every_iteration_lowers_f_by_at_least_as_much_as_its_sweep(name, method, monkeypatch):
    """f(X_new) <= f(S(X)), evaluated by the objective itself."""
    this, frames, after = case(name), [], []
    sweep, at = anderson.sweep, Frame.at

    def watched(problem, form, Z, *arguments):
        ended = sweep(problem, form, Z, *arguments)
        after.append(this.objective.value(torch.from_numpy(frames[-1].W @ Z)).item())
        return ended

    monkeypatch.setattr(Frame, "at", lambda *given: frames.append(at(*given)) or frames[-1])
    monkeypatch.setattr(anderson, "sweep", watched)
    result = accelerated(this.objective, this.signature, method, max_iterations=25)
    value = result.history["value"]
    rounding = 10 * this.signature.n * UNIT * abs(value).max() * result.history["norm"].max() ** 2
    assert len(after) == result.iterations
    assert (value[1:] <= np.array(after) + rounding).all()
    assert (np.array(after) <= value[:-1] + rounding).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("condition", "limit"), [(3.0, 25), (30.0, 60)])
def test_few_iterations_are_enough(method, condition, limit):
    """Twice what is usual, 11 and 24; the plain method needs 100 and more than 400."""
    objective, sig = planted(50, 25, condition)
    best = jorth.minimize(
        objective, signature=sig, method="riemannian-lbfgs", gradient_tolerance=1e-10
    )
    first = best.history["value"][0]
    stop = jorth.stopping.ValueBelow(best.value + 1e-8 * (first - best.value))
    result = accelerated(objective, sig, method, stop=stop, max_iterations=limit)
    assert result.status is Status.CONVERGED
    assert result.residual <= 10 * sig.n * UNIT


def test_a_start_of_large_condition_stays_feasible():
    objective, sig = planted(10, 6)
    x0 = jorth.random_point(sig, cond=1e10, seed=5)
    result = accelerated(
        objective, sig, "gs-jobcd", x0=x0, gradient_tolerance=1e-7, max_iterations=200
    )
    largest = result.history["norm"].max()
    assert result.value < 1e-9 * result.history["value"][0]
    assert result.residual <= 100 * sig.n * UNIT * largest**2


@pytest.mark.parametrize("method", METHODS)
def test_plain_steps_elsewhere(method):
    """A thin X, a run that continues on a concave form, and an f that is not quadratic."""
    rng = np.random.default_rng(8)
    A, C = symmetric(rng, 8), rng.standard_normal((8, 8))
    x0 = jorth.random_point(SIG, cond=3.0, seed=3)[:, :3].copy()
    for objective, options in (
        (jorth.Quadratic(A, C[:, :3].copy()), dict(x0=x0)),
        (jorth.Quadratic(-A, C), dict(on_unbounded="continue")),
        (lambda X: (X - torch.from_numpy(C)).square().sum(), {}),
    ):
        ours, plain = (
            accelerated(objective, SIG, method, max_iterations=4, accelerate=chosen, **options)
            for chosen in (True, False)
        )
        np.testing.assert_array_equal(ours.history["value"], plain.history["value"])
        np.testing.assert_array_equal(ours.x, plain.x)


@pytest.mark.parametrize("method", METHODS)
def test_an_unbounded_form_is_found_to_be_so(method):
    rng = np.random.default_rng(10)
    for A in (-symmetric(rng, 8), rng.standard_normal((8, 8)) * 3):
        objective = jorth.Quadratic(A + A.T, rng.standard_normal((8, 8)))
        result = accelerated(objective, SIG, method, max_iterations=500)
        assert result.status is Status.UNBOUNDED


@pytest.mark.parametrize("method", METHODS)
def test_a_limit_within_a_sweep(method):
    """What is done of the sweep counts: f is lower, and X is feasible."""
    objective, sig = planted(100, 50)
    inner = objective.value_and_gradient(torch.eye(100, dtype=torch.float64))[0].item()
    for limit, status in (
        (dict(max_time=1e-9), Status.MAX_TIME),
        (dict(max_evaluations=1), Status.MAX_EVALUATIONS),
    ):
        result = accelerated(objective, sig, method, **limit)
        assert result.status is status
        assert result.iterations == 0
        assert result.value <= inner
        assert result.residual <= 10 * sig.n * UNIT
