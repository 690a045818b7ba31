"""Every method on functions that are attained, not attained and unbounded; why a run stalled."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch

import jorth
from jorth import HyperbolicEigenvalue, Procrustes, Quadratic, Signature, Status
from jorth.solvers.termination import Curve, prove

SIG = Signature(3, 2)
X0 = jorth.random_point(SIG, cond=3, seed=1)
J = np.diag(SIG.signs.astype(float))
NULL = np.array([1.0, 0, 0, 1, 0])
"""x^T J x = 0."""
RNG = np.random.default_rng(0)
M = RNG.standard_normal((8, 5))
LINEAR = RNG.standard_normal((5, 5))

FEASIBLE = [
    *("auto", "gs-jobcd", "j-jobcd", jorth.GaussSeidel(accelerate=True)),
    *(jorth.Jacobi(accelerate=True), "csdm", "exponential", "riemannian-sd", "riemannian-cg"),
    *("riemannian-lbfgs", "riemannian-newton"),
]
METHODS = [*FEASIBLE, "umcm", "admm"]
LIMITS = {Status.MAX_ITERATIONS, Status.STALLED}
"""A slow method may not get far enough to see how f ends."""


def squares(X):
    return (X * X).sum()


def run(objective, method, x0=X0, signature=SIG, **options):
    options = dict(max_iterations=120) | options
    return jorth.minimize(objective, x0, signature=signature, method=method, **options)


ATTAINED = {
    "definite": Quadratic(M.T @ M),
    "definite by a shift": Quadratic(M.T @ M - 0.3 * J),
    "null space without null vectors": Quadratic(np.diag([1.0, 1, 0, 1, 1])),
    "distances": Procrustes(M, M @ X0[:, ::-1]),
    "by autograd": lambda X: ((torch.from_numpy(M) @ X) ** 2).sum(),
}
NOT_ATTAINED = {
    "a null vector": Quadratic(np.outer(NULL, NULL)),
    "a null vector and a constant": Quadratic(np.outer(NULL, NULL) + 0.5 * J),
    "its square by autograd": lambda X: ((torch.from_numpy(NULL) @ X) ** 2).sum(),
    "exp": lambda X: torch.exp(-squares(X) / 5),
    "inverse": lambda X: 1 / (1 + squares(X)),
}
UNBOUNDED = {
    "the paper's": HyperbolicEigenvalue(M.T @ M, sense="max"),
    "indefinite": Quadratic(np.diag([1.0, 1, 1, -2, -2])),
    "linear": Quadratic(np.zeros((5, 5)), LINEAR),
    "minus the norm": lambda X: -squares(X).sqrt(),
    "minus a logarithm": lambda X: -torch.log(squares(X)),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ATTAINED)
def test_attained(name, method):
    result = run(ATTAINED[name], method)
    assert result.status in {Status.CONVERGED, Status.MAX_ITERATIONS}, result.message


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", NOT_ATTAINED)
def test_not_attained(name, method):
    result = run(NOT_ATTAINED[name], method)
    if result.gradient_norm == 0:  # a long step to where f underflows: it is flat to the last bit
        return
    assert result.status in {Status.NOT_ATTAINED} | LIMITS, result.message
    if name in ("exp", "inverse") and (method in ("auto", "csdm") or "riemannian" in repr(method)):
        assert result.status is Status.NOT_ATTAINED, result.message
    if result.status is Status.NOT_ATTAINED:
        assert "f falls by" in result.message
        assert not result.success


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", UNBOUNDED)
def test_unbounded(name, method):
    result = run(UNBOUNDED[name], method)
    assert result.status in {Status.UNBOUNDED} | LIMITS, result.message
    if name in ("the paper's", "indefinite") and method in FEASIBLE[:-1]:  # Newton takes 200 steps
        assert result.status is Status.UNBOUNDED, result.message


@pytest.mark.parametrize("method", METHODS)
def test_a_compact_set_has_minima(method):
    for signature in (Signature(4, 0), Signature(0, 4)):
        x0 = jorth.random_point(signature, seed=2)
        for objective in (Quadratic(-np.diag([1.0, 2, 3, 4])), lambda X: -squares(X[:2, 0])):
            result = run(objective, method, x0, signature)
            assert result.status not in (Status.NOT_ATTAINED, Status.UNBOUNDED)


@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_statuses_have_no_units(scale):
    for name, table in (("a null vector", NOT_ATTAINED), ("indefinite", UNBOUNDED)):
        objective = Quadratic(scale * table[name].A)
        for method in ("gs-jobcd", "riemannian-newton"):
            expected = Status.NOT_ATTAINED if table is NOT_ATTAINED else Status.UNBOUNDED
            assert run(objective, method, max_iterations=1000).status is expected


def test_single_precision_knows_too():
    x0 = X0.astype(np.float32)
    assert run(NOT_ATTAINED["inverse"], "riemannian-lbfgs", x0).status is Status.NOT_ATTAINED
    paper = HyperbolicEigenvalue((M.T @ M).astype(np.float32), sense="max")
    assert run(paper, "riemannian-lbfgs", x0).status is Status.UNBOUNDED


def test_a_thin_start_ends_as_its_own_values_say():
    """There is no curve through a thin X: f along the run tells."""
    x0 = torch.from_numpy(X0[:, :3].copy())
    level = run(NOT_ATTAINED["inverse"], "riemannian-lbfgs", x0)
    assert level.status is Status.NOT_ATTAINED, level.message
    falling = run(UNBOUNDED["minus the norm"], "riemannian-lbfgs", x0)
    assert falling.status is Status.UNBOUNDED, falling.message


def test_a_minimum_far_out_is_attained():
    """Without a proof, from the identity: the norm grows, and f turns up again beyond it."""
    for cond in (1e2, 1e4):
        X = jorth.random_point(SIG, cond=cond, seed=3)
        S, T = torch.from_numpy(M), torch.from_numpy(M @ X)
        result = run(lambda X: ((S @ X - T) ** 2).sum(), "riemannian-lbfgs", np.eye(5))  # noqa: B023
        assert result.status not in (Status.NOT_ATTAINED, Status.UNBOUNDED), result.message


def test_a_linear_function_has_a_minimum_or_an_infimum_or_neither():
    """On the component of I, <I, X> = 2 cosh(mu) has one; <[[1, -1], [-1, 1]], X> = 2 e^-mu not."""
    sig = Signature(1, 1)
    x0 = np.array([[np.cosh(0.3), np.sinh(0.3)], [np.sinh(0.3), np.cosh(0.3)]])
    zero = np.zeros((2, 2))
    level = np.array([[1.0, -1], [-1, 1]])
    for method in ("gs-jobcd", "riemannian-lbfgs"):
        assert run(Quadratic(zero, np.eye(2)), method, x0, sig).status is Status.CONVERGED
        assert run(Quadratic(zero, level), method, x0, sig).status is Status.NOT_ATTAINED
        assert run(Quadratic(zero, -level), method, x0, sig).status is Status.UNBOUNDED
    crossing = run(Quadratic(zero, level), jorth.GaussSeidel(components="all"), x0, sig)
    assert crossing.status is Status.UNBOUNDED  # on another component it is -2 e^-mu, or -2 e^mu


def test_a_norm_limit_alone_is_no_proof():
    limit = jorth.stopping.NormAbove(20.0)
    options = dict(gradient_tolerance=0.0, stop=limit, max_iterations=500)
    far = jorth.random_point(SIG, cond=1e6, seed=4)
    stopped = run(ATTAINED["definite"], "riemannian-lbfgs", far, **options)
    assert stopped.status is Status.STALLED
    assert "||X|| is at least 20" in stopped.message
    level = run(NOT_ATTAINED["inverse"], "riemannian-lbfgs", **options)
    assert level.status is Status.NOT_ATTAINED
    assert run(UNBOUNDED["linear"], "riemannian-lbfgs", **options).status is Status.UNBOUNDED


# -- the pieces


def test_proofs():
    low = M[:2].T @ M[:2]
    definite = M.T @ M
    for A, C, D, expected in (
        (definite, None, None, "attained"),
        (definite + 3 * J, LINEAR, None, "attained"),
        (-definite, None, -definite, "attained"),
        (low, None, None, "bounded"),
        (np.outer(NULL, NULL) + 0.5 * J, None, None, "bounded"),
        (np.zeros((5, 5)), None, None, "bounded"),
        (low, LINEAR, None, None),
        (np.zeros((5, 5)), LINEAR, None, None),
        (definite, None, J, None),
        (-definite, None, None, "unbounded"),
        (-definite, LINEAR, definite, "unbounded"),
        (np.diag([1.0, 1, 1, -1, -1.001]), LINEAR, None, "unbounded"),
    ):
        for scale in (1.0, 1e-150, 1e150):
            form = Quadratic(scale * A, None if C is None else scale * C, D).quadratic()
            assert prove(form, SIG) == expected
    assert prove(Quadratic(-np.eye(3)).quadratic(), Signature(0, 3)) == "attained"


def levels(f, noise=0.0):
    norms = [10.0, 1e2, 1e3, 1e4, 1e5]
    return Curve(norms, [f(norm) for norm in norms], [noise] * 5).classify()


def test_levels():
    assert levels(lambda N: -N) is levels(lambda N: -N * N) is Status.UNBOUNDED
    assert levels(lambda N: -np.log(N)) is Status.UNBOUNDED
    assert levels(lambda N: 1 / N) is levels(lambda N: 7 + N**-0.5) is Status.NOT_ATTAINED
    assert levels(lambda N: 3.0) is None
    assert levels(lambda N: N) is None
    assert levels(lambda N: 1e4 / N + N / 1e4) is None  # a minimum at 1e4 or so
    assert levels(lambda N: 100 / N + N / 100) is None
    assert levels(lambda N: 1 / N, noise=1.0) is None
    assert levels(lambda N: -N, noise=1e5) is None
    assert levels(lambda N: np.nan) is None


def test_a_curve_runs_through_feasible_points_of_known_norms():
    X, points = torch.from_numpy(jorth.random_point(SIG, cond=1e8, seed=5)), []
    curve = Curve.through(X, SIG, [0.5, 1.0, 1.5], lambda point: points.append(point) or 0.0)
    assert curve.norms == pytest.approx([1e2, 1e4, 1e6], rel=1e-6)
    for point, norm in zip(points[::3], curve.norms, strict=True):
        assert jorth.residual(point.numpy(), SIG) <= 100 * 5 * 2.0**-53 * norm**2
    assert torch.allclose(points[3], X, rtol=1e-7)
    assert Curve.through(X[:, :2], SIG, [1.0], points.append) is None


# -- why a run stalled


def test_rounding_is_named_with_a_tolerance_that_accepts_it():
    objective = Procrustes(M.astype(np.float32), M[:, ::-1].astype(np.float32))
    x0 = X0.astype(np.float32)
    stalled = run(objective, "riemannian-lbfgs", x0, gradient_tolerance=1e-9, max_iterations=2000)
    assert stalled.status is Status.STALLED
    assert "rounding in float32 explains" in stalled.message
    assert "float64" in stalled.message
    advised = float(stalled.message.split("gradient_tolerance=")[1].split()[0])
    again = run(objective, "riemannian-lbfgs", x0, gradient_tolerance=advised)
    assert again.status is Status.CONVERGED


@pytest.mark.parametrize("method", ["auto", "riemannian-newton", "gs-jobcd", "j-jobcd"])
def test_the_default_tolerance_is_in_reach_of_single_precision(method):
    objective = Quadratic((M.T @ M).astype(np.float32))
    result = run(objective, method, X0.astype(np.float32), max_iterations=500)
    assert result.status is Status.CONVERGED, result.message


def test_a_start_at_a_minimum_has_a_scale():
    """The gradient there is rounding, and so is the largest one that the run sees."""
    S = torch.from_numpy(M / 3)
    T = torch.from_numpy(M @ X0 / 3)
    result = run(lambda X: ((S @ X - T) ** 2).sum(), "riemannian-lbfgs")
    assert 0 < result.gradient_norm < 1e-12
    assert result.status is Status.CONVERGED, result.message


def test_an_ordinary_stall_names_figures_and_another_method():
    options = dict(gradient_tolerance=1e-14, max_iterations=3000)
    result = run(ATTAINED["distances"], "exponential", **options)
    assert result.status is Status.STALLED
    hints = ("rounding in float64 explains", "another method may get further")
    assert any(hint in result.message for hint in hints)
    assert "of its scale" in result.message


@dataclass(frozen=True)
class NoMinimiser(jorth.solvers.AbstractSolver):
    """Reports a plane without a minimiser, as rounding makes methods do far out."""

    name = "no minimiser"

    def step(self, problem, state):
        state.unbounded = True


@pytest.mark.parametrize(
    ("objective", "expected"),
    [
        (ATTAINED["definite"], {Status.STALLED}),
        (ATTAINED["definite by a shift"], {Status.STALLED}),
        (NOT_ATTAINED["a null vector and a constant"], {Status.STALLED, Status.NOT_ATTAINED}),
        (UNBOUNDED["indefinite"], {Status.UNBOUNDED}),
        (UNBOUNDED["linear"], {Status.UNBOUNDED}),
    ],
)
def test_a_plane_without_a_minimiser_is_no_proof(objective, expected):
    """UNBOUNDED is said where the pencil proves it, or f falls by more than rounding."""
    assert run(objective, NoMinimiser()).status in expected
    far = jorth.random_point(SIG, cond=1e8, seed=2)
    assert run(objective, NoMinimiser(), x0=far).status in expected


# -- many problems


@pytest.mark.parametrize("scale", [1.0, 1e-100])
def test_a_batch_says_what_single_runs_say(scale):
    level, falling = np.outer(NULL, NULL), np.diag([1.0, 1, 1, -2, -2])
    flat = np.diag([1.0, 1, 0, 1, 1])
    matrices = (M.T @ M, level, -M.T @ M, level + 0.5 * J, flat, falling)
    batch = jorth.minimize(Quadratic(scale * np.stack(matrices)), X0, signature=SIG)
    names = ["CONVERGED", "NOT_ATTAINED", "UNBOUNDED", "NOT_ATTAINED", "CONVERGED", "UNBOUNDED"]
    assert [status.name for status in batch.status] == names
    assert "2 NOT_ATTAINED" in batch.message
    assert batch.status[1] is Status.NOT_ATTAINED
    assert not batch.success[1]


def test_procrustes_of_a_null_row():
    """v^T X runs through null vectors, of which none is the nearest to zero."""
    source, target = NULL[None], np.zeros((1, 5))
    assert jorth.procrustes(source, target, SIG).status is Status.NOT_ATTAINED
    batch = jorth.procrustes(np.stack([source, source]), np.stack([target, source]), SIG)
    assert [status.name for status in batch.status] == ["NOT_ATTAINED", "CONVERGED"]


def test_a_batch_of_far_minima_converges():
    for cond in (1e3, 1e5):
        targets = np.stack([M @ jorth.random_point(SIG, cond=cond, seed=k) for k in range(6)])
        batch = jorth.procrustes(np.broadcast_to(M, targets.shape).copy(), targets, SIG)
        assert {status.name for status in batch.status} == {"CONVERGED"}


@pytest.mark.parametrize("method", ["gs-jobcd", "riemannian-lbfgs", "riemannian-sd"])
def test_a_sum_of_squares_is_never_unbounded(method):
    """Its minimum is at ||X|| = 1e10, and until u^(-1/2) f falls faster and faster."""
    objective = jorth.Procrustes(np.ones((1, 2)), 1e10 * np.ones((1, 2)))
    result = jorth.minimize(objective, signature=Signature(1, 1), method=method)
    assert result.status is Status.STALLED
    assert "has grown beyond u^(-1/2)" in result.message
