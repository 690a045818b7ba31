"""Many problems at once: every answer is that of its single solve, and each ends for itself."""

import os
import signal
from itertools import product

import numpy as np
import pytest
import torch

import jorth
from jorth import Signature, Status
from jorth.solvers import batch as batches
from jorth.solvers.procrustes_starts import Clouds, Starts

UNIT = 2.0**-53


def definite(rng, count, n):
    M = rng.standard_normal((count, n, n))
    return M @ M.transpose(0, 2, 1) + 0.1 * np.eye(n)


def quadratics(count, sig, seed=0):
    rng = np.random.default_rng(seed)
    return definite(rng, count, sig.n), rng.standard_normal((count, sig.n, sig.n))


def clouds(count, sig, noise, m=None, seed=0):
    """Sources, targets and planted points in all components in turn."""
    rng = np.random.default_rng(seed)
    m = sig.n + 5 if m is None else m
    signs = [(1, -1) if size else (1,) for size in (sig.p, sig.q)]
    components = list(product(*signs))
    turns = [components[i % len(components)] for i in range(count)]
    points = [jorth.random_point(sig, cond=4.0, seed=rng, component=turn) for turn in turns]
    X = np.stack(points)
    S = rng.standard_normal((count, m, sig.n))
    return S, S @ X + noise * rng.standard_normal((count, m, sig.n)), X


SIGNATURES = [
    Signature(3, 1),
    Signature.of([-1, 1, 1]),
    Signature(0, 4),
    Signature(1, 0),
    Signature.of([1, -1, 1, -1, -1, 1, 1, 1]),
    Signature(8, 6),
    Signature(17, 16),
]


@pytest.mark.parametrize("sig", SIGNATURES, ids=str)
def test_quadratics_are_their_single_solves(sig):
    count = 30 if sig.n < 10 else 6
    A, C = quadratics(count, sig)
    options = dict(signature=sig, gradient_tolerance=1e-10, max_iterations=20_000)
    batch = jorth.minimize(jorth.Quadratic(A, C), **options)
    assert batch.success.all()
    assert len(batch) == count
    assert (batch.residual <= 100 * sig.n * UNIT).all()
    for b, (x, a, c) in enumerate(zip(batch.x, A, C, strict=True)):
        single = jorth.minimize(jorth.Quadratic(a, c), method="riemannian-newton", **options)
        # the same iteration, whose gradient is rounded in another order
        assert batch.value[b] == pytest.approx(single.value, rel=1e-11)
        assert np.abs(x - single.x).max() <= 1e-6 * np.abs(single.x).max()
        slopes = np.diag(sig.signs.astype(float)) @ (a @ x + c) @ x.T
        norm = np.linalg.norm(slopes - slopes.T) / 2
        size = np.linalg.norm(a @ x @ x.T) + np.linalg.norm(c @ x.T)
        assert norm <= 2e-10 * size
        assert abs(norm - batch.gradient_norm[b]) <= 100 * sig.n * UNIT * size


@pytest.mark.parametrize("noise", [0.0, 0.1])
@pytest.mark.parametrize("sig", SIGNATURES, ids=str)
def test_procrustes_is_its_single_solve(sig, noise):
    count = 24 if sig.n < 10 else 8
    S, T, X = clouds(count, sig, noise, seed=1)
    batch = jorth.procrustes(S, T, sig, gradient_tolerance=1e-11)
    assert batch.success.all()
    for b in range(count):
        single = jorth.procrustes(S[b], T[b], sig, gradient_tolerance=1e-11)
        # without noise x is off by the rounding of the normal equations
        size = np.square(T[b]).sum() / (2 * len(T[b]))
        rounding = (100 * sig.n * UNIT * np.linalg.cond(S[b]) ** 2) ** 2 * size
        assert abs(batch.value[b] - single.value) <= 1e-10 * single.value + rounding
        assert jorth.component(batch.x[b], sig) == jorth.component(single.x, sig)
        value = np.square(S[b] @ batch.x[b] - T[b]).sum() / (2 * len(T[b]))
        assert batch.value[b] == pytest.approx(value, rel=1e-12)
    if noise == 0:
        assert np.abs(batch.x - X).max() <= 1e-8


