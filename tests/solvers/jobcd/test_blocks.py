"""A sweep by blocks takes the steps of a plain sweep over the same pairs in the same order."""

import numpy as np
import pytest

import jorth
from jorth import Quadratic, Signature, Status, minimize
from jorth.plane import all_pairs, tournament
from jorth.solvers.jobcd import blocks, gauss_seidel

ROWS = 4


def order_of_pairs(rng, n):
    order = rng.permutation(n)
    parts = [range(start, min(start + ROWS, n)) for start in range(0, n, ROWS)]
    found, fresh = [], set(range(len(parts)))
    for a, b in tournament(len(parts)).reshape(-1, 2):
        rows = [*parts[a], *parts[b]]
        for i, j in all_pairs(len(rows)):
            within = a if j < len(parts[a]) else b if i >= len(parts[a]) else None
            if within is None or within in fresh:
                found.append((order[rows[i]], order[rows[j]]))
        fresh -= {a, b}
    return np.array(found)


def plain_and_blocked(monkeypatch, objective, x0, signature, **options):
    options |= dict(signature=signature, method="gs-jobcd", seed=3, gradient_tolerance=0.0)
    with monkeypatch.context() as patch:
        pairs = lambda solver, problem: order_of_pairs(problem.rng, signature.n)  # noqa: E731
        patch.setattr(gauss_seidel.GaussSeidel, "_pairs", pairs)
        plain = minimize(objective, x0, **options)
    monkeypatch.setattr(gauss_seidel, "rows_of_a_block", lambda n: ROWS)
    return plain, minimize(objective, x0, **options)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("terms", ["A", "AC", "AD", "ACD"])
def test_the_steps_are_those_of_a_plain_sweep(monkeypatch, terms, side):
    signature = Signature.of("+-+-++--+-+++")
    n = signature.n
    rng = np.random.default_rng(1)
    M, N, C = rng.standard_normal((3, n, n))
    matrices = dict(A=M @ M.T / n + np.eye(n), C=C, D=N @ N.T / n + np.eye(n))
    objective = Quadratic(**{name: matrices[name] for name in terms})
    x0 = jorth.random_point(signature, cond=5.0, seed=2)
    plain, blocked = plain_and_blocked(
        monkeypatch, objective, x0, signature, max_iterations=2, side=side, theta=1e-3
    )
    assert blocked.evaluations.pair_updates == plain.evaluations.pair_updates == n * (n - 1)
    assert blocked.value < plain.history["value"][0]
    np.testing.assert_allclose(blocked.x, plain.x, rtol=0, atol=1e-11 * np.abs(plain.x).max())
    assert blocked.residual < 100 * n * 2.0**-53


@pytest.mark.parametrize("theta", [0.0, None])
def test_null_lengths_that_cancel(monkeypatch, theta):
    """Rows of a boost by mu = 14 differ by exp(-14), of which Y = X X^T has no digit."""
    signature = Signature(5, 5)
    cosh, sinh = np.cosh(14.0) * np.eye(5), np.sinh(14.0) * np.eye(5)
    x0 = np.block([[cosh, sinh], [sinh, cosh]])
    objective = jorth.Procrustes(np.eye(10), np.eye(10))
    for result in plain_and_blocked(
        monkeypatch, objective, x0, signature, max_iterations=5, theta=theta
    ):
        assert result.status in {Status.MAX_ITERATIONS, Status.CONVERGED}
        assert result.value < 1e-15 * result.history["value"][0]


def test_an_unbounded_plane_ends_the_sweep(monkeypatch):
    signature = Signature(6, 5)
    objective = Quadratic(np.diag([1.0] * 10 + [-5.0]))
    x0 = jorth.random_point(signature, cond=2.0, seed=4)
    plain, blocked = plain_and_blocked(monkeypatch, objective, x0, signature, max_iterations=9)
    assert plain.status is blocked.status is Status.UNBOUNDED


def test_large_matrices_take_blocks():
    assert [blocks.rows_of_a_block(n) for n in (100, 200, 1000)] == [1, 28, 60]
