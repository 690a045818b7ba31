"""solve_plane and solve_rows: global over all families, exact on quadratics, right at the edges.

Tests that are parametrised by an engine hold for the compiled step of one pair too.
"""

import mpmath as mp
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from jorth.plane import solve_plane, solve_rows
from jorth.plane.families import null_forms
from tests.plane.reference import (
    STEPS,
    best_plane,
    kronecker,
    mpmath_lightcone,
    step_by_numba,
    surrogate,
)

UNIT = 2.0**-53
IDENTITY = np.eye(2)
OPPOSITE = np.array([1, -1])


def random_problems(seed, size, indefinite=False):
    """P, Q, signs: Q positive definite,
    or symmetric with light-cone forms made positive by a shift."""
    rng = np.random.default_rng(seed)
    P = rng.standard_normal((size, 2, 2)) * 10.0 ** rng.uniform(-2, 2, (size, 1, 1))
    M = rng.standard_normal((size, 4, 4))
    shifted = M + M.swapaxes(1, 2) + 12 * np.eye(4)
    Q = shifted if indefinite else M @ M.swapaxes(1, 2) + 0.1 * np.eye(4)
    return P, (Q + Q.swapaxes(1, 2)) / 2, rng.choice([-1, 1], (size, 2))


def definite(rng, *shape):
    M = rng.standard_normal((*shape, 2, 2))
    return M @ M.swapaxes(-1, -2) + 0.1 * IDENTITY


def norms(P, Q):
    return np.linalg.norm(P, axis=(1, 2)) + np.linalg.norm(Q, axis=(1, 2))


def assert_global(P, Q, signs, components, found):
    V, decrease, unbounded = found
    assert not unbounded.any()
    best = best_plane(P, Q, signs[:, 0] != signs[:, 1], components)
    assert (surrogate(V, P, Q) - best <= 1e-12 * norms(P, Q)).all()
    assert (decrease >= 0).all()
    size = np.abs(V).max(axis=(1, 2)) ** 2
    assert (np.abs(decrease + surrogate(V, P, Q)) <= 1e-14 * norms(P, Q) * size).all()
    J = signs[:, :, None] * IDENTITY
    violation = np.abs(V.swapaxes(1, 2) @ J @ V - J).max(axis=(1, 2))
    assert (violation <= 100 * UNIT * size).all()  # measured: 10 u


@pytest.mark.parametrize("components", ["all", "identity"])
@pytest.mark.parametrize("kind", ["definite", "indefinite", "scalar"])
@pytest.mark.parametrize("theta", [0.0, 0.7])
def test_global_minimum_in_a_mixed_batch(components, kind, theta):
    P, Q, signs = random_problems(1, 40, kind == "indefinite")
    if kind == "scalar":
        Q = Q[:, 0, 0]
    found = solve_plane(P, Q, signs, theta=theta, components=components)
    full = Q[:, None, None] * np.eye(4) if kind == "scalar" else Q
    assert_global(P, full + theta * np.eye(4), signs, components, found)


@pytest.mark.parametrize("engine", STEPS)
@given(st.integers(0, 2**32), st.sampled_from([1, -1]), st.floats(-14, -2))
def test_small_steps_keep_their_relative_accuracy(engine, seed, sign, exponent):
    """With a slope of 1e-9 and Q of order one,
    the step off the diagonal is right to rounding, not to 1e-7."""
    rng = np.random.default_rng(seed)
    Y, A = definite(rng, 2, 1)
    Q = kronecker(Y, A)[0]
    P = rng.standard_normal((1, 2, 2)) * 10.0**exponent
    generator = np.array([0, 1.0, -sign, 0])  # vec of [[0, -+1], [1, 0]]: rotations or boosts
    slope, curvature = generator @ P[0].T.reshape(4), generator @ Q @ generator
    first_order = -slope / curvature
    V = STEPS[engine](P, Y, A, np.array([[1, sign]]), components="identity")[0][0]
    # second order of the step:
    # |P| / |slope| enters through the trace of P, cubic terms through Q
    large = np.abs(P).max() + np.abs(first_order) * np.abs(Q).max()
    bound = 20 * large / curvature + 50 * UNIT * np.abs(Q).max() / curvature
    assert abs(V[1, 0] - first_order) <= bound * abs(first_order)


