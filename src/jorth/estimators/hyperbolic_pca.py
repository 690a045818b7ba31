"""Principal component analysis in hyperbolic space."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from jorth._inputs import check_choice, describe, finite_result, positive_number, whole_number
from jorth.estimators.base import Transformer
from jorth.group import inverse
from jorth.linalg import eigh
from jorth.signature import Signature

SHIFT = 0.5
"""C + J/2 is positive definite: see `HyperbolicPCA`."""
Floats: TypeAlias = NDArray[np.float64]
CHOICES = {
    "input": ("euclidean", "hyperboloid"),
    "output": ("tangent", "hyperboloid"),
    "time": ("first", "last"),
}


class HyperbolicPCA(Transformer):
    """The geodesic subspace with the least mean sinh^2(distance to the points), in closed form.

    Points x lie on the hyperboloid x^T J x = -1, J = diag(-1, 1, ..., 1), and C = mean(x x^T). The
    J-eigenvectors C J v = lambda v can be chosen J-orthogonal with v^T J v = +-1. The timelike one
    is the base point; with the spacelike v_1, ..., v_k of the largest lambda it spans the subspace,
    whose mean sinh^2(distance) is the sum of the other lambda. The subspaces are nested.

    `jorth.eigh` gives lambda with an error of the order of u ||C|| once the points are boosted to
    their centre, even if they do not span.

    Args:
        n_components: k, the dimension of the subspace; by default all d.
        input: "euclidean" rows x (d) are lifted to (sqrt(1 + |scale x|^2), scale x), without being
            centred: the base point takes that role; "hyperboloid" rows are points (d + 1).
        output: For the nearest points of the subspace, "tangent" gives the k tangent coordinates at
            the base point, whose lengths are distances from it; "hyperboloid" gives the k + 1
            coordinates in the basis base point, v_1, ..., v_k, for distances acosh(-x^T J y).
        time: "first" or "last", the column of the time in points that are given or returned, as in
            `Signature.lorentz`.
        scale: The factor of Euclidean rows; small ones give nearly the result of Euclidean PCA.

    Attributes:
        components_: (k, d + 1), v_1, ..., v_k by descending lambda, with positive largest entries.
        base_point_: (d + 1,).
        eigenvalues_: (k,), lambda_j = mean (x^T J v_j)^2.
        explained_dispersion_ratio_: (k,), lambda_j over the sum of all d, which is the mean of
            sinh^2(distance to the base point); zero where that is zero.
        n_components_: k.
        n_features_in_: The number of columns of X.

    Reference: P. Tabaghi, M. Khanzadeh, Y. Wang, S. Mirarab, Principal component analysis in space
    forms, 2023.

    >>> rows = np.random.default_rng(0).standard_normal((50, 4))
    >>> jorth.estimators.HyperbolicPCA(n_components=2).fit_transform(rows).shape
    (50, 2)
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        input: Literal["euclidean", "hyperboloid"] = "euclidean",
        output: Literal["tangent", "hyperboloid"] = "tangent",
        time: Literal["first", "last"] = "first",
        scale: float = 1.0,
    ) -> None:
        self.n_components = n_components
        self.input = input
        self.output = output
        self.time = time
        self.scale = scale

    def fit(self, X: Any, y: Any = None) -> HyperbolicPCA:
        """Find base point and components of the rows X (m, d), or (m, d + 1) on the hyperboloid."""
        for name, choices in CHOICES.items():
            check_choice(getattr(self, name), name, choices)
        positive_number(self.scale, "scale")
        if self.input == "hyperboloid" and self.scale != 1.0:
            expected = "1 for rows that are points of the hyperboloid"
            raise ValueError(f"scale must be {expected}, got {describe(self.scale)}")
        points = _lift(self._space(self._rows(X, ensure_min_samples=2)))
        d = points.shape[1] - 1
        k = d if self.n_components is None else whole_number(self.n_components, "n_components", 1)
        if k > d:
            expected = f"at most {d}, the dimension of the hyperbolic space"
            raise ValueError(f"n_components must be {expected}, got {k}")
        values, self._frame = _principal_frame(points)
        axes = self._to_user(self._inverse_frame())  # the rows are the base point, then all v
        self.n_components_ = k
        self.components_ = axes[1 : k + 1]
        self.base_point_ = axes[0]
        self.eigenvalues_ = values[:k]
        total = values.sum()
        self.explained_dispersion_ratio_ = values[:k] / total if total > 0 else np.zeros(k)
        return self

    def transform(self, X: Any) -> Any:
        """Return the coordinates (m, k) or (m, k + 1) of the nearest points of the subspace."""
        check_is_fitted(self)
        X = self._rows(X, reset=False)
        coordinates = _lift(self._space(X)) @ self._frame
        kept = coordinates[:, 1 : self.n_components_ + 1]
        dropped = coordinates[:, self.n_components_ + 1 :]
        # the nearest point is the part in the subspace, x^T J x = -(1 + |dropped|^2), scaled to -1
        space = kept / np.sqrt(1 + np.square(dropped).sum(axis=1, keepdims=True))
        tangent = self.output == "tangent"  # coordinates at the origin, as long as distances
        found = _with_lengths(space, np.arcsinh) if tangent else self._to_user(_lift(space))
        return finite_result(found.astype(X.dtype, copy=False), "X")

    def inverse_transform(self, X: Any) -> Any:
        """Return the points of the subspace with these coordinates, in the form of the input."""
        check_is_fitted(self)
        X = self._transformed_rows(X)
        given = X.astype(np.float64)
        tangent = self.output == "tangent"
        space = (
            _with_lengths(given, np.sinh) if tangent else _space_of(_time_first(given, self.time))
        )
        zeros = np.zeros((len(space), len(self._frame) - 1 - space.shape[1]))
        points = _lift(np.hstack([space, zeros])) @ self._inverse_frame()
        space = points[:, 1:]
        euclidean = self.input == "euclidean"
        found = space / float(self.scale) if euclidean else self._to_user(_lift(space))
        return finite_result(found.astype(X.dtype, copy=False), "X")

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components_) + (self.output == "hyperboloid")

    def _inverse_frame(self) -> Floats:
        return np.asarray(inverse(self._frame, Signature.lorentz(len(self._frame))))

    def _space(self, X: Any) -> Floats:
        """Return the space coordinates (m, d) of the input."""
        given = X.astype(np.float64)
        if self.input == "euclidean":
            return np.asarray(float(self.scale) * given)
        if given.shape[1] < 2:
            raise ValueError("X must have at least 2 columns for points of the hyperboloid, got 1")
        points = _time_first(given, self.time)
        other = "last" if self.time == "first" else "first"
        if not _are_points(points) and _are_points(_time_first(given, other)):
            expected = f'points of the hyperboloid with the time {self.time}, time="{self.time}"'
            found = f'points with the time {other}: pass time="{other}"'
            raise ValueError(f"X must hold {expected}, got {found}")
        return _space_of(points)

    def _to_user(self, points: Floats) -> Floats:
        """Move the time from the first column to where the user has it."""
        return points if self.time == "first" else np.roll(points, -1, axis=1)


