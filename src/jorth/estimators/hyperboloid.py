"""The hyperboloid x^T J x = -1 of signature (d, 1), time last and positive: d space coordinates determine a point."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]

OFF_THE_HYPERBOLOID = 1e-6
"""|x^T J x + 1| / x^T x of a point: above what float32 coordinates explain, 1e-7, it is a mistake."""


def lift(space: Floats) -> Floats:
    """The points (m, d + 1) over the space coordinates (m, d): the last column is the time sqrt(1 + |space|^2)."""
    return np.column_stack([space, np.sqrt(1 + np.square(space).sum(axis=1))])


def space_of(points: Floats) -> Floats:
    """The space coordinates of points (m, d + 1), or a ValueError where a row is not on the hyperboloid."""
    space, time = points[:, :-1], points[:, -1]
    squares = np.square(space).sum(axis=1)
    off = np.abs(squares - np.square(time) + 1) / (squares + np.square(time) + 1)
    if off.max() > OFF_THE_HYPERBOLOID or time.min() <= 0:
        row = int(np.argmax(np.where(time <= 0, np.inf, off)))
        raise ValueError(
            "X must hold points of the hyperboloid, |space|^2 - time^2 = -1 with time > 0, got "
            f"|space|^2 - time^2 = {squares[row] - time[row] ** 2:.6g} and time = {time[row]:.6g} in row {row}"
        )
    return space


def boost_to(point: Floats) -> Floats:
    """The symmetric boost (d + 1, d + 1) from the origin (0, ..., 0, 1) to the point with these space coordinates.

    With b the space coordinates and t the time: [[I + b b^T / (1 + t), b], [b^T, t]]. Its inverse is that of -b.
    """
    time = np.sqrt(1 + point @ point)
    return np.block(
        [
            [np.eye(len(point)) + np.outer(point, point) / (1 + time), point[:, None]],
            [point[None, :], time],
        ]
    )


def centre_of(points: Floats) -> Floats:
    """The space coordinates of mean(x) / sqrt(-mean(x)^T J mean(x)), the centre of mass of points (m, d + 1).

    The root is at least 1 for every set of points; rounding far out is kept from saying otherwise.
    """
    mean = points.mean(axis=0)
    return np.asarray(mean[:-1] / np.sqrt(max(1.0, mean[-1] ** 2 - mean[:-1] @ mean[:-1])))


def logarithm(space: Floats) -> Floats:
    """Tangent coordinates at the origin, as long as the distance: space asinh(r) / r, r = |space|."""
    return _stretch(space, np.arcsinh)


def exponential(tangent: Floats) -> Floats:
    """The inverse of `logarithm`: space coordinates from tangent ones."""
    return _stretch(tangent, np.sinh)


def _stretch(vectors: Floats, function: np.ufunc) -> Floats:
    """The vectors (m, d) with their lengths r changed to function(r)."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    safe = np.where(length > 0, length, 1.0)
    return np.asarray(vectors * np.where(length > 0, function(safe) / safe, 1.0))
