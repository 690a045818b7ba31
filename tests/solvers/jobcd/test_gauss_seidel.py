"""GS-JOBCD: the decrease of every step, planted Procrustes at size,
thin X, and the state that is kept."""

import numpy as np
import pytest
import scipy.linalg
import torch

import jorth
from jorth import Jacobi, Signature, Status
from jorth.datasets import planted_procrustes
from jorth.plane import all_pairs
from jorth.plane._numba import majorised_steps
from jorth.solvers.jobcd._sweeps_numba import sweep_quadratic, sweep_trace
from jorth.solvers.jobcd.sweeps import StepRule, compile_kernels

UNIT = 2.0**-53


@pytest.mark.parametrize("all_components", [False, True])
@pytest.mark.parametrize("general_d", [False, True])
def test_every_step_decreases_by_the_proximal_term(all_components, general_d):
    """f(X+) <= f(X) - theta/2 ||V - I||^2, on every step."""
    rng = np.random.default_rng(0)
    sig = Signature.of([1, -1, 1, 1, -1, -1, 1])
    n, theta = sig.n, 0.05
    M, N, C = rng.standard_normal((3, n, n))
    A, D = M @ M.T / n, (N @ N.T / n if general_d else np.eye(n))
    X = jorth.random_point(sig, cond=5.0, seed=1)

    def f(X):
        return 0.5 * np.trace(X.T @ A @ X @ D) + (C * X).sum()

    steps = 0
    for sweep in range(4):
        for pair in all_pairs(n, seed=sweep):
            before = X.copy()
            Y = X @ D @ X.T
            sweep_quadratic(
                A, C, X, Y, sig.signs, pair[None], StepRule(theta, all_components, True, general_d)
            )
            V = (X @ jorth.inverse(before, sig))[np.ix_(pair, pair)]
            promised = theta / 2 * np.linalg.norm(V - np.eye(2)) ** 2
            size = np.abs(A).max() * np.linalg.norm(X) ** 2 * np.linalg.norm(D, 2)
            rounding = 100 * n * UNIT * (size + 1)
            assert f(X) <= f(before) - promised + rounding
            np.testing.assert_allclose(Y, X @ D @ X.T, atol=1e-12 * np.abs(Y).max())
            steps += promised > 1e-8
    assert steps > 40


@pytest.mark.parametrize(
    ("n", "shares", "method"),
    [
        (10, ["half", "0.9", "one", "all"], "gs-jobcd"),
        (51, ["half", "one", "all"], "gs-jobcd"),
        pytest.param(200, ["half", "0.9", "one", "all"], "gs-jobcd", marks=pytest.mark.slow),
        (10, ["half", "0.9", "one", "all"], "j-jobcd"),
        (51, ["one"], "j-jobcd"),
    ],
)
@pytest.mark.parametrize("shuffled", [False, True])
def test_planted_procrustes(n, shares, method, shuffled):
    for share in shares:
        check_planted(n, share, shuffled, method)


