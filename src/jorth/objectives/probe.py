"""The hyperbolic structural probe: a linear map after which geodesic distances match given ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor

from jorth import _inputs
from jorth._inputs import ArrayLike, check_finite, check_symmetric, describe, to_tensor
from jorth.objectives.base import AbstractObjective, hash_tensors
from jorth.signature import Signature
from jorth.ultrahyperbolic import SLOPE_FLOOR, check_q, height, polar

BLOCK = 512
"""Bounds the rows of a block of pairs: on the CPU 2 MB per matrix fit the second-level cache."""

MOST_BYTES = 1 << 29
"""The most bytes of a matrix of Euclidean distances; more are computed anew for every block."""


class StructuralProbe(AbstractObjective):
    """f(X) = 1/m^2 sum_ij (T_ij - c d(q_i, q_j))^2 + ridge/2 ||X||_F^2, a finite sum over m rows.

    Here q_i = phi(d_i X): the rows of the data are mapped by X, then lifted onto the
    pseudo-hyperboloid (`jorth.ultrahyperbolic`). Rows of zeros are at the base point, alpha on the
    first negative axis. (The paper's phi(D) X has the same distances for every X.)

    A gradient costs three matrix products over half of the pairs, in blocks. Where |g| = 1 the
    distance has an infinite derivative, and zero is taken instead (see
    `jorth.ultrahyperbolic.distance`).

    The value can keep falling while ||X|| grows, by cancellation in far points: see ``ridge``.

    Args:
        data: (m, n), the rows.
        distances: "euclidean" distances of the rows (the paper), or a symmetric matrix (m, m)
            without negative entries.
        signature: A signature of size n, with q of at least 1.
        alpha: The radius of the pseudo-hyperboloid.
        scale: c, a number; "fit" takes the best c for each X, sum T d / sum d^2, at the cost of a
            second pass.
        ridge: At least 0; keeps ||X|| in bounds.

    >>> rows = np.random.default_rng(0).standard_normal((20, 3))
    >>> probe = jorth.StructuralProbe(rows, signature=jorth.Signature(2, 1))
    >>> result = jorth.minimize(probe, max_iterations=5)
    >>> bool(result.value < result.history["value"][0])
    True
    """

    signature: Signature
    defined_everywhere = False

    def __init__(
        self,
        data: ArrayLike,
        distances: ArrayLike | Literal["euclidean"] = "euclidean",
        *,
        signature: Signature,
        alpha: float = 1.0,
        scale: float | Literal["fit"] = 1.0,
        ridge: float = 0.0,
    ) -> None:
        self.speaks_torch = isinstance(data, Tensor)
        n = _inputs.check_signature(signature).n
        rows = to_tensor(data, "data").detach()
        if rows.ndim != 2 or rows.shape[0] < 2 or rows.shape[1] != n:
            expected = f"shape (m, {n}) with m at least 2 for {signature}"
            raise ValueError(f"data must have {expected}, got {describe(data)}")
        check_finite(rows, "data")
        check_q(signature)
        self._data = rows.clone(memory_format=torch.contiguous_format)
        self.samples = len(rows)
        self._every = torch.arange(len(rows), device=rows.device)
        self.signature = signature
        self.alpha = _inputs.positive_number(alpha, "alpha")
        fit = isinstance(scale, str) and scale == "fit"
        self.scale: float | str = "fit" if fit else _inputs.positive_number(scale, "scale")
        self.ridge = _inputs.nonnegative_number(ridge, "ridge")
        self.nonsmooth = signature.q > 1
        self._distances, self._distances_hash = _distances(distances, self._data)
        # columns in the order of their signs, so that s and t are slices
        self._order = torch.cat(signature.positions(self._data.device))
        self._signs = signature.vector(self._data)[self._order]

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return f and its gradient D^T dZ."""
        points = Q, _, _ = self._map(X)
        dQ = torch.zeros_like(Q)
        total, _, _ = self._sums(Q, dQ, self._scale(Q))
        value = X.new_tensor(2 * total / self.samples**2) + self.ridge / 2 * X.square().sum()
        return value, self._pull_back(points, dQ) + self.ridge * X

    def sample_gradient(self, X: Tensor, index: Tensor) -> Tensor:
        """Return the mean gradient of f_i = 1/m sum_j (T_ij - c d_ij)^2: O(m n) for each i."""
        points = Q, _, _ = self._map(X)
        scale = self._scale(Q)
        QJ = Q * self._signs
        dQ = torch.zeros_like(Q)
        weight = 1 / (len(index) * self.samples * self.alpha**2)
        for rows in torch.split(index, BLOCK):
            g = (Q[rows] / self.alpha**2) @ QJ.mT
            own = rows[:, None] == self._every
            block_terms(g, self._targets(rows, slice(None)), scale, self.alpha, own)
            dQ.index_add_(0, rows, g @ QJ, alpha=weight)
            dQ.addmm_(g.mT, QJ[rows], alpha=weight)
        return self._pull_back(points, dQ) + self.ridge * X

    def fitted_scale(self, X: ArrayLike) -> float:
        """Return the c of f at X."""
        return self._scale(self._map(to_tensor(X, "X").detach().to(self._data))[0])

    def check_start(self, X: Tensor) -> None:
        """Check that every row has a t: a random start has one where the identity has none."""
        t = self._data @ X[:, self._order[self.signature.p :]]
        lost = int(((t == 0).all(dim=1) & self._data.any(dim=1)).sum())
        if lost:
            remedy = "(jorth.random_point(signature, cond=1.1) does not)"
            found = f"{lost} of {len(t)} rows with t = 0"
            raise ValueError(f"x0 must send no row to t = 0 {remedy}, got {found}")

    def _scale(self, Q: Tensor) -> float:
        if self.scale != "fit":
            return float(self.scale)
        _, mixed, squares = self._sums(Q, None, 1.0)
        return mixed / squares if squares > 0 else 1.0

    def _map(self, X: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return phi(D X) = (s, rho t / |t|) for D X = (s, t), rho = sqrt(alpha^2 + |s|^2) and |t|.

        The p coordinates with plus signs come first. A row with t = 0 is lifted along the first
        negative axis, with a derivative in t of zero, so that a run that lands there goes on.
        """
        Q = self._data @ X[:, self._order]
        s, t = Q[:, : self.signature.p], Q[:, self.signature.p :]
        rho = height(s, self.alpha)
        length, direction = polar(t)
        lost = length.isnan() & ~t.isnan().any(dim=1, keepdim=True)
        direction.masked_fill_(lost, 0.0)
        direction[:, :1].masked_fill_(lost, 1.0)
        torch.mul(direction, rho, out=t)
        return Q, rho, length.masked_fill_(lost, torch.inf)

    def _pull_back(self, points: tuple[Tensor, Tensor, Tensor], dQ: Tensor) -> Tensor:
        """Return the gradient in X (n, n) for the derivative dQ (m, n); overwrites dQ."""
        Q, rho, length = points
        p = self.signature.p
        ds, dt = dQ[:, :p], dQ[:, p:]
        direction = Q[:, p:] / rho
        along = (dt * direction).sum(dim=-1, keepdim=True)
        ds.addcmul_(along / rho, Q[:, :p])
        dt.addcmul_(along, direction, value=-1.0).mul_(rho / length)
        gradient = torch.empty(dQ.shape[1], dQ.shape[1], dtype=dQ.dtype, device=dQ.device)
        gradient[:, self._order] = self._data.mT @ dQ
        return gradient

    def _sums(self, Q: Tensor, dQ: Tensor | None, scale: float) -> list[float]:
        """Return the sums of (T - c d)^2, T d and d^2 over the pairs i < j.

        The derivative of the mean of (T - c d)^2 in Q is added to dQ.
        """
        QJ = Q * self._signs
        weight = 2 / (self.samples * self.alpha) ** 2
        size = BLOCK if Q.device.type == "cpu" else 8 * BLOCK
        ranges = [slice(i, min(i + size, self.samples)) for i in range(0, self.samples, size)]
        sums = [0.0, 0.0, 0.0]
        for at, a in enumerate(ranges):
            for b in ranges[at:]:
                g = (Q[a] / self.alpha**2) @ QJ[b].mT
                skip = torch.ones_like(g, dtype=torch.bool).tril_() if a == b else None
                parts = block_terms(g, self._targets(a, b), scale, self.alpha, skip)
                sums = [total + part for total, part in zip(sums, parts, strict=True)]
                if dQ is not None:
                    dQ[a].addmm_(g, QJ[b], alpha=weight)
                    dQ[b].addmm_(g.mT, QJ[a], alpha=weight)
        return sums

    def _targets(self, rows: Any, columns: slice) -> Tensor:
        """Return the distances (a, b) that are to be matched for some rows, indices or a slice."""
        if isinstance(self._distances, Tensor):
            return self._distances[rows, columns]
        return self._distances(self._every[rows], self._every[columns])

    def bounded_below(self) -> bool:
        return True

    def data(self) -> Tensor:
        return self._data

    def shape(self) -> tuple[int, int]:
        n = self._data.shape[1]
        return n, n

    def fingerprint(self) -> str:
        options = f"{self.signature!r} {self.alpha} {self.scale} {self.ridge}"
        name = f"StructuralProbe {options} {self._distances_hash}"
        return hash_tensors(name, self._data)


def block_terms(
    g: Tensor, targets: Tensor, scale: float, alpha: float, skip: Tensor | None
) -> list[float]:
    """Overwrite g (a, b) by d(T - c d)^2 / dg; return the sums of (T - c d)^2, T d and d^2.

    Pairs in the mask ``skip`` do not count. With e = |g| - 1 and the (hyperbolic or circular) sine
    sqrt(|e| (2 + e)), d / alpha is log1p(e + sine) or atan2(sine, |g|).
    """
    x = g.abs()
    e = x - 1
    sine = e.abs().sqrt_().mul_(x.add(1).sqrt_())  # the root of each factor cannot overflow
    d = torch.where(e >= 0, torch.log1p(e + sine), torch.atan2(sine, x)).mul_(alpha)
    error = targets - scale * d
    if skip is not None:
        d.masked_fill_(skip, 0.0)
        error.masked_fill_(skip, 0.0)
    slope = e.sign_().mul_(g.sign()).div_(sine.clamp_(min=math.sqrt(SLOPE_FLOOR)))
    torch.mul(error, slope.mul_(-2 * scale * alpha), out=g)
    products = (error * error, targets * d, d * d)
    sums: list[float] = torch.stack([part.sum(dtype=torch.float64) for part in products]).tolist()
    return sums


def _distances(
    distances: Any, data: Tensor
) -> tuple[Tensor | Callable[[Tensor, Tensor], Tensor], str]:
    """Return the distances as a matrix or a function of indices, and what tells them apart."""
    m = len(data)
    if isinstance(distances, str):
        if distances != "euclidean":
            expected = '"euclidean" or a matrix'
            raise ValueError(f"distances must be {expected}, got {describe(distances)}")
        centred = data - data.mean(dim=0)  # less cancellation in |a|^2 + |b|^2 - 2 <a, b>
        squares = centred.square().sum(dim=1)

        def euclidean(rows: Tensor, columns: Tensor) -> Tensor:
            a, b = centred[rows], centred[columns]
            block = torch.addmm(squares[columns].expand(len(rows), -1), a, b.mT, alpha=-2.0)
            return block.add_(squares[rows, None]).clamp_(min=0.0).sqrt_()

        if m * m * data.itemsize > MOST_BYTES:
            return euclidean, "euclidean"
        every = torch.arange(m, device=data.device)
        return euclidean(every, every), "euclidean"
    matrix = to_tensor(distances, "distances").detach().to(data, copy=True)
    if tuple(matrix.shape) != (m, m):
        expected = f"shape ({m}, {m}) to go with data"
        raise ValueError(f"distances must have {expected}, got {describe(distances)}")
    check_finite(matrix, "distances")
    if bool((matrix < 0).any()):
        raise ValueError(f"distances must not be negative, got {matrix.min().item():.3g}")
    check_symmetric(matrix, "distances")
    return matrix, hash_tensors("matrix", matrix)
