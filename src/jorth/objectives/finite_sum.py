"""f(X) = 1/N sum f_i(X) from a torch function of X and a batch of data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from jorth._inputs import FLOATS, describe, is_plain, to_array, to_tensor
from jorth.objectives.autograd import differentiate, evaluate, second_derivative
from jorth.objectives.base import AbstractObjective, hash_tensors
from jorth.objectives.second_order import Product


class FiniteSum(AbstractObjective):
    """f(X) = 1/N sum f_i(X), given the mean loss of a batch.

    Args:
        fn: (X, batch) -> the mean loss of the batch, a scalar tensor, by any torch operations.
        data: An array (N, ...), or a tuple of several with the same N. ``batch`` has the same form
            with fewer rows, as tensors. The data are copied, without a graph; whole numbers stay
            whole, as they may be labels.
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
        """The mean loss of some samples as a function of X."""
        parts = tuple(part[index] for part in self._data)
        return lambda X: self._fn(X, parts[0] if self._single else parts)

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        return differentiate(self._mean_of(slice(None)), X, "fn")

    def hessian(self, X: Tensor) -> Product | None:
        return second_derivative(self._mean_of(slice(None)), X)

    def value(self, X: Tensor) -> Tensor:
        return evaluate(self._mean_of(slice(None)), X, "fn")

    def sample_gradient(self, X: Tensor, index: Tensor) -> Tensor:
        return differentiate(self._mean_of(index), X, "fn")[1]

    def data(self) -> Tensor | None:
        """The first part of the data with a dtype that X may have."""
        return next((part for part in self._data if part.dtype in FLOATS), None)

    def fingerprint(self) -> str:
        """A hash of the data; the function itself has none."""
        return hash_tensors("FiniteSum", *self._data)


def _owned(part: Any) -> Tensor:
    """A copy as a tensor, without a graph, in memory that torch has aligned."""
    if isinstance(part, Tensor) and not part.is_floating_point():
        if not part.is_meta and is_plain(part):
            return part.detach().clone()  # labels and masks stay as they are
    elif not isinstance(part, Tensor):
        array = to_array(part, "data")
        if array.dtype.kind in "iub":
            return torch.tensor(array)
    return to_tensor(part, "data").detach().clone()
