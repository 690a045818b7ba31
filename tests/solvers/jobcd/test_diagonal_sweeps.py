"""Sweeps with a diagonal A: the steps of the plain sweep with the same pairs in the same order."""

import itertools

import numpy as np
import pytest

import jorth
from jorth import Signature
from jorth.plane import all_pairs, tournament
from jorth.plane.compiled.diagonal import sweep_diagonal
from jorth.plane.compiled.quadratic import sweep_quadratic
from jorth.plane.proximal import StepRule
from jorth.solvers.jobcd.diagonal_sweeps import DiagonalForm, DiagonalSweep, near_pairs
from jorth.solvers.jobcd.majorised import compile_kernels
from jorth.solvers.jobcd.quadratic_sweeps import PairwiseSweep, SweepForm

UNIT = 2.0**-53
RULE = StepRule(-1e-12, all_components=False, stop_unbounded=True)
SHAPES = [
    (13, True, False),
    (13, False, False),
    (13, False, True),
    (13, True, True),
    (4, True, False),
]
"""Columns, whether there is a C, and a D."""


def mixed(n, p, seed):
    return Signature.of(np.random.default_rng(seed).permutation([1] * p + [-1] * (n - p)))


def diagonal(n, columns, *, linear=True, weighted=False, seed=0):
    rng = np.random.default_rng(seed)
    N = rng.standard_normal((columns, columns))
    return DiagonalForm(
        np.exp(rng.uniform(-2.0, 2.0, n)),
        rng.standard_normal((n, columns if linear else 0)),
        N @ N.T / columns + np.eye(columns) if weighted else None,
    )


def start(sig, columns, cond=5.0, seed=1):
    if columns == sig.n:
        return jorth.random_point(sig, cond=cond, seed=seed)
    return jorth.random_point(sig, cond=cond, columns=(columns - 1, 1), seed=seed)


def plain(form, X, sig, pairs, rule):
    return PairwiseSweep(
        SweepForm(np.diag(form.diagonal), form.C, form.D), X, sig.signs, pairs, rule
    )


def value(form, X):
    weighted = X if form.D is None else X @ form.D
    products = (weighted * X).sum(axis=1) @ form.diagonal
    return 0.5 * products + (form.C * X[:, : form.C.shape[1]]).sum()


def slope_size(form, X, pair):
    """|l| |x| |x D| + |c| |x| for the two rows."""
    Z, W = X[pair], X[pair] if form.D is None else X[pair] @ form.D
    sizes = [np.linalg.norm(M) for M in (Z, W, form.C[pair])]
    return np.abs(form.diagonal[pair]).max() * sizes[0] * sizes[1] + sizes[2] * sizes[0]


def step_by_step(form, X, sig, pair, rule):
    """X and the decrease after one pair: by the sweep with diagonal A, and by the plain one."""
    ours = DiagonalSweep(form, X, sig.signs, pair[None], rule)
    assert sum(ours.run()) == 1
    theirs, Y = X.copy(), X @ X.T if form.D is None else X @ form.D @ X.T
    weighted = rule._replace(has_d=form.D is not None)
    _, decrease = sweep_quadratic(
        np.diag(form.diagonal), form.C, theirs, Y, sig.signs, pair[None], weighted
    )
    return (ours.rows(), ours.decrease), (theirs, decrease)


@pytest.mark.parametrize("all_components", [False, True])
@pytest.mark.parametrize("theta", [-1e-12, 1e-2])
@pytest.mark.parametrize(("columns", "linear", "weighted"), SHAPES)
def test_every_step_is_that_of_the_plain_sweep(columns, linear, weighted, theta, all_components):
    """From the same X: the same rows and the same decrease, and f falls by it.

    The slopes have a rounding error of some u (|L Y| + |C X^T|), and the step is off by that over
    the curvature, of which twice the decrease over the step's square is the mean.
    """
    sig, form = mixed(13, 8, seed=3), diagonal(13, columns, linear=linear, weighted=weighted)
    X = start(sig, columns)
    rule = StepRule(theta, all_components, stop_unbounded=True)
    moved = 0
    for pair in np.concatenate([tournament(13, seed=seed).reshape(-1, 2) for seed in range(3)]):
        before = value(form, X)
        (ours, decrease), (theirs, expected) = step_by_step(form, X, sig, pair, rule)
        slopes, length = slope_size(form, X, pair), np.linalg.norm(X[pair])
        assert decrease == pytest.approx(expected, rel=1e-7, abs=1e3 * UNIT * slopes)
        assert value(form, ours) <= before - decrease + 1e3 * UNIT * (abs(before) + slopes)
        if decrease > 1e6 * UNIT * slopes:
            step = np.linalg.norm(ours - X) / length
            near = 1e3 * UNIT * (1.0 + slopes * step**2 / (2 * decrease)) * length
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=near)
        moved += decrease > 1e-6
        X = ours
    assert moved > 100
    assert columns < 13 or jorth.residual(X, sig) < 1e3 * UNIT


