"""The tasks in NumPy, as a user of another library would write them, and their Hessians."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from jorth.objectives.autograd import differentiate, evaluate
from jorth.signature import Signature

Matrix = NDArray[np.float64]


class Dense(Protocol):
    """f with its gradient and its Hessian along V."""

    def value(self, X: Matrix) -> float: ...

    def gradient(self, X: Matrix) -> Any: ...

    def hessian(self, X: Matrix, V: Matrix) -> Any: ...


class DenseProcrustes:
    """f(X) = ||source X - target||^2 / 2m = (||R X - T||^2 + floor) / 2m, by QR."""

    def __init__(self, source: Matrix, target: Matrix) -> None:
        self.samples, n = source.shape
        factor: Any = np.linalg.qr(np.hstack([source, target]), mode="r")
        self.R = factor[:n, :n]
        self.T = factor[:n, n:]
        self.floor = float(np.linalg.norm(factor[n:, n:]) ** 2)
        self.A = self.R.T @ self.R / self.samples

    def value(self, X: Matrix) -> float:
        return float((np.linalg.norm(self.R @ X - self.T) ** 2 + self.floor) / (2 * self.samples))

    def gradient(self, X: Matrix) -> Any:
        """R^T (R X - T) / m."""
        return self.R.T @ (self.R @ X - self.T) / self.samples

    def hessian(self, X: Matrix, V: Matrix) -> Any:
        """A V with A = R^T R / m."""
        return self.A @ V


class DenseTrace:
    """f(X) = tr(X^T A X)."""

    def __init__(self, A: Matrix) -> None:
        self.A = 2 * A

    def value(self, X: Matrix) -> float:
        return float(np.vdot(X, self.A @ X)) / 2

    def gradient(self, X: Matrix) -> Any:
        return self.A @ X

    def hessian(self, X: Matrix, V: Matrix) -> Any:
        return self.A @ V


class DenseRobust:
    """f(X) = 1/m sum delta^2 (sqrt(1 + |r_i|^2 / delta^2) - 1), r_i = source_i X - target_i.

    Value and gradient are those of ``function`` by the autograd of torch, as ours are. The Hessian
    is written out: with w_i = 1 / sqrt(1 + |r_i|^2 / delta^2) the derivative of w_i r_i along
    d_i = source_i V is w_i d_i - w_i^3 (r_i . d_i) r_i / delta^2.
    """

    def __init__(
        self, function: Callable[[Any], Any], source: Matrix, target: Matrix, delta: float
    ) -> None:
        self._function = function
        self._source = source
        self._target = target
        self._delta = delta

    def value(self, X: Matrix) -> float:
        return float(evaluate(self._function, torch.from_numpy(X)))

    def gradient(self, X: Matrix) -> Any:
        return differentiate(self._function, torch.from_numpy(X))[1].numpy()

    def hessian(self, X: Matrix, V: Matrix) -> Any:
        r = self._source @ X - self._target
        d = self._source @ V
        w = 1 / np.sqrt(1 + np.sum(r * r, axis=1) / self._delta**2)
        along = w**3 * np.sum(r * d, axis=1) / self._delta**2
        return self._source.T @ (w[:, None] * d - along[:, None] * r) / len(r)


class PullbackHessian:
    """The Hessian of S -> f(R(J S) X) at S = 0: S -> skew(J H(J S X) X^T - J S L).

    R is the Cayley transform, H the Hessian of f and L = sym(J G X^T) the multiplier. R agrees with
    exp to second order, so the second derivative along S is <H(J S X), J S X> + <G, J S J S X>.
    This is the model that trust regions need; at critical points it is the Riemannian Hessian of
    every metric. If f is quadratic, J H(J S X) X^T = J A J S X X^T, and three products are enough.
    What depends on X alone is stored for the last X.
    """

    def __init__(self, objective: Dense, signature: Signature) -> None:
        self._objective = objective
        self._s = signature.signs.astype(float)[:, None]
        A = getattr(objective, "A", None)
        self._A = None if A is None else self._s * A * self._s.T
        self._point: Matrix | None = None

    def __call__(self, X: Matrix, S: Matrix) -> Any:
        if self._point is not X:
            N = self._s * (self._objective.gradient(X) @ X.T)
            self._point = X
            self._Y = X @ X.T
            self._multiplier = (N + N.T) / 2
        if self._A is not None:
            bent = self._A @ (S @ self._Y)
        else:
            bent = self._s * (self._objective.hessian(X, self._s * (S @ X)) @ X.T)
        M = bent - self._s * (S @ self._multiplier)
        return (M - M.T) / 2
