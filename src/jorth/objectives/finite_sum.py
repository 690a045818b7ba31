"""f(X) = 1/N sum f_i(X) from a torch function of X and a batch, on one process or several."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from jorth._distributed import Ranks
from jorth._inputs import FLOATS, describe, to_array, to_tensor
from jorth.objectives.autograd import differentiate, second_derivative
from jorth.objectives.base import AbstractObjective, Product, QuadraticForm, hash_tensors
from jorth.objectives.probe import StructuralProbe


class FiniteSum(AbstractObjective):
    """f(X) = 1/N sum f_i(X), given the mean loss of a batch.

    Args:
        fn: (X, batch) -> the mean loss of the batch, a scalar tensor, by any torch operations.
        data: An array (N, ...), or a tuple of several with the same N. ``batch`` has the same form
            with fewer rows, as tensors. The data are copied, without a graph; whole numbers stay
            whole, as they may be labels.

    >>> f = jorth.FiniteSum(lambda X, rows: (rows @ X).square().mean(), np.ones((10, 3)))
    >>> round(jorth.minimize(f, signature=jorth.Signature(2, 1)).value, 4)
    0.3333
    """

    twice_by_autograd = True

    def __init__(self, fn: Callable[[Tensor, Any], Tensor], data: Any) -> None:
        if not callable(fn):
            raise TypeError(f"fn must be a function of (X, batch), got {describe(fn)}")
        self._single = not isinstance(data, tuple)
        parts = (data,) if self._single else tuple(data)
        self.speaks_torch = any(isinstance(part, Tensor) for part in parts)
        self._data = tuple(_owned(part) for part in parts)
        sizes = {len(part) if part.ndim else 0 for part in self._data}
        if len(sizes) != 1 or 0 in sizes:
            expected = "the same number of samples, at least 1, in each part"
            raise ValueError(f"data must hold {expected}, got {sorted(sizes)}")
        self._fn = fn
        self.samples = sizes.pop()

    def _mean_of(self, index: Tensor | slice) -> Callable[[Tensor], Tensor]:
        """Return the mean loss of some samples as a function of X."""
        parts = tuple(part[index] for part in self._data)
        return lambda X: self._fn(X, parts[0] if self._single else parts)

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        return differentiate(self._mean_of(slice(None)), X, "fn")

    def hessian(self, X: Tensor) -> Product | None:
        return second_derivative(self._mean_of(slice(None)), X)

    def sample_gradient(self, X: Tensor, index: Tensor) -> Tensor:
        return differentiate(self._mean_of(index), X, "fn")[1]

    def data(self) -> Tensor | None:
        """Return the first part of the data with a dtype that X may have."""
        return next((part for part in self._data if part.dtype in FLOATS), None)

    def fingerprint(self) -> str:
        """Return a hash of the data; the function itself has none."""
        return hash_tensors("FiniteSum", *self._data)


def _owned(part: Any) -> Tensor:
    """Return a copy as a tensor, without a graph, in memory that torch has aligned."""
    if isinstance(part, Tensor) and not part.is_floating_point():
        return part.detach().clone()  # labels and masks stay as they are
    if not isinstance(part, Tensor):
        array = to_array(part, "data")
        if array.dtype.kind in "iub":
            return torch.tensor(array)
    return to_tensor(part, "data").detach().clone()


class Sharded(AbstractObjective):
    """f(X) = 1/N sum f_i(X), each process with its own samples: f = sum_r (N_r / N) f_r.

    The samples are numbered consecutively from rank 0 on. An evaluation is one all-reduce. Every
    process gets the same bits and takes the same steps, so that X is never sent. All processes must
    create the objective, and call `minimize` with the same arguments.

    Args:
        objective: The mean over the samples of this process: a `FiniteSum`, a `Procrustes`, or
            another finite sum whose terms do not depend on each other's samples.
        group: A process group; None for all processes.

    >>> torch.distributed.init_process_group("gloo")  # doctest: +SKIP
    >>> f = jorth.Sharded(jorth.Procrustes(my_source, my_target))  # doctest: +SKIP
    """

    ranks: Ranks

    def __init__(self, objective: AbstractObjective, *, group: Any = None) -> None:
        if not isinstance(objective, AbstractObjective) or objective.samples == 0:
            expected = "a finite sum (FiniteSum, Procrustes, ...)"
            raise TypeError(f"objective must be {expected}, got {describe(objective)}")
        if isinstance(objective, StructuralProbe):
            found = "a StructuralProbe: it has pairs"
            raise TypeError(f"objective must have terms of one sample each, got {found}")
        data = objective.data()
        self._own = objective
        self.ranks = Ranks(group, "cpu" if data is None else data.device)
        self.signature, self.nonsmooth = objective.signature, objective.nonsmooth
        self.defined_everywhere = objective.defined_everywhere
        self.twice_by_autograd = objective.twice_by_autograd
        self.speaks_torch = objective.speaks_torch
        kinds = self.ranks.gather((objective.shape(), None if data is None else data.dtype))
        if len(set(kinds)) > 1:
            expected = "the same shape and dtype on every rank"
            raise ValueError(f"objective must have {expected}, got {kinds}")
        counts = self.ranks.gather(objective.samples)
        self.samples = sum(counts)
        self._start = sum(counts[: self.ranks.rank])
        self._weight = objective.samples / self.samples

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        value, gradient = self._own.value_and_gradient(X)
        weighted = [self._weight * value, self._weight * gradient]
        total_value, total_gradient = self.ranks.sum(weighted, same=X)
        return total_value, total_gradient

    def hessian(self, X: Tensor) -> Product | None:
        own = self._own.hessian(X)
        if not all(self.ranks.gather(own is not None)) or own is None:
            return None
        product, weight, ranks = own, self._weight, self.ranks
        return lambda V: ranks.sum([weight * product(V)], same=X)[0]

    def sample_gradient(self, X: Tensor, index: Tensor) -> Tensor:
        return self._mean(index, X, lambda mine: self._own.sample_gradient(X, mine))

    def sample_difference(self, X: Tensor, Y: Tensor, index: Tensor) -> Tensor:
        return self._mean(index, X, lambda mine: self._own.sample_difference(X, Y, mine))

    def _mean(self, index: Tensor, X: Tensor, gradient: Callable[[Tensor], Tensor]) -> Tensor:
        """Return the mean gradient of some samples, each taken by the process that has it."""
        end = self._start + self._own.samples
        mine = index[(index >= self._start) & (index < end)] - self._start
        part = gradient(mine) * (len(mine) / len(index)) if len(mine) else torch.zeros_like(X)
        return self.ranks.sum([part], same=X)[0]

    def quadratic(self) -> QuadraticForm | None:
        """Return the weighted sums of A, C and constants, if all processes have forms without D."""
        form = self._own.quadratic()
        usable = form is not None and form.D is None
        shapes = self.ranks.gather((form.A.shape, form.C is None) if form and usable else None)
        if form is None or None in shapes or len(set(shapes)) > 1:
            return None
        parts = [form.A, form.A.new_tensor(form.constant), *([] if form.C is None else [form.C])]
        A, constant, *C = self.ranks.sum([self._weight * part for part in parts])
        return QuadraticForm(A, C[0] if C else None, None, constant.item())

    def curvature(self) -> float | None:
        """Return ||A||_2 of the quadratic form, else an upper bound: the weighted sum of all."""
        form = self.quadratic()
        if form is not None:
            return float(torch.linalg.matrix_norm(form.A, ord=2))
        known = self.ranks.gather((self._own.curvature(), self._weight))
        bounds = [weight * bound for bound, weight in known if bound is not None]
        return sum(bounds) if len(bounds) == len(known) else None

    def bounded_below(self) -> bool:
        return all(self.ranks.gather(self._own.bounded_below()))

    def data(self) -> Tensor | None:
        return self._own.data()

    def shape(self) -> tuple[int | None, int | None]:
        return self._own.shape()

    def check_start(self, X: Tensor) -> None:
        self._own.check_start(X)

    def fingerprint(self) -> str:
        joined = " ".join(self.ranks.gather(self._own.fingerprint()))
        return hashlib.sha256(joined.encode()).hexdigest()[:16]