def check_planted(n, share, shuffled, method):
    p = {"half": n // 2, "0.9": round(0.9 * n), "one": 1, "all": n}[share]
    sig = Signature(p, n - p)
    if shuffled:
        sig = Signature.of(np.random.default_rng(n).permutation(sig.signs))
    source, target, X = planted_procrustes(2 * n, sig, seed=2)
    result = jorth.minimize(
        jorth.Procrustes(source, target), signature=sig, method=method, gradient_tolerance=1e-9
    )
    assert result.status is Status.CONVERGED
    assert result.gradient_norm <= 1e-9 * result.gradient_scale
    assert np.abs(result.x - X).max() < 1e-6
    assert result.residual <= 100 * n * UNIT


def test_thin_trace_minimisation():
    """(r, c) = (3, 2) columns in n = 20: the sum of the extreme eigenvalues of A x = lambda J x."""
    n, sig = 20, Signature(12, 8)
    M = np.random.default_rng(5).standard_normal((n, n))
    A = M @ M.T / n + 0.1 * np.eye(n)
    eigenvalues = 1 / scipy.linalg.eigh(np.diag(sig.signs.astype(float)), A, eigvals_only=True)
    positive, negative = (np.sort(e[e > 0]) for e in (eigenvalues, -eigenvalues))
    optimum = positive[:3].sum() + negative[:2].sum()
    x0 = jorth.random_point(sig, cond=3.0, columns=(3, 2), seed=6)
    gram = np.diag([1.0, 1, 1, -1, -1])
    half = np.linalg.cholesky(A).T.copy()
    A_ = torch.from_numpy(A)
    rows = jorth.FiniteSum(lambda X, rows: (rows @ X).square().sum() * n / len(rows), half)
    for objective, method in (
        (jorth.Quadratic(2 * A), "gs-jobcd"),
        (jorth.Quadratic(2 * A), "j-jobcd"),
        (lambda X: (X * (A_ @ X)).sum(), "j-jobcd"),
        (rows, "vr-j-jobcd"),
    ):
        result = jorth.minimize(
            objective, x0, signature=sig, method=method, gradient_tolerance=1e-6,
            components="all", max_time=60,
        )  # fmt: skip
        assert result.value == pytest.approx(optimum, rel=1e-8), method
        assert jorth.residual(np.asarray(result.x), sig, gram=gram) <= 100 * n * UNIT
        assert result.residual <= 100 * n * UNIT


@pytest.mark.parametrize("theta", [0.0, 0.3, 20.0])
@pytest.mark.parametrize("all_components", [False, True])
@pytest.mark.parametrize("cond", [2.0, 1e9])
def test_a_step_of_the_sweep_is_the_plane_solution(theta, all_components, cond):
    """Against solve_plane with the Kronecker Q, theta included;
    at condition 1e9 with rows near the light cone."""
    rng = np.random.default_rng(6)
    sig = Signature(3, 3)
    M, C = rng.standard_normal((2, 6, 6))
    A = M @ M.T + np.eye(6)
    for pair in all_pairs(6):
        X = jorth.random_point(sig, cond=cond, seed=7)
        before, Y = X.copy(), X @ X.T
        P = ((A @ X + C) @ X.T)[np.ix_(pair, pair)]
        Q = np.kron(X[pair] @ X[pair].T, A[np.ix_(pair, pair)])
        step = jorth.solve_plane(
            P, Q, sig.signs[pair], theta=theta, components="all" if all_components else "identity"
        )
        sweep_quadratic(A, C, X, Y, sig.signs, pair[None], StepRule(theta, all_components, True))
        if cond < 10:
            expected = before.copy()
            expected[pair] = step.V @ before[pair]
            np.testing.assert_allclose(X, expected, atol=1e-11)
        else:  # the 4x4 Q has lost its small null form, and the sweep does at least as well

            def f(X):
                return 0.5 * np.trace(X.T @ A @ X) + (C * X).sum()

            moved = before.copy()
            moved[pair] = step.V @ before[pair]
            assert f(X) <= f(before) + 1e-9 * abs(f(before))
            if theta == 0.0:
                assert f(X) <= f(moved) + 1e-7 * abs(f(before))


@pytest.mark.parametrize("method", ["gs-jobcd", "j-jobcd"])
def test_nothing_is_compiled_on_the_clock(method):
    """What `prepare` has compiled is what the steps call: left, right,
    with and without C and D, races."""
    compile_kernels()
    kernels = (sweep_quadratic, sweep_trace, majorised_steps)
    # other tests may have called them in other ways
    before = [len(kernel.signatures) for kernel in kernels]
    M = np.random.default_rng(0).standard_normal((5, 5))
    A, sig = M @ M.T + np.eye(5), Signature(3, 2)
    options = dict(signature=sig, on_unbounded="continue", max_iterations=2)
    for terms in ((A,), (A, M), (A, M, A), (-A,)):
        for side in ("left", "right"):
            objective = jorth.Quadratic(*terms)
            jorth.minimize(objective, method=method, side=side, **options)
            if method == "j-jobcd":
                one_round = Jacobi(side=side, rounds_per_gradient=1)
                jorth.minimize(objective, method=one_round, **options)
    assert [len(kernel.signatures) for kernel in kernels] == before


@pytest.mark.parametrize("boost", [1e3, 1e4, 1e5])
def test_rows_close_to_the_light_cone(boost):
    """The minimiser in one plane, from rows that are nearly parallel null vectors.

    Rounding the start changes ||x_1 - x_2||^2, of size 1 / boost^2, by a part u ||X||^2, and the
    minimiser by up to kappa times that: 10 times that over 1,200 problems. With ||x_1 - x_2||^2
    from the products of the rows the part is u ||X||^4.
    """
    sig = Signature(1, 1)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        diagonal, C = np.exp(rng.uniform(-2.0, 2.0, 2)), rng.standard_normal((2, 2))
        objective = jorth.Quadratic(np.diag(diagonal), C)
        best = jorth.minimize(objective, signature=sig, gradient_tolerance=1e-13).x
        far = np.array([[boost + 1 / boost, boost - 1 / boost]])
        x0 = np.concatenate([far, far[:, ::-1]]) / 2 @ best
        found = jorth.minimize(
            objective, x0, signature=sig, method="gs-jobcd", max_iterations=3, gradient_tolerance=0
        ).x
        part = UNIT * diagonal.max() / diagonal.min() * np.linalg.norm(x0, 2) ** 2
        assert np.abs(found - best).max() <= 100 * part
