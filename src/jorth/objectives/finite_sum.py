"""f(X) = 1/N sum f_i(X) from a torch function of X and a batch, on one process or several."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from operator import add, mul
from typing import Any

import torch
from torch import Tensor

from jorth._distributed import Ranks
from jorth._inputs import FLOATS, check_count, describe
from jorth.objectives.autograd import differentiate, differentiate_twice
from jorth.objectives.base import AbstractObjective, Product, QuadraticForm, hash_tensors
from jorth.objectives.probe import StructuralProbe
from jorth.objectives.rows import blocks, dense_rows, own_rows, read_rows, shape_of

CHUNK_BYTES = 1 << 26
"""Bounds the rows that are read at a time: large enough for any disk, small beside any memory."""
BLOCKS = 64
"""The parts of a chunk on the CPU: 1 MB and what autograd keeps of it fit the caches."""

Loss = Callable[[Tensor], Tensor]
Evaluation = Callable[[Loss], Sequence[Tensor]]


class FiniteSum(AbstractObjective):
    """f(X) = 1/N sum f_i(X), given the mean loss of a batch.

    Full gradients are means over blocks of samples, so that autograd keeps the graph of one block.
    Data that are stored in files are read in chunks: no more than one of them is in memory.

    Args:
        fn: (X, batch) -> the mean loss of the batch, a scalar tensor, by any torch operations.
        data: An array (N, ...), or a tuple of several with the same N. ``batch`` has the same form
            with fewer rows, as dense tensors. Whole numbers stay whole, as they may be labels.
            Arrays in memory are copied, without a graph. A numpy.memmap, an HDF5 or Zarr array, or
            an object of your own with ``dtype``, ``len`` and ``data[rows]`` is read in chunks:
            ``rows`` is a slice or a sorted array of row numbers.
        chunk: The number of samples that are read at a time; 64 MB when None.

    >>> f = jorth.FiniteSum(lambda X, rows: (rows @ X).square().mean(), np.ones((10, 3)))
    >>> round(jorth.minimize(f, signature=jorth.Signature(2, 1)).value, 4)
    0.3333
    """

    twice_by_autograd = True

    def __init__(
        self, fn: Callable[[Tensor, Any], Tensor], data: Any, *, chunk: int | None = None
    ) -> None:
        if not callable(fn):
            raise TypeError(f"fn must be a function of (X, batch), got {describe(fn)}")
        self._single = not isinstance(data, tuple)
        parts = (data,) if self._single else tuple(data)
        self.speaks_torch = any(isinstance(part, Tensor) for part in parts)
        self._data = tuple(own_rows(part, "data", whole=True) for part in parts)
        self._in_memory = all(isinstance(part, Tensor) for part in self._data)
        sizes = {(shape_of(part) or (0,))[0] for part in self._data}
        if len(sizes) != 1 or 0 in sizes:
            expected = "the same number of samples, at least 1, in each part"
            raise ValueError(f"data must hold {expected}, got {sorted(sizes)}")
        self._fn = fn
        self.samples = sizes.pop()
        self._first = [dense_rows(part[:1], "data", whole=True) for part in self._data]
        check_count(chunk, "chunk")
        self._chunk = chunk or max(
            1, CHUNK_BYTES // max(1, sum(part.nbytes for part in self._first))
        )
        self.keeps_graphs = self.samples <= self._chunk

    def _losses(self, X: Tensor, rows: Tensor | slice) -> Iterator[tuple[int, Loss]]:
        """Yield the mean losses of blocks of some samples, each with the number of its samples."""
        chunk = [read_rows(part, rows) for part in self._data]
        size = self._chunk if X.is_cuda else -(-self._chunk // BLOCKS)
        for start in range(0, shape_of(chunk[0])[0], size):
            block = [
                dense_rows(part[start : start + size], "data", whole=True).to(X.device)
                for part in chunk
            ]
            yield len(block[0]), self._loss(block)

    def _loss(self, block: list[Tensor]) -> Loss:
        return lambda X: self._fn(X, block[0] if self._single else tuple(block))

    def _mean(self, X: Tensor, evaluate: Evaluation, index: Tensor | None = None) -> list[Tensor]:
        """Return the means over samples of what is evaluated of the mean loss of a block."""
        order = index if index is None or self._in_memory else index.sort().values
        count = self.samples if order is None else len(order)
        totals: list[Tensor] = []

        def add_chunk(rows: slice) -> None:  # a function: at its end its chunk is freed
            for size, loss in self._losses(X, rows if order is None else order[rows]):
                found, share = evaluate(loss), size / count
                if not totals:
                    totals.extend(part if share == 1 else part.double() * share for part in found)
                    continue
                for total, part in zip(totals, found, strict=True):
                    total.add_(part, alpha=share)

        for start in range(0, count, self._chunk):
            add_chunk(slice(start, min(start + self._chunk, count)))
        return [total.to(X) for total in totals]

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        value, gradient = self._mean(X, lambda loss: differentiate(loss, X, "fn"))
        return value, gradient

    def second_order(self, X: Tensor) -> tuple[Tensor, Tensor, Product]:
        """Keep the graphs of products if all data are one chunk, else make them for each anew."""
        if not self.keeps_graphs:

            def product(V: Tensor) -> Tensor:
                return self._mean(X, lambda loss: [differentiate_twice(loss, X)[2](V)])[0]

            return *self.value_and_gradient(X), product
        losses = self._losses(X, slice(0, self.samples))
        shares, parts = [], []
        for size, loss in losses:
            shares.append(size / self.samples)
            parts.append(differentiate_twice(loss, X, "fn"))

        def mean(found: Iterable[Tensor]) -> Tensor:
            total: Tensor = reduce(add, map(mul, shares, found))
            return total

        values, gradients, products = zip(*parts, strict=True)
        return mean(values), mean(gradients), lambda V: mean(product(V) for product in products)

    def hessian(self, X: Tensor) -> Product:
        return self.second_order(X)[2]

    def sample_gradient(self, X: Tensor, index: Tensor) -> Tensor:
        return self._mean(X, lambda loss: differentiate(loss, X, "fn")[1:], index)[0]

    def data(self) -> Tensor | None:
        """Return a row of the first part of the data with a dtype that X may have."""
        return next((part for part in self._first if part.dtype in FLOATS), None)

    def fingerprint(self) -> str:
        """Return a hash of the data; the function itself has none."""
        chunks = (blocks(part, "data", self._chunk, whole=True) for part in self._data)
        return hash_tensors(" ".join(hash_tensors("", chunk) for part in chunks for chunk in part))


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
        for name in ("signature", "nonsmooth", "defined_everywhere", "twice_by_autograd"):
            setattr(self, name, getattr(objective, name))
        self.speaks_torch = objective.speaks_torch
        dtype = None if data is None else data.dtype
        kinds = self.ranks.gather((type(objective).__name__, objective.shape(), dtype))
        if len(set(kinds)) > 1:
            expected = "the same type, shape and dtype on every rank"
            raise ValueError(f"objective must have {expected}, got {kinds}")
        counts = self.ranks.gather(objective.samples)
        self.keeps_graphs = all(self.ranks.gather(objective.keeps_graphs))
        self.samples = sum(counts)
        self._start = sum(counts[: self.ranks.rank])
        self._weight = objective.samples / self.samples

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        value, gradient = self._sums(X, *self._own.value_and_gradient(X))
        return value, gradient

    def second_order(self, X: Tensor) -> tuple[Tensor, Tensor, Product | None]:
        value, gradient, product = self._own.second_order(X)
        value, gradient = self._sums(X, value, gradient)
        return value, gradient, product and (lambda V: self._sums(X, product(V))[0])

    def hessian(self, X: Tensor) -> Product | None:
        product = self._own.hessian(X)
        return product and (lambda V: self._sums(X, product(V))[0])

    def _sums(self, X: Tensor, *parts: Tensor) -> list[Tensor]:
        """Return the weighted sums of what every process has at X."""
        return self.ranks.sum([self._weight * part for part in parts], same=X)

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
        """Return the weighted sums of A, C and constants of forms without D."""
        form = self._own.quadratic()
        if form is None or form.D is not None:
            return None
        parts = [form.A, form.A.new_tensor(form.constant), *([] if form.C is None else [form.C])]
        A, constant, *C = self.ranks.sum([self._weight * part for part in parts])
        return QuadraticForm(A, C[0] if C else None, None, constant.item())

    def curvature(self) -> float | None:
        """Return ||A||_2 of the quadratic form, else an upper bound: the weighted sum of all."""
        form, own = self.quadratic(), self._own.curvature()
        if form is not None:
            return float(torch.linalg.matrix_norm(form.A, ord=2))
        return None if own is None else sum(self.ranks.gather(self._weight * own))

    def bounded_below(self) -> bool:
        return self._own.bounded_below()

    def data(self) -> Tensor | None:
        return self._own.data()

    def shape(self) -> tuple[int | None, int | None]:
        return self._own.shape()

    def check_start(self, X: Tensor) -> None:
        self._own.check_start(X)

    def fingerprint(self) -> str:
        joined = " ".join(self.ranks.gather(self._own.fingerprint()))
        return hashlib.sha256(joined.encode()).hexdigest()[:16]
