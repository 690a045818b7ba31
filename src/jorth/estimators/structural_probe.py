"""The structural probe as a scikit-learn transformer."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist, squareform
from scipy.stats import rankdata
from sklearn.utils.validation import check_array, check_is_fitted

from jorth import _inputs
from jorth.estimators import base
from jorth.estimators.base import Transformer
from jorth.group import random_point
from jorth.group.time_column import warn_of_other_time
from jorth.objectives import StructuralProbe
from jorth.signature import Signature
from jorth.solvers import AbstractSolver, Result, minimize
from jorth.ultrahyperbolic import distance, lift

Floats = NDArray[np.float64]


class StructuralProbeEmbedding(Transformer):
    """The R of O(p, q) with which geodesic distances of the rows x_i best match given ones, T_ij.

    Points are phi(x R) on the pseudo-hyperboloid of radius alpha (`jorth.ultrahyperbolic.lift`),
    and d are their geodesic distances. R and the factor c minimise stress^2 + ridge/2 ||R||_F^2
    with stress = sqrt(sum (T - c d)^2 / sum T^2).

    Block-orthogonal factors on the right of R change no distance. Hence all components of O(p, q)
    have the same minima, and R is determined up to O(p) x O(q). The objective is rough for q > 1,
    and for q = 1 it jumps where a row changes the sign of its t; more starts and a ridge help.

    Args:
        signature: The signs of J, one per column of X, q at least 1; by default Lorentz, which is
            hyperbolic space of one dimension less than X has columns.
        time: "first" or "last", the column of the time in the default signature.
        alpha: The radius of the pseudo-hyperboloid: the smaller, the more curved.
        scale: c, a number, or "fit" for the best one, sum T d / sum d^2.
        ridge: At least 0; it keeps ||R|| in bounds.
        method: A method of `jorth.minimize`.
        n_init: The number of random starts; the fit with the least objective is kept.
        max_iterations: The limit for each start, or None. A fit that reaches a limit gives a
            warning.
        max_time: The limit in seconds for each start, or None.
        gradient_tolerance: As in `jorth.minimize`.
        random_state: The seed of the starts and of the method: an integer, a RandomState, or
            None for others in every fit.

    Attributes:
        rotation_: R, (n, n).
        scale_: c.
        spearman_: Spearman's rank correlation of T and d in the fit.
        stress_: The stress of the fit.
        result_: The `jorth.Result` of the start that was kept.
        signature_: The signature that was used.
        n_features_in_: n.

    >>> rows = np.random.default_rng(0).standard_normal((20, 3))
    >>> lengths = np.linalg.norm(rows[:, None] - rows, axis=-1)
    >>> jorth.estimators.StructuralProbeEmbedding().fit(rows, lengths).rotation_.shape
    (3, 3)
    """

    # scikit-learn wants one argument per parameter
    def __init__(
        self,
        signature: Signature | None = None,
        *,
        time: Literal["first", "last"] = "first",
        alpha: float = 1.0,
        scale: float | Literal["fit"] = "fit",
        ridge: float = 0.0,
        method: str | AbstractSolver = "riemannian-lbfgs",
        n_init: int = 1,
        max_iterations: int | None = 500,
        max_time: float | None = None,
        gradient_tolerance: float | None = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.signature = signature
        self.time = time
        self.alpha = alpha
        self.scale = scale
        self.ridge = ridge
        self.method = method
        self.n_init = n_init
        self.max_iterations = max_iterations
        self.max_time = max_time
        self.gradient_tolerance = gradient_tolerance
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> StructuralProbeEmbedding:
        """Find R and c for the rows X (m, n).

        The distances y are a symmetric matrix T (m, m) without negative entries, or numbers (m,)
        for |y_i - y_j|, or by default the Euclidean distances of the rows.
        """
        if not (isinstance(self.scale, str) and self.scale == "fit"):
            expected = 'a positive number or "fit"'
            _inputs.real_number(self.scale, "scale", expected, lambda x: 0 < x < np.inf)
        X = self._rows(X, ensure_min_samples=2).astype(np.float64)
        self.signature_ = base.signature_for(X.shape[1], self.signature, self.time)
        warn_of_other_time(self.signature_, X)
        T = _distance_matrix(X, y)
        # in this unit the mean of (T - c d)^2 is the squared stress
        unit = _root_mean_square(T) or 1.0
        if not np.isfinite(1 / unit):
            found = f"a root mean square of {unit:.3g}"
            raise ValueError(f"y must hold distances in the range of float64, got {found}")
        probe = StructuralProbe(
            X,
            T / unit,
            signature=self.signature_,
            alpha=self.alpha,
            scale=self.scale if isinstance(self.scale, str) else float(self.scale) / unit,
            ridge=self.ridge,
        )
        self.result_ = self._best(probe)
        base.warn_unless_converged(self.result_)
        self.rotation_ = self.result_.x
        self.scale_ = unit * probe.fitted_scale(self.rotation_)
        fitted, given = _condensed(self._distances(X)), _condensed(T)
        self.spearman_ = _spearman(fitted, given)
        self.stress_ = _stress(fitted, given)
        return self

    def transform(self, X: Any) -> Any:
        """Return the points phi(X R) (m, n) on the pseudo-hyperboloid."""
        check_is_fitted(self)
        X = self._rows(X, reset=False)
        return self._points(X).astype(X.dtype, copy=False)

    def distances(self, X: Any) -> Floats:
        """Return the geodesic distances c d (m, m) of all pairs of rows, which approximate T."""
        check_is_fitted(self)
        return self._distances(self._rows(X, reset=False))

    def _distances(self, X: Floats) -> Floats:
        """Return the same for rows that have been checked."""
        points, alpha = self._points(X), float(self.alpha)
        d = np.stack([distance(one, points, self.signature_, alpha=alpha) for one in points])
        np.fill_diagonal(d, 0.0)
        return np.asarray(self.scale_ * d)

    def score(self, X: Any, y: Any = None) -> float:
        """Return the distance correlation, Pearson's of T_ij and d_ij over the pairs i < j.

        This is Mantel's statistic. It is NaN where T or d is the same for all pairs.
        """
        return _pearson(*self._pairs(X, y))

    def spearman(self, X: Any, y: Any = None) -> float:
        """Return Spearman's rank correlation over the pairs i < j; NaN where T or d is constant."""
        return _spearman(*self._pairs(X, y))

    def stress(self, X: Any, y: Any = None) -> float:
        """Return sqrt(sum (T - c d)^2 / sum T^2) with the c of the fit; NaN where T is zero."""
        return _stress(*self._pairs(X, y))

    def _best(self, probe: StructuralProbe) -> Result:
        """Return the run with the least value of those from the random starts."""
        seed = base.seed_of(self.random_state)
        random = np.random.default_rng(seed)
        settings: dict[str, Any] = dict(method=self.method, seed=seed, max_time=self.max_time)
        settings |= dict(max_iterations=self.max_iterations)
        settings |= dict(gradient_tolerance=self.gradient_tolerance)
        runs = [
            # near the identity, yet no row of sparse data gets t = 0
            minimize(probe, random_point(self.signature_, cond=1.5, seed=random), **settings)
            for _ in range(_inputs.whole_number(self.n_init, "n_init", 1))
        ]
        return min(runs, key=lambda run: run.value)

    def _points(self, X: Floats) -> Floats:
        """Return the points in float64, rows of zeros at the base point."""
        mapped = _inputs.finite_result(X.astype(np.float64) @ self.rotation_, "X")
        mapped[~X.any(axis=1), self.signature_.negative[0]] = 1.0
        return np.asarray(lift(mapped, self.signature_, alpha=float(self.alpha)))

    def _pairs(self, X: Any, y: Any) -> tuple[Floats, Floats]:
        """Return the distances of the points and those of y, both for the pairs i < j."""
        check_is_fitted(self)
        rows = self._rows(X, reset=False)
        T = _distance_matrix(rows.astype(np.float64), y)
        return _condensed(self._distances(rows)), _condensed(T)

    @property
    def _n_features_out(self) -> int:
        return len(self.rotation_)


