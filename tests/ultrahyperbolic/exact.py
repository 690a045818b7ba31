"""The maps from their definitions at 80 digits, for the doubles that a function was given."""

import mpmath
import numpy as np

DIGITS = 80


def numbers(x):
    return [mpmath.mpf(float(entry)) for entry in x]


def form(x, y, sig):
    return mpmath.fsum(int(s) * a * b for s, a, b in zip(sig.signs, x, y, strict=True))


def cosh_root(w):
    return mpmath.cosh(mpmath.sqrt(w)) if w >= 0 else mpmath.cos(mpmath.sqrt(-w))


def sinhc_root(w):
    if w == 0:
        return mpmath.mpf(1)
    root = mpmath.sqrt(abs(w))
    return (mpmath.sinh(root) if w > 0 else mpmath.sin(root)) / root


def exp(x, v, sig, alpha):
    """C(w) x + S(w) v from numbers of mpmath."""
    w = form(v, v, sig) / mpmath.mpf(alpha) ** 2
    c, s = cosh_root(w), sinhc_root(w)
    return [c * a + s * b for a, b in zip(x, v, strict=True)]


def lifted(x, sig, alpha):
    """A point of U at 80 digits near a double one: t scaled."""
    x = numbers(x)
    plus = mpmath.fsum(x[i] ** 2 for i in sig.positive)
    minus = mpmath.fsum(x[i] ** 2 for i in sig.negative)
    factor = mpmath.sqrt((mpmath.mpf(alpha) ** 2 + plus) / minus)
    return [a if s > 0 else factor * a for a, s in zip(x, sig.signs, strict=True)]


def tangent(x, v, sig, alpha):
    """The tangent part of v at x, both numbers of mpmath."""
    shift = form(x, v, sig) / mpmath.mpf(alpha) ** 2
    return [b + shift * a for a, b in zip(x, v, strict=True)]


def log(x, y, sig, alpha):
    """(y - g x) acosh(g) / sinh(acosh g), g = -<x, y> / alpha^2."""
    g = -form(x, y, sig) / mpmath.mpf(alpha) ** 2
    arc = mpmath.acosh(g) if g >= 1 else mpmath.acos(g)
    sine = mpmath.sqrt(abs(g * g - 1))
    factor = mpmath.mpf(1) if sine == 0 else arc / sine
    return [factor * (b - g * a) for a, b in zip(x, y, strict=True)]


def doubles(x):
    return np.array([float(entry) for entry in x])


def norm(x):
    return mpmath.sqrt(mpmath.fsum(entry**2 for entry in x))
