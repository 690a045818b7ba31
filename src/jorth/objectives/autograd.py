"""Any torch function of X as an objective: its gradient by autograd."""

from __future__ import annotations

import traceback
from collections.abc import Callable

import torch
from torch import Tensor

from jorth._inputs import describe
from jorth.objectives.base import AbstractObjective
from jorth.objectives.second_order import NotTwiceDifferentiable, Product, twice_differentiated

USE_OBJECTIVE = "for NumPy functions use jorth.Objective(value=..., gradient=...)"
TORCH_MISFITS = ("dtype", "device", "scalar type", "shape", "size of tensor", "Tensor, not")
"""Words in the errors of torch where operands do not fit X."""


class AutogradObjective(AbstractObjective):
    """f from a function X -> scalar tensor."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        self._function = function

    twice_by_autograd = True

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        return differentiate(self._function, X)

    def hessian(self, X: Tensor) -> Product | None:
        return second_derivative(self._function, X)

    def value(self, X: Tensor) -> Tensor:
        return evaluate(self._function, X)


def evaluate(function: Callable[[Tensor], Tensor], X: Tensor, name: str = "objective") -> Tensor:
    """The value of a scalar torch function at X, without a graph; errors call it ``name``."""
    with torch.no_grad():
        return _scalar(_called(function, X.detach().clone(), name), name)


def differentiate(
    function: Callable[[Tensor], Tensor], X: Tensor, name: str = "objective"
) -> tuple[Tensor, Tensor]:
    """The value and gradient of a scalar torch function at X; errors call it ``name``."""
    leaf = X.detach().clone().requires_grad_(True)
    with torch.enable_grad():
        value = _scalar(_called(function, leaf, name), name)
        if not value.requires_grad:
            expected = "return a tensor that depends on X through torch operations"
            found = f"one without a gradient; {USE_OBJECTIVE}"
            raise ValueError(f"{name} must {expected}, got {found}")
        (gradient,) = torch.autograd.grad(value, leaf, allow_unused=True)
        if gradient is None:
            raise ValueError(f"{name} must depend on X, got a value that does not")
    return value.detach(), gradient


def second_derivative(function: Callable[[Tensor], Tensor], X: Tensor) -> Product | None:
    """V -> f''(X)[V] of a scalar torch function; None if autograd has no second derivatives."""
    try:
        return twice_differentiated(function, X)
    except NotTwiceDifferentiable:
        return None


def _called(function: Callable[[Tensor], Tensor], X: Tensor, name: str) -> object:
    """What the function returns, with an explanation if it is not made for such an X.

    Other errors of the function are not touched.
    """
    try:
        return function(X)
    except (TypeError, RuntimeError, ValueError) as error:
        if _from_numpy(error):
            found = f"one that uses NumPy; write it with torch, or {USE_OBJECTIVE}"
            raise TypeError(f"{name} must be a torch function of a tensor, got {found}") from error
        by_torch = type(error) in (TypeError, RuntimeError)
        if by_torch and any(word in str(error) for word in TORCH_MISFITS):
            remedy = "convert its data, or give an x0 of their dtype and device"
            found = f"{' '.join(str(error).split()):.160}"
            expected = f"accept X, {describe(X)} on {X.device}"
            raise ValueError(f"{name} must {expected}, got: {found}; {remedy}") from error
        raise


def _from_numpy(error: Exception) -> bool:
    """Whether an error comes from a NumPy function that was given a tensor."""
    frames = traceback.walk_tb(error.__traceback__)
    modules = (frame.f_globals.get("__name__", "").split(".")[0] for frame, _ in frames)
    return "numpy" in str(error) or "numpy" in modules


def _scalar(value: object, name: str) -> Tensor:
    """``value`` if it is a scalar tensor, else an error."""
    if not isinstance(value, Tensor):
        found = f"{type(value).__name__}; {USE_OBJECTIVE}"
        raise TypeError(f"{name} must return a scalar tensor, got {found}")
    if value.is_complex() or value.is_meta or value.layout is not torch.strided:
        found = f"{describe(value)} on {value.device}"
        raise TypeError(f"{name} must return a real scalar tensor with data, got {found}")
    if value.numel() != 1:
        raise ValueError(f"{name} must return a scalar tensor, got shape {tuple(value.shape)}")
    return value.reshape(())