@pytest.mark.parametrize("components", ["all", "identity"])
def test_boosts_of_any_size_against_mpmath(components):
    """u over 1e-17 .. 1e17:
    Q = diag-like with null forms C, D of order one and a pull of 1e-17 .. 1e17."""
    rng = np.random.default_rng(11)
    outer, inner = np.array([[1, 1], [1, 1]]) / 2, np.array([[1, -1], [-1, 1]]) / 2
    for exponent in np.linspace(-17, 17, 18):
        u = 10.0**exponent * rng.uniform(1, 2)
        # F = A u + B/u + (u^2 + 1/u^2) / 2 with its minimum at u: the outer or the inner term pulls
        P = -u * outer if u > 1 else -1 / u * inner
        A, B = (np.longdouble((N * P).sum()) - 1 for N in (outer, inner))
        reference, _, _ = mpmath_lightcone(float(A), float(B), 0.5, 0.5, positive=True, digits=80)
        for V, decrease, unbounded in isotropic(P, 1.0, OPPOSITE, components=components):
            assert not unbounded
            found = V[0, 0] + V[0, 1] if u > 1 else 1 / (V[0, 0] - V[0, 1])
            # A = pull - 1 is rounded before it is solved: one rounding of the larger
            assert abs(found / float(reference) - 1) <= 1e-14
            assert decrease > 0


@pytest.mark.parametrize(
    ("engine", "signs"), [("torch", [1, 1]), ("torch", [1, -1]), ("numba", [1, 1])]
)
@pytest.mark.parametrize("singular", ["Y", "A"])
def test_nothing_moves_at_a_stationary_point_with_a_singular_q(engine, signs, singular):
    """P = 0 and Q positive semidefinite: V = I is a minimiser,
    and rounding must not find a better one far away."""
    z = np.random.default_rng(12).standard_normal((5000, 2, 1))
    factors = np.broadcast_to(IDENTITY, (5000, 2, 2)), z @ z.swapaxes(1, 2)
    Y, A = factors if singular == "A" else factors[::-1]
    V = STEPS[engine](np.zeros((5000, 2, 2)), Y, A, np.tile(signs, (5000, 1)))[0]
    np.testing.assert_array_equal(V, np.broadcast_to(IDENTITY, V.shape))


# -- what goes in and comes out


def test_bad_pairs_stay_in_their_place_without_checks():
    P, Q, signs = random_problems(7, 6)
    clean = solve_plane(P, Q, signs)
    P[1, 0, 0], Q[2, 1, 2], P[3, 1, 1], Q[4, 0, 0] = np.nan, Q[2, 1, 2] + 1, np.inf, np.nan
    dirty = solve_plane(P, Q, signs, theta=np.array([0.0] * 5 + [np.nan]), check=False)
    np.testing.assert_array_equal(dirty.V[1:], np.broadcast_to(IDENTITY, (5, 2, 2)))
    assert np.isnan(dirty.decrease).tolist() == [False] + [True] * 5
    assert not dirty.unbounded.any()
    np.testing.assert_array_equal(dirty.V[0], clean.V[0])
    G = np.ones((3, 2, 4))
    G[1, 0, 0] = np.nan
    A = np.stack([IDENTITY, IDENTITY, np.array([[1.0, 2.0], [0.0, 1.0]])])
    found = solve_rows(G, np.ones((3, 2, 4)), A, signs[:3], check=False)
    assert np.isnan(found.decrease).tolist() == [False, True, True]