def _distance_matrix(X: Floats, y: Any) -> Floats:
    """Return T (m, m) from a matrix or numbers (m,), or the Euclidean distances of the rows."""
    if y is None:
        return np.asarray(squareform(pdist(X)))
    m = len(X)
    T = check_array(base.dense(y, "y"), input_name="y", dtype=np.float64, ensure_2d=False)
    if T.shape == (m,):
        return np.asarray(np.abs(T[:, None] - T))
    if T.shape != (m, m):
        expected = f"({m}, {m}), distances, or ({m},), numbers, for the rows of X"
        raise ValueError(f"y must have shape {expected}, got {T.shape}")
    if T.min() < 0:
        raise ValueError(f"y must hold distances that are not negative, got {T.min():.3g}")
    defect = np.abs(T - T.T).max()
    rounding = 64 * np.finfo(np.float32).eps * T.max()  # distances may be computed in float32
    if defect > rounding:
        raise ValueError(f"y must be symmetric, got max |T - T^T| = {defect:.3g}")
    return np.asarray(T / 2 + T.T / 2)


def _condensed(matrix: Floats) -> Floats:
    """Return the entries of the pairs i < j."""
    return np.asarray(squareform(matrix, checks=False))


# The functions below divide by the largest entry first, so that no square over- or underflows.


def _root_mean_square(T: Floats) -> float:
    largest = T.max() or 1.0
    return float(largest * np.sqrt(np.square(T / largest).mean()))


def _stress(d: Floats, T: Floats) -> float:
    unit = T.max(initial=0.0)
    return float(np.linalg.norm((T - d) / unit) / np.linalg.norm(T / unit)) if unit > 0 else np.nan


def _pearson(a: Floats, b: Floats) -> float:
    if len(a) < 2 or min(np.ptp(a), np.ptp(b)) == 0:
        return np.nan
    return float(np.corrcoef(a / np.abs(a).max(), b / np.abs(b).max())[0, 1])


def _spearman(a: Floats, b: Floats) -> float:
    return _pearson(rankdata(a), rankdata(b))
