"""The structural probe as a scikit-learn transformer."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np
from scipy.spatial.distance import pdist, squareform
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from jorth.arrays import (
    check_choice,
    check_signature,
    check_square,
    finite_result,
    real_number,
    seed_number,
    whole_number,
)
from jorth.estimators.hyperboloid import Floats
from jorth.estimators.validation import at_least_zero, naming, numbers, rows
from jorth.group import random_point
from jorth.objectives import StructuralProbe
from jorth.signature import Signature
from jorth.solvers import Result, Status, minimize
from jorth.solvers.loop.solver import AbstractSolver
from jorth.ultrahyperbolic import distance, lift

START_CONDITION = 1.5
"""Of the random starts: near the identity, and yet no row of sparse data is without t."""


class StructuralProbeRegressor(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """The R of O(p, q) after which geodesic distances of the rows x_i match given distances T_ij best.

    Points are phi(x R) on the pseudo-hyperboloid of radius alpha (`jorth.ultrahyperbolic.lift`), d their geodesic
    distances, and R and the factor c minimise stress^2 + ridge/2 ||R||_F^2, stress = sqrt(sum (T - c d)^2 / sum T^2).

    Block-orthogonal factors on the right of R are isometries that commute with the lift: they change no distance. So
    all components of O(p, q) hold the same minima, R is determined up to O(p) x O(q), and p q parameters are fitted:
    none for the sphere p = 0. For q > 1 the objective is rough, and for q = 1 it jumps where a row changes the sign of
    its t; more starts and a ridge help. Rows with a last column of ones start with one sign.

    Args:
        signature: The signs of J, one for each column of X, q at least 1; when omitted, Lorentz with the time last:
            hyperbolic space of one dimension less than X has columns.
        alpha: The radius of the pseudo-hyperboloid: the smaller, the more curved. To multiply both alpha and X by a
            number multiplies all d by it.
        scale: c, a number; "fit" takes the best one, sum T d / sum d^2.
        ridge: At least 0; keeps ||R|| in bounds.
        zero_rows: A row of zeros has no lift. "base" puts it at the base point, alpha on the first negative axis;
            "error" refuses it.
        method: A method of `jorth.minimize`.
        n_init: Random starts; the fit with the least objective is kept.
        max_iterations: The limit for each start; none when omitted. A fit that it or ``max_time`` cuts short warns.
        max_time: The limit in seconds for each start; none when omitted.
        gradient_tolerance: As in `jorth.minimize`, for the objective above, which has no unit.
        random_state: An integer, the seed of the starts and of the method.

    Attributes:
        rotation_: R, (n, n).
        scale_: c.
        spearman_: Spearman's rank correlation of T and d, of the fit.
        stress_: The stress of the fit.
        result_: The `jorth.Result` of the start that was kept.
        signature_: The signature that was used.
        n_features_in_: n.
    """

    def __init__(
        self,
        signature: Signature | None = None,
        *,
        alpha: float = 1.0,
        scale: float | Literal["fit"] = "fit",
        ridge: float = 0.0,
        zero_rows: Literal["error", "base"] = "base",
        method: str | AbstractSolver = "riemannian-lbfgs",
        n_init: int = 1,
        max_iterations: int | None = 500,
        max_time: float | None = None,
        gradient_tolerance: float = 1e-6,
        random_state: int = 0,
    ) -> None:
        self.signature = signature
        self.alpha = alpha
        self.scale = scale
        self.ridge = ridge
        self.zero_rows = zero_rows
        self.method = method
        self.n_init = n_init
        self.max_iterations = max_iterations
        self.max_time = max_time
        self.gradient_tolerance = gradient_tolerance
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> StructuralProbeRegressor:
        """Find R and c for the rows X (m, n).

        The distances y are a matrix T (m, m), symmetric, none negative; or numbers (m,), for |y_i - y_j|; or, when
        omitted, the Euclidean distances of the rows.
        """
        self._check_parameters()
        X = rows(self, X, ensure_min_samples=2).astype(np.float64)
        n = X.shape[1]
        self.signature_ = (
            Signature.lorentz(n, "last")
            if self.signature is None
            else check_signature(self.signature)
        )
        if self.signature_.n != n:
            raise ValueError(
                f"signature must have {n} signs, one for each column of X, got {self.signature_}"
            )
        T = squareform(pdist(X)) if y is None else _distance_matrix(y, len(X))
        largest = T.max() or 1.0  # so that no square overflows
        unit = largest * np.sqrt(np.square(T / largest).mean()) or 1.0
        if not np.isfinite(1 / unit):
            raise ValueError(
                f"y must hold distances in the range of float64, got a root mean square of {unit:.3g}"
            )
        # in this unit the mean of (T - c d)^2 is the squared stress
        self._check_zero_rows(X)
        probe = self._probe(X, T / unit, unit)
        self.result_ = self._best(probe)
        if self.result_.status not in (Status.CONVERGED, Status.STALLED):
            warnings.warn(
                f"the fit did not converge: {self.result_.message}",
                ConvergenceWarning,
                stacklevel=2,
            )
        self.rotation_ = self.result_.x
        self.scale_ = unit * probe.fitted_scale(self.rotation_)
        d = _upper(self.distances(X))
        self.spearman_, self.stress_ = _spearman(d, _upper(T)), _stress(d, _upper(T))
        return self

    def transform(self, X: Any) -> Any:
        """The points phi(X R) (m, n) on the pseudo-hyperboloid."""
        check_is_fitted(self)
        X = rows(self, X, reset=False)
        return self._points(X).astype(X.dtype, copy=False)

    def distances(self, X: Any) -> Floats:
        """The geodesic distances c d (m, m) of all pairs of rows, which stand for T."""
        check_is_fitted(self)
        points = self._points(rows(self, X, reset=False))
        with naming(X=X):
            d = np.stack(
                [
                    distance(point, points, self.signature_, alpha=float(self.alpha))
                    for point in points
                ]
            )
        np.fill_diagonal(d, 0.0)
        return np.asarray(self.scale_ * d)

    def score(self, X: Any, y: Any = None) -> float:
        """The distance correlation: Pearson's correlation of T_ij and d_ij over the pairs i < j.

        It is the statistic of N. Mantel, Cancer Research 27, 1967, which compares two matrices of distances pair by
        pair; Szekely's coefficient of the same name does not, it is a measure of dependence between two samples. NaN
        where T or d is the same for all pairs.
        """
        return _pearson(*self._pairs(X, y))

    def spearman(self, X: Any, y: Any = None) -> float:
        """Spearman's rank correlation of T_ij and d_ij over the pairs i < j; NaN where one is the same for all."""
        return _spearman(*self._pairs(X, y))

    def stress(self, X: Any, y: Any = None) -> float:
        """Sqrt(sum (T - c d)^2 / sum T^2) with the c of the fit; NaN where T is zero."""
        return _stress(*self._pairs(X, y))

    def _check_parameters(self) -> None:
        check_choice(self.zero_rows, "zero_rows", ("error", "base"))
        if not (isinstance(self.scale, str) and self.scale == "fit"):
            real_number(
                self.scale,
                "scale",
                'a positive number or "fit"',
                lambda number: 0 < number < np.inf,
            )
        check_square(self.alpha, "alpha")
        real_number(
            self.ridge, "ridge", "a number of at least 0", lambda number: 0 <= number < np.inf
        )

    def _check_zero_rows(self, X: Floats) -> None:
        count = int((~X.any(axis=1)).sum())
        if count and self.zero_rows == "error":
            raise ValueError(
                f"X must have no row of zeros, which no map moves and which has no lift, got {count} of {len(X)}; "
                'drop them, or take zero_rows="base"'
            )

    def _probe(self, X: Floats, T: Floats, unit: float) -> StructuralProbe:
        """The objective, with the distances and a given scale in the same unit."""
        return StructuralProbe(
            X,
            T,
            signature=self.signature_,
            alpha=float(self.alpha),
            scale=self.scale if isinstance(self.scale, str) else float(self.scale) / unit,
            ridge=float(self.ridge),
            zero_rows=self.zero_rows,
        )

    def _best(self, probe: StructuralProbe) -> Result:
        """The run with the least value of those from the random starts."""
        seed = seed_number(self.random_state, "random_state")
        rng = np.random.default_rng(seed)
        runs = [
            minimize(
                probe,
                random_point(self.signature_, cond=START_CONDITION, seed=rng),
                method=self.method,
                max_iterations=self.max_iterations,
                max_time=at_least_zero(self.max_time, "max_time"),
                gradient_tolerance=at_least_zero(self.gradient_tolerance, "gradient_tolerance"),
                seed=seed,
            )
            for _ in range(whole_number(self.n_init, "n_init", 1))
        ]
        return min(runs, key=lambda run: run.value)

    def _points(self, X: Floats) -> Floats:
        """The points in float64; rows of zeros at the base point."""
        self._check_zero_rows(X)
        moved = finite_result(X.astype(np.float64) @ self.rotation_, "X")
        moved[~X.any(axis=1), self.signature_.negative[0]] = 1.0
        with naming(X=X):
            return np.asarray(lift(moved, self.signature_, alpha=float(self.alpha)))

    def _pairs(self, X: Any, y: Any) -> tuple[Floats, Floats]:
        """Distances of the points, and those that they should have, of the pairs i < j."""
        d = self.distances(X)
        T = (
            squareform(pdist(np.asarray(X, dtype=np.float64)))
            if y is None
            else _distance_matrix(y, len(d))
        )
        return _upper(d), _upper(T)

    @property
    def _n_features_out(self) -> int:
        return len(self.rotation_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _distance_matrix(y: Any, m: int) -> Floats:
    """T (m, m) from a matrix or from numbers (m,)."""
    T = numbers(y, "y", dtype=np.float64, ensure_2d=False)
    if T.shape == (m,):
        return np.asarray(np.abs(T[:, None] - T))
    if T.shape != (m, m):
        raise ValueError(
            f"y must have shape ({m}, {m}), distances, or ({m},), numbers, for the rows of X, got {T.shape}"
        )
    if T.min() < 0:
        raise ValueError(f"y must hold distances that are not negative, got {T.min():.3g}")
    defect = np.abs(T - T.T).max()
    if (
        defect > 64 * np.finfo(np.float32).eps * T.max()
    ):  # distances computed in float32 are symmetric to this
        raise ValueError(f"y must be symmetric, got max |T - T^T| = {defect:.3g}")
    return np.asarray(T / 2 + T.T / 2)


def _upper(matrix: Floats) -> Floats:
    return matrix[np.triu_indices(len(matrix), 1)]


def _stress(d: Floats, T: Floats) -> float:
    unit = T.max(initial=0.0)  # so that no square over- or underflows
    return float(np.linalg.norm((T - d) / unit) / np.linalg.norm(T / unit)) if unit > 0 else np.nan


def _pearson(a: Floats, b: Floats) -> float:
    a, b = _centred(a), _centred(b)
    return float(a @ b) if a.any() and b.any() else np.nan


def _centred(a: Floats) -> Floats:
    """The numbers minus their mean, of unit length unless all are the same; no square over- or underflows."""
    a = a / (np.abs(a).max(initial=0.0) or 1.0)
    a = a - a.mean()
    a = a / (np.abs(a).max(initial=0.0) or 1.0)
    return np.asarray(a / (np.linalg.norm(a) or 1.0))


def _spearman(a: Floats, b: Floats) -> float:
    return _pearson(rankdata(a), rankdata(b))
