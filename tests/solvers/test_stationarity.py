"""Riemannian gradient, multiplier and block stationarity;
where the paper must not be followed literally."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jorth
from jorth import Jacobi, Signature, block_stationarity, riemannian_gradient, solve_plane
from jorth.datasets import planted_procrustes
from tests.group.strategies import dense_j, points, signatures


@given(st.data())
def test_gradient_is_tangent_and_is_the_derivative(data):
    sig = data.draw(signatures(max_n=6))
    X = data.draw(points(sig, 2))
    G = np.random.default_rng(data.draw(st.integers(0, 2**32))).standard_normal(X.shape)
    direction = riemannian_gradient(X, G, sig)
    J = dense_j(sig)
    scale = np.linalg.norm(X, 2) ** 3 * np.linalg.norm(G)
    tangency = direction.T @ J @ X
    assert np.abs(tangency + tangency.T).max() <= 1e-14 * 10 * scale
    S = (J @ G @ X.T - (J @ G @ X.T).T) / 2
    assert (G * direction).sum() == pytest.approx(np.linalg.norm(S) ** 2, rel=1e-10, abs=1e-12)


def test_slope_in_a_plane_is_twice_s():
    """The derivative of f along exp(t J (e_i e_j^T - e_j e_i^T)) X is 2 S_ij."""
    sig = Signature(3, 2)
    X = jorth.random_point(sig, seed=1)
    M = np.random.default_rng(0).standard_normal((5, 5))
    S = sig.signs[:, None] * (M @ X.T)
    S = (S - S.T) / 2
    for i, j in ((0, 1), (1, 3), (3, 4)):
        E = np.zeros((5, 5))
        E[i, j], E[j, i] = 1, -1
        K = sig.signs[:, None] * E
        h = 1e-5
        ahead, behind = (jorth.exp(step * K, sig) @ X for step in (h, -h))
        slope = (M * (ahead - behind)).sum() / (2 * h)
        assert slope == pytest.approx(2 * S[i, j], rel=1e-7)


def test_block_stationarity():
    sig = Signature(5, 4)
    source, target, planted = planted_procrustes(30, sig, seed=2)
    objective = jorth.Procrustes(source, target)
    assert block_stationarity(objective, planted, sig).value < 1e-24
    everywhere = block_stationarity(objective, np.eye(9), sig)
    assert everywhere.value > 1e-2
    assert everywhere.pairs == 36
    assert everywhere.standard_error == 0
    heavy = block_stationarity(objective, np.eye(9), sig, theta=100.0)
    assert heavy.value < 1e-2 * everywhere.value
    weight = np.diag(np.linspace(1.0, 3.0, 9))
    A = source.T @ source / 30
    # 1/2 ||A^(1/2) (X - planted) D^(1/2)||^2
    weighted = jorth.Quadratic(A, -A @ planted @ weight, weight)
    assert block_stationarity(weighted, planted, sig).value < 1e-20
    near = jorth.exp(1e-3 * sig.signs[:, None] * (np.eye(9, k=1) - np.eye(9, k=-1)), sig) @ planted
    steps = [
        jorth.solve_plane(
            ((A @ (near - planted) @ weight) @ near.T)[np.ix_(pair, pair)],
            np.kron(near[pair] @ weight @ near[pair].T, A[np.ix_(pair, pair)]),
            sig.signs[pair],
            theta=1e-5,
        ).V
        for pair in jorth.plane.all_pairs(9)
    ]
    by_hand = np.mean([np.linalg.norm(V - np.eye(2)) ** 2 for V in steps])
    assert block_stationarity(weighted, near, sig).value == pytest.approx(by_hand, rel=1e-6)
    sampled = block_stationarity(objective, np.eye(9), sig, pairs=2000, seed=1)
    assert 0 < sampled.standard_error < everywhere.value
    assert abs(sampled.value - everywhere.value) < 4 * sampled.standard_error
    with pytest.raises(ValueError, match="curvature must be given"):
        block_stationarity(lambda X: X.sum(), np.eye(9), sig)


def test_the_papers_gradient_is_not_tangent_and_can_raise_f():
    """docs/background/paper.md: G - J X G^T X J leaves the tangent space,
    and a step against it may go up. Ours never does."""
    sig = Signature(3, 3)
    J, ups = dense_j(sig), 0
    for seed in range(200):
        X = jorth.random_point(sig, cond=10.0, seed=seed)
        G = X - np.random.default_rng(seed).standard_normal((6, 6))
        paper, ours = G - J @ X @ G.T @ X @ J, riemannian_gradient(X, G, sig)
        assert np.abs(X.T @ J @ paper + paper.T @ J @ X).max() > 1e-3 * np.linalg.norm(paper)
        ups += (G * paper).sum() < 0  # the slope of f along it
        assert (G * ours).sum() > 0
    assert ups > 2


def test_the_papers_sigma_is_too_small_where_rows_are_long():
    """docs/background/paper.md: sigma = L_f with Q = sigma I raises f where ||X[B,:]|| > 1;
    Q = L (Z Z^T) (x) I lowers it."""
    sig = Signature(4, 4)
    conditions = dict(source_condition=1.0, point_condition=30.0)
    source, target, _ = planted_procrustes(40, sig, seed=3, **conditions)
    objective = jorth.Procrustes(source, target)
    x0 = jorth.random_point(sig, cond=400.0, seed=4)
    L = objective.curvature()

    def first_values(**options):
        method = Jacobi(rounds_per_gradient=1, curvature=L, **options)
        limits = dict(max_iterations=40, gradient_tolerance=0.0)
        result = jorth.minimize(objective, x0, signature=sig, method=method, **limits)
        return result.history["value"]

    paper, ours = first_values(majoriser="scalar"), first_values(majoriser="rows")
    # a step that is rounded off is no rise
    assert (np.diff(ours) <= 2 * sig.n * 2.0**-53 * np.abs(ours[:-1])).all()
    assert ours[-1] < 0.5 * ours[0]
    assert (np.diff(paper) > 1e-3 * np.abs(paper[:-1])).any()


def test_exact_pairs_together_are_no_majoriser_without_a_factor():
    """docs/background/paper.md: disjoint exact pairs miss what A couples; a factor repairs it."""
    n = 8
    sig = Signature(4, 4)
    A = np.full((n, n), 1.0) + 0.01 * np.eye(n)  # every two pairs are coupled
    # rows that are not orthogonal: the coupling is A_ij <x_i, x_j>
    pairs = np.arange(n).reshape(-1, 2)

    def after(factor, C, X):
        """Return f after the steps, and what it would be if their decreases added up."""

        def f(X):
            return 0.5 * np.trace(X.T @ A @ X) + (C * X).sum()

        G = A @ X + C
        P = np.stack([(G @ X.T)[np.ix_(pair, pair)] for pair in pairs])
        Q = [np.kron(X[pair] @ X[pair].T, A[np.ix_(pair, pair)]) for pair in pairs]
        step = solve_plane(P, factor * np.stack(Q), sig.signs[pairs])
        Y = X.copy()
        jorth.plane.apply_rows(Y, pairs, step.V)
        return f(Y), f(X) - step.decrease.sum()

    above = 0
    for seed in range(20):
        C = np.random.default_rng(seed).standard_normal((n, n))
        X = jorth.random_point(sig, cond=10.0, seed=seed)
        value, promised = after(1.0, C, X)
        above += value > promised + 0.01 * abs(promised)
        value, promised = after(len(pairs), C, X)
        assert value <= promised + 1e-9 * abs(promised)

    assert above > 5  # 19 or 20


# -- a plane without a minimiser is not a stationary one


FOUR = Signature(2, 2)
UNBOUNDED = jorth.HyperbolicEigenvalue(np.eye(4), sense="max")


def test_unbounded_planes_count_as_infinitely_far():
    X = jorth.random_point(FOUR, cond=5, seed=1)
    found = jorth.block_stationarity(UNBOUNDED, X, FOUR)
    assert found == (math.inf, math.inf, 6)
    sampled = jorth.block_stationarity(UNBOUNDED, X, FOUR, pairs=50, seed=1)
    assert sampled == (math.inf, math.inf, 50)


@pytest.mark.parametrize("cond", [1e4, 1.8e8, 1e10])
def test_rows_close_to_the_light_cone_are_bounded(cond):
    """Z Z^T loses its smaller null form from cond(X) = u^(-1/2) on; the rows do not."""
    sig = Signature(1, 1)
    X = jorth.random_point(sig, cond=cond, seed=2)
    found = jorth.block_stationarity(jorth.Quadratic(np.eye(2)), X, sig, theta=0.0)
    # the best step undoes the boost, X^-1 or minus that:
    # ||V - I||^2 = 2 (cosh - 1)^2 + 2 sinh^2 is about ||X||_F^2
    assert found.value == pytest.approx(np.linalg.norm(X) ** 2, rel=8 / math.sqrt(cond))
