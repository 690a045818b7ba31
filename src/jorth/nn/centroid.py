"""The mean of points as a layer."""

from __future__ import annotations

import torch
from torch import Tensor

from jorth import _inputs
from jorth.nn.on_points import OnPoints
from jorth.signature import Signature
from jorth.ultrahyperbolic.means import centroid_at
from jorth.ultrahyperbolic.points import Radius, without_autocast


class LorentzCentroid(OnPoints):
    """(..., m, n) -> (..., n): the centroid alpha s / sqrt(-<s, s>_J), s = sum w_i x_i.

    The weights w are given with the points, or equal. With q = 1, points on one sheet and weights
    of at least 0 there is always a centroid; elsewhere the result is NaN where s is not timelike,
    as `jorth.ultrahyperbolic.centroid` explains. The layer commutes with isometries.

    Args:
        signature: The signs of J, q at least 1.
        alpha: The radius of the points.

    >>> points = torch.tensor([[1.25, 0.75], [1.25, -0.75]])
    >>> jorth.nn.LorentzCentroid(jorth.Signature.lorentz(2))(points)
    tensor([1., 0.])
    """

    def __init__(self, signature: Signature, *, alpha: float = 1.0) -> None:
        super().__init__(signature, alpha, None)

    def forward(
        self, x: Tensor, weights: Tensor | None = None, *, alpha: Radius | None = None
    ) -> Tensor:
        """Return the centroids (..., n) of points x (..., m, n) with weights (..., m)."""
        x = self.check_points(x, "x", dimensions=2)
        m = x.shape[-2]
        if m == 0:
            expected = f"(..., m, {self.signature.n}) with m of at least 1"
            raise ValueError(f"x must have shape {expected}, got {_inputs.describe(x)}")
        if weights is None:
            shares = torch.ones_like(x[..., 0])
        else:
            shares = self.check_floats(weights, "weights")
            fits = shares.ndim and shares.shape[-1] == m
            if not fits or not _inputs.broadcast(shares.shape, x.shape[:-1]):
                expected = f"shape (..., {m}) for x of shape {tuple(x.shape)}"
                raise ValueError(f"weights must have {expected}, got {_inputs.describe(shares)}")
        with without_autocast(x):
            return centroid_at(x, shares, self.signature.vector(x), self.radius(alpha))
