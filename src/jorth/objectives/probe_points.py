"""The points to which X maps the rows of a structural probe, and derivatives back to X."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from jorth.signature import Signature
from jorth.ultrahyperbolic import height, polar


@dataclass(frozen=True)
class Points:
    """Points (m, n) on the pseudo-hyperboloid, the p coordinates with plus signs first.

    ``height`` (m, 1) is sqrt(alpha^2 + |s|^2), and ``length`` (m, 1) the |t| that was scaled to it;
    both are None if X acts on points that have been lifted before.
    """

    Q: Tensor
    height: Tensor | None = None
    length: Tensor | None = None


class RowMap:
    """X -> phi(D X), or phi(D) X with ``lift_first``.

    A row with t = 0 is lifted along the first negative axis, which is one of the limits there, and
    its derivative in t is set to zero. So a run that lands on t = 0, across which f jumps for
    q = 1, goes on. Columns are in the order of their signs, so that s and t are slices.
    """

    def __init__(
        self, data: Tensor, signature: Signature, alpha: float, *, lift_first: bool
    ) -> None:
        self.p = signature.p
        self.alpha = alpha
        self._order = torch.cat(signature.positions(data.device))
        self.signs = signature.vector(data)[self._order]
        self._lift_first = lift_first
        self._data = data
        if lift_first:
            self._data = torch.empty_like(data)
            self._data[:, self._order] = self._lift(data[:, self._order]).Q

    def __call__(self, X: Tensor) -> Points:
        Z = self._data @ X[:, self._order]
        return Points(Z) if self._lift_first else self._lift(Z)

    def without_t(self, X: Tensor) -> Tensor:
        """Which rows (m,) of D X have t = 0."""
        return (self._data @ X[:, self._order[self.p :]] == 0).all(dim=1)

    def pull_back(self, points: Points, dQ: Tensor) -> Tensor:
        """The gradient in X (n, n) for the derivative dQ (m, n) in the points; overwrites dQ."""
        if points.height is not None and points.length is not None:
            s, t = points.Q[:, : self.p], points.Q[:, self.p :]
            ds, dt = dQ[:, : self.p], dQ[:, self.p :]
            direction = t / points.height
            along = (dt * direction).sum(dim=-1, keepdim=True)
            ds.addcmul_(along / points.height, s)
            dt.addcmul_(along, direction, value=-1.0).mul_(points.height / points.length)
        gradient = torch.empty(dQ.shape[1], dQ.shape[1], dtype=dQ.dtype, device=dQ.device)
        gradient[:, self._order] = self._data.mT @ dQ
        return gradient

    def _lift(self, Z: Tensor) -> Points:
        """(s, sqrt(alpha^2 + |s|^2) t / |t|), written into Z itself."""
        rho = height(Z[:, : self.p], self.alpha)
        length, direction = polar(Z[:, self.p :])
        lost = length.isnan() & ~Z[:, self.p :].isnan().any(dim=1, keepdim=True)
        direction.masked_fill_(lost, 0.0)
        direction[:, :1].masked_fill_(lost, 1.0)
        torch.mul(direction, rho, out=Z[:, self.p :])
        return Points(Z, rho, length.masked_fill_(lost, torch.inf))
