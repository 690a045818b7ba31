"""What the Riemannian methods do on a device, on the CPU and on a device: products in place of
eigendecompositions and factorisations, and few fetches."""

import math
from unittest import mock

import numpy as np
import pytest
import torch

import jorth
from jorth import Signature, Status
from jorth.datasets import planted_procrustes
from jorth.group.exp_log import cayley_step
from jorth.group.gradient import skew_gradient
from jorth.solvers.problem import CountedObjective, Problem, State
from jorth.solvers.riemannian import cayley_curve, line_search, scalars
from jorth.solvers.riemannian.cayley_curve import CayleyCurve, factors_needed
from jorth.solvers.riemannian.exponentials import RATIO, ExponentialSum, exponential_sum
from jorth.solvers.riemannian.preconditioner import Preconditioner

UNIT = 2.0**-53


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request, monkeypatch):
    """A device; the CPU is made to count as one."""
    monkeypatch.setattr(scalars, "HOSTS", ())
    return request.param


def graded(n, spread, seed):
    """A positive definite matrix with eigenvalues from 1 / spread to 1."""
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))[0]
    return torch.from_numpy((Q * np.geomspace(1 / spread, 1, n)) @ Q.T)


def skew(n, seed):
    M = np.random.default_rng(seed).standard_normal((n, n))
    return torch.from_numpy(M - M.T)


def on_eigenvectors(found, A, X, s):
    """U^T T U for S = W T W^T, where B = J X^T A X J = U diag(l) U^T and W = J X J."""
    U = torch.linalg.eigh(s[:, None] * (X.mT @ A @ X) * s).eigenvectors
    basis = torch.linalg.inv((s[:, None] * X * s) @ U)
    return basis @ found @ basis.mT


@pytest.mark.parametrize("spread", [1.0, 10.0, 1e3, 1e5])
@pytest.mark.parametrize("scale", [1.0, 1e150, 1e-150])
def test_the_sum_of_exponentials_inverts_the_curvature_to_nine_per_cent(device, spread, scale):
    sig = Signature(6, 5)
    A = scale * graded(11, spread, 0)
    X = torch.from_numpy(jorth.random_point(sig, cond=3.0, seed=1))
    s = sig.vector(X)
    wanted = skew(11, 2)
    image = s[:, None] * A * s @ wanted @ X @ X.mT
    objective = CountedObjective(jorth.Quadratic(A.to(device)))
    problem = Problem(objective, sig, s.to(device), np.random.default_rng(0))
    preconditioner = Preconditioner()
    assert preconditioner.renew(problem, X.to(device))
    assert isinstance(preconditioner.basis, ExponentialSum)
    found = preconditioner.apply(((image - image.mT) / 2).to(device)).cpu()
    assert torch.equal(found, -found.mT)
    ours = on_eigenvectors(found, A / scale, X, s)
    exact = on_eigenvectors(wanted, A / scale, X, s)
    # the weights give 9 per cent; where the sum ends, g^4 + h^4 <= 1 for any two eigenvalues of
    # G, so that g h = exp(-a) <= 1 / sqrt(2), and log(8) 8 a exp(-8 a) <= 36 per cent are missing
    excess = (ours / exact - 1)[~torch.eye(11, dtype=torch.bool)]
    rounding = 1e3 * UNIT * spread * float(exact.abs().max() / exact.abs()[exact != 0].min())
    assert -0.45 - rounding <= excess.min() <= excess.max() <= 0.09 + rounding
    assert excess.abs().max() > 0.01  # it is not the exact inverse: this is the path under test


