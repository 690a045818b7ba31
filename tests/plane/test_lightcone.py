"""min A u + B/u + C u^2 + D/u^2: against companion eigenvalues, mpmath,
and answers written down."""

import math

import numpy as np
import pytest

from jorth.plane._numba import lightcone as compiled_lightcone
from tests.plane.reference import (
    best_lightcone,
    lightcone_scale,
    lightcone_value,
    minimize_lightcone,
    mpmath_lightcone,
)


def log_uniform(rng, low, high, size):
    return 10.0 ** rng.uniform(low, high, size)


def signed(rng, low, high, size):
    return rng.choice([-1.0, 1.0], size) * log_uniform(rng, low, high, size)


def wide_cases(seed, size, reach=150, ratio=200):
    """Coefficients over 1e-reach .. 1e reach with D/C over 1e-ratio .. 1e ratio."""
    rng = np.random.default_rng(seed)
    log_c = rng.uniform(-reach, reach, size)
    log_d = np.clip(log_c + rng.uniform(-ratio, ratio, size), -reach, reach)
    return (
        signed(rng, -reach, reach, size),
        signed(rng, -reach, reach, size),
        10.0**log_c,
        10.0**log_d,
    )


def balanced_cases(seed, size, spread=3):
    """al and be of order one to 1e3, so that several roots and both signs compete."""
    rng = np.random.default_rng(seed)
    C, D = log_uniform(rng, -150, 150, size), log_uniform(rng, -150, 150, size)
    return (
        *_denormalised(
            signed(rng, -spread, spread, size), signed(rng, -spread, spread, size), C, D
        ),
        C,
        D,
    )


