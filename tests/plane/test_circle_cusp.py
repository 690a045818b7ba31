"""Minimisation on the circle at the cusp, where two minima and a maximum meet and the curvature vanishes."""

import numpy as np
import pytest

from jorth.plane import minimize_circle
from jorth.plane.compiled import circle as compiled_circle

COUNT = 8000


def cusps(seed):
    """-al x + x^2 / 2 - be y in axes turned by an angle, with al = 1 up to 1e-17 .. 1e-3, be from 0 to 1e-5."""
    rng = np.random.default_rng(seed)
    angle, side = rng.uniform(-np.pi, np.pi, COUNT), rng.choice([-1, 1], COUNT)
    al = 1 + side * 10.0 ** rng.uniform(-17, -3, COUNT)
    be = rng.choice([-1, 0, 1], COUNT) * 10.0 ** rng.uniform(-30, -5, COUNT)
    p, q = np.cos(angle), np.sin(angle)
    return -(al * p - be * q), -(al * q + be * p), p * p / 2, p * q, q * q / 2


def excess(coefficients, x, y):
    """How far the value at (x, y) is above the least one, in extended precision: a search in the angle from there."""
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
    """Slope and curvature are rounding there; a step by their quotient, up to 1e-3, would cost 1e-13 in the value.

    A minimiser that is right to 64 u^(1/2) in the angle is above the least value by less than the rounding of it, as
    the value is flat to third order.
    """
    coefficients = cusps(seed)
    found = minimize_circle(*coefficients)
    assert excess(coefficients, found.cos, found.sin) <= 2.0**-53
    few = [t[:2000] for t in coefficients]
    points = np.array([compiled_circle(*numbers) for numbers in zip(*few, strict=True)])
    assert excess(few, points[:, 0], points[:, 1]) <= 2.0**-53