@pytest.mark.parametrize("spread", [1.0, 3.0, 1e2, 1e4])
def test_the_sum_is_within_nine_per_cent_on_all_pairs_that_it_covers(device, spread):
    """With diagonal A and X = I entry (i, j) is divided by (l_i + l_j) / 2.

    Where the last G has g h <= 0.3 = exp(-a), later terms would add log(8) 8 a exp(-8 a) < 0.2 per
    cent.
    """
    n = 40
    sizes = torch.from_numpy(np.geomspace(1 / spread, 1, n)).to(device)
    X = torch.eye(n, dtype=torch.float64, device=device)
    inverse = exponential_sum(torch.diag(sizes), X, Signature(20, 20).vector(X), 1.0, 0)
    R = torch.ones_like(X).triu(1)
    found = inverse.apply(R - R.mT)
    relative = found * (sizes[:, None] + sizes) / 2
    last = inverse.factors[-1].diagonal()
    terms = len(inverse.factors)
    last = last / math.sqrt(math.log(RATIO) * RATIO ** (terms - 1) if terms > 1 else 2.4)
    covered = (last[:, None] * last <= 0.3) & (R == 1)
    assert covered.sum() >= R.sum() / 10
    assert (relative[covered] - 1).abs().max() <= 0.092


def test_the_sum_is_a_fixed_symmetric_positive_map(device):
    """Linear, symmetric and positive on skew matrices, also where A is singular."""
    sig = Signature(5, 4)
    A = torch.diag(torch.tensor([0.0, 0, 0, 1e-3, 0.1, 0.2, 0.5, 1, 1], dtype=torch.float64))
    X = torch.from_numpy(jorth.random_point(sig, cond=5.0, seed=1))
    s = sig.vector(X)
    inverse = exponential_sum(A.to(device), X.to(device), s.to(device), 1.0, 0)
    planes = [(i, j) for i in range(9) for j in range(i)]
    columns = []
    for i, j in planes:
        r = torch.zeros(9, 9, dtype=torch.float64)
        r[i, j], r[j, i] = 1.0, -1.0
        image = inverse.apply(r.to(device)).cpu()
        columns.append(torch.stack([image[a, b] for a, b in planes]))
    matrix = torch.stack(columns)
    size = float(matrix.abs().max())
    # every squaring doubles what rounding did to the eigenvalue 1 of the powers
    grown = 100 * UNIT * RATIO ** (len(inverse.factors) - 1)
    assert (matrix - matrix.mT).abs().max() <= grown * size
    assert torch.linalg.eigvalsh(matrix)[0] > 0
    r = skew(9, 3)
    combined = sum(float(r[i, j]) * column for (i, j), column in zip(planes, columns, strict=True))
    found = inverse.apply(r.to(device)).cpu()
    found = torch.stack([found[i, j] for i, j in planes])
    assert (found - combined).abs().max() <= 100 * UNIT * size * float(r.abs().sum())


@pytest.mark.parametrize("expected", [1, 3, 9])
def test_expected_terms_do_not_change_the_sum(device, expected):
    sig = Signature(6, 6)
    X = torch.eye(12, dtype=torch.float64, device=device)
    A, s = graded(12, 300.0, 4).to(device), sig.vector(X)
    first = exponential_sum(A, X, s, 1.0, 0)
    again = exponential_sum(A, X, s, 1.0, expected)
    assert len(first.factors) == 3
    assert torch.equal(first.factors, again.factors)


def test_a_batch_takes_the_terms_of_its_worst_problem(device):
    sig = Signature(6, 6)
    X = torch.eye(12, dtype=torch.float64, device=device)
    A = torch.stack([X, graded(12, 300.0, 4).to(device)])
    s = sig.vector(X)
    both = exponential_sum(A, X.expand_as(A), s, 1.0, 0)
    alone = exponential_sum(A[1], X, s, 1.0, 0)
    assert both.factors.shape[1] == len(alone.factors) == 3


