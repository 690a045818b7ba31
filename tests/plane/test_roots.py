"""The one-dimensional minimisers: against companion eigenvalues, grids, mpmath, and answers written
down. Every test runs on both engines."""

import numpy as np
import pytest

from tests.plane.reference import (
    CIRCLES,
    LIGHTCONES,
    best_lightcone,
    grid_circle,
    lightcone_scale,
    lightcone_value,
    mpmath_lightcone,
)

UNIT = 2.0**-53


def log_uniform(rng, low, high, size):
    return 10.0 ** rng.uniform(low, high, size)


def signed(rng, low, high, size):
    return rng.choice([-1.0, 1.0], size) * log_uniform(rng, low, high, size)


# -- the light cone: min A u + B/u + C u^2 + D/u^2


def wide_cases(rng, size, reach=150, ratio=200):
    """Coefficients over 1e-reach .. 1e reach with D/C over 1e-ratio .. 1e ratio."""
    log_c = rng.uniform(-reach, reach, size)
    log_d = np.clip(log_c + rng.uniform(-ratio, ratio, size), -reach, reach)
    A, B = signed(rng, -reach, reach, size), signed(rng, -reach, reach, size)
    return A, B, 10.0**log_c, 10.0**log_d


def balanced_cases(rng, size, spread=3):
    """al and be of order one to 1e3, so that several roots and both signs compete."""
    C, D = log_uniform(rng, -150, 150, size), log_uniform(rng, -150, 150, size)
    al, be = signed(rng, -spread, spread, size), signed(rng, -spread, spread, size)
    return *denormalised(al, be, C, D), C, D


