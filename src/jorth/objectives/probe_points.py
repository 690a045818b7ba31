"""From X to the points that a structural probe makes of its rows, and from their derivative back to that in X."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from jorth.signature import Signature
from jorth.ultrahyperbolic import height, polar


@dataclass(frozen=True)
class Points:
    """Points (m, n) on the pseudo-hyperboloid, the p coordinates with plus signs first.

    ``height`` (m, 1) is sqrt(alpha^2 + |s|^2), ``length`` (m, 1) the |t| that was scaled to it; None where X acts on
    points that are lifted already.
    """

    Q: Tensor
    height: Tensor | None = None
    length: Tensor | None = None


class RowMap:
    """X -> phi(D X), or phi(D) X with ``lift_first``; rows of D marked in ``zero`` stay at the base point.

    Columns are taken in the order of their signs, so that s and t are slices.
    """

    def __init__(
        self, data: Tensor, signature: Signature, alpha: float, zero: Tensor | None, *, lift_first: bool
    ) -> None:
        self.p, self.alpha, self._zero = signature.p, alpha, zero
        self._order = torch.cat(signature.positions(data.device))
        self.signs = signature.vector(data)[self._order]
        self._lift_first, self._data = lift_first, data
        if lift_first:
            self._data = torch.empty_like(data)
            self._data[:, self._order] = self._lift(data[:, self._order]).Q

    def __call__(self, X: Tensor) -> Points:
        """The points for X; NaN in rows with t = 0."""
        Z = self._data @ X[:, self._order]
        return Points(Z) if self._lift_first else self._lift(Z)

    def in_place_order(self, points: Points) -> Tensor:
        """The points with their coordinates where the signature has them."""
        Q = torch.empty_like(points.Q)
        Q[:, self._order] = points.Q
        return Q

    def pull_back(self, points: Points, dQ: Tensor) -> Tensor:
        """The gradient in X (n, n) for the derivative dQ (m, n) in the points; dQ is overwritten."""
        if points.height is not None and points.length is not None:
            if self._zero is not None:
                dQ[self._zero] = 0.0  # these do not move
            s, t, ds, dt = points.Q[:, : self.p], points.Q[:, self.p :], dQ[:, : self.p], dQ[:, self.p :]
            direction = t / points.height
            along = (dt * direction).sum(dim=-1, keepdim=True)
            ds.addcmul_(along / points.height, s)
            dt.addcmul_(along, direction, value=-1.0).mul_(points.height / points.length)
        gradient = torch.empty(dQ.shape[1], dQ.shape[1], dtype=dQ.dtype, device=dQ.device)
        gradient[:, self._order] = self._data.mT @ dQ
        return gradient

    def _lift(self, Z: Tensor) -> Points:
        """(s, sqrt(alpha^2 + |s|^2) t / |t|), in Z itself."""
        rho, (length, direction) = height(Z[:, : self.p], self.alpha), polar(Z[:, self.p :])
        torch.mul(direction, rho, out=Z[:, self.p :])
        if self._zero is not None:
            Z[self._zero] = 0.0
            Z[self._zero, self.p] = self.alpha
            length = length.masked_fill(self._zero[:, None], 1.0)
        return Points(Z, rho, length)