def test_procrustes_looks_into_every_component():
    """With much noise the start with the lowest value is often in the wrong component."""
    sig = Signature(2, 2)
    S, T, _ = clouds(40, sig, noise=1.5, m=5, seed=2)
    everywhere = jorth.procrustes(S, T, sig)
    first = jorth.procrustes(S, T, sig, components="start")
    assert (everywhere.value <= first.value * (1 + 1e-12)).all()
    assert (everywhere.value < 0.999 * first.value).any()
    for b in range(len(S)):
        single = jorth.procrustes(S[b], T[b], sig, starts=0)
        assert everywhere.value[b] <= single.value * (1 + 1e-9)
    own = jorth.random_point(sig, cond=2.0, seed=3, component=(-1, -1))
    there = jorth.procrustes(S, T, sig, x0=own, components="start")
    assert {jorth.component(x, sig) for x in there.x} == {(-1, -1)}


def test_bounds_of_components_are_attained_for_diagonal_data():
    """With S = I the nearest X to M = diag(m) has the signs of its component, and moves every
    |m_i| < 1 to 1 and the smallest of a block with the wrong sign to -1."""
    sig = Signature(2, 2)
    rows = np.array([[0.9, 0.5, 2.0, 0.7], [3.0, -0.6, 0.8, 0.4], [-0.9, 0.2, -2.0, 1.5]])
    T = rows[:, :, None] * np.eye(4)
    clouds = Clouds.of(np.broadcast_to(np.eye(4), T.shape), T)
    begin = Starts(clouds, sig)
    every = np.arange(len(rows))
    for turn in range(4):
        for b, row in enumerate(rows):
            least = 0.0
            for bit, block in enumerate((row[:2], row[2:])):
                wrong = (np.prod(block) < 0) != bool(begin.components[turn, b] >> bit & 1)
                sizes = np.sort(np.abs(block))[::-1]
                distances = np.maximum(1 - sizes, 0)
                distances[-1] = 1 + sizes[-1] if wrong else distances[-1]
                least += np.square(distances).sum()
            value = least / 8 / float(clouds.scale[b]) ** 2
            assert begin.bound(turn, every)[b].item() == pytest.approx(value, rel=1e-9, abs=1e-12)


def test_one_bad_problem_does_not_spoil_the_others():
    sig = Signature(2, 2)
    A, C = quadratics(6, sig)
    A[1] = -A[1]
    A[2, 0, 0] = np.nan
    C[3, 1, 1] = np.inf
    A[4] = C[4] = 0.0
    batch = jorth.minimize(jorth.Quadratic(A, C), signature=sig, method="auto")
    names = ["CONVERGED", "UNBOUNDED", "NON_FINITE", "NON_FINITE", "CONVERGED", "CONVERGED"]
    assert [status.name for status in batch.status] == names
    assert batch.status[1] is Status.UNBOUNDED
    np.testing.assert_array_equal(batch.success, [True, False, False, False, True, True])
    assert "2 NON_FINITE" in batch.message
    S, T, _ = clouds(5, sig, noise=0.1)
    S[2, 0, 0] = np.nan
    T[3] *= 0
    fits = jorth.procrustes(S, T, sig)
    names = ["CONVERGED", "CONVERGED", "NON_FINITE", "CONVERGED"]
    assert [status.name for status in fits.status[[0, 1, 2, 4]]] == names
    assert np.isnan(fits.value[2])
    assert np.isfinite(fits.value[3])
    assert np.isfinite(fits.x).all()


def test_fewer_rows_than_columns_ends_without_a_claim_of_unboundedness():
    sig = Signature(2, 2)
    S, T, _ = clouds(8, sig, noise=0.5, m=2)
    fits = jorth.procrustes(S, T, sig)
    assert {status.name for status in fits.status} <= {"CONVERGED", "STALLED", "MAX_ITERATIONS"}
    assert (fits.value < np.square(S - T).sum((1, 2)) / 4).all()


@pytest.mark.parametrize("exponent", [-120, 120])
def test_the_scale_of_the_data_changes_nothing(exponent):
    sig = Signature(3, 1)
    S, T, _ = clouds(10, sig, noise=0.1)
    c = 2.0**exponent
    plain, scaled = jorth.procrustes(S, T, sig), jorth.procrustes(c * S, c * T, sig)
    np.testing.assert_array_equal(plain.x, scaled.x)
    np.testing.assert_array_equal(plain.iterations, scaled.iterations)
    A, C = quadratics(10, sig)
    f, g = (
        jorth.minimize(jorth.Quadratic(c * A, c * C), signature=sig, method="auto")
        for c in (1.0, 2.0**exponent)
    )
    np.testing.assert_array_equal(f.x, g.x)
    np.testing.assert_array_equal(f.value * c, g.value)


