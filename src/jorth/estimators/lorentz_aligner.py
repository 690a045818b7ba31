"""J-orthogonal Procrustes as a scikit-learn transformer."""

from __future__ import annotations

import warnings
from typing import Any, Literal

from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from jorth.arrays import check_choice, check_signature, finite_result, whole_number
from jorth.estimators.validation import (
    FLOATS,
    at_least_zero,
    naming,
    numbers,
    rows,
    rows_and_targets,
)
from jorth.signature import Signature
from jorth.solvers import Status, procrustes
from jorth.solvers.loop.solver import AbstractSolver


class LorentzAligner(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """The isometry R of O(p, q) that takes the points X nearest to the points Y: min ||X R - Y||_F^2, R^T J R = J.

    Two embeddings in hyperbolic or ultrahyperbolic space that were made independently agree at best up to such an R.
    Y may have fewer columns than X, k < n: then R is (n, k) with R^T J R = diag(s_1, ..., s_k). See `jorth.procrustes`.

    Args:
        signature: The signs of J, one for each column of X; when omitted, Lorentz with the time last.
        components: "all" components of O(p, q), or the one of the "start", the polar factor of the least-squares fit.
        method: A method of `jorth.minimize`; when omitted, that of `jorth.procrustes`.
        gradient_tolerance: As in `jorth.procrustes`.
        max_iterations: The limit for each run; none when omitted. A run that it cuts short warns.

    Attributes:
        rotation_: R, (n, k).
        result_: The `jorth.Result` of the fit.
        signature_: The signature that was used.
        n_features_in_: n.
    """

    def __init__(
        self,
        signature: Signature | None = None,
        *,
        components: Literal["all", "start"] = "all",
        method: str | AbstractSolver | None = None,
        gradient_tolerance: float | None = None,
        max_iterations: int | None = None,
    ) -> None:
        self.signature = signature
        self.components = components
        self.method = method
        self.gradient_tolerance = gradient_tolerance
        self.max_iterations = max_iterations

    def fit(self, X: Any, y: Any = None) -> LorentzAligner:
        """Find R for points X (m, n) and the points y (m, k), k at most n, that they should go to."""
        self._check_parameters()
        X, y = rows_and_targets(self, X, y)
        y = y.reshape(len(y), -1).astype(X.dtype, copy=False)
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
        if y.shape[1] > n:
            raise ValueError(f"y must have at most the {n} columns of X, got {y.shape[1]}")
        tolerance = at_least_zero(self.gradient_tolerance, "gradient_tolerance")
        with naming(X=X, y=y):
            self.result_ = procrustes(
                X,
                y,
                self.signature_,
                components=self.components,
                method=self.method,
                gradient_tolerance=tolerance,
                max_iterations=self.max_iterations,
            )
        self.rotation_ = self.result_.x
        if self.result_.status not in (Status.CONVERGED, Status.STALLED):
            warnings.warn(
                f"the fit did not converge: {self.result_.message}",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _check_parameters(self) -> None:
        check_choice(self.components, "components", ("all", "start"))
        if self.max_iterations is not None:
            whole_number(self.max_iterations, "max_iterations", 0)

    def transform(self, X: Any) -> Any:
        """X R."""
        check_is_fitted(self)
        X = rows(self, X, reset=False)
        return finite_result(X @ self.rotation_.astype(X.dtype, copy=False), "X")

    def inverse_transform(self, X: Any) -> Any:
        """X J_k R^T J, which `transform` takes back to X (m, k); for k = n the inverse of R, exact."""
        check_is_fitted(self)
        X = numbers(X, "X", dtype=FLOATS)
        if X.shape[1] != self._n_features_out:
            raise ValueError(
                f"X must have {self._n_features_out} columns, as transform gives, got {X.shape[1]}"
            )
        signs = self.signature_.signs.astype(X.dtype)
        found = (X * signs[: X.shape[1]]) @ (self.rotation_.T.astype(X.dtype, copy=False) * signs)
        return finite_result(found, "X")

    def score(self, X: Any, y: Any) -> float:
        """R^2 = 1 - ||X R - y||^2 / ||y - mean(y)||^2."""
        moved = self.transform(X)
        with naming(X=X, y=y):
            return float(r2_score(y, moved, multioutput="variance_weighted"))

    @property
    def _n_features_out(self) -> int:
        return int(self.rotation_.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