def test_on_a_device_too_the_preconditioner_is_for_convex_problems_near_by(device):
    sig = Signature(2, 2)
    near, far = (jorth.random_point(sig, cond=cond, seed=1) for cond in (10.0, 1e6))
    for A, X, there in (
        (np.eye(4), near, True),
        (np.diag([1.0, 1, 1, 0]), near, True),
        (np.eye(4), far, False),
        (np.diag([1.0, 1, 1, -1]), near, False),
        (np.zeros((4, 4)), near, False),
    ):
        point = torch.from_numpy(X).to(device)
        objective = CountedObjective(jorth.Quadratic(torch.from_numpy(A).to(device)))
        problem = Problem(objective, sig, sig.vector(point), np.random.default_rng(0))
        preconditioner = Preconditioner()
        preconditioner.renew(problem, point)
        assert (preconditioner.basis is not None) == there


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("size", [1e-12, 1e-5, 1e-2, 0.3, 0.8, 1.5, 3.0])
def test_the_cayley_curve_equals_the_factorisation(device, dtype, size):
    """||K / 2||_2 = size at t = 1; beyond 1 it is a rotation, as the pole of boosts is there."""
    n = 20
    sig = Signature(10, 10) if size < 1 else Signature(20, 0)
    S = skew(n, 5)
    S = (2 * size / torch.linalg.matrix_norm(S, 2) * S).to(dtype)
    X = torch.from_numpy(jorth.random_point(sig, cond=1.0, seed=6)).to(dtype)
    s = sig.vector(X)
    curve = CayleyCurve((s[:, None] * S).to(device), X.to(device))
    curve.norms = scalars.fetch(*curve.missing_norms())
    with mock.patch.object(cayley_curve, "cayley_step", side_effect=cayley_step) as factorisation:
        for t in (1.0, 0.5, 0.01):
            found = curve.at(t).cpu()
            exact = cayley_step(s[:, None].double() * S.double() * t, X.double())
            unit = torch.finfo(dtype).eps / 2
            # (I - E)^-1 has norm at most 1 / (1 - ||E||) before the pole
            worst = 1 / (1 - size) ** 2 if size < 1 else (1 + size) ** 2
            assert (found - exact).abs().max() <= 10 * n * unit * worst
            assert jorth.residual(found, sig) <= 10 * n * unit * worst
    assert bool(factorisation.call_count) == (size > 1)


def test_as_few_factors_as_the_norms_allow():
    tolerance = 1e-17
    assert factors_needed(0.5, [0.0], tolerance) == 1
    assert factors_needed(0.5, [2e-20], tolerance) == 1  # E itself is lost in rounding
    assert factors_needed(0.5, [2e-9], tolerance) == 1  # E^2 is
    assert factors_needed(0.5, [2e-5], tolerance) == 2
    assert factors_needed(0.5, [1.0], tolerance) == 6  # 2^-64 < 1e-17
    assert factors_needed(0.5, [2.0], tolerance) is None
    assert factors_needed(0.5, [20.0, 0.4], tolerance) == 6  # E^2 is 0.1, E^32 is 1e-16
    assert factors_needed(0.5, [math.inf, math.nan], tolerance) is None
    assert factors_needed(1e-101, [1e100], tolerance) is None  # K^4 would overflow


@pytest.mark.parametrize(("condition", "plus"), [(3.0, 20), (30.0, 20), (30.0, 36)])
@pytest.mark.parametrize("seed", [0, 1])
def test_as_many_iterations_as_with_the_eigendecomposition(device, condition, plus, seed):
    sig = Signature(plus, 40 - plus)
    data = planted_procrustes(80, sig, source_condition=condition, noise=0.1, seed=seed)[:2]

    def run(where):
        parts = (torch.from_numpy(part).to(where) for part in data)
        return jorth.minimize(
            jorth.Procrustes(*parts),
            signature=sig,
            method="riemannian-lbfgs",
            gradient_tolerance=1e-9,
        )

    ours = run(device)
    with mock.patch.object(scalars, "HOSTS", ("cpu",)):
        reference = run("cpu")
    assert ours.status is reference.status is Status.CONVERGED
    # found: 0 to 20 per cent more, 4 per cent on average
    assert ours.iterations <= 1.5 * reference.iterations
    assert ours.value == pytest.approx(reference.value, rel=1e-12)
    assert ours.residual <= 100 * 40 * UNIT