@pytest.mark.parametrize("shape", [(), (4, 4)])
def test_nothing_is_read_back_from_the_device(shape):
    """Meta tensors hold no data: any .item(), bool() or .cpu() on the way would raise."""
    P = torch.empty((5, 2, 2), dtype=torch.float64, device="meta")
    Q = torch.empty((5, *shape), dtype=torch.float64, device="meta")
    signs = torch.empty((5, 2), dtype=torch.int64, device="meta")
    step = solve_plane(P, Q, signs, theta=0.1, check=False)
    assert step.V.shape == (5, 2, 2)
    assert step.V.device.type == "meta"


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0,)])
def test_shapes_and_kinds(shape):
    P = np.random.default_rng(8).standard_normal((*shape, 2, 2))
    for Q in (np.broadcast_to(np.eye(4), (*shape, 4, 4)).copy(), np.ones(shape), 1):
        step = solve_plane(P, Q, np.ones((*shape, 2)), theta=np.float64(0.1))
        assert step.V.shape == (*shape, 2, 2)
        assert step.decrease.shape == step.unbounded.shape == shape
        assert isinstance(step.V, np.ndarray)
    rows = np.ones((*shape, 2, 3))
    found = solve_rows(rows, rows, np.full(shape, 2.0), np.ones((*shape, 2)))
    again = solve_rows(*(torch.from_numpy(rows) for _ in range(2)), 2.0, np.ones((*shape, 2)))
    np.testing.assert_array_equal(found.V, again.V.numpy())
    tracked = torch.from_numpy(P).requires_grad_()
    assert not solve_plane(tracked, 1.0, np.ones((*shape, 2))).V.requires_grad


@pytest.mark.parametrize("general", [False, True])
@pytest.mark.parametrize("components", ["all", "identity"])
def test_float32(general, components):
    P, Q, signs = random_problems(9, 3000)
    Q = Q if general else np.random.default_rng(2).uniform(0.1, 10, 3000)
    double = solve_plane(P, Q, signs, components=components)
    single = solve_plane(P.astype(np.float32), Q.astype(np.float32), signs, components=components)
    assert single.V.dtype == single.decrease.dtype == np.float32
    full_q = Q if general else Q[:, None, None] * np.eye(4)
    size = np.abs(double.V).max(axis=(1, 2)) ** 2
    loss = surrogate(single.V, P, full_q) - surrogate(double.V, P, full_q)
    assert (loss <= 64 * 2.0**-24 * norms(P, full_q) * size).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(Z=np.zeros((3, 3, 4))), r"Z must have shape \(..., 2, m\)"),
        (dict(G=np.zeros((3, 2, 5))), "G must have the shape, dtype and device of Z"),
        (dict(A=np.tile([[1.0, 2.0], [0.0, 1.0]], (3, 1, 1))), "A must be symmetric"),
        (dict(D=np.zeros((3, 3))), r"D must have shape \(4, 4\)"),
        (dict(G=np.full((3, 2, 4), np.nan)), "G must be finite"),
        (dict(theta=np.zeros(2)), "theta must be a number or have shape"),
    ],
)
def test_bad_input(change, message):
    rows = np.ones((3, 2, 4))
    arguments = dict(G=rows, Z=rows, A=1.0, signs=np.ones((3, 2))) | change
    with pytest.raises(ValueError, match=message):
        solve_rows(**arguments)


# -- edges, with the answers written down


def isotropic(P, kappa, signs, *, theta=0.0, components="all"):
    """Q = kappa I, as a number, as a matrix and by numba."""
    P, signs = np.asarray(P, dtype=float), np.asarray(signs)
    options = {"theta": theta, "components": components}
    yield solve_plane(P, kappa, signs, **options)
    yield solve_plane(P, kappa * np.eye(4), signs, **options)
    found = step_by_numba(P[None], IDENTITY[None], kappa * IDENTITY[None], signs[None], **options)
    yield tuple(part[0] for part in found)


