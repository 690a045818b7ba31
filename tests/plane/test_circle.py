"""The circle problem: against a dense grid with Newton polish, and answers written down."""

import numpy as np
import pytest

from jorth.plane._numba import circle as compiled_circle
from tests.plane.reference import grid_circle, minimize_circle


def value_of(coefficients, x, y):
    a, b, c, d, e = (np.asarray(t, dtype=np.longdouble) for t in coefficients)
    x, y = np.asarray(x, dtype=np.longdouble), np.asarray(y, dtype=np.longdouble)
    return a * x + b * y + c * x * x + d * x * y + e * y * y


def random_cases(seed, size, reach):
    rng = np.random.default_rng(seed)
    return [rng.choice([-1, 1], size) * 10.0 ** rng.uniform(-reach, reach, size) for _ in range(5)]


def near_double_minimum(seed, size):
    """al close to 4 R and be close to 0 in turned axes: two minima merge at the cusp."""
    rng = np.random.default_rng(seed)
    R = 10.0 ** rng.uniform(-3, 3, size)
    al = 4 * R * (1 + rng.choice([-1, 1], size) * 10.0 ** rng.uniform(-15, -1, size))
    be = R * rng.choice([-1, 1], size) * 10.0 ** rng.uniform(-20, -1, size)
    t = rng.uniform(-np.pi, np.pi, size)
    p, q = np.cos(t), np.sin(t)
    return [al * p - be * q, al * q + be * p, 2 * R * p * p, 4 * R * p * q, 2 * R * q * q]


@pytest.mark.parametrize(
    "cases",
    [
        random_cases(1, 3000, 1),
        random_cases(2, 3000, 6),
        random_cases(3, 3000, 150),
        near_double_minimum(4, 3000),
    ],
    ids=["order one", "graded", "wide", "cusp"],
)
def test_never_above_the_grid(cases):
    scale = sum(np.abs(t) for t in cases)
    best = grid_circle(*cases)
    compiled = np.array([compiled_circle(*case) for case in zip(*cases, strict=True)]).T
    for x, y in (minimize_circle(*cases), compiled):
        assert np.abs(x * x + y * y - 1).max() <= 80 * 2.0**-53  # measured: 8 u
        excess = value_of(cases, x, y) - best
        assert (excess <= 1e-13 * scale).all()


@pytest.mark.parametrize(
    "cases", [random_cases(7, 10_000, 1), near_double_minimum(8, 10_000)], ids=["order one", "cusp"]
)
def test_the_slope_vanishes_at_the_point(cases):
    """Values hide errors in position:
    the derivative in the angle is at rounding level, at the cusp too."""
    a, b, c, d, e = (np.asarray(t, dtype=np.longdouble) for t in cases)
    compiled = np.array([compiled_circle(*case) for case in zip(*cases, strict=True)]).T
    for x, y in (minimize_circle(*cases), compiled):
        slope = b * x - a * y + d * (x * x - y * y) - 2 * (c - e) * x * y
        assert (np.abs(slope) <= 40 * 2.0**-53 * sum(np.abs(t) for t in cases)).all()


S = np.sqrt(0.5)
EDGES = {
    "all zero": ((0, 0, 0, 0, 0), (1, 0)),
    "constant": ((0, 0, 3, 0, 3), (1, 0)),
    "linear": ((3, 4, 0, 0, 0), (-0.6, -0.8)),
    "linear with a constant": ((3, 4, 7, 0, 7), (-0.6, -0.8)),
    "quadratic, tie of +-(0, 1)": ((0, 0, 1, 0, 0), None),
    "quadratic, tie of +-(1, 0)": ((0, 0, 0, 0, 1), (1, 0)),
    "cross term, tie of +-(1, -1)": ((0, 0, 0, 1, 0), (S, -S)),
    "hard case": (
        (-2, 0, 2, 0, 0),
        (0.5, np.sqrt(0.75)),
    ),  # be = 0, al < 4 R: x = al / 4R, both y are minima
    "hard case, at the cusp": ((-4, 0, 2, 0, 0), (1, 0)),
    "beyond the cusp": ((-8, 0, 2, 0, 0), (1, 0)),
    "huge": ((3e300, 4e300, 0, 0, 0), (-0.6, -0.8)),
    "tiny": ((3e-300, 4e-300, 0, 0, 0), (-0.6, -0.8)),
}


@pytest.mark.parametrize("name", EDGES)
def test_edges(name):
    coefficients, expected = EDGES[name]
    coefficients = [float(t) for t in coefficients]
    for x, y in (minimize_circle(*coefficients), compiled_circle(*coefficients)):
        if expected is None:
            assert (x, abs(y)) == pytest.approx((0, 1), abs=1e-15)
        elif name == "hard case":
            assert (x, abs(y)) == pytest.approx(expected, rel=1e-14)
        else:
            assert (x, y) == pytest.approx(expected, rel=1e-14, abs=1e-15)


# -- the cusp, where two minima and a maximum meet and the curvature vanishes


COUNT = 8000


def cusps(seed):
    """-al x + x^2 / 2 - be y in axes turned by an angle, with al = 1 up to 1e-17 .. 1e-3,
    be from 0 to 1e-5."""
    rng = np.random.default_rng(seed)
    angle, side = rng.uniform(-np.pi, np.pi, COUNT), rng.choice([-1, 1], COUNT)
    al = 1 + side * 10.0 ** rng.uniform(-17, -3, COUNT)
    be = rng.choice([-1, 0, 1], COUNT) * 10.0 ** rng.uniform(-30, -5, COUNT)
    p, q = np.cos(angle), np.sin(angle)
    return -(al * p - be * q), -(al * q + be * p), p * p / 2, p * q, q * q / 2


def excess(coefficients, x, y):
    """How far the value at (x, y) is above the least one, in extended precision:
    a search in the angle from there."""
    a, b, c, d, e = (np.asarray(t, np.longdouble) for t in coefficients)

    def value(angle):
        x, y = np.cos(angle), np.sin(angle)
        return a * x + b * y + c * x * x + d * x * y + e * y * y

    angle = np.arctan2(np.asarray(y, np.longdouble), np.asarray(x, np.longdouble))
    found = value(angle)
    least = found.copy()
    for step in 10.0 ** np.arange(-2, -10, -0.25):
        for turn in (-step, step):
            better = value(angle + turn) < least
            angle = np.where(better, angle + turn, angle)
            least = np.where(better, value(angle), least)
    return float((found - least).max())


@pytest.mark.skipif(np.finfo(np.longdouble).eps > 2e-19, reason="needs extended precision")
@pytest.mark.parametrize("seed", [0, 1])
def test_the_last_newton_step_is_not_noise(seed):
    """Slope and curvature are rounding there; a step by their quotient, up to 1e-3,
    would cost 1e-13 in the value.

    A minimiser that is right to 64 u^(1/2) in the angle is above the least value by less than the
    rounding of it, as the value is flat to third order.
    """
    coefficients = cusps(seed)
    found = minimize_circle(*coefficients)
    assert excess(coefficients, *found) <= 2.0**-53
    few = [t[:2000] for t in coefficients]
    points = np.array([compiled_circle(*numbers) for numbers in zip(*few, strict=True)])
    assert excess(few, points[:, 0], points[:, 1]) <= 2.0**-53