@pytest.mark.parametrize("first", [1.0, 0.3])
def test_a_trial_knows_its_step_and_its_slope(device, first):
    """S, X, f, its gradient in S and the slope there belong together."""
    sig = Signature(5, 4)
    data = planted_procrustes(30, sig, source_condition=3.0, noise=0.1, seed=2)[:2]
    objective = CountedObjective(
        jorth.Procrustes(*(torch.from_numpy(part).to(device) for part in data))
    )
    X = torch.eye(9, dtype=torch.float64, device=device)
    problem = Problem(objective, sig, sig.vector(X), np.random.default_rng(0))
    state = State(X, *objective.value_and_gradient(X))
    g = skew_gradient(X, state.gradient, problem.signs)
    line = line_search.Line(g, -0.1 * g)
    trial = line_search.search(problem, state, line, first=first)
    assert trial.t == first
    assert torch.equal(trial.S, first * line.direction)
    there = cayley_step(problem.signs[:, None] * trial.S, X)
    assert (trial.X - there).abs().max() <= 100 * UNIT
    value, gradient = objective.value_and_gradient(trial.X)
    assert value == trial.value
    assert torch.equal(gradient, trial.gradient)
    slope = scalars.inner(skew_gradient(trial.X, gradient, problem.signs), line.direction)
    assert trial.slope == pytest.approx(slope, rel=1e-12)


@pytest.mark.parametrize("method", ["riemannian-lbfgs", "riemannian-cg", "riemannian-sd"])
def test_one_fetch_for_each_trial(device, method):
    sig = Signature(6, 5)
    source, target, _ = planted_procrustes(40, sig, source_condition=3.0, seed=1)
    objective = jorth.Procrustes(*(torch.from_numpy(part).to(device) for part in (source, target)))
    with mock.patch.object(line_search, "fetch", side_effect=scalars.fetch) as fetched:
        result = jorth.minimize(
            objective, signature=sig, method=method, max_iterations=5, gradient_tolerance=0.0
        )
    trials = result.evaluations.gradient - 1
    assert fetched.call_count == trials + result.iterations  # one more when a line begins


def test_any_objective_runs_on_a_device(device):
    """Without a preconditioner, and with a value of another dtype."""
    sig = Signature(4, 3)
    goal = torch.from_numpy(jorth.random_point(sig, cond=2.0, seed=0)).to(device)

    def distance(X):
        return (X - goal).square().sum() + 0.1 * (X - goal).pow(4).sum()

    x0 = torch.eye(7, dtype=torch.float64, device=device)
    result = jorth.minimize(
        distance, x0, signature=sig, method="riemannian-lbfgs", gradient_tolerance=1e-10
    )
    assert result.status is Status.CONVERGED
    assert (result.x - goal).abs().max() <= 1e-8


def test_a_value_that_is_not_finite_ends_the_run(device):
    sig = Signature(2, 2)
    x0 = torch.eye(4, dtype=torch.float64, device=device)
    edge = x0 + 0.0

    def spoiled(X):
        moved = (X - edge).abs().sum() > 0
        return X[0, 1] + torch.where(moved, torch.nan, 0.0) * X.sum()

    result = jorth.minimize(spoiled, x0, signature=sig, method="riemannian-lbfgs")
    assert result.status is Status.NON_FINITE


def test_a_run_is_continued_to_the_bit(device, tmp_path):
    sig = Signature(10, 10)
    data = planted_procrustes(60, sig, source_condition=30.0, noise=0.1, seed=3)[:2]
    objective = jorth.Procrustes(*(torch.from_numpy(part).to(device) for part in data))
    options = dict(signature=sig, method="riemannian-lbfgs", gradient_tolerance=0.0)
    whole = jorth.minimize(objective, max_iterations=14, **options)
    for limit in (5, 9, 14):
        run = jorth.minimize(objective, max_iterations=limit, checkpoint=tmp_path, **options)
    assert run.iterations == 14
    assert torch.equal(run.x, whole.x)
