"""The hyperbolic structural probe: a linear map after which geodesic distances match given ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Literal

import torch
from torch import Tensor

from jorth import _inputs
from jorth._inputs import ArrayLike, check_choice, to_tensor
from jorth.objectives.base import AbstractObjective, hash_tensors
from jorth.objectives.probe_points import RowMap
from jorth.objectives.probe_targets import make_targets
from jorth.signature import Signature
from jorth.ultrahyperbolic import SLOPE_FLOOR, check_q

BLOCK = 512
"""The size of the blocks of pairs: 2 MB per matrix, which fits the second-level cache."""

Distances = ArrayLike | Callable[[Tensor, Tensor], Tensor] | Literal["euclidean"]


class StructuralProbe(AbstractObjective):
    """f(X) = 1/m^2 sum_ij (T_ij - c d(q_i, q_j))^2 + ridge/2 ||X||_F^2, a finite sum over m rows.

    With order="transform-lift" q_i = phi(d_i X): the rows of the data are mapped by X, then lifted
    onto the pseudo-hyperboloid (`jorth.ultrahyperbolic`). With order="lift-transform", the paper's
    Q = phi(D) X, the value is the same for every feasible X, since X is an isometry; a run then
    ends at once and says so.

    Pairs of rows are treated in blocks, so memory grows with m n, not with m^2, unless the
    distances are given as a matrix. A gradient costs three matrix products over half of the pairs
    and one compiled pass. Where |g| = 1 the distance has an infinite derivative, and zero is taken
    instead (see `jorth.ultrahyperbolic.distance`).

    The value can keep falling while ||X|| grows without bound, by cancellation in far points:
    watch ``norm`` in the history, and see ``ridge`` and ``scale``.

    Args:
        data: (m, n), the rows.
        distances: "euclidean" distances of the rows (the paper); a symmetric matrix (m, m) without
            negative entries; or a function of two index tensors (a,), (b,) that returns distances
            (a, b).
        signature: A signature of size n, with q of at least 1.
        alpha: The radius of the pseudo-hyperboloid.
        order: "transform-lift" or "lift-transform".
        scale: c, a number; "fit" takes the best c for each X, sum T d / sum d^2, at the cost of a
            second pass.
        ridge: At least 0; keeps ||X|| in bounds.
        zero_rows: Every X sends a row of zeros to t = 0, where there is no lift. "error" refuses
            such data; "base" puts these rows at the base point, alpha on the first negative axis.
    """

    def __init__(
        self,
        data: ArrayLike,
        distances: Distances = "euclidean",
        *,
        signature: Signature,
        alpha: float = 1.0,
        order: Literal["transform-lift", "lift-transform"] = "transform-lift",
        scale: float | Literal["fit"] = 1.0,
        ridge: float = 0.0,
        zero_rows: Literal["error", "base"] = "error",
    ) -> None:
        self.speaks_torch = isinstance(data, Tensor)
        signature = _inputs.check_signature(signature)
        self._data = _rows(data, signature)
        self.samples = len(self._data)
        self.signature = signature
        self.alpha = _inputs.squarable_number(alpha, "alpha")
        fit = isinstance(scale, str) and scale == "fit"
        self.scale: float | str = "fit" if fit else _inputs.positive_number(scale, "scale")
        self.ridge = _inputs.nonnegative_number(ridge, "ridge")
        check_choice(order, "order", ("transform-lift", "lift-transform"))
        self.order = order
        self.defined_everywhere = order != "transform-lift"
        self.rough = order == "transform-lift" and signature.q > 1
        self._zero = _zero_rows(self._data, zero_rows)
        self._targets = make_targets(distances, self._data)
        two = torch.arange(2, device=self._data.device)  # compile now, not on a solver's clock
        self._terms(self._data.new_zeros(2, 2), self._targets(two, two), 1.0, own=two, upper=True)
        lift_first = order == "lift-transform"
        self._map = RowMap(self._data, signature, self.alpha, lift_first=lift_first)
        if lift_first:
            t = self._data[:, signature.positions(self._data.device)[1]]
            complaint = "data must have t != 0 in every row to be lifted"
            self._check_lifted((t == 0).all(dim=1), complaint)
            if self.ridge == 0:
                self.constant = (
                    "f is the same for every feasible X: with order='lift-transform' X is an "
                    "isometry of the lifted points; take order='transform-lift'"
                )

    def value(self, X: Tensor) -> Tensor:
        Q = self._map(X).Q
        loss, _ = self._loss(Q, None, self._scale(Q))
        return X.new_tensor(loss) + self.ridge / 2 * X.square().sum()

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """f and its gradient D^T dZ."""
        points = self._map(X)
        dQ = torch.zeros_like(points.Q)
        loss, _ = self._loss(points.Q, dQ, self._scale(points.Q))
        value = X.new_tensor(loss) + self.ridge / 2 * X.square().sum()
        return value, self._map.pull_back(points, dQ) + self.ridge * X

    def sample_gradient(self, X: Tensor, index: Tensor) -> Tensor:
        """The mean gradient of f_i = 1/m sum_j (T_ij - c d_ij)^2, i in ``index``: O(m n) each."""
        points = self._map(X)
        Q = points.Q
        scale = self._scale(Q)
        QJ = Q * self._map.signs
        dQ = torch.zeros_like(Q)
        weight = 1 / (len(index) * self.samples * self.alpha**2)
        every = torch.arange(self.samples, device=Q.device)
        for rows in torch.split(index, BLOCK):
            g = (Q[rows] / self.alpha**2) @ QJ.mT
            self._terms(g, self._targets(rows, every), scale, own=rows, upper=False)
            dQ.index_add_(0, rows, g @ QJ, alpha=weight)
            dQ.addmm_(g.mT, QJ[rows], alpha=weight)
        return self._map.pull_back(points, dQ) + self.ridge * X

    def fitted_scale(self, X: ArrayLike) -> float:
        """The c of f at X."""
        return self._scale(self._map(to_tensor(X, "X").to(self._data)).Q)

    def check_start(self, X: Tensor) -> None:
        """Every row needs a t to be lifted; a random start has one where the identity has none."""
        remedy = "x0 must send no row to t = 0 (jorth.random_point(signature, cond=1.1) does not)"
        self._check_lifted(self._map.without_t(X), remedy)

    def _check_lifted(self, lost: Tensor, complaint: str) -> None:
        count = int((lost if self._zero is None else lost & ~self._zero).sum())
        if count:
            raise ValueError(f"{complaint}, got {count} of {len(lost)} rows with t = 0")

    def _scale(self, Q: Tensor) -> float:
        if self.scale != "fit":
            return float(self.scale)
        _, (mixed, squares) = self._loss(Q, None, 1.0)
        return mixed / squares if squares > 0 else 1.0

    def _loss(
        self, Q: Tensor, dQ: Tensor | None, scale: float
    ) -> tuple[float, tuple[float, float]]:
        """The mean of (T - c d)^2 over all pairs, and the sums of T d and d^2.

        The derivative in Q is added to dQ.
        """
        QJ = Q * self._map.signs
        weight = 2 / (self.samples * self.alpha) ** 2
        loss = mixed = squares = 0.0
        for rows, columns in self._blocks():
            a = slice(int(rows[0]), int(rows[-1]) + 1)
            b = slice(int(columns[0]), int(columns[-1]) + 1)
            g = (Q[a] / self.alpha**2) @ QJ[b].mT
            targets = self._targets(rows, columns)
            part = self._terms(g, targets, scale, own=rows - b.start, upper=True)
            loss += part[0]
            mixed += part[1]
            squares += part[2]
            if dQ is not None:
                dQ[a].addmm_(g, QJ[b], alpha=weight)
                dQ[b].addmm_(g.mT, QJ[a], alpha=weight)
        return 2 * loss / self.samples**2, (mixed, squares)

    def _blocks(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Index ranges that cover every pair i < j once."""
        every = torch.arange(self.samples, device=self._data.device)
        ranges = torch.split(every, BLOCK if self._data.device.type == "cpu" else 8 * BLOCK)
        for at, rows in enumerate(ranges):
            for columns in ranges[at:]:
                yield rows, columns

    def _terms(
        self, g: Tensor, targets: Tensor, scale: float, *, own: Tensor, upper: bool
    ) -> tuple[float, float, float]:
        """`block_terms`, compiled on the CPU and in torch elsewhere."""
        if self._data.device.type != "cpu":
            return _block_terms_in_torch(g, targets, scale, self.alpha, own, upper)
        from jorth.objectives.probe_kernel import block_terms

        sums: tuple[float, float, float] = block_terms(
            g.numpy(), targets.numpy(), scale, self.alpha, own.numpy(), upper
        )
        return sums

    def bounded_below(self) -> bool:
        return True

    def data(self) -> Tensor:
        return self._data

    def shape(self) -> tuple[int, int]:
        n = self._data.shape[1]
        return n, n

    def fingerprint(self) -> str:
        zeros = 0 if self._zero is None else int(self._zero.sum())
        options = f"{self.signature!r} {self.alpha} {self.order} {self.scale} {self.ridge} {zeros}"
        return hash_tensors(f"StructuralProbe {options} {self._targets.fingerprint()}", self._data)


