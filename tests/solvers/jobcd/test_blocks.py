"""Sweeps by blocks: the steps of the plain sweep in the same order, descent at each block,
and rows far from I."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest

import jorth
from jorth import GaussSeidel, Signature, Status
from jorth.datasets import planted_procrustes
from jorth.plane import all_pairs
from jorth.solvers.jobcd import quadratic_sweeps as blocks
from jorth.solvers.jobcd._sweeps_numba import FINISHED, sweep_block
from jorth.solvers.jobcd.majorised import compile_kernels
from jorth.solvers.jobcd.quadratic_sweeps import (
    BlockedSweep,
    PairwiseSweep,
    StepRule,
    SweepForm,
    zigzags,
)

UNIT = 2.0**-53
RULE = StepRule(-1e-12, all_components=False, stop_unbounded=True)


def pairs_in_order(order, size):
    """Along s, s + 1, s - 1, s + 2, ... each block with the one before it, row by row,
    and once with itself."""
    parts = [order[start : start + size] for start in range(0, len(order), size)]
    parts += [order[:0]] * (len(parts) % 2)
    found, met = [], set()
    for s in range(len(parts) // 2):
        last = order[:0]
        for step in range(len(parts)):
            place = (s + (step + 1) // 2 * (1 if step % 2 else -1)) % len(parts)
            part = parts[place]
            found += [(i, j) for i in last for j in part]
            if place not in met:
                found += [(i, j) for k, i in enumerate(part) for j in part[k + 1 :]]
            met.add(place)
            last = part
    return np.array(found)


def quadratic(n, columns, *, linear=True, weighted=False, seed=0):
    rng = np.random.default_rng(seed)
    M, N = rng.standard_normal((n, n)), rng.standard_normal((columns, columns))
    C = rng.standard_normal((n, columns if linear else 0))
    return M @ M.T / n + np.eye(n), C, N @ N.T / columns + np.eye(columns) if weighted else None


def value(A, C, D, X):
    return (
        0.5 * np.trace(X.T @ A @ X @ (np.eye(X.shape[1]) if D is None else D))
        + (C * X[:, : C.shape[1]]).sum()
    )


def start(sig, columns, seed=1):
    if columns == sig.n:
        return jorth.random_point(sig, cond=5.0, seed=seed)
    return jorth.random_point(sig, cond=5.0, columns=(columns - 1, 1), seed=seed)


@pytest.mark.parametrize("all_components", [False, True])
@pytest.mark.parametrize("size", [2, 4, 6, 11, 13, 40])
@pytest.mark.parametrize(
    ("columns", "linear", "weighted"),
    [(13, True, False), (13, False, True), (13, True, True), (3, True, False)],
)
def test_the_steps_of_the_plain_sweep(all_components, size, columns, linear, weighted):
    """Same pairs, same order: the same X to rounding; n = 13 is no multiple of any size but one."""
    rng = np.random.default_rng(3)
    sig = Signature.of(rng.permutation([1] * 8 + [-1] * 5))
    A, C, D = quadratic(13, columns, linear=linear, weighted=weighted)
    rule = StepRule(1e-3, all_components, stop_unbounded=True)
    X = Z = start(sig, columns)
    for _ in range(3):
        order = rng.permutation(13)
        pairs = pairs_in_order(order, size)
        assert sorted(map(sorted, pairs.tolist())) == all_pairs(13).tolist()
        plain = PairwiseSweep(SweepForm(A, C, D), X.copy(), sig.signs, pairs, rule)
        blocked = BlockedSweep(SweepForm(A, C, D), Z, sig.signs, order, size, rule)
        assert sum(plain.run()) == sum(blocked.run()) == 78
        X, Z = plain.rows(), blocked.rows()
        np.testing.assert_allclose(
            Z, X, atol=1e-10 * np.abs(X).max()
        )  # rounding, as three sweeps pass it on
    assert value(A, C, D, X) < value(A, C, D, start(sig, columns)) - 1.0


@pytest.mark.parametrize("weighted", [False, True])
def test_descent_at_every_block(weighted):
    """And X can be read after each: feasible,
    with the value that the steps have promised or less."""
    sig = Signature.of(np.random.default_rng(4).permutation([1] * 9 + [-1] * 8))
    n, columns = 17, 17
    A, C, D = quadratic(n, columns, weighted=weighted)
    X = start(sig, columns)
    sweep, last, count = (
        BlockedSweep(SweepForm(A, C, D), X, sig.signs, np.arange(n), 4, RULE),
        value(A, C, D, X),
        0,
    )
    for _ in sweep.run():
        Z = sweep.rows()
        now = value(A, C, D, Z)
        assert now < last + 100 * n * UNIT * abs(last)
        assert jorth.residual(Z, sig) <= 100 * n * UNIT
        last, count = now, count + 1
    assert count == 15
    assert last < value(A, C, D, X) - 1.0


@pytest.mark.parametrize("all_components", [False, True])
def test_every_step_in_a_block_decreases_by_the_proximal_term(all_components):
    """f(U+) <= f(U) - theta/2 ||V - I||^2 for f(U) = 1/2 tr(U^T A U Y) + <R, U>, and X falls by as
    much."""
    sig, theta, n = Signature.of([1, -1, 1, 1, -1, -1]), 0.05, 6
    A, C, _ = quadratic(n, n)
    X = start(sig, n)
    U, Y, R = np.eye(n), X @ X.T, C @ X.T
    steps = 0
    for pair in all_pairs(n, seed=5):
        before = U.copy()
        done, decrease, end = sweep_block(
            A,
            R,
            U,
            Y,
            np.empty((n, 0)),
            sig.signs.copy(),
            pair[None],
            StepRule(theta, all_components, stop_unbounded=True),
        )
        assert (done, end) == (1, FINISHED)
        V = (U @ jorth.inverse(before, sig))[np.ix_(pair, pair)]
        promised = theta / 2 * np.linalg.norm(V - np.eye(2)) ** 2
        fallen = value(A, C, None, before @ X) - value(A, C, None, U @ X)
        assert fallen >= promised - 1e-12
        assert fallen == pytest.approx(decrease + promised, abs=1e-11)
        np.testing.assert_allclose(Y, U @ X @ X.T @ U.T, atol=1e-12 * np.abs(Y).max())
        steps += promised > 1e-6
    assert steps > 10


@pytest.mark.parametrize(("boost", "near"), [(1e3, 1e-6), (1e4, 1e-3)])
def test_null_lengths_are_formed_from_rows(boost, near):
    """Two rows almost on the light cone:
    from products alone X is off by 2e-5 at 1e3 and by all of itself at 3e4."""
    sig = Signature.of([1, -1, 1, -1])
    for seed in range(20):
        A, C, _ = quadratic(4, 4, seed=seed)
        u = boost * np.random.default_rng(seed).uniform(0.5, 1.0)
        X = jorth.random_point(sig, cond=2.0, seed=seed)
        X[:2] = np.array([[u + 1 / u, u - 1 / u], [u - 1 / u, u + 1 / u]]) / 2 @ X[:2]
        plain = PairwiseSweep(
            SweepForm(A, C, None), X.copy(), sig.signs, pairs_in_order(np.arange(4), 2), RULE
        )
        blocked = BlockedSweep(SweepForm(A, C, None), X, sig.signs, np.arange(4), 2, RULE)
        assert sum(plain.run()) == sum(blocked.run()) == 6
        assert np.abs(blocked.rows() - plain.rows()).max() <= near * np.abs(plain.rows()).max()


def test_rows_are_kept_with_u():
    """The rows given to the kernel are those of U X at the end."""
    sig, n = Signature.of([1, -1, 1, 1, -1, -1]), 6
    A, C, _ = quadratic(n, n)
    X = start(sig, n)
    U, rows = np.eye(n), X.copy()
    sweep_block(
        A, C @ X.T, U, X @ X.T, rows, sig.signs.copy(), all_pairs(n), RULE._replace(theta=0.0)
    )
    assert np.abs(U - np.eye(n)).max() > 0.1
    np.testing.assert_allclose(rows, U @ X, atol=1e-12 * np.abs(X).max())


def test_rows_asked_for_midway_are_those_of_the_moment(monkeypatch):
    """Whenever the kernel is given rows, their products are the Y that it has by then."""
    late = []

    def watched(A, R, U, Y, rows, *rest):
        if rows.shape[1]:
            np.testing.assert_allclose(rows @ rows.T, Y, atol=1e-13 * np.abs(Y).max())
            late.append(np.abs(U - np.eye(len(U))).max() > 0.1)
        return sweep_block(A, R, U, Y, rows, *rest)

    monkeypatch.setattr("jorth.solvers.jobcd._sweeps_numba.sweep_block", watched)
    sig = Signature(2, 2)
    for seed in range(20):
        A, C, _ = quadratic(4, 4, seed=seed)
        X = jorth.random_point(sig, cond=1e10, seed=seed)
        for _ in BlockedSweep(SweepForm(A, C, None), X, sig.signs, np.arange(4), 4, RULE).run():
            pass
    assert sum(late) > 3


@pytest.mark.parametrize("cond", [1e3, 1e6, 1e12])
def test_far_from_the_identity(cond):
    """Feasible to n u ||X||^2 and as low as the plain sweep, from condition 1e12 down."""
    n, sig = 40, Signature.of(np.random.default_rng(6).permutation([1] * 20 + [-1] * 20))
    source, target, _ = planted_procrustes(2 * n, sig, noise=0.1, seed=3)
    A, C = source.T @ source / (2 * n), -source.T @ target / (2 * n)
    X = Z = jorth.random_point(sig, cond=cond, seed=7)
    largest = np.linalg.norm(X, 2)
    for sweep in range(4):
        order = np.random.default_rng(sweep).permutation(n)
        plain = PairwiseSweep(
            SweepForm(A, C, None), X.copy(), sig.signs, pairs_in_order(order, 12), RULE
        )
        blocked = BlockedSweep(SweepForm(A, C, None), Z, sig.signs, order, 12, RULE)
        assert sum(plain.run()) == sum(blocked.run()) == n * (n - 1) // 2
        X, Z = plain.rows(), blocked.rows()
        assert value(A, C, None, Z) <= value(A, C, None, X) * (1 + 1e-9)
        assert (
            np.abs(Z.T @ (sig.signs[:, None] * Z) - np.diag(sig.signs)).max()
            <= n * UNIT * largest**2
        )


def test_an_unbounded_plane_stops_the_sweep():
    """A has a negative direction on the light cone of one pair: the pairs before it count,
    X stays feasible."""
    n, sig = 9, Signature.of([1, -1, 1, 1, 1, 1, 1, 1, 1])
    A = np.eye(n)
    A[0, 0], A[1, 1], A[0, 1], A[1, 0] = 1.0, 1.0, -3.0, -3.0
    plain = PairwiseSweep(
        SweepForm(A, np.zeros((n, 0)), None),
        np.eye(n),
        sig.signs,
        pairs_in_order(np.arange(n)[::-1], 4),
        RULE,
    )
    sweep = BlockedSweep(
        SweepForm(A, np.zeros((n, 0)), None),
        np.eye(n),
        sig.signs,
        np.arange(n)[::-1].copy(),
        4,
        RULE,
    )
    assert sum(sweep.run()) == sum(plain.run()) < n * (n - 1) // 2
    assert sweep.unbounded
    assert plain.unbounded
    result = jorth.minimize(jorth.Quadratic(A), signature=sig, method="gs-jobcd", block_size=4)
    assert result.status is Status.UNBOUNDED
    assert 0 < result.evaluations.pair_updates < 36
    going = jorth.minimize(
        jorth.Quadratic(A),
        signature=sig,
        method="gs-jobcd",
        block_size=4,
        on_unbounded="continue",
        max_iterations=2,
    )
    assert going.status is Status.MAX_ITERATIONS
    assert going.evaluations.pair_updates == 2 * 36


@pytest.mark.parametrize("count", [1, 2, 3, 8, 21, 34])
def test_every_two_blocks_are_neighbours_once(count):
    met = Counter(
        frozenset(pair) for path in zigzags(count).tolist() for pair in itertools.pairwise(path)
    )
    assert all(met[frozenset(pair)] == 1 for pair in itertools.combinations(range(count), 2))
    assert len(met) == math.comb(count + count % 2, 2)


@pytest.mark.parametrize(("n", "share"), [(30, 0.5), (31, 0.9), (30, 1.0)])
def test_planted_procrustes(n, share):
    sig = Signature.of(
        np.random.default_rng(n).permutation(
            Signature(round(share * n), n - round(share * n)).signs
        )
    )
    source, target, X = planted_procrustes(2 * n, sig, seed=2)
    result = jorth.minimize(
        jorth.Procrustes(source, target),
        signature=sig,
        method="gs-jobcd",
        block_size=8,
        gradient_tolerance=1e-9,
    )
    assert result.status is Status.CONVERGED
    assert np.abs(result.x - X).max() < 1e-6
    assert result.residual <= 100 * n * UNIT
    assert result.evaluations.pair_updates == result.iterations * n * (n - 1) // 2


def test_float32():
    sig = Signature(25, 25)
    source, target, X = planted_procrustes(100, sig, seed=2)
    objective = jorth.Procrustes(source.astype(np.float32), target.astype(np.float32))
    result = jorth.minimize(
        objective,
        signature=sig,
        method="gs-jobcd",
        block_size=8,
        gradient_tolerance=1e-5,
        max_iterations=1000,
    )
    assert result.x.dtype == np.float32
    assert np.abs(result.x - X).max() < 1e-2


def test_large_n_goes_by_blocks(monkeypatch):
    """By default from n = 192 on, in free order; other orders and the race are pair by pair."""
    used = []

    class Watched(BlockedSweep):
        def __init__(self, *arguments):
            used.append(arguments[4])
            super().__init__(*arguments)

    monkeypatch.setattr("jorth.solvers.jobcd.gauss_seidel.BlockedSweep", Watched)
    for n, options in (
        (191, {}),
        (192, {}),
        (192, {"order": "cyclic"}),
        (192, {"block_size": 1}),
        (192, {"block_size": 50}),
        (192, {"side": "right", "theta": 1e-9}),
    ):
        A = np.diag(np.linspace(1.0, 2.0, n))
        jorth.minimize(
            jorth.Quadratic(A, np.tri(n)),
            signature=Signature(n - 1, 1),
            method="gs-jobcd",
            max_iterations=1,
            **options,
        )
    race = jorth.Quadratic(-np.eye(192), np.tri(192))
    jorth.minimize(
        race,
        signature=Signature(191, 1),
        method="gs-jobcd",
        on_unbounded="continue",
        max_iterations=1,
    )
    assert used == [28, 50, 28]
    assert [blocks.rows_of_a_block(n) for n in (2, 191, 192, 511, 512, 10**5)] == [
        1,
        1,
        28,
        28,
        60,
        60,
    ]


def test_a_limit_inside_a_sweep_leaves_a_feasible_point():
    """The run is cut between two blocks: what it returns is the point that it has reached."""
    n, sig = 30, Signature(15, 15)
    source, target, _ = planted_procrustes(2 * n, sig, noise=0.1, seed=1)
    solver, objective = GaussSeidel(block_size=4), jorth.Procrustes(source, target)
    result = jorth.minimize(objective, signature=sig, method=solver, max_time=1e-9)
    assert result.status is Status.MAX_TIME
    assert result.residual <= 100 * n * UNIT


def test_nothing_is_compiled_on_the_clock():
    compile_kernels()
    M = np.random.default_rng(0).standard_normal((9, 9))
    A, sig = M @ M.T + np.eye(9), Signature(5, 4)
    far = jorth.random_point(sig, cond=1e9, seed=0)
    for objective in (jorth.Quadratic(A), jorth.Quadratic(A, M), jorth.Quadratic(A, M, A)):
        for side in ("left", "right"):
            jorth.minimize(
                objective,
                far,
                signature=sig,
                method="gs-jobcd",
                side=side,
                theta=0.0,
                block_size=2,
                max_iterations=2,
            )
    assert len(sweep_block.signatures) == 1
