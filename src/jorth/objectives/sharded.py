"""A finite sum whose samples are spread over the processes of a `torch.distributed` group."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from jorth.arrays import describe
from jorth.objectives.base import AbstractObjective, QuadraticForm
from jorth.objectives.probe import StructuralProbe
from jorth.ranks import Ranks


class Sharded(AbstractObjective):
    """f(X) = 1/N sum f_i(X), each process with the samples of its own: f = sum_r (N_r / N) f_r.

    The samples are numbered through from rank 0 on. An evaluation is one all-reduce; every process gets the same bits,
    takes the same steps, and so has the same X, which is never sent. A run takes the iterates of one process with all
    samples, but for the order of summation. All processes must make it, and call `minimize`, with the same arguments.

    Args:
        objective: The mean over the samples of this process: a `FiniteSum`, a `Procrustes`, or another finite sum whose
            terms do not depend on each other's samples.
        group: A process group; None for all processes.
    """

    ranks: Ranks

    def __init__(self, objective: AbstractObjective, *, group: Any = None) -> None:
        if not isinstance(objective, AbstractObjective) or objective.samples == 0:
            raise TypeError(
                f"objective must be a finite sum (FiniteSum, Procrustes, ...), got {describe(objective)}"
            )
        if isinstance(objective, StructuralProbe):
            raise TypeError(
                "objective must have terms of one sample each, got a StructuralProbe: it has pairs"
            )
        data = objective.data()
        self._own = objective
        self.ranks = Ranks(group, "cpu" if data is None else data.device)
        self.signature, self.rough = objective.signature, objective.rough
        self.constant, self.speaks_torch = objective.constant, objective.speaks_torch
        kinds = self.ranks.gather((objective.shape(), None if data is None else data.dtype))
        if len(set(kinds)) > 1:
            raise ValueError(
                f"objective must have the same shape and dtype on every rank, got {kinds}"
            )
        counts = self.ranks.gather(objective.samples)
        self.samples, self._start = sum(counts), sum(counts[: self.ranks.rank])

    @property
    def _weight(self) -> float:
        return self._own.samples / self.samples

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """The weighted sums of the processes' values and gradients."""
        own_value, own_gradient = self._own.value_and_gradient(X)
        value, gradient = self.ranks.sum(
            [self._weight * own_value, self._weight * own_gradient], same=X
        )
        return value, gradient

    def value(self, X: Tensor) -> Tensor:
        """The weighted sum of the processes' values."""
        return self.ranks.sum([self._weight * self._own.value(X)], same=X)[0]

    def sample_gradient(self, X: Tensor, index: Tensor) -> Tensor:
        """The mean gradient of the samples ``index``, each taken by the process that has it."""
        return self._mean(index, X, lambda mine: self._own.sample_gradient(X, mine))

    def sample_difference(self, X: Tensor, Y: Tensor, index: Tensor) -> Tensor:
        """The difference at X and Y by one all-reduce."""
        return self._mean(index, X, lambda mine: self._own.sample_difference(X, Y, mine))

    def _mean(self, index: Tensor, X: Tensor, gradient: Callable[[Tensor], Tensor]) -> Tensor:
        mine = (
            index[(index >= self._start) & (index < self._start + self._own.samples)] - self._start
        )
        part = gradient(mine) * (len(mine) / len(index)) if len(mine) else torch.zeros_like(X)
        return self.ranks.sum([part], same=X)[0]

    def quadratic(self) -> QuadraticForm | None:
        """The weighted sums of A, C and the constants, where every process has a form without D."""
        form = self._own.quadratic()
        shapes = self.ranks.gather(
            None if form is None or form.D is not None else (form.A.shape, form.C is None)
        )
        if form is None or None in shapes or len(set(shapes)) > 1:
            return None
        parts = [form.A, form.A.new_tensor(form.constant), *([] if form.C is None else [form.C])]
        A, constant, *C = self.ranks.sum([self._weight * part for part in parts])
        return QuadraticForm(A, C[0] if C else None, None, constant.item())

    def curvature(self) -> float | None:
        """||A||_2 of the quadratic form; else the weighted sum of the processes' constants, which is a bound."""
        form = self.quadratic()
        if form is not None:
            return float(torch.linalg.matrix_norm(form.A, ord=2))
        known = self.ranks.gather((self._own.curvature(), self._weight))
        bounds = [weight * bound for bound, weight in known if bound is not None]
        return sum(bounds) if len(bounds) == len(known) else None

    def bounded_below(self) -> bool:
        """Whether all parts are."""
        return all(self.ranks.gather(self._own.bounded_below()))

    def data(self) -> Tensor | None:
        """That of this process."""
        return self._own.data()

    def shape(self) -> tuple[int | None, int | None]:
        """That of every process."""
        return self._own.shape()

    def check_start(self, X: Tensor) -> None:
        """The start must do for the samples of this process."""
        self._own.check_start(X)

    def fingerprint(self) -> str:
        """Hash of those of all processes, in their order."""
        return hashlib.sha256(
            " ".join(self.ranks.gather(self._own.fingerprint())).encode()
        ).hexdigest()[:16]
