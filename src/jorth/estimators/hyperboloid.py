"""The hyperboloid x^T J x = -1 of signature (d, 1), time last and positive.

A point is determined by its d space coordinates.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]

MAX_DEVIATION = 1e-6
"""The largest |x^T J x + 1| / x^T x of a point; rounding to float32 explains 1e-7."""


def lift(space: Floats) -> Floats:
    """The points (m, d + 1) over space coordinates (m, d), with the time sqrt(1 + |space|^2)."""
    return np.column_stack([space, np.sqrt(1 + np.square(space).sum(axis=1))])


def space_of(points: Floats) -> Floats:
    """The space coordinates of points (m, d + 1); a ValueError if one is off the hyperboloid."""
    space, time = points[:, :-1], points[:, -1]
    squares = np.square(space).sum(axis=1)
    off = np.abs(squares - np.square(time) + 1) / (squares + np.square(time) + 1)
    if off.max() > MAX_DEVIATION or time.min() <= 0:
        row = int(np.argmax(np.where(time <= 0, np.inf, off)))
        expected = "points of the hyperboloid, |space|^2 - time^2 = -1 with time > 0"
        product = f"|space|^2 - time^2 = {squares[row] - time[row] ** 2:.6g}"
        found = f"{product} and time = {time[row]:.6g} in row {row}"
        raise ValueError(f"X must hold {expected}, got {found}")
    return space


def boost_to(point: Floats) -> Floats:
    """The symmetric boost (d + 1, d + 1) from (0, ..., 0, 1) to the given space coordinates b.

    It is [[I + b b^T / (1 + t), b], [b^T, t]] with the time t; its inverse is the boost to -b.
    """
    time = np.sqrt(1 + point @ point)
    block = np.eye(len(point)) + np.outer(point, point) / (1 + time)
    return np.block([[block, point[:, None]], [point[None, :], time]])


def centre_of(points: Floats) -> Floats:
    """The space coordinates of the centre of mass, mean(x) / sqrt(-mean(x)^T J mean(x)).

    The root is at least 1; for far points, rounding must not make it smaller.
    """
    mean = points.mean(axis=0)
    return np.asarray(mean[:-1] / np.sqrt(max(1.0, mean[-1] ** 2 - mean[:-1] @ mean[:-1])))


def logarithm(space: Floats) -> Floats:
    """Tangent coordinates at the origin, whose lengths are distances: space asinh(r) / r."""
    return _with_lengths(space, np.arcsinh)


def exponential(tangent: Floats) -> Floats:
    """The inverse of `logarithm`: space coordinates from tangent coordinates."""
    return _with_lengths(tangent, np.sinh)


def _with_lengths(vectors: Floats, function: np.ufunc) -> Floats:
    """The vectors (m, d) with their lengths r changed to function(r)."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    safe = np.where(length > 0, length, 1.0)
    return np.asarray(vectors * np.where(length > 0, function(safe) / safe, 1.0))
