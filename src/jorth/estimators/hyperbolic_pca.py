"""Principal component analysis in hyperbolic space."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from jorth.arrays import check_choice, finite_result, positive_number, shown, whole_number
from jorth.decompositions import eigh
from jorth.estimators.hyperboloid import (
    Floats,
    boost_to,
    centre_of,
    exponential,
    lift,
    logarithm,
    space_of,
)
from jorth.estimators.validation import FLOATS, numbers, rows
from jorth.group import inverse
from jorth.signature import Signature

SHIFT = 0.5
"""C + J/2 is positive definite for every set of points: see `HyperbolicPCA`."""
UNIT = 2.0**-53


class HyperbolicPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """The geodesic subspace that minimises the mean of sinh^2(distance to the points), in closed form.

    Points x lie on the hyperboloid x^T J x = -1, J = diag(1, ..., 1, -1), and C = mean(x x^T). The J-eigenvectors
    C J v = lambda v can be chosen with v^T J v = +-1 and J-orthogonal. The timelike one is the base point. The
    subspace spanned by it and spacelike v_1, ..., v_k meets the hyperboloid in a hyperbolic space H^k that has a mean
    sinh^2(distance) of the sum of the other spacelike lambda. That is least, over all H^k, when v_1, ..., v_k have the
    largest lambda. The subspaces are nested; the base point alone is the point with the least mean sinh^2(distance).

    **Points that do not span.** lambda >= 0 on the spacelike and lambda <= -1 on the timelike vectors, since
    (x^T J v)^2 >= 1 for points x and v of the hyperboloid. So C + J/2 is positive definite whatever the rank of C, and
    `jorth.eigh` of it gives all lambda, moved by 1/2, with an error of the order of u ||C|| after the points were
    boosted to their centre. Points at more than about 17 from it are refused: float64 coordinates do not resolve them.

    Args:
        n_components: k, the dimension of the subspace; all d when omitted.
        input: "euclidean": rows x (d) are lifted to (scale x, sqrt(1 + |scale x|^2)); there is no centring, the base
            point does its work. "hyperboloid": rows are points (d + 1); their times are computed again from the space
            coordinates, and rows that are further off than float32 explains are refused.
        output: "tangent": `transform` gives the k tangent coordinates at the base point (the logarithmic map) of the
            nearest point of the subspace: distances from the base point are lengths. "hyperboloid": its k + 1
            coordinates in the basis v_1, ..., v_k, base point, for distances acosh(-x^T J y).
        time: "last" or "first", where points of the hyperboloid have their time, as in `Signature.lorentz`.
        scale: The factor on Euclidean rows. The smaller it is, the nearer the result to that of Euclidean PCA.

    Attributes:
        components_: (k, d + 1), v_1, ..., v_k, by descending lambda; the largest entry of each is positive.
        base_point_: (d + 1,).
        eigenvalues_: (k,), lambda_j = mean (x^T J v_j)^2.
        explained_dispersion_ratio_: (k,), lambda_j by the sum of all d, which is the mean of sinh^2(distance to the
            base point); zero where that is zero.
        n_components_: k.
        n_features_in_: The number of columns of X.

    Reference: P. Tabaghi, M. Khanzadeh, Y. Wang, S. Mirarab, Principal component analysis in space forms, 2023.
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        input: Literal["euclidean", "hyperboloid"] = "euclidean",
        output: Literal["tangent", "hyperboloid"] = "tangent",
        time: Literal["last", "first"] = "last",
        scale: float = 1.0,
    ) -> None:
        self.n_components = n_components
        self.input = input
        self.output = output
        self.time = time
        self.scale = scale

    def fit(self, X: Any, y: Any = None) -> HyperbolicPCA:
        """Find base point and components of the rows of X (m, d), or (m, d + 1) on the hyperboloid."""
        self._check_parameters()
        points = lift(self._space(rows(self, X, ensure_min_samples=2)))
        d = points.shape[1] - 1
        k = d if self.n_components is None else whole_number(self.n_components, "n_components", 1)
        if k > d:
            raise ValueError(
                f"n_components must be at most {d}, the dimension of the hyperbolic space, got {k}"
            )
        values, frame = _principal_frame(points)
        self.n_components_ = k
        self._frame = frame
        axes = self._time_moved(
            np.asarray(inverse(frame, Signature(d, 1)))
        )  # rows: all v, then the base point
        self.components_, self.base_point_ = axes[:k], axes[-1]
        self.eigenvalues_ = values[:k]
        total = values.sum()
        self.explained_dispersion_ratio_ = values[:k] / total if total > 0 else np.zeros(k)
        return self

    def transform(self, X: Any) -> Any:
        """The coordinates (m, k), or (m, k + 1) for output "hyperboloid", of the nearest points of the subspace."""
        check_is_fitted(self)
        X = rows(self, X, reset=False)
        coordinates = lift(self._space(X)) @ self._frame
        kept, dropped = (
            coordinates[:, : self.n_components_],
            coordinates[:, self.n_components_ : -1],
        )
        # the part in the subspace has length^2 -(1 + |dropped|^2); to divide by that root is to go to the nearest point
        space = kept / np.sqrt(1 + np.square(dropped).sum(axis=1, keepdims=True))
        found = logarithm(space) if self.output == "tangent" else self._time_moved(lift(space))
        return finite_result(found.astype(X.dtype, copy=False), "X")

    def inverse_transform(self, X: Any) -> Any:
        """The points of the subspace, in the form of the input, from their coordinates."""
        check_is_fitted(self)
        X = numbers(X, "X", dtype=FLOATS)
        if X.shape[1] != self._n_features_out:
            raise ValueError(
                f"X must have {self._n_features_out} columns, as transform gives, got {X.shape[1]}"
            )
        wide = X.astype(np.float64)
        space = (
            exponential(wide)
            if self.output == "tangent"
            else space_of(self._time_moved(wide, back=True))
        )
        rest = np.zeros((len(space), len(self._frame) - 1 - space.shape[1]))
        points = lift(np.hstack([space, rest])) @ inverse(
            self._frame, Signature(len(self._frame) - 1, 1)
        )
        space = points[:, :-1]
        found = (
            space / float(self.scale)
            if self.input == "euclidean"
            else self._time_moved(lift(space))
        )
        return finite_result(found.astype(X.dtype, copy=False), "X")

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components_) + (self.output == "hyperboloid")

    def _check_parameters(self) -> None:
        check_choice(self.input, "input", ("euclidean", "hyperboloid"))
        check_choice(self.output, "output", ("tangent", "hyperboloid"))
        check_choice(self.time, "time", ("last", "first"))
        positive_number(self.scale, "scale")
        if self.input == "hyperboloid" and self.scale != 1.0:
            raise ValueError(
                f"scale must be 1 where the rows are points of the hyperboloid, got {shown(self.scale)}"
            )

    def _space(self, X: Any) -> Floats:
        """The space coordinates (m, d) of the input."""
        wide = X.astype(np.float64)
        if self.input == "euclidean":
            return np.asarray(float(self.scale) * wide)
        if wide.shape[1] < 2:
            raise ValueError(
                f"X must have at least 2 columns for points of the hyperboloid, got {wide.shape[1]}"
            )
        return space_of(self._time_moved(wide, back=True))

    def _time_moved(self, columns: Floats, *, back: bool = False) -> Floats:
        """The time column from last to where the user has it, or back."""
        if self.time == "last":
            return columns
        return np.roll(columns, -1 if back else 1, axis=1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _principal_frame(points: Floats) -> tuple[Floats, Floats]:
    """(lambda (d,) descending, F (d + 1, d + 1)): F J-orthogonal, points F are coordinates in the principal basis."""
    signature = Signature(points.shape[1] - 1, 1)
    centre = boost_to(-centre_of(points))
    near = lift((points @ centre)[:, :-1])
    C = near.T @ near / len(near)
    if not len(C) * UNIT * np.trace(C) < SHIFT / 4:
        raise ValueError(
            "X must lie within a hyperbolic radius of about 17 of its centre, beyond which float64 does not resolve "
            f"it, got a largest radius of {np.arccosh(near[:, -1].max()):.3g}; for Euclidean rows a smaller scale helps"
        )
    moved, W = eigh(C + SHIFT * np.diag(signature.signs), signature)
    F = centre @ W
    outwards = np.r_[np.arange(signature.p)[::-1], signature.p]
    F, values = F[:, outwards], np.maximum(moved[outwards[:-1]] - SHIFT, 0.0)
    return values, F * _signs(np.asarray(inverse(F, signature)))


def _signs(axes: Floats) -> Floats:
    """Signs that make the largest entry of each row positive: of the base point that is the time."""
    largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=1)[:, None], axis=1)[:, 0]
    return np.where(largest < 0, -1.0, 1.0)
