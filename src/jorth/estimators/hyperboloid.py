"""The hyperboloid x^T J x = -1 of signature (1, d), time first and positive.

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
    return np.column_stack([np.sqrt(1 + np.square(space).sum(axis=1)), space])


def space_of(points: Floats) -> Floats:
    """The space coordinates of points (m, d + 1); a ValueError if one is off the hyperboloid."""
    if not are_points(points):
        time, space = points[:, 0], points[:, 1:]
        row = int(np.argmax(np.where(time <= 0, np.inf, _deviation(points))))
        expected = "points of the hyperboloid, |space|^2 - time^2 = -1 with time > 0"
        product = f"|space|^2 - time^2 = {space[row] @ space[row] - time[row] ** 2:.6g}"
        found = f"{product} and time = {time[row]:.6g} in row {row}"
        raise ValueError(f"X must hold {expected}, got {found}")
    return points[:, 1:]


def are_points(rows: Floats) -> bool:
    """Whether all rows (m, d + 1) are points of the hyperboloid."""
    return bool(_deviation(rows).max() <= MAX_DEVIATION and rows[:, 0].min() > 0)


def _deviation(rows: Floats) -> Floats:
    """|x^T J x + 1| / (1 + x^T x) of each row."""
    space, time = np.square(rows[:, 1:]).sum(axis=1), np.square(rows[:, 0])
    return np.asarray(np.abs(space - time + 1) / (space + time + 1))


def boost_to(point: Floats) -> Floats:
    """The symmetric boost (d + 1, d + 1) from (1, 0, ..., 0) to the given space coordinates b.

    It is [[t, b^T], [b, I + b b^T / (1 + t)]] with the time t; its inverse is the boost to -b.
    """
    time = np.sqrt(1 + point @ point)
    block = np.eye(len(point)) + np.outer(point, point) / (1 + time)
    return np.block([[time, point[None, :]], [point[:, None], block]])


def centre_of(points: Floats) -> Floats:
    """The space coordinates of the centre of mass, mean(x) / sqrt(-mean(x)^T J mean(x)).

    The root is at least 1; for far points, rounding must not make it smaller.
    """
    mean = points.mean(axis=0)
    return np.asarray(mean[1:] / np.sqrt(max(1.0, mean[0] ** 2 - mean[1:] @ mean[1:])))


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
