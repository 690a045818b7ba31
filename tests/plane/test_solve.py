"""solve_plane: global over all families, exact on quadratics, safe at the edges;
batched and compiled agree."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from jorth import Signature
from jorth.plane import solve_plane
from jorth.plane._numba import solve_pair
from jorth.plane.families import null_forms
from tests.plane.reference import best_plane, family, mpmath_lightcone, solve_pairs, surrogate

UNIT = 2.0**-53
IDENTITY = np.eye(2)


def random_problems(seed, size, indefinite=False):
    """P, Q, signs: Q positive definite,
    or symmetric with light-cone forms made positive by a shift."""
    rng = np.random.default_rng(seed)
    P = rng.standard_normal((size, 2, 2)) * 10.0 ** rng.uniform(-2, 2, (size, 1, 1))
    M = rng.standard_normal((size, 4, 4))
    Q = (
        M + M.swapaxes(1, 2) + 12 * np.eye(4)
        if indefinite
        else M @ M.swapaxes(1, 2) + 0.1 * np.eye(4)
    )
    return P, (Q + Q.swapaxes(1, 2)) / 2, rng.choice([-1, 1], (size, 2))


def norms(P, Q):
    return np.linalg.norm(P, axis=(1, 2)) + np.linalg.norm(Q, axis=(1, 2))


def compiled(P, Q, signs, theta, components):
    return solve_pairs(P, Q, signs[:, 0] != signs[:, 1], theta, components == "all")


@pytest.mark.parametrize("components", ["all", "identity"])
@pytest.mark.parametrize("indefinite", [False, True])
@pytest.mark.parametrize("theta", [0.0, 0.7])
def test_global_minimum_in_a_mixed_batch(components, indefinite, theta):
    P, Q, signs = random_problems(1, 50, indefinite)
    opposite = signs[:, 0] != signs[:, 1]
    best = best_plane(P, Q + theta * np.eye(4), opposite, components)
    batched = solve_plane(P, Q, signs, theta=theta, components=components)
    for V, decrease, unbounded in (batched, compiled(P, Q, signs, theta, components)):
        assert not unbounded.any()
        excess = surrogate(V, P, Q + theta * np.eye(4)) - best
        assert (excess <= 1e-12 * norms(P, Q)).all()
        assert (decrease >= 0).all()
        size = np.abs(V).max(axis=(1, 2)) ** 2
        assert (
            np.abs(decrease + surrogate(V, P, Q + theta * np.eye(4))) <= 1e-14 * norms(P, Q) * size
        ).all()
        J = signs[:, :, None] * IDENTITY
        violation = np.abs(V.swapaxes(1, 2) @ J @ V - J).max(axis=(1, 2))
        assert (violation <= 100 * UNIT * size).all()  # measured: 10 u


@pytest.mark.parametrize("components", ["all", "identity"])
def test_batched_and_compiled_agree_to_rounding(components):
    P, Q, signs = random_problems(2, 20_000)
    batched = solve_plane(P, Q, signs, components=components)
    V, decrease, unbounded = compiled(P, Q, signs, 0.0, components)
    # V is as well determined as the minimum is sharp; Q has condition up to 1e3
    relative = np.abs(V - batched.V).max(axis=(1, 2)) / np.abs(V).max(axis=(1, 2))
    assert relative.max() <= 1e3 * 8 * UNIT
    size = np.abs(V).max(axis=(1, 2)) ** 2
    assert (np.abs(decrease - batched.decrease) <= 300 * UNIT * norms(P, Q) * size).all()
    np.testing.assert_array_equal(unbounded, batched.unbounded)


@pytest.mark.parametrize("components", ["all", "identity"])
def test_scalar_q_equals_a_multiple_of_the_identity(components):
    P, _, signs = random_problems(3, 5000)
    sigma = np.random.default_rng(0).uniform(0.1, 10, 5000)
    scalar = solve_plane(P, sigma, signs, theta=0.3, components=components)
    general = solve_plane(
        P, sigma[:, None, None] * np.eye(4), signs, theta=0.3, components=components
    )
    relative = np.abs(scalar.V - general.V).max(axis=(1, 2)) / np.abs(general.V).max(axis=(1, 2))
    # inside the identity component A may cancel: P of 1e2 against a pull of 1e-2 leaves 1e-14
    assert relative.max() <= 1e-13
    np.testing.assert_allclose(scalar.decrease, general.decrease, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("components", ["all", "identity"])
def test_scalar_q_against_the_grid(components):
    P, _, signs = random_problems(4, 60)
    sigma = np.random.default_rng(1).uniform(0.1, 3, 60)
    Q = sigma[:, None, None] * np.eye(4)
    best = best_plane(P, Q, signs[:, 0] != signs[:, 1], components)
    V = solve_plane(P, sigma, signs, components=components).V
    assert (surrogate(V, P, Q) - best <= 1e-12 * norms(P, Q)).all()


def test_identity_component_means_rotations_and_boosts():
    P, Q, signs = random_problems(5, 2000)
    everywhere = solve_plane(P, Q, signs)
    inside = solve_plane(P, Q, signs, components="identity")
    assert (np.linalg.det(inside.V) > 0).all()
    opposite = signs[:, 0] != signs[:, 1]
    assert (inside.V[opposite, 0, 0] >= 1 - 4 * UNIT).all()
    assert (np.linalg.det(everywhere.V) < 0).any()
    assert (everywhere.V[opposite, 0, 0] < 0).any()
    assert (everywhere.decrease >= inside.decrease * (1 - 1e-12)).all()


@given(st.integers(0, 2**32), st.sampled_from([1, -1]), st.floats(-14, -2))
def test_small_steps_keep_their_relative_accuracy(seed, sign, exponent):
    """With a slope of 1e-9 and Q of order one,
    the step off the diagonal is right to rounding, not to 1e-7."""
    rng = np.random.default_rng(seed)
    M = rng.standard_normal((4, 4))
    Q = M @ M.T + np.eye(4)
    P = rng.standard_normal((2, 2)) * 10.0**exponent
    generator = np.array(
        [0, 1.0, -sign, 0]
    )  # vec of [[0, -+1], [1, 0]]: the direction of rotations or boosts
    signs = np.array([1, sign])
    slope = generator @ P.T.reshape(4)
    curvature = generator @ Q @ generator
    first_order = -slope / curvature
    for V in (
        solve_plane(P, Q, signs, components="identity").V,
        np.array(solve_pair(P, Q, sign == -1, 0.0, False)[:4]).reshape(2, 2),
    ):
        # second order of the step:
        # |P| / |slope| enters through the trace of P, cubic terms through Q
        bound = (
            20 * (np.abs(P).max() + np.abs(first_order) * np.abs(Q).max()) / curvature + 50 * UNIT
        )
        assert abs(V[1, 0] - first_order) <= bound * abs(first_order)


def test_small_steps_against_extended_precision():
    """The boost of the scalar surrogate at a slope of 1e-9:
    s (4 k - (2 k - tr P)/c) = -(P12 + P21), to rounding."""
    P = np.array([[[0.3, 1e-9], [2e-9, 0.1]]])
    V = solve_plane(P, np.array([0.8]), np.array([[1, -1]])).V[0]
    expected = np.longdouble(0)
    for _ in range(50):
        c = np.sqrt(1 + expected**2)
        expected = -(np.longdouble(P[0, 0, 1]) + P[0, 1, 0]) / (
            4 * np.longdouble(0.8) - (1.6 - np.longdouble(0.4)) / c
        )
    assert abs(V[0, 1] / expected - 1) <= 40 * UNIT  # measured: 4 u


@pytest.mark.parametrize("components", ["all", "identity"])
def test_boosts_of_any_size_against_mpmath(components):
    """u over 1e-17 .. 1e17:
    Q = diag-like with null forms C, D of order one and a pull of 1e-17 .. 1e17."""
    rng = np.random.default_rng(11)
    for exponent in np.linspace(-17, 17, 18):
        u = 10.0**exponent * rng.uniform(1, 2)
        # F = A u + B/u + (u^2 + 1/u^2) / 2 with its minimum at u: the outer or the inner term pulls
        pull = -u if u > 1 else -1 / u
        N = np.array([[1, 1], [1, 1]]) / 2 if u > 1 else np.array([[1, -1], [-1, 1]]) / 2
        P = pull * N
        Q, signs = np.eye(4), np.array([1, -1])
        A, B = (
            np.longdouble((N_ * P).sum()) - 1
            for N_ in (np.array([[0.5, 0.5]] * 2), np.array([[0.5, -0.5], [-0.5, 0.5]]))
        )
        reference, _, _ = mpmath_lightcone(float(A), float(B), 0.5, 0.5, positive=True, digits=80)
        for V, decrease, unbounded in (
            solve_plane(P, Q, signs, components=components),
            solve_plane(P, 1.0, signs, components=components),
            _unpack(solve_pair(P, Q, True, 0.0, components == "all")),
        ):
            assert not unbounded
            found = V[0, 0] + V[0, 1] if u > 1 else 1 / (V[0, 0] - V[0, 1])
            # A = pull - 1 is rounded before it is solved: one rounding of the larger
            assert abs(found / float(reference) - 1) <= 1e-14
            assert decrease > 0


def _unpack(answer):
    return np.array(answer[:4]).reshape(2, 2), answer[4], answer[5]


@pytest.mark.parametrize("signs", [[1, 1], [1, -1]])
@pytest.mark.parametrize("kind", ["one column", "rank-one A"])
def test_nothing_moves_at_a_stationary_point_with_a_singular_q(signs, kind):
    """P = 0 and Q positive semidefinite: V = I is a minimiser,
    and rounding must not find a better one far away."""
    rng = np.random.default_rng(12)
    z = rng.standard_normal((5000, 2, 1))
    rank_one = z @ z.swapaxes(1, 2)
    left, right = (
        (rank_one, np.eye(2)[None]) if kind == "one column" else (np.eye(2)[None], rank_one)
    )
    Q = (
        np.einsum("kac,lbd->kabcd", left, right)
        if len(left) > 1
        else np.einsum("lac,kbd->kabcd", left, right)
    )
    Q = np.ascontiguousarray(Q.reshape(-1, 4, 4))
    P, signs = np.zeros((5000, 2, 2)), np.tile(signs, (5000, 1))
    for V in (solve_plane(P, Q, signs).V, compiled(P, Q, signs, 0.0, "all")[0]):
        np.testing.assert_array_equal(V, np.broadcast_to(IDENTITY, V.shape))


def test_no_gradient_flows():
    P = torch.randn(3, 2, 2, dtype=torch.float64, requires_grad=True)
    step = solve_plane(P, torch.ones(3, dtype=torch.float64, requires_grad=True), np.ones((3, 2)))
    assert not step.V.requires_grad


def test_numpy_scalars_and_read_only_signs():
    P = np.zeros((2, 2), dtype=np.float32)
    sig = Signature(1, 1)
    assert solve_plane(P, np.float32(1), sig.signs, theta=np.float64(0.1)).V.dtype == np.float32
    assert solve_plane(P, np.int64(1), sig.signs).decrease == 0


def test_exact_on_a_quadratic():
    """With Q = (Z D Z^T) (x) A_BB the surrogate equals f along the step."""
    rng = np.random.default_rng(6)
    n, B = 6, [1, 4]
    M, N = rng.standard_normal((2, n, n))
    A, D = M @ M.T, N @ N.T
    C, X = rng.standard_normal((2, n, n))

    def f(X):
        return 0.5 * np.trace(X.T @ A @ X @ D) + (C * X).sum()

    G = A @ X @ D + C
    P = (G @ X.T)[np.ix_(B, B)]
    Q = np.kron(X[B] @ D @ X[B].T, A[np.ix_(B, B)])
    for signs in ([1, 1], [1, -1]):
        step = solve_plane(P, Q, np.array(signs))
        Y = X.copy()
        Y[B] = step.V @ X[B]
        assert f(X) - f(Y) == pytest.approx(step.decrease, rel=1e-11)
        assert step.decrease > 0


def test_bad_pairs_stay_in_their_place_without_checks():
    P, Q, signs = random_problems(7, 6)
    clean = solve_plane(P, Q, signs)
    P[1, 0, 0], Q[2, 1, 2], P[3, 1, 1] = np.nan, Q[2, 1, 2] + 1, np.inf
    Q[4, 0, 0] = np.nan
    theta = np.zeros(6)
    theta[5] = np.nan
    dirty = solve_plane(P, Q, signs, theta=theta, check=False)
    for bad in (1, 2, 3, 4, 5):
        np.testing.assert_array_equal(dirty.V[bad], IDENTITY)
        assert np.isnan(dirty.decrease[bad])
        assert not dirty.unbounded[bad]
    for good in (0,):
        np.testing.assert_array_equal(dirty.V[good], clean.V[good])
    assert np.isnan(solve_pair(P[1], Q[1], bool(signs[1, 0] != signs[1, 1]), 0.0, True)[4])


@pytest.mark.parametrize("general", [False, True])
def test_nothing_is_read_back_from_the_device(general):
    """Meta tensors hold no data: any .item(), bool() or .cpu() on the way would raise."""
    P = torch.empty((5, 2, 2), dtype=torch.float64, device="meta")
    Q = torch.empty((5, 4, 4) if general else (5,), dtype=torch.float64, device="meta")
    signs = torch.empty((5, 2), dtype=torch.int64, device="meta")
    step = solve_plane(P, Q, signs, theta=0.1, check=False)
    assert step.V.shape == (5, 2, 2)
    assert step.V.device.type == "meta"


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0,)])
@pytest.mark.parametrize("general", [False, True])
def test_shapes(shape, general):
    P = np.random.default_rng(8).standard_normal((*shape, 2, 2))
    Q = np.broadcast_to(np.eye(4), (*shape, 4, 4)).copy() if general else np.ones(shape)
    step = solve_plane(P, Q, np.ones((*shape, 2)))
    assert step.V.shape == (*shape, 2, 2)
    assert step.decrease.shape == step.unbounded.shape == shape
    assert isinstance(step.V, np.ndarray)


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


def paper_coefficients(case, Q):
    """The coefficient d of the paper's appendix, cases (b) and (c),
    as printed (1-based indices)."""
    q = np.pad(Q, ((1, 0), (1, 0)))
    if case == "b":
        return 0.5 * (q[2, 1] - q[3, 1] + q[1, 2] - q[4, 2] - q[1, 3] + q[4, 3] - q[2, 4] + q[3, 4])
    return 0.5 * (-q[2, 1] + q[3, 1] - q[1, 2] + q[4, 2] + q[1, 3] - q[4, 3] + q[2, 4] - q[3, 4])


@pytest.mark.parametrize(
    ("case", "x_direction", "y_direction"),
    [("b", [[-1, 0], [0, 1]], [[0, -1], [1, 0]]), ("c", [[1, 0], [0, -1]], [[0, -1], [1, 0]])],
)
def test_the_papers_cross_coefficient_has_the_wrong_sign(case, x_direction, y_direction):
    """docs/background/paper.md: d must be x^T Q y for V = cosh x + sinh y;
    as printed it is its negative. Ours is right."""
    M = np.random.default_rng(10).standard_normal((4, 4))
    Q = M @ M.T
    x, y = (
        np.array(direction, dtype=float).T.reshape(4) for direction in (x_direction, y_direction)
    )
    assert paper_coefficients(case, Q) == pytest.approx(-(x @ Q @ y))
    # our light-cone coefficients C - D of the flip carry the cross term:
    # 8 (C - D) / 4 = x^T Q y up to the branch
    null = null_forms(torch.from_numpy(Q), torch.tensor(0.0), torch.tensor(0.0))
    cross = 2 * (null.flip_out - null.flip_in).item()
    flip_x = np.array([[-1.0, 0], [0, 1]]).T.reshape(4)
    assert cross == pytest.approx(flip_x @ Q @ y)


def test_two_families_cover_what_the_paper_lists_as_four():
    """docs/background/paper.md: case (a) is the first family with mu negated; (c) is (b) negated.
    Two families cover all."""
    mu = np.linspace(-2, 2, 9)
    x, y = np.cosh(mu), np.sinh(mu)
    first, case_b = family("boost", x, y), family("flip", x, y)
    case_a = np.stack([x, -y, -y, x], axis=-1).reshape(-1, 2, 2)
    case_c = np.stack([x, -y, y, -x], axis=-1).reshape(-1, 2, 2)
    np.testing.assert_array_equal(case_a, first[::-1])
    np.testing.assert_array_equal(case_c, -case_b[::-1])
    # without the negative branch of Lemma 2.3 the four never reach -boost:
    # on a problem where V = -I is best they lose; with it, as printed, they do not
    P, Q = np.array([[9.0, 0], [0, 9]]), np.eye(4)
    best_printed = min(surrogate(V, P, Q).min() for V in (first, case_a, case_b, case_c))
    step = solve_plane(P, Q, np.array([1, -1]))
    assert -step.decrease < best_printed - 1
    assert step.V[0, 0] < 0
    assert step.V[1, 1] < 0
    assert surrogate(-first, P, Q).min() < best_printed - 1
