"""Principal component analysis in hyperbolic space."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, cg, svds
from sklearn.utils.validation import check_is_fitted

from jorth._inputs import (
    check_choice,
    describe,
    finite_result,
    positive_number,
    real_number,
    whole_number,
)
from jorth.estimators.base import Transformer

MOST_STEPS = 20
"""More steps of Newton's method than any cloud has needed; 6 are usual."""
NEARLY = 1e-8
"""The slope, relative to the mean of t^2, from which one step ends at rounding."""
FEW, MANY = 10, 500
"""ARPACK finds components of MANY rows and columns if they are FEW times fewer than these."""
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

    Once the points are boosted to the base point, found by Newton's method, the v_j are the
    principal axes of their space coordinates, and each lambda has an error of the order of u ||C||.

    Args:
        n_components: k, the dimension of the subspace, at most that of the points, min(d, m - 1),
            which is the default. A number below 1 is the share of the dispersion to explain.
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
            sinh^2(distance to the base point); zero where that is zero. Also as
            ``explained_variance_ratio_``, the name that PCA has for it.
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
        n_components: int | float | None = None,
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
        most = min(points.shape[1] - 1, len(points) - 1)
        share, k = None, most
        if isinstance(self.n_components, (float, np.floating)):
            expected = f"an integer from 1 to {most}, or a share above 0 and below 1"
            share = real_number(self.n_components, "n_components", expected, lambda x: 0 < x < 1)
        elif self.n_components is not None:
            k = whole_number(self.n_components, "n_components", 1)
        if k > most:
            spans = "the dimension of the hyperbolic space, or rows less one"
            raise ValueError(f"n_components must be at most {most}, {spans}, got {k}")
        self._base = _base_point(points)
        near = _boost(points, -self._base)[:, 1:]
        total = np.square(near).sum() / len(near)
        values, axes = _principal_axes(near, k)
        if share is not None:
            k = min(k, 1 + int(np.searchsorted(values.cumsum(), share * total)))
        values, axes = values[:k], axes[:k]
        components = _boost(np.column_stack([np.zeros(k), axes]), self._base)
        # signs that make the largest entry of each component positive
        largest = np.take_along_axis(components, np.abs(components).argmax(axis=1)[:, None], axis=1)
        signs = np.where(largest < 0, -1.0, 1.0)
        self._axes = axes * signs
        self.n_components_ = k
        self.components_ = self._to_user(components * signs)
        self.base_point_ = self._to_user(_lift(self._base[None, :]))[0]
        self.eigenvalues_ = values
        self.explained_dispersion_ratio_ = values / total if total > 0 else np.zeros(k)
        return self

    @property
    def explained_variance_ratio_(self) -> Floats:
        """Return `explained_dispersion_ratio_`."""
        return self.explained_dispersion_ratio_

    def transform(self, X: Any) -> Any:
        """Return the coordinates (m, k) or (m, k + 1) of the nearest points of the subspace."""
        check_is_fitted(self)
        X = self._rows(X, reset=False)
        near = _boost(_lift(self._space(X)), -self._base)[:, 1:]
        kept = near @ self._axes.T
        dropped = near - kept @ self._axes
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
        space = _boost(_lift(space @ self._axes), self._base)[:, 1:]
        euclidean = self.input == "euclidean"
        found = space / float(self.scale) if euclidean else self._to_user(_lift(space))
        return finite_result(found.astype(X.dtype, copy=False), "X")

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components_) + (self.output == "hyperboloid")

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


def _base_point(points: Floats) -> Floats:
    """Return the space coordinates of the point with the least mean sinh^2(distance).

    The mean of (t cosh r - s.w sinh(r)/r)^2, r = |w|, over points (t, s) is its value one step w
    away. Its Hessian at w = 0 is mean(s s^T) + mean(t^2) I, with a condition of at most 2, since
    t^2 = 1 + |s|^2: conjugate gradients need few products.
    """
    m, d = len(points), points.shape[1] - 1
    mean = points.mean(axis=0)
    # the root for the centre of mass is at least 1; for far points, rounding must not make it less
    base = mean[1:] / np.sqrt(max(1.0, mean[0] ** 2 - mean[1:] @ mean[1:]))
    for _ in range(MOST_STEPS):
        near = _boost(points, -base)
        space = near[:, 1:]
        near[:, 0] = time = np.sqrt(1 + np.square(space).sum(axis=1))
        size = time @ time / m
        if not points.shape[1] * 2.0**-53 * size < 0.125:
            expected = "within a hyperbolic radius of about 17 of its centre, what float64 resolves"
            found = f"{np.arccosh(time.max()):.3g}; for Euclidean rows a smaller scale helps"
            raise ValueError(f"X must lie {expected}, got a largest radius of {found}")
        slope = time @ space / m
        hessian = LinearOperator(
            (d, d),
            lambda v, s=space, t=size: (v.ravel() @ s.T) @ s / m + t * v.ravel(),
            dtype=float,
        )
        step = cg(hessian, slope, rtol=1e-10)[0]
        point = _boost(np.r_[1.0, step][None, :] / np.sqrt(1 - step @ step), base)
        base = point[0, 1:]
        if np.linalg.norm(slope) <= NEARLY * size:  # the step has squared the error
            break
    return np.asarray(base)


def _principal_axes(space: Floats, k: int) -> tuple[Floats, Floats]:
    """Return at least k lambda, descending, and principal axes in rows, of mean(s s^T)."""
    m, d = space.shape
    if max(FEW * k, MANY) < min(m, d):
        start = np.random.default_rng(0).standard_normal(min(m, d))
        _, sizes, axes = svds(space, k, v0=start, return_singular_vectors="vh")
        order = np.argsort(-sizes)
        return np.square(sizes[order]) / m, axes[order]
    if m <= d:
        _, sizes, axes = scipy.linalg.svd(space, full_matrices=False)
        return np.square(sizes) / m, axes
    values, vectors = scipy.linalg.eigh(space.T @ space / m, subset_by_index=(d - k, d - 1))
    return np.maximum(values[::-1], 0.0), np.ascontiguousarray(vectors.T[::-1])


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


def _boost(rows: Floats, point: Floats) -> Floats:
    """Return the rows (m, d + 1) after the boost from the origin to a point's space coordinates b.

    The boost is the symmetric [[t, b^T], [b, I + b b^T / (1 + t)]] with the time t of the point;
    its inverse is the boost to -b.
    """
    time, along = np.sqrt(1 + point @ point), rows[:, 1:] @ point
    space = rows[:, 1:] + np.outer(rows[:, 0] + along / (1 + time), point)
    return np.column_stack([time * rows[:, 0] + along, space])


def _with_lengths(vectors: Floats, function: np.ufunc) -> Floats:
    """Return the vectors (m, d) with their lengths r changed to function(r)."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    safe = np.where(length > 0, length, 1.0)
    return np.asarray(vectors * np.where(length > 0, function(safe) / safe, 1.0))