def _time_first(points: Floats, time: str) -> Floats:
    """Return points with the time in the first column, where ``time`` says that it is now."""
    return points if time == "first" else np.roll(points, 1, axis=1)


def _principal_frame(points: Floats) -> tuple[Floats, Floats]:
    """Return lambda (d,), descending, and J-orthogonal F: points F are principal coordinates."""
    signature = Signature.lorentz(points.shape[1])
    mean = points.mean(axis=0)
    # the root for the centre of mass is at least 1; for far points, rounding must not make it less
    root = np.sqrt(max(1.0, mean[0] ** 2 - mean[1:] @ mean[1:]))
    centre = _boost_to(-mean[1:] / root)
    near = _lift((points @ centre)[:, 1:])
    C = near.T @ near / len(near)
    if not len(C) * 2.0**-53 * np.trace(C) < SHIFT / 4:
        expected = "within a hyperbolic radius of about 17 of its centre, what float64 resolves"
        found = f"{np.arccosh(near[:, 0].max()):.3g}; for Euclidean rows a smaller scale helps"
        raise ValueError(f"X must lie {expected}, got a largest radius of {found}")
    shifted, W = eigh(C + SHIFT * np.diag(signature.signs), signature)
    descending = np.r_[0, signature.positive[::-1]]
    F = (centre @ W)[:, descending]
    values = np.maximum(shifted[descending[1:]] - SHIFT, 0.0)
    axes = np.asarray(inverse(F, signature))
    # signs that make the largest entry of each axis positive: of a point, the time
    largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=1)[:, None], axis=1)[:, 0]
    return values, F * np.where(largest < 0, -1.0, 1.0)


# the hyperboloid x^T J x = -1, time first and positive; d space coordinates determine a point


def _lift(space: Floats) -> Floats:
    """Return the points (m, d + 1) over space coordinates (m, d): time sqrt(1 + |space|^2)."""
    return np.column_stack([np.sqrt(1 + np.square(space).sum(axis=1)), space])


def _space_of(points: Floats) -> Floats:
    """Return the space coordinates of points (m, d + 1), which must be on the hyperboloid."""
    if not _are_points(points):
        time, space = points[:, 0], points[:, 1:]
        row = int(np.argmax(np.where(time <= 0, np.inf, _deviation(points))))
        expected = "points of the hyperboloid, |space|^2 - time^2 = -1 with time > 0"
        product = f"|space|^2 - time^2 = {space[row] @ space[row] - time[row] ** 2:.6g}"
        found = f"{product} and time = {time[row]:.6g} in row {row}"
        raise ValueError(f"X must hold {expected}, got {found}")
    return points[:, 1:]


def _are_points(rows: Floats) -> bool:
    """Return whether all rows (m, d + 1) are points; rounding to float32 explains 1e-7."""
    return bool(_deviation(rows).max() <= 1e-6 and rows[:, 0].min() > 0)


def _deviation(rows: Floats) -> Floats:
    """Return |x^T J x + 1| / (1 + x^T x) of each row."""
    space, time = np.square(rows[:, 1:]).sum(axis=1), np.square(rows[:, 0])
    return np.asarray(np.abs(space - time + 1) / (space + time + 1))


def _boost_to(point: Floats) -> Floats:
    """Return the symmetric boost (d + 1, d + 1) from (1, 0, ..., 0) to space coordinates b.

    It is [[t, b^T], [b, I + b b^T / (1 + t)]] with the time t; its inverse is the boost to -b.
    """
    time = np.sqrt(1 + point @ point)
    block = np.eye(len(point)) + np.outer(point, point) / (1 + time)
    return np.block([[time, point[None, :]], [point[:, None], block]])


def _with_lengths(vectors: Floats, function: np.ufunc) -> Floats:
    """Return the vectors (m, d) with their lengths r changed to function(r)."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    safe = np.where(length > 0, length, 1.0)
    return np.asarray(vectors * np.where(length > 0, function(safe) / safe, 1.0))