def test_shared_parts_starts_and_kinds():
    sig = Signature(3, 2)
    A, C = quadratics(7, sig)
    options = dict(signature=sig, method="auto", gradient_tolerance=1e-11)
    shared = jorth.minimize(jorth.Quadratic(A[0], C), **options)
    repeated = jorth.minimize(jorth.Quadratic(np.repeat(A[:1], 7, axis=0), C), **options)
    np.testing.assert_array_equal(shared.x, repeated.x)
    one_c = jorth.minimize(jorth.Quadratic(A, C[0]), **options)
    assert one_c.value[0] == shared.value[0]
    no_c = jorth.minimize(jorth.Quadratic(A), **options)
    zero_c = jorth.minimize(jorth.Quadratic(A, 0 * C), **options)
    np.testing.assert_allclose(no_c.value, zero_c.value, rtol=1e-12)
    x0 = jorth.random_point(sig, cond=2.0, seed=1)
    a = jorth.minimize(jorth.Quadratic(A, C), x0, **options)
    stacked = np.stack([x0] * 7)
    b = jorth.minimize(jorth.Quadratic(A, C), stacked, **options)
    np.testing.assert_array_equal(a.x, b.x)
    np.testing.assert_array_equal(stacked, np.stack([x0] * 7))  # starts are not overwritten
    single = jorth.Quadratic(torch.from_numpy(A).float(), torch.from_numpy(C).float())
    tensors = jorth.minimize(single, **options)
    assert tensors.x.dtype == torch.float32
    assert tensors.value.shape == (7,)
    none = jorth.minimize(jorth.Quadratic(A, C), x0, max_iterations=0, **options)
    assert {status.name for status in none.status} == {"MAX_ITERATIONS"}
    np.testing.assert_array_equal(none.x[3], x0)


def test_the_number_of_threads_changes_nothing():
    sig = Signature(3, 1)
    S, T, _ = clouds(600, sig, noise=0.1)
    before = torch.get_num_threads()
    try:
        found = []
        for threads in (1, 2):
            torch.set_num_threads(threads)
            found.append(jorth.procrustes(S, T, sig).x)
    finally:
        torch.set_num_threads(before)
    np.testing.assert_array_equal(*found)


def test_the_clock_and_ctrl_c_end_a_batch(monkeypatch):
    """All problems keep what they have, and say why they ended."""
    sig = Signature(3, 1)
    A, C = quadratics(40, sig)
    late = jorth.minimize(jorth.Quadratic(A, C), signature=sig, max_time=0.0)
    assert {status.name for status in late.status} == {"MAX_TIME"}
    np.testing.assert_array_equal(late.x[-1], np.eye(4))
    assert np.isfinite(late.value).all()
    fits = jorth.procrustes(*clouds(5, sig, noise=0.1)[:2], sig, max_time=0.0)
    assert {status.name for status in fits.status} == {"MAX_TIME"}
    assert np.isfinite(fits.value).all()
    solve = batches.solve_quadratics

    def pressed(*arguments):
        os.kill(os.getpid(), signal.SIGINT)
        return solve(*arguments)

    monkeypatch.setattr(batches, "solve_quadratics", pressed)
    batch = jorth.minimize(jorth.Quadratic(A, C), signature=sig)
    assert {status.name for status in batch.status} == {"INTERRUPTED"}


@pytest.mark.parametrize("tolerance", [1e-2, 1e-7])
def test_a_tolerance_means_the_same_for_one_problem_and_for_many(tolerance):
    """From a point of norm 300, where a scale that grew with X would end runs earlier."""
    sig = Signature(3, 2)
    rng = np.random.default_rng(0)
    M, C = rng.standard_normal((30, 8, 5)), rng.standard_normal((30, 5, 5))
    A = M.transpose(0, 2, 1) @ M
    x0 = jorth.random_point(sig, cond=1e5, seed=1)
    options = dict(signature=sig, gradient_tolerance=tolerance)
    many = jorth.minimize(jorth.Quadratic(A, C), x0, **options)
    for b in range(30):
        one = jorth.minimize(jorth.Quadratic(A[b], C[b]), x0, method="riemannian-newton", **options)
        assert many.iterations[b] == one.iterations > 3
        assert many.gradient_norm[b] <= tolerance * one.gradient_scale
        assert one.gradient_norm <= tolerance * one.gradient_scale