@pytest.mark.parametrize(
    ("P", "kappa", "signs", "components", "V", "unbounded"),
    [
        # nothing to gain: the identity
        ([[0, 0], [0, 0]], 0.0, [1, -1], "all", IDENTITY, False),
        ([[0, 0], [0, 0]], 0.0, [1, 1], "all", IDENTITY, False),
        ([[0, 0], [0, 0]], 1.0, [1, -1], "all", IDENTITY, False),
        ([[0, 0], [0, 0]], 1.0, [-1, -1], "all", IDENTITY, False),
        # linear on a hyperbola: bounded below only inside the cone, on one branch
        ([[1, 0], [0, 1]], 0.0, [1, -1], "all", IDENTITY, True),
        ([[5, -3], [-3, 5]], 0.0, [1, -1], "identity", [[1.25, 0.75], [0.75, 1.25]], False),
        ([[3, 5], [5, 3]], 0.0, [1, -1], "identity", IDENTITY, True),
        ([[1, 1], [1, 1]], 0.0, [1, -1], "identity", IDENTITY, True),  # towards 0, never there
        # negative curvature: unbounded on the hyperbola, harmless on the circle
        ([[0, 1], [0, 0]], -1.0, [1, -1], "all", IDENTITY, True),
        ([[0, 1], [0, 0]], -1.0, [1, -1], "identity", IDENTITY, True),
        ([[-3, 4], [-4, -3]], 0.0, [1, 1], "all", [[0.6, -0.8], [0.8, 0.6]], False),
        ([[-3, 4], [4, 3]], 0.0, [1, 1], "all", [[0.6, -0.8], [-0.8, -0.6]], False),  # a reflection
        ([[-3, 4], [4, 3]], 0.0, [1, 1], "identity", IDENTITY, False),
        # -I and diag(-1, 1) lower the linear form alike: the tie goes to the proper one
        ([[1, 0], [0, 0]], 0.0, [1, 1], "all", -IDENTITY, False),
        # coefficients of 1e300
        ([[-2, -1], [-1, -2]], 1e300, [1, -1], "all", IDENTITY, False),
        ([[-2e300, 0], [0, -2e300]], 1e300, [1, 1], "all", IDENTITY, False),
        # a turn over: V = -I is best
        ([[9, 0], [0, 9]], 1.0, [1, 1], "all", -IDENTITY, False),
        # curvature that is negligible beside a bounded linear part
        ([[5e6, -3e6], [-3e6, 5e6]], 1e-305, OPPOSITE, "identity", [[1.25, 0.75], [0.75, 1.25]], 0),
        ([[5e6, -3e6], [-3e6, 5e6]], 1e-40, OPPOSITE, "identity", [[1.25, 0.75], [0.75, 1.25]], 0),
    ],
)
def test_edges(P, kappa, signs, components, V, unbounded):
    for found in isotropic(P, kappa, signs, components=components):
        assert bool(found[2]) == unbounded
        np.testing.assert_allclose(found[0], V, rtol=1e-14, atol=1e-15)
        if unbounded or np.array_equal(found[0], IDENTITY):
            assert found[1] == 0


def test_a_flip_that_is_unbounded_beside_a_bounded_boost():
    f = np.array([-1.0, 1, -1, 1])  # twice the outer null direction of the flip
    P, Q = np.array([[0.0, 1], [0, 0]]), np.eye(4) - 2 * np.outer(f, f) / 4
    V, decrease, unbounded = solve_plane(P, Q, OPPOSITE)
    assert unbounded
    np.testing.assert_array_equal(V, IDENTITY)
    assert decrease == 0
    assert not solve_plane(P, Q, OPPOSITE, components="identity").unbounded


def test_overflow_is_reported():
    huge = solve_plane(5e307 * IDENTITY, 0.0, np.array([1, 1]))
    assert huge.unbounded
    assert huge.decrease == 0


# -- null forms that rounding blurs: docs/background/plane.md


