"""J-orthogonal Procrustes as a scikit-learn transformer."""

from __future__ import annotations

from typing import Any, Literal, cast

import numpy as np
from sklearn.metrics import r2_score
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from jorth._inputs import check_choice, finite_result, whole_number
from jorth.estimators import base
from jorth.estimators.base import Transformer
from jorth.signature import Signature
from jorth.solvers import Result, procrustes


class LorentzAligner(Transformer):
    """The isometry R of O(p, q) that brings X closest to Y: min ||X R - Y||_F^2, R^T J R = J.

    Two embeddings in hyperbolic or ultrahyperbolic space that were computed independently agree at
    best up to such an R. Y may have fewer columns than X, k < n; then R is (n, k) with
    R^T J R = diag(s_1, ..., s_k). See `jorth.procrustes`.

    Args:
        signature: The signs of J, one per column of X; by default Lorentz.
        time: "first" or "last", the column of the time in the default signature. There is a warning
            if the points have it at the other end.
        components: "all" components of O(p, q), or that of the "start", the polar factor of the
            least-squares fit.
        gradient_tolerance: As in `jorth.procrustes`.
        max_iterations: The limit for each run, by default 1000. There is a warning if a run
            reaches it.

    Attributes:
        rotation_: R, (n, k).
        result_: The `jorth.Result` of the fit.
        signature_: The signature that was used.
        n_features_in_: n.

    >>> source, target, X = jorth.datasets.planted_procrustes(50, jorth.Signature.lorentz(3))
    >>> aligner = jorth.estimators.LorentzAligner().fit(source, target)
    >>> np.allclose(aligner.transform(source), target)
    True
    """

    def __init__(
        self,
        signature: Signature | None = None,
        *,
        time: Literal["first", "last"] = "first",
        components: Literal["all", "start"] = "all",
        gradient_tolerance: float | None = None,
        max_iterations: int | None = None,
    ) -> None:
        self.signature = signature
        self.time = time
        self.components = components
        self.gradient_tolerance = gradient_tolerance
        self.max_iterations = max_iterations

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> LorentzAligner:
        """Find R for points X (m, n), targets y (m, k), k at most n, and weights (m,) of the rows.

        The names of the columns of a frame y are those of what `transform` returns.
        """
        names = [str(name) for name in getattr(y, "columns", ())]
        check_choice(self.components, "components", ("all", "start"))
        if self.max_iterations is not None:
            whole_number(self.max_iterations, "max_iterations", 0)
        X, y = base.dense(X, "X"), base.dense(y, "y")
        X, y = validate_data(self, X, y, dtype=base.FLOATS, multi_output=True, y_numeric=True)
        self._is_vector = y.ndim == 1
        y = y.reshape(len(y), -1).astype(X.dtype, copy=False)
        n = X.shape[1]
        self.signature_ = base.signature_for(n, self.signature, self.time)
        if y.shape[1] > n:
            raise ValueError(f"y must have at most the {n} columns of X, got {y.shape[1]}")
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
            roots = np.sqrt(weights / (weights.mean() or 1.0))[:, None]
            X, y = X * roots.astype(X.dtype), y * roots.astype(X.dtype)
        settings: dict[str, Any] = dict(gradient_tolerance=self.gradient_tolerance)
        settings |= dict(components=self.components, max_iterations=self.max_iterations)
        # of one problem: X and y are matrices
        self.result_ = cast("Result", procrustes(X, y, self.signature_, **settings))
        self.rotation_ = self.result_.x
        self._names = names if len(names) == y.shape[1] else None
        base.warn_unless_converged(self.result_)
        return self

    def transform(self, X: Any) -> Any:
        """Return X R."""
        check_is_fitted(self)
        X = self._rows(X, reset=False)
        return finite_result(X @ self.rotation_.astype(X.dtype, copy=False), "X")

    def predict(self, X: Any) -> Any:
        """Return the targets for X, which are X R, in the shape of y: (m, k), or (m,)."""
        found = self.transform(X)
        return found[:, 0] if self._is_vector else found

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the names of the columns of y, or numbered ones if it had none."""
        check_is_fitted(self)
        numbered = super().get_feature_names_out(input_features)
        return numbered if self._names is None else np.array(self._names, dtype=object)

    def inverse_transform(self, X: Any) -> Any:
        """Return X J_k R^T J, which `transform` maps back to X (m, k); exact for k = n."""
        check_is_fitted(self)
        X = self._transformed_rows(X)
        signs = self.signature_.signs.astype(X.dtype)
        found = (X * signs[: X.shape[1]]) @ (self.rotation_.T.astype(X.dtype, copy=False) * signs)
        return finite_result(found, "X")

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R^2 = 1 - ||X R - y||^2 / ||y - mean(y)||^2, with weighted rows if there are."""
        settings = {"multioutput": "variance_weighted", "sample_weight": sample_weight}
        return float(r2_score(base.dense(y, "y"), self.predict(X), **settings))

    @property
    def _n_features_out(self) -> int:
        return int(self.rotation_.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags
