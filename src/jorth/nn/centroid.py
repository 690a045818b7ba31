"""The mean of points as a layer."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from jorth import _inputs
from jorth.nn.on_points import OnPoints, broadcast, without_autocast
from jorth.signature import Signature
from jorth.ultrahyperbolic.means import centroid_at
from jorth.ultrahyperbolic.points import Radius


class LorentzCentroid(OnPoints):
    """(..., m, n) -> (..., n): the centroid alpha s / sqrt(-<s, s>_J), s = sum w_i x_i.

    The weights w are given with the points, or learned as softmax(``logits``), or both (their
    product), or equal. With q = 1, points on one sheet and weights of at least 0 there is always a
    centroid; elsewhere the result is NaN where s is not timelike, as
    `jorth.ultrahyperbolic.centroid` explains. The layer commutes with isometries.

    Args:
        signature: The signs of J, q at least 1.
        points: The number m of points for which to learn weights; None learns none.
        alpha: The radius of the points.
        device: The device of the parameters.
        dtype: The dtype of the parameters, float32 or float64; torch's default when omitted.
    """

    logits: Tensor | None

    def __init__(
        self,
        signature: Signature,
        points: int | None = None,
        *,
        alpha: float = 1.0,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(signature, alpha, device)
        _inputs.check_count(points, "points")
        _inputs.check_dtype(dtype, optional=True)
        self.points = points
        zeros = None if points is None else torch.zeros(points, device=device, dtype=dtype)
        self.register_parameter("logits", None if zeros is None else nn.Parameter(zeros))

    def reset_parameters(self) -> None:
        """Make learned weights equal."""
        if self.logits is not None:
            nn.init.zeros_(self.logits)

    def forward(
        self, x: Tensor, weights: Tensor | None = None, *, alpha: Radius | None = None
    ) -> Tensor:
        """Return the centroids (..., n) of points x (..., m, n) with weights (..., m)."""
        x = self.check_points(x, "x", dimensions=2)
        m = x.shape[-2]
        if m == 0 or self.points not in (None, m):
            expected = f"(..., {self.points or 'm'}, {self.signature.n})"
            raise ValueError(f"x must have shape {expected}, got {_inputs.describe(x)}")
        shares = x.new_ones(m) if self.logits is None else self.logits.softmax(dim=-1)
        if weights is not None:
            weights = self.check_floats(weights, "weights")
            fits = weights.ndim and weights.shape[-1] == m
            if not fits or not broadcast(weights.shape, x.shape[:-1]):
                expected = f"shape (..., {m}) for x of shape {tuple(x.shape)}"
                raise ValueError(f"weights must have {expected}, got {_inputs.describe(weights)}")
            shares = shares * weights
        with without_autocast(x):
            return centroid_at(x, shares, self.signature.vector(x), self.radius(alpha))

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, points={self.points}"