@pytest.mark.parametrize("all_components", [False, True])
@pytest.mark.parametrize("n", [2, 3, 5, 13, 40])
@pytest.mark.parametrize("order", ["rows", "rounds", "random", "near"])
def test_whole_sweeps(n, order, all_components):
    """Disjoint pairs solved together are as good as one after the other."""
    sig, form = mixed(n, (n + 1) // 2, seed=n), diagonal(n, n, seed=n)
    rule = RULE._replace(all_components=all_components)
    X = start(sig, n)
    Z = X.copy()
    pairs = {
        "rows": all_pairs(n),
        "rounds": tournament(n).reshape(-1, 2),
        "random": all_pairs(n, seed=2),
        "near": near_pairs(n),
    }[order]
    for _ in range(3):
        before = value(form, X)
        ours = DiagonalSweep(form, X, sig.signs, pairs, rule)
        theirs = plain(form, Z, sig, pairs, rule)
        assert sum(ours.run()) == sum(theirs.run()) == n * (n - 1) // 2
        X, Z = ours.rows(), theirs.rows()
        # rounding, as three sweeps pass it on
        np.testing.assert_allclose(X, Z, rtol=0, atol=1e-10 * np.abs(Z).max())
        assert value(form, X) == pytest.approx(before - ours.decrease, rel=1e-9)
        assert jorth.residual(X, sig) <= 100 * n * UNIT


@pytest.mark.parametrize("linear", [False, True])
def test_whole_sweeps_with_a_weight(linear):
    """X D moves along with X."""
    n, sig = 13, mixed(13, 8, seed=3)
    form, X = diagonal(n, n, linear=linear, weighted=True), start(sig, n)
    ours = DiagonalSweep(form, X, sig.signs, all_pairs(n), RULE)
    theirs = plain(form, X.copy(), sig, all_pairs(n), RULE)
    assert sum(ours.run()) == sum(theirs.run())
    np.testing.assert_allclose(ours.rows(), theirs.rows(), rtol=0, atol=1e-10 * np.abs(X).max())
    assert value(form, ours.rows()) == pytest.approx(value(form, X) - ours.decrease, rel=1e-9)


@pytest.mark.parametrize("n", [1, 2, 3, 15, 16, 17, 31, 33, 48, 50, 100])
def test_near_pairs(n):
    """Every pair once; most are among eight disjoint ones, and few rows are in turn."""
    pairs = near_pairs(n)
    expected = [list(pair) for pair in itertools.combinations(range(n), 2)]
    assert sorted(map(sorted, pairs.tolist())) == expected
    if n >= 48:
        groups = [pairs[start : start + 8] for start in range(0, len(pairs), 8)]
        assert np.mean([len(np.unique(group)) == 16 for group in groups]) > 0.8
        windows = [pairs[start : start + 64] for start in range(len(pairs))]
        assert np.mean([len(np.unique(window)) <= 3 * 16 for window in windows]) > 0.8


@pytest.mark.parametrize("boost", [1e3, 1e4, 1e5])
def test_rows_close_to_the_light_cone(boost):
    """As good as products formed anew for every pair: a Gram matrix that is kept is off by 1e-5,
    0.3 and 10 at the end.

    The slopes have errors of u l |x|^2, and the curvatures that they are divided by after the first
    step back are about l.
    """
    sig = Signature.of([1, -1, 1, -1])
    for seed in range(20):
        form = diagonal(4, 4, seed=seed)
        u = boost * np.random.default_rng(seed).uniform(0.5, 1.0)
        X = jorth.random_point(sig, cond=2.0, seed=seed)
        X[:2] = np.array([[u + 1 / u, u - 1 / u], [u - 1 / u, u + 1 / u]]) / 2 @ X[:2]
        near = 100 * UNIT * form.diagonal.max() / form.diagonal.min() * np.linalg.norm(X) ** 2
        expected = X.copy()
        for pair in all_pairs(4):
            assert sum(plain(form, expected, sig, pair[None], RULE).run()) == 1
        sweep = DiagonalSweep(form, X, sig.signs, all_pairs(4), RULE)
        assert sum(sweep.run()) == 6
        assert np.abs(sweep.rows() - expected).max() <= near * np.abs(expected).max()


@pytest.mark.parametrize("order", ["rows", "rounds"])
def test_an_unbounded_plane_stops_the_sweep(order):
    """l_4 + l_8 < 0 with opposite signs: the pairs before it count, and the point is feasible."""
    n, sig = 9, Signature.of([1, 1, 1, 1, 1, -1, -1, -1, -1])
    form = DiagonalForm(np.ones(n), np.random.default_rng(0).standard_normal((n, n)), None)
    form.diagonal[4] = -3.0
    pairs = all_pairs(n) if order == "rows" else tournament(n).reshape(-1, 2)
    X = start(sig, n)
    theirs = plain(form, X.copy(), sig, pairs, RULE)
    ours = DiagonalSweep(form, X.copy(), sig.signs, pairs, RULE)
    assert sum(ours.run()) == sum(theirs.run()) < len(pairs)
    assert ours.unbounded
    assert theirs.unbounded
    np.testing.assert_allclose(ours.rows(), theirs.rows(), rtol=0, atol=1e-11)
    going = DiagonalSweep(form, X, sig.signs, pairs, RULE._replace(stop_unbounded=False))
    assert sum(going.run()) == len(pairs)
    assert not going.unbounded


def test_not_a_number():
    """NaN in C: no step is taken with it, and the decrease says so."""
    sig, form = mixed(6, 3, seed=0), diagonal(6, 6)
    form.C[2, 3] = np.nan
    X = start(sig, 6)
    sweep = DiagonalSweep(form, X.copy(), sig.signs, all_pairs(6), RULE)
    assert sum(sweep.run()) == 15
    assert np.isfinite(sweep.rows()).all()
    assert np.isnan(sweep.decrease)
    np.testing.assert_array_equal(sweep.rows()[2], X[2])


def test_nothing_is_compiled_on_the_clock():
    compile_kernels()
    sig, X = mixed(6, 3, seed=0), np.eye(6)
    for linear in (False, True):
        for weighted in (False, True):
            form = diagonal(6, 6, linear=linear, weighted=weighted)
            for _ in DiagonalSweep(form, X.copy(), sig.signs, all_pairs(6), RULE).run():
                pass
    assert len(sweep_diagonal.signatures) == 1