def test_null_form_negative_by_rounding_counts_as_zero():
    """Q = a n- n-^T with its diagonal an ulp low: C computes to less than 0,
    and nothing pulls outwards."""
    n_minus = np.array([1.0, -1, -1, 1]) / 2
    zero, seen = torch.tensor(0.0), 0
    for a in np.random.default_rng(13).uniform(0.1, 1.0, 50):
        Q = a * np.outer(n_minus, n_minus)
        Q[np.diag_indices(4)] = np.nextafter(np.diagonal(Q), 0)
        seen += null_forms(torch.from_numpy(Q), zero, zero).boost_out.item() < 0
        inwards = np.array([[1.0, -1], [-1, 1]]) / 2
        # B > 0: falls towards a value never attained
        assert solve_plane(2 * a * inwards, Q, OPPOSITE, components="identity").unbounded
        V, _, unbounded = solve_plane(-2 * a * inwards, Q, OPPOSITE, components="identity")
        assert not unbounded
        best = best_plane(-2 * a * inwards[None], Q[None], [True], "identity")[0]
        assert surrogate(V, -2 * a * inwards, Q) - best <= 1e-12 * np.abs(Q).max()
    assert seen >= 25


@pytest.mark.parametrize("d", [7e-15, 1e-15, 1e-16])
@pytest.mark.parametrize("components", ["all", "identity"])
def test_a_nearly_singular_q_still_steps(d, components):
    """The null form is positive by less than rounding: how far to go is unknown,
    that going is right is not."""
    Q = np.kron(np.array([[1.0, 1.0 - d], [1.0 - d, 1.0]]), np.eye(2))
    found = solve_plane(-np.eye(2), Q, OPPOSITE, components=components)
    assert not found.unbounded
    assert found.decrease > 997
    with mp.workdps(60):  # the decrease is no more than what the step brings
        step = [mp.mpf(float(x)) - y for x, y in zip(found.V.T.ravel(), (1, 0, 0, 1), strict=True)]
        bent = sum(step[i] * mp.mpf(Q[i, j]) * step[j] for i in range(4) for j in range(4)) / 2
        assert found.decrease <= (step[0] + step[3] - bent) * (1 + 1e-12)


@pytest.mark.parametrize("gap", [1e-2, 1e-6, 1e-10, 1e-14])
@pytest.mark.parametrize("seed", range(5))
def test_rows_close_to_the_light_cone(gap, seed):
    """z_j = z_i up to ``gap``: one null form is gap^2 of the other,
    and is lost to Z Z^T below 1e-8.

    With no linear term in V, P = Q vec(I), the surrogate is C u^2 + D / u^2: u^4 = D / C and the
    decrease (sqrt C - sqrt D)^2 are known from the rows, which mpmath adds up and subtracts
    exactly.
    """
    rng = np.random.default_rng(seed)
    z = np.round(rng.standard_normal(6) * 2**20) / 2**20
    Z = np.stack([z, z + gap * rng.standard_normal(6)])
    a, b = 3.0, 0.5  # A = [[a, b], [b, a]], whose products with Z are exact enough: see the bound
    A = np.array([[a, b], [b, a]])
    found = solve_rows(A @ Z, Z, A, OPPOSITE, components="identity")
    assert not found.unbounded
    with mp.workdps(80):
        rows = [[mp.mpf(x) for x in row] for row in Z.tolist()]
        out = sum((x + y) ** 2 for x, y in zip(*rows, strict=True)) * (2 * a + 2 * b) / 8
        into = sum((x - y) ** 2 for x, y in zip(*rows, strict=True)) * (2 * a - 2 * b) / 8
        gain = (mp.sqrt(out) - mp.sqrt(into)) ** 2
        u = mp.root(into / out, 4)
        # the rounding of A Z, u |z|, leaves a linear term of u |z| |z_i - z_j|: it moves u by a
        # part of u / gap
        slack = 64 * UNIT * (1 + 1 / gap)
        # the gain is added up from terms 1 / u times as large
        assert abs(found.decrease / gain - 1) < slack**2 + 64 * UNIT / u
        assert abs((found.V[1, 1] - found.V[1, 0]) * u - 1) < slack + UNIT / u**2