def _block_terms_in_torch(
    g: Tensor, targets: Tensor, scale: float, alpha: float, own: Tensor, upper: bool
) -> tuple[float, float, float]:
    """`block_terms` for any device: g is overwritten."""
    columns = torch.arange(g.shape[1], device=g.device)
    skip = columns <= own[:, None] if upper else columns == own[:, None]
    x = g.abs()
    far = x > 1e8
    square = (x - 1) * (x + 1)
    root = square.abs().sqrt()
    outside = torch.where(far, x.log() + math.log(2.0), torch.log1p((x - 1).clamp(min=0) + root))
    d = alpha * torch.where(x >= 1, outside, torch.atan2(root, x))
    slope = torch.where(far, 1 / x, square.sign() / square.abs().clamp(min=SLOPE_FLOOR).sqrt())
    error = (targets - scale * d).masked_fill_(skip, 0.0)
    d = d.masked_fill(skip, 0.0)
    g.copy_(-2 * scale * alpha * error * slope * torch.where(g >= 0, 1.0, -1.0).to(g))
    sums = torch.stack([error.square().sum(), (targets * d).sum(), d.square().sum()])
    loss, mixed, squares = sums.double().tolist()
    return loss, mixed, squares


def _rows(data: Any, signature: Signature) -> Tensor:
    rows = to_tensor(data, "data").detach()
    n = _inputs.check_signature(signature).n
    if rows.ndim != 2 or rows.shape[0] < 2 or rows.shape[1] != n:
        expected = f"shape (m, {n}) with m at least 2 for {signature}"
        raise ValueError(f"data must have {expected}, got {_inputs.describe(data)}")
    _inputs.check_finite(rows, "data")
    check_q(signature)
    return rows.clone(memory_format=torch.contiguous_format)


def _zero_rows(data: Tensor, rule: str) -> Tensor | None:
    """Which rows are all zero, or None if none is."""
    check_choice(rule, "zero_rows", ("error", "base"))
    zero = (data == 0).all(dim=1)
    count = int(zero.sum())
    if count and rule == "error":
        found = f'{count} of {len(data)}; drop them, or take zero_rows="base"'
        raise ValueError(f"data must have no row of zeros, which has no lift, got {found}")
    return zero if count else None
