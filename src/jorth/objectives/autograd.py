"""Any torch function of X as an objective: its gradient by autograd."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from jorth.arrays import describe
from jorth.objectives.base import AbstractObjective


class AutogradObjective(AbstractObjective):
    """f from a function X -> scalar tensor."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        self._function = function

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """f(X) and its gradient by one backward pass."""
        return differentiate(self._function, X)

    def value(self, X: Tensor) -> Tensor:
        """f(X) without a graph."""
        with torch.no_grad():
            return scalar_result(self._function(X.detach().clone()))


def differentiate(
    function: Callable[[Tensor], Tensor], X: Tensor, name: str = "objective"
) -> tuple[Tensor, Tensor]:
    """The value and gradient of a scalar torch function at X; ``name`` is what errors call it."""
    leaf = X.detach().clone().requires_grad_(True)
    with torch.enable_grad():
        value = scalar_result(function(leaf), name)
        if not value.requires_grad:
            raise ValueError(
                f"{name} must return a tensor that depends on X through torch operations, got one without a "
                "gradient; for NumPy functions use jorth.Objective(value=..., gradient=...)"
            )
        (gradient,) = torch.autograd.grad(value, leaf, allow_unused=True)
        if gradient is None:
            raise ValueError(f"{name} must depend on X, got a value that does not")
    return value.detach(), gradient


def scalar_result(value: object, name: str = "objective") -> Tensor:
    """``value`` if it is a scalar tensor, else an error."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{name} must return a scalar tensor, got {type(value).__name__}; for NumPy functions use "
            "jorth.Objective(value=..., gradient=...)"
        )
    if value.is_complex() or value.is_meta or value.layout is not torch.strided:
        raise TypeError(
            f"{name} must return a real scalar tensor with data, got {describe(value)} on {value.device}"
        )
    if value.numel() != 1:
        raise ValueError(f"{name} must return a scalar tensor, got shape {tuple(value.shape)}")
    return value.reshape(())
