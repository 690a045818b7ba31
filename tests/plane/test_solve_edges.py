"""solve_plane at the edges, with the answers written down;
batched, scalar and compiled paths alike."""

from fractions import Fraction

import numpy as np
import pytest
import torch

from jorth.plane import solve_plane
from jorth.plane._numba import solve_pair
from jorth.plane.families import null_forms
from tests.plane.reference import best_plane, surrogate
from tests.plane.test_solve import IDENTITY, _unpack


def scalar_and_general(P, kappa, signs, **options):
    """Both code paths and the compiled one, on one problem with Q = kappa I."""
    P, signs = np.asarray(P, dtype=float), np.asarray(signs)
    yield solve_plane(P, kappa, signs, **options)
    yield solve_plane(P, kappa * np.eye(4), signs, **options)
    theta = options.get("theta", 0.0)
    everywhere = options.get("components", "all") == "all"
    *V, decrease, unbounded = solve_pair(
        P, kappa * np.eye(4), bool(signs[0] != signs[1]), theta, everywhere
    )
    yield np.array(V).reshape(2, 2), decrease, unbounded


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
        (
            [[1, 1], [1, 1]],
            0.0,
            [1, -1],
            "identity",
            IDENTITY,
            True,
        ),  # falls towards 0, never there
        # negative curvature: unbounded on the hyperbola, harmless on the circle
        ([[0, 1], [0, 0]], -1.0, [1, -1], "all", IDENTITY, True),
        ([[0, 1], [0, 0]], -1.0, [1, -1], "identity", IDENTITY, True),
        ([[-3, 4], [-4, -3]], 0.0, [1, 1], "all", [[0.6, -0.8], [0.8, 0.6]], False),
        ([[-3, 4], [4, 3]], 0.0, [1, 1], "all", [[0.6, -0.8], [-0.8, -0.6]], False),  # a reflection
        ([[-3, 4], [4, 3]], 0.0, [1, 1], "identity", IDENTITY, False),
        # coefficients of 1e300
        ([[-2, -1], [-1, -2]], 1e300, [1, -1], "all", IDENTITY, False),
        ([[-2e300, 0], [0, -2e300]], 1e300, [1, 1], "all", IDENTITY, False),
        # a turn over: V = -I is best
        ([[9, 0], [0, 9]], 1.0, [1, 1], "all", -IDENTITY, False),
    ],
)
def test_edges(P, kappa, signs, components, V, unbounded):
    for found in scalar_and_general(P, kappa, signs, components=components):
        assert bool(found[2]) == unbounded
        np.testing.assert_allclose(found[0], V, rtol=1e-14, atol=1e-15)
        if unbounded or np.array_equal(found[0], IDENTITY):
            assert found[1] == 0


def test_theta_bounds_a_problem_that_is_unbounded_without_it():
    P, Q = np.array([[0.0, 1], [1, 0]]), np.zeros((4, 4))
    assert solve_plane(P, Q, np.array([1, -1])).unbounded
    step = solve_plane(P, Q, np.array([1, -1]), theta=0.5)
    assert not step.unbounded
    assert step.decrease > 0


def test_null_form_negative_by_rounding_counts_as_zero():
    """Q = a n- n-^T with its diagonal an ulp low: C computes to less than 0,
    and nothing pulls outwards."""
    n_minus = np.array([1.0, -1, -1, 1]) / 2
    seen = 0
    for a in np.random.default_rng(13).uniform(0.1, 1.0, 50):
        Q = a * np.outer(n_minus, n_minus)
        Q[np.diag_indices(4)] = np.nextafter(np.diagonal(Q), 0)
        seen += (
            null_forms(torch.from_numpy(Q), torch.tensor(0.0), torch.tensor(0.0)).boost_out.item()
            < 0
        )
        inwards = np.array([[1.0, -1], [-1, 1]]) / 2
        for pull, no_minimum in (
            (2 * a, True),
            (-2 * a, False),
        ):  # B > 0: falls towards a value never attained
            P = pull * inwards
            for V, _, unbounded in (
                solve_plane(P, Q, np.array([1, -1]), components="identity"),
                _unpack(solve_pair(P, Q, True, 0.0, False)),
            ):
                assert bool(unbounded) == no_minimum
                if not no_minimum:
                    best = best_plane(P[None], Q[None], [True], "identity")[0]
                    assert surrogate(V, P, Q) - best <= 1e-12 * np.abs(Q).max()
    assert seen >= 25


def test_a_flip_that_is_unbounded_beside_a_bounded_boost():
    f = np.array([-1.0, 1, -1, 1])  # twice the outer null direction of the flip
    P, Q = np.array([[0.0, 1], [0, 0]]), np.eye(4) - 2 * np.outer(f, f) / 4
    for V, decrease, unbounded in (
        solve_plane(P, Q, np.array([1, -1])),
        _unpack(solve_pair(P, Q, True, 0.0, True)),
    ):
        assert unbounded
        np.testing.assert_array_equal(V, IDENTITY)
        assert decrease == 0
    assert not solve_plane(P, Q, np.array([1, -1]), components="identity").unbounded


def test_ties_between_families_go_to_the_proper_one():
    """P = diag(1, 0): -I and diag(-1, 1) lower the linear form alike."""
    for V, decrease, _ in scalar_and_general([[1, 0], [0, 0]], 0.0, [1, 1]):
        np.testing.assert_array_equal(V, -IDENTITY)
        assert decrease == 2


def test_decrease_of_small_steps_is_accurate():
    """Slope k, curvature 4 kappa - (2 kappa - tr P): the decrease is k^2 / 2 curvature,
    far below the rounding of P."""
    P = np.array([[0.3, 1e-9], [2e-9, 0.1]])
    for _, decrease, _ in scalar_and_general(P, 0.8, [1, -1], components="identity"):
        assert decrease == pytest.approx((3e-9) ** 2 / (2 * (3.2 - 1.2)), rel=1e-12)


def test_overflow_is_reported():
    huge = solve_plane(5e307 * IDENTITY, 0.0, np.array([1, 1]))
    assert huge.unbounded
    assert huge.decrease == 0


def test_negligible_curvature_beside_a_bounded_linear_part():
    P = 1e6 * np.array([[5.0, -3], [-3, 5]])
    for kappa in (0.0, 1e-305, 1e-40):
        for V, _, unbounded in scalar_and_general(P, kappa, [1, -1], components="identity"):
            assert not unbounded
            np.testing.assert_allclose(V, [[1.25, 0.75], [0.75, 1.25]], rtol=1e-14)


# -- a null form of a 4x4 Q counts as zero if it is negative by no more than 2 eps ||Q||:
# docs/background/plane.md


EPS = 2.0**-52
OUT = np.array([1.0, 1.0, 1.0, 1.0]) / 2  # vec of N+
IN = np.array([1.0, -1.0, -1.0, 1.0]) / 2  # vec of N-


@pytest.mark.parametrize("down", [0, 1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 40])
def test_a_null_form_that_is_negative_by_rounding_counts_as_zero(down):
    Q = 4 * np.outer(IN, IN) - down * EPS * np.outer(OUT, OUT)
    C = sum(Fraction(entry) for entry in Q.ravel()) / 8  # n+^T Q n+ / 2, of Q as it is rounded
    level = C / Fraction(EPS * np.abs(Q).max())
    # A = <P, N+> = 1 > 0: bounded over boosts, u > 0, where C counts as zero;
    # falling like C u^2 where it does not
    found = solve_plane(np.eye(2), Q, np.array([1, -1]), components="identity")
    assert bool(found.unbounded) is bool(level < -2)