def near_double_root(seed, size):
    """Within 1e-9 of the curve al = -3 r - r^-3, be = -r^3 - 3/r."""
    rng = np.random.default_rng(seed)
    r = log_uniform(rng, -3, 3, size)
    r[: size // 4] = 1 + signed(rng, -9, -1, size // 4)  # around the cusp
    near = 1 + 1e-9 * rng.uniform(-1, 1, (2, size))
    C, D = log_uniform(rng, -50, 50, size), log_uniform(rng, -50, 50, size)
    sign = rng.choice([-1.0, 1.0], size)
    al, be = sign * (-3 * r - r**-3.0) * near[0], sign * (-(r**3) - 3 / r) * near[1]
    return (*_denormalised(al, be, C, D), C, D)


def _denormalised(al, be, C, D):
    r, product = np.sqrt(np.sqrt(D) / np.sqrt(C)), np.sqrt(C) * np.sqrt(D)
    return al * (product / r), be * (product * r)


def assert_never_above(cases, u, positive=False):
    excess = lightcone_value(*cases, u) - best_lightcone(*cases, positive=positive)
    assert (excess <= 1e-13 * lightcone_scale(*cases, u)).all()


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize(
    "cases",
    [(wide_cases, 1), (balanced_cases, 2), (near_double_root, 3)],
    ids=["wide", "balanced", "double root"],
)
@pytest.mark.parametrize("size", [40_000, pytest.param(500_000, marks=pytest.mark.slow)])
def test_never_above_the_companion_roots(size, cases, positive):
    make, seed = cases
    cases = make(seed, size)
    u, _, unbounded = minimize_lightcone(*cases, positive=positive)
    assert not unbounded.any()
    assert not positive or (u > 0).all()
    assert_never_above(cases, u, positive)


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize(
    "cases",
    [(wide_cases, 4), (balanced_cases, 5), (near_double_root, 6)],
    ids=["wide", "balanced", "double root"],
)
def test_compiled_never_above_the_companion_roots(cases, positive):
    make, seed = cases
    cases = make(seed, 20_000)
    answers = [compiled_lightcone(*case, positive) for case in zip(*cases, strict=True)]
    assert not any(unbounded for _, unbounded in answers)
    assert_never_above(cases, np.array([u for u, _ in answers]), positive)


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("size", [200, pytest.param(2400, marks=pytest.mark.slow)])
def test_u_against_mpmath(size, positive):
    """u to 1e-14 relative where e^mu is at most 1e6, away from ties and double roots."""
    rng = np.random.default_rng(7)
    compared = 0
    cases = _moderate_cases(rng, size)
    batched = minimize_lightcone(*np.transpose(cases), positive=positive).u
    for (A, B, C, D), found in zip(cases, batched, strict=True):
        reference, gap, curvature = mpmath_lightcone(A, B, C, D, positive, digits=40)
        if gap < 1e-3 or curvature < 1e-2 or not 1e-6 <= abs(reference) <= 1e6:
            continue
        compared += 1
        for u in (found, compiled_lightcone(A, B, C, D, positive)[0]):
            assert abs(u / reference - 1) <= 1e-14, (A, B, C, D)
    assert compared >= 0.6 * size


def _moderate_cases(rng, size):
    """Minimisers up to e^mu = 1e6:
    D/C over 1e-16 .. 1e16 and one dominant linear term now and then."""
    C, D = log_uniform(rng, -8, 8, size), log_uniform(rng, -8, 8, size)
    al, be = signed(rng, -2, 2, size), signed(rng, -2, 2, size)
    al[::4] *= 10.0 ** rng.uniform(0, 6, len(al[::4]))
    C[::4] *= 1e-12  # so that the outer term dominates and u stays within range
    return np.stack([*_denormalised(al, be, C, D), C, D], axis=1).tolist()


INF = math.inf
EDGES = {
    # name: (A, B, C, D), u over all u, u over u > 0; None marks a problem without a minimiser
    "all zero": ((0, 0, 0, 0), 1.0, 1.0),
    "C negative": ((1, 1, -1, 1), None, None),
    "C negative by a rounding": ((1, 1, -1e-17, 1), None, None),
    "D negative": ((1, 1, 1, -1), None, None),
    "C = 0, A pulls out": ((-1, 1, 0, 1), None, None),
    "C = 0, A pulls in": ((2, 0, 0, 1), None, 1.0),  # 2u + 1/u^2
    "C = 0, A pulls in, B too": ((1, 3, 0, 1), None, 2.0),  # u^3 - 3u - 2 = 0
    "C = A = 0, B negative": ((0, -4, 0, 1), 0.5, 0.5),  # -4/u + 1/u^2
    "C = A = 0, B positive": ((0, 4, 0, 1), -0.5, None),  # falls to 0 as u grows
    "C = A = B = 0": ((0, 0, 0, 1), None, None),  # 1/u^2 has no minimum
    "D = B = 0, A negative": ((-4, 0, 1, 0), 2.0, 2.0),
    "D = 0, B pulls out": ((1, -1, 1, 0), None, None),
    "D = 0, B pulls in": ((0, 2, 1, 0), None, 1.0),  # 2/u + u^2
    "C = D = 0": ((4, 9, 0, 0), None, 1.5),  # 4u + 9/u
    "C = D = 0, A negative": ((-4, 9, 0, 0), None, None),
    "A = B = 0": ((0, 0, 4, 64), 2.0, 2.0),  # tie between +2 and -2: the nearer to 1
    "tie between u and 1/u": (
        (-5, -5, 1, 1),
        2.0,
        2.0,
    ),  # u + 1/u = 5/2; 1/2 is as near the identity
    "tie, nearer one above r": ((-10, -2.5, 4, 0.25), 1.0, 1.0),  # r = 1/2: u = 1 or 1/4
    "tie, nearer one below r": ((-2.5, -10, 0.25, 4), 1.0, 1.0),  # r = 2: u = 1 or 4
    "cusp": ((-4, -4, 1, 1), 1.0, 1.0),
    "one-sided root": ((-100, -40000, 1, 1), 2 / 40000, 2 / 40000),
    "tiny": ((-4e-300, 0, 1e-300, 0), 2.0, 2.0),
    "huge": ((-4e300, 0, 1e300, 1e-300), 2.0, 2.0),
    "D/C = 1e200": ((0, 0, 1e-100, 1e100), 1e50, 1e50),
    "D/C = 1e-200": ((0, 0, 1e100, 1e-100), 1e-50, 1e-50),
    "C = D = 0, far apart": ((1e-150, 1e150, 0, 0), None, 1e150),
    "C and D negligible": ((4e-9, 9e-9, 1e-300, 1e-300), -2e-300 / 9e-9, 1.5),
    "beyond the range": ((-1e300, 0, 1e-300, 1), None, None),
}


@pytest.mark.parametrize("name", EDGES)
@pytest.mark.parametrize("positive", [False, True])
def test_edges(name, positive):
    coefficients, over_all, over_positive = EDGES[name]
    A, B, C, D = map(float, coefficients)
    expected = over_positive if positive else over_all
    for u, unbounded in (
        minimize_lightcone(A, B, C, D, positive=positive)[::2],
        compiled_lightcone(A, B, C, D, positive),
        tuple(
            t.item()
            for t in minimize_lightcone(*(np.array([t]) for t in (A, B, C, D)), positive=positive)[
                ::2
            ]
        ),
    ):
        assert unbounded == (expected is None)
        # the one-sided root is written down to its leading term
        assert u == pytest.approx(
            1.0 if expected is None else expected, rel=1e-10 if name == "one-sided root" else 1e-14
        )


@pytest.mark.parametrize("position", range(4))
@pytest.mark.parametrize("positive", [False, True])
def test_nan_stays_in_its_place(position, positive):
    coefficients = [
        np.array([-1.0, -1.0]),
        np.array([1.0, 1.0]),
        np.array([1.0, 1.0]),
        np.array([2.0, 2.0]),
    ]
    clean = minimize_lightcone(*coefficients, positive=positive)
    coefficients[position][0] = np.nan
    u, value, unbounded = minimize_lightcone(*coefficients, positive=positive)
    assert u[0] == 1
    assert np.isnan(value[0])
    assert not unbounded.any()
    assert u[1] == clean.u[1]
    assert compiled_lightcone(*(c[0] for c in coefficients), positive) == (1.0, False)


def test_the_facts_that_make_one_root_enough():
    """The sign of al + be tells the sign of u, and -al >= -be the side of 1:
    on 1e5 random problems with C = D = 1."""
    rng = np.random.default_rng(10)
    al, be = signed(rng, -1, 2, 100_000), signed(rng, -1, 2, 100_000)
    ones = np.ones_like(al)
    u = minimize_lightcone(al, be, ones, ones).u
    np.testing.assert_array_equal(np.sign(u), -np.sign(al + be))
    outside = np.abs(al) > np.abs(be)
    np.testing.assert_array_equal(np.abs(u) >= 1, outside)
