"""The objective as a user of another library would write it: NumPy, on the compressed data."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from jorth.objectives import Procrustes

Matrix = NDArray[np.float64]


class DenseProcrustes:
    """f(X) = (||R X - T||^2 + floor) / 2m, as `Procrustes` has it after its QR decomposition, and its derivatives."""

    def __init__(self, objective: Procrustes) -> None:
        self.R, self.T, self.samples = objective.R.numpy(), objective.T1.numpy(), objective.samples
        self.floor = objective.floor

    def value(self, X: Matrix) -> float:
        """F."""
        return float((np.linalg.norm(self.R @ X - self.T) ** 2 + self.floor) / (2 * self.samples))

    def gradient(self, X: Matrix) -> Any:
        """R^T (R X - T) / m."""
        return self.R.T @ (self.R @ X - self.T) / self.samples

    def curvature(self) -> Any:
        """A = R^T R / m: the derivative of the gradient along V is A V."""
        return self.R.T @ self.R / self.samples
