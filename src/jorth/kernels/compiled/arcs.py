"""Squared arcs of inner products and their slopes, compiled: `jorth.kge.model.squared_arc`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from jorth.compiling import compiler
from jorth.kernels.compiled.elementary import atan, log1p

summing = compiler(fastmath={"reassoc", "contract"}, inline=True)
LARGE = 2.0**40
"""From here on sqrt(g^2 - 1) = g, also in float64, and in float32 g^2 does not overflow below."""


@compiler(nogil=True, inline=True)
def square_and_slope(g: np.ndarray, squares: np.ndarray, slopes: np.ndarray) -> None:
    """Write acosh(|g|)^2 where |g| >= 1, acos(|g|)^2 elsewhere, and the slopes: all (count,).

    The slope is 0 at |g| = 1 and at g = 0.
    """
    if _hyperbolic(g, squares, slopes) > 0.0:
        _circular(g, squares, slopes)


@summing
def _hyperbolic(g: np.ndarray, squares: np.ndarray, slopes: np.ndarray) -> Any:
    """acosh(|g|)^2 and its slope as in `jorth.kge.model.squared_arc`; returns how many |g| < 1."""
    zero, one, two = g.dtype.type(0.0), g.dtype.type(1.0), g.dtype.type(2.0)
    large, inside = g.dtype.type(LARGE), zero
    for j in range(g.shape[0]):
        size = abs(g[j])
        e = size - one
        sine = math.sqrt(abs(e) * (size + one)) if size < large else size
        arc = log1p(e + sine)
        slope = math.copysign(two, g[j]) * (arc / sine)
        squares[j] = arc * arc
        slopes[j] = zero if sine == zero else slope
        inside += one if size < one else zero
    return inside


@summing
def _circular(g: np.ndarray, squares: np.ndarray, slopes: np.ndarray) -> None:
    """acos(|g|)^2 and its slope where |g| < 1; tan(acos(|g|) / 2) = sine / (1 + |g|)."""
    zero, one, two = g.dtype.type(0.0), g.dtype.type(1.0), g.dtype.type(2.0)
    for j in range(g.shape[0]):
        size = abs(g[j])
        inside = size < one
        rest = one - size if inside else zero
        sine = math.sqrt(rest * (size + one))
        arc = two * atan(sine / (one + size))
        slope = math.copysign(two, g[j]) * (arc / sine)
        squares[j] = arc * arc if inside else squares[j]
        slopes[j] = (-slope if size > zero else zero) if inside else slopes[j]
