"""Principal component analysis in hyperbolic space."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from jorth._inputs import check_choice, describe, finite_result, positive_number, whole_number
from jorth.estimators import hyperboloid
from jorth.estimators.base import Transformer, check_fitted
from jorth.estimators.hyperboloid import Floats, are_points, lift, space_of
from jorth.group import inverse
from jorth.linalg import eigh
from jorth.signature import Signature

SHIFT = 0.5
"""C + J/2 is positive definite: see `HyperbolicPCA`."""
UNIT = 2.0**-53
CHOICES = {
    "input": ("euclidean", "hyperboloid"),
    "output": ("tangent", "hyperboloid"),
    "time": ("first", "last"),
}


class HyperbolicPCA(Transformer):
    """The geodesic subspace with the least mean sinh^2(distance to the points), in closed form.

    Points x lie on the hyperboloid x^T J x = -1, J = diag(-1, 1, ..., 1), and C = mean(x x^T). The
    J-eigenvectors C J v = lambda v can be chosen J-orthogonal with v^T J v = +-1. The timelike one
    is the base point. The subspace spanned by it and spacelike v_1, ..., v_k meets the hyperboloid
    in a hyperbolic space H^k whose mean sinh^2(distance) is the sum of the other spacelike lambda.
    Among all H^k this is least when v_1, ..., v_k have the largest lambda. The subspaces are
    nested, and the base point alone is the point with the least mean sinh^2(distance).

    Since (x^T J v)^2 >= 1 for points x and v of the hyperboloid, lambda >= 0 on spacelike and
    lambda <= -1 on timelike vectors. So C + J/2 is positive definite even if the points do not
    span, and `jorth.eigh` gives its lambda, shifted by 1/2, with an error of the order of u ||C||
    once the points are boosted to their centre.

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
        points = lift(self._space(self._rows(X, ensure_min_samples=2)))
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
        """The coordinates (m, k) or (m, k + 1) of the nearest points of the subspace."""
        check_fitted(self)
        X = self._rows(X, reset=False)
        coordinates = lift(self._space(X)) @ self._frame
        kept = coordinates[:, 1 : self.n_components_ + 1]
        dropped = coordinates[:, self.n_components_ + 1 :]
        # the nearest point is the part in the subspace, x^T J x = -(1 + |dropped|^2), scaled to -1
        space = kept / np.sqrt(1 + np.square(dropped).sum(axis=1, keepdims=True))
        found = (
            hyperboloid.logarithm(space) if self.output == "tangent" else self._to_user(lift(space))
        )
        return finite_result(found.astype(X.dtype, copy=False), "X")

    def inverse_transform(self, X: Any) -> Any:
        """The points of the subspace with these coordinates, in the form of the input."""
        check_fitted(self)
        X = self._transformed_rows(X)
        given = X.astype(np.float64)
        tangent = self.output == "tangent"
        space = hyperboloid.exponential(given) if tangent else space_of(_moved(given, self.time))
        zeros = np.zeros((len(space), len(self._frame) - 1 - space.shape[1]))
        points = lift(np.hstack([space, zeros])) @ self._inverse_frame()
        space = points[:, 1:]
        euclidean = self.input == "euclidean"
        found = space / float(self.scale) if euclidean else self._to_user(lift(space))
        return finite_result(found.astype(X.dtype, copy=False), "X")

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components_) + (self.output == "hyperboloid")

    def _inverse_frame(self) -> Floats:
        return np.asarray(inverse(self._frame, Signature.lorentz(len(self._frame))))

    def _space(self, X: Any) -> Floats:
        """The space coordinates (m, d) of the input."""
        given = X.astype(np.float64)
        if self.input == "euclidean":
            return np.asarray(float(self.scale) * given)
        if given.shape[1] < 2:
            raise ValueError("X must have at least 2 columns for points of the hyperboloid, got 1")
        points = _moved(given, self.time)
        other = "last" if self.time == "first" else "first"
        if not are_points(points) and are_points(_moved(given, other)):
            expected = f'points of the hyperboloid with the time {self.time}, time="{self.time}"'
            found = f'points with the time {other}: pass time="{other}"'
            raise ValueError(f"X must hold {expected}, got {found}")
        return space_of(points)

    def _to_user(self, points: Floats) -> Floats:
        """Move the time from the first column to where the user has it."""
        return points if self.time == "first" else np.roll(points, -1, axis=1)


def _moved(points: Floats, time: str) -> Floats:
    """Points with the time in the first column, where ``time`` says that it is now."""
    return points if time == "first" else np.roll(points, 1, axis=1)


def _principal_frame(points: Floats) -> tuple[Floats, Floats]:
    """lambda (d,), descending, and a J-orthogonal F: points F are their principal coordinates."""
    signature = Signature.lorentz(points.shape[1])
    centre = hyperboloid.boost_to(-hyperboloid.centre_of(points))
    near = lift((points @ centre)[:, 1:])
    C = near.T @ near / len(near)
    if not len(C) * UNIT * np.trace(C) < SHIFT / 4:
        expected = "within a hyperbolic radius of about 17 of its centre, what float64 resolves"
        found = f"{np.arccosh(near[:, 0].max()):.3g}; for Euclidean rows a smaller scale helps"
        raise ValueError(f"X must lie {expected}, got a largest radius of {found}")
    shifted, W = eigh(C + SHIFT * np.diag(signature.signs), signature)
    descending = np.r_[0, signature.positive[::-1]]
    F = (centre @ W)[:, descending]
    values = np.maximum(shifted[descending[1:]] - SHIFT, 0.0)
    return values, F * _signs(np.asarray(inverse(F, signature)))


def _signs(axes: Floats) -> Floats:
    """Signs that make the largest entry of each row positive, which is the time of a point."""
    largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=1)[:, None], axis=1)[:, 0]
    return np.where(largest < 0, -1.0, 1.0)