def near_double_root(rng, size):
    """Within 1e-9 of the curve al = -3 r - r^-3, be = -r^3 - 3/r."""
    r = log_uniform(rng, -3, 3, size)
    r[: size // 4] = 1 + signed(rng, -9, -1, size // 4)  # around the cusp
    near = 1 + 1e-9 * rng.uniform(-1, 1, (2, size))
    C, D = log_uniform(rng, -50, 50, size), log_uniform(rng, -50, 50, size)
    sign = rng.choice([-1.0, 1.0], size)
    al, be = sign * (-3 * r - r**-3.0) * near[0], sign * (-(r**3) - 3 / r) * near[1]
    return *denormalised(al, be, C, D), C, D


def denormalised(al, be, C, D):
    r, product = np.sqrt(np.sqrt(D) / np.sqrt(C)), np.sqrt(C) * np.sqrt(D)
    return al * (product / r), be * (product * r)


@pytest.mark.parametrize("engine", LIGHTCONES)
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("make", [wide_cases, balanced_cases, near_double_root])
@pytest.mark.parametrize("size", [20_000, pytest.param(500_000, marks=pytest.mark.slow)])
def test_never_above_the_companion_roots(engine, size, make, positive):
    cases = make(np.random.default_rng(1), size)
    u, unbounded = LIGHTCONES[engine](*cases, positive)
    assert not unbounded.any()
    assert not positive or (u > 0).all()
    excess = lightcone_value(*cases, u) - best_lightcone(*cases, positive=positive)
    assert (excess <= 1e-13 * lightcone_scale(*cases, u)).all()


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("size", [200, pytest.param(2400, marks=pytest.mark.slow)])
def test_u_against_mpmath(size, positive):
    """u to 1e-14 relative where e^mu is at most 1e6, away from ties and double roots."""
    rng = np.random.default_rng(7)
    C, D = log_uniform(rng, -8, 8, size), log_uniform(rng, -8, 8, size)
    al, be = signed(rng, -2, 2, size), signed(rng, -2, 2, size)
    al[::4] *= 10.0 ** rng.uniform(0, 6, len(al[::4]))
    C[::4] *= 1e-12  # so that the outer term dominates and u stays within range
    cases = (*denormalised(al, be, C, D), C, D)
    found = np.array([solve(*cases, positive)[0] for solve in LIGHTCONES.values()])
    compared = 0
    for case, us in zip(np.transpose(cases).tolist(), found.T, strict=True):
        reference, gap, curvature = mpmath_lightcone(*case, positive, digits=40)
        if gap < 1e-3 or curvature < 1e-2 or not 1e-6 <= abs(reference) <= 1e6:
            continue
        compared += 1
        assert all(abs(u / reference - 1) <= 1e-14 for u in us), case
    assert compared >= 0.6 * size


LIGHTCONE_EDGES = {
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
    "tie between u and 1/u": ((-5, -5, 1, 1), 2.0, 2.0),  # 1/2 is as near the identity
    "tie, nearer one above r": ((-10, -2.5, 4, 0.25), 1.0, 1.0),  # r = 1/2: u = 1 or 1/4
    "tie, nearer one below r": ((-2.5, -10, 0.25, 4), 1.0, 1.0),  # r = 2: u = 1 or 4
    "cusp": ((-4, -4, 1, 1), 1.0, 1.0),
    "tiny": ((-4e-300, 0, 1e-300, 0), 2.0, 2.0),
    "huge": ((-4e300, 0, 1e300, 1e-300), 2.0, 2.0),
    "D/C = 1e200": ((0, 0, 1e-100, 1e100), 1e50, 1e50),
    "D/C = 1e-200": ((0, 0, 1e100, 1e-100), 1e-50, 1e-50),
    "C = D = 0, far apart": ((1e-150, 1e150, 0, 0), None, 1e150),
    "C and D negligible": ((4e-9, 9e-9, 1e-300, 1e-300), -2e-300 / 9e-9, 1.5),
    "beyond the range": ((-1e300, 0, 1e-300, 1), None, None),
    "NaN": ((np.nan, 1, 1, 1), 1.0, 1.0),
}


@pytest.mark.parametrize("engine", LIGHTCONES)
@pytest.mark.parametrize("positive", [False, True])
def test_edges_of_the_light_cone(engine, positive):
    """In one batch, so that nothing spills into a neighbour."""
    coefficients, *expected = zip(*LIGHTCONE_EDGES.values(), strict=True)
    expected = expected[positive]
    u, unbounded = LIGHTCONES[engine](*np.transpose(coefficients).astype(float), positive)
    assert unbounded.tolist() == [one is None for one in expected]
    np.testing.assert_allclose(u, [1.0 if one is None else one for one in expected], rtol=1e-14)


# -- the circle: min a x + b y + c x^2 + d x y + e y^2


def value_on_circle(coefficients, x, y):
    a, b, c, d, e = (np.asarray(t, dtype=np.longdouble) for t in coefficients)
    x, y = np.asarray(x, dtype=np.longdouble), np.asarray(y, dtype=np.longdouble)
    return a * x + b * y + c * x * x + d * x * y + e * y * y


def random_cases(rng, size, reach=1):
    return [signed(rng, -reach, reach, size) for _ in range(5)]


def wide_circles(rng, size):
    return random_cases(rng, size, reach=150)


def near_double_minimum(rng, size):
    """al close to 4 R and be close to 0 in turned axes: two minima merge at the cusp."""
    R = 10.0 ** rng.uniform(-3, 3, size)
    al = 4 * R * (1 + signed(rng, -15, -1, size))
    be = R * signed(rng, -20, -1, size)
    t = rng.uniform(-np.pi, np.pi, size)
    p, q = np.cos(t), np.sin(t)
    return [al * p - be * q, al * q + be * p, 2 * R * p * p, 4 * R * p * q, 2 * R * q * q]


@pytest.mark.parametrize("engine", CIRCLES)
@pytest.mark.parametrize("make", [random_cases, wide_circles, near_double_minimum])
def test_never_above_the_grid_and_stationary(engine, make):
    cases = make(np.random.default_rng(2), 3000)
    scale = sum(np.abs(t) for t in cases)
    x, y = CIRCLES[engine](*cases)
    assert np.abs(x * x + y * y - 1).max() <= 80 * UNIT  # measured: 8 u
    assert (value_on_circle(cases, x, y) - grid_circle(*cases) <= 1e-13 * scale).all()
    a, b, c, d, e = (np.asarray(t, dtype=np.longdouble) for t in cases)
    slope = b * x - a * y + d * (x * x - y * y) - 2 * (c - e) * x * y
    assert (np.abs(slope) <= 40 * UNIT * scale).all()  # values hide errors in position


S = np.sqrt(0.5)
CIRCLE_EDGES = {
    "all zero": ((0, 0, 0, 0, 0), (1, 0)),
    "constant": ((0, 0, 3, 0, 3), (1, 0)),
    "linear": ((3, 4, 0, 0, 0), (-0.6, -0.8)),
    "linear with a constant": ((3, 4, 7, 0, 7), (-0.6, -0.8)),
    "quadratic, tie of +-(1, 0)": ((0, 0, 0, 0, 1), (1, 0)),
    "cross term, tie of +-(1, -1)": ((0, 0, 0, 1, 0), (S, -S)),
    "at the cusp": ((-4, 0, 2, 0, 0), (1, 0)),
    "beyond the cusp": ((-8, 0, 2, 0, 0), (1, 0)),
    "huge": ((3e300, 4e300, 0, 0, 0), (-0.6, -0.8)),
    "tiny": ((3e-300, 4e-300, 0, 0, 0), (-0.6, -0.8)),
    "tie of +-(0, 1)": ((0, 0, 1, 0, 0), (0, None)),
    "be = 0, al < 4 R": ((-2, 0, 2, 0, 0), (0.5, None)),  # both y are minima
}


@pytest.mark.parametrize("engine", CIRCLES)
def test_edges_of_the_circle(engine):
    coefficients, expected = zip(*CIRCLE_EDGES.values(), strict=True)
    x, y = CIRCLES[engine](*np.transpose(coefficients).astype(float))
    either = np.array([one[1] is None for one in expected])
    known = [(1 - one[0] ** 2) ** 0.5 if one[1] is None else one[1] for one in expected]
    np.testing.assert_allclose(x, [one[0] for one in expected], rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(np.where(either, np.abs(y), y), known, rtol=1e-14, atol=1e-15)
