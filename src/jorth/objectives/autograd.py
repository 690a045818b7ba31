"""Any torch function of X as an objective, by autograd, and `check_objective` for your own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from traceback import extract_tb
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jorth._inputs import check_number, describe, to_tensor
from jorth.objectives.base import AbstractObjective, NotTwiceDifferentiable, Product

USE_OBJECTIVE = "for NumPy functions use jorth.Objective(value=..., gradient=...)"


class AutogradObjective(AbstractObjective):
    """f from a function X -> scalar tensor."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        self._function = function

    twice_by_autograd = True

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        return differentiate(self._function, X)

    def second_order(self, X: Tensor) -> tuple[Tensor, Tensor, Product]:
        return differentiate_twice(self._function, X)

    def hessian(self, X: Tensor) -> Product:
        return self.second_order(X)[2]


def differentiate(
    function: Callable[[Tensor], Tensor], X: Tensor, name: str = "objective"
) -> tuple[Tensor, Tensor]:
    """Return f(X) and the gradient of a scalar torch function; errors call it ``name``."""
    leaf = X.detach().clone().requires_grad_(True)
    with torch.enable_grad():
        try:
            value: Any = function(leaf)
        except (TypeError, RuntimeError, ValueError) as error:
            places = (frame.filename for frame in extract_tb(error.__traceback__))
            if not ("numpy" in str(error).lower() or any("/numpy/" in place for place in places)):
                raise
            found = f"one that uses NumPy; write it with torch, or {USE_OBJECTIVE}"
            raise TypeError(f"{name} must be a torch function of a tensor, got {found}") from error
        if not isinstance(value, Tensor):
            found = f"{type(value).__name__}; {USE_OBJECTIVE}"
            raise TypeError(f"{name} must return a scalar tensor, got {found}")
        if value.is_complex():
            raise TypeError(f"{name} must return a real scalar tensor, got {describe(value)}")
        if value.numel() != 1:
            raise ValueError(f"{name} must return a scalar tensor, got shape {tuple(value.shape)}")
        if not value.requires_grad:
            expected = "return a tensor that depends on X through torch operations"
            found = f"one without a gradient; {USE_OBJECTIVE}"
            raise ValueError(f"{name} must {expected}, got {found}")
        (gradient,) = torch.autograd.grad(value.reshape(()), leaf, allow_unused=True)
        if gradient is None:
            raise ValueError(f"{name} must depend on X, got a value that does not")
    return value.detach().reshape(()), gradient


def differentiate_twice(
    function: Callable[[Tensor], Tensor], X: Tensor, name: str = "objective"
) -> tuple[Tensor, Tensor, Product]:
    """Return f(X), the gradient and V -> f''(X)[V], which differentiates the gradient.

    The graph of the gradient is made once; each product is one pass back through it. A function
    without second derivatives raises a `NotTwiceDifferentiable` there, or, as a custom
    torch.autograd.Function, passes its slope on as a constant: `is_derivative` finds out.
    """
    leaf = X.detach().clone().requires_grad_(True)
    failure: RuntimeError | None = None
    try:
        with torch.enable_grad():
            value = function(leaf).reshape(())
            (gradient,) = torch.autograd.grad(value, leaf, create_graph=True)
    except RuntimeError as error:
        failure = error
        value, gradient = differentiate(function, X, name)

    def product(V: Tensor) -> Tensor:
        try:
            if failure is not None:
                raise failure
            if not gradient.requires_grad:  # it is the same at every X
                return torch.zeros_like(V)
            (image,) = torch.autograd.grad(
                gradient, leaf, V.to(gradient), retain_graph=True, allow_unused=True
            )
        except RuntimeError as error:
            raise NotTwiceDifferentiable(str(error)) from error
        zero = torch.zeros_like(V)
        return zero if image is None else zero + image.detach()  # torch's ZeroTensor has no memory

    return value.detach(), gradient.detach(), product


def check_objective(objective: Any, X: Any, *, tolerance: float = 1e-6) -> float:
    """Check an objective of your own at a point, before a solver relies on it.

    The gradient is compared with central differences of the value along five directions, and
    whatever else the objective gives with values and gradients.

    Args:
        objective: A jorth objective, or a function of a tensor X that returns a scalar tensor.
        X: A point (n, k); it need not be J-orthogonal. A random one shows more than the identity.
        tolerance: The largest relative error that is accepted.

    Returns:
        The largest relative error of a slope, usually below 1e-8.

    Raises:
        ValueError: Something is wrong; the message says what.
    """
    check_number(tolerance, "tolerance", 0)
    point = to_tensor(X, "X").detach().to(torch.float64)
    if point.ndim != 2 or 0 in point.shape:
        raise ValueError(f"X must be a matrix (n, k), got {describe(X)}")
    if not isinstance(objective, AbstractObjective):
        if not callable(objective):
            expected = "a jorth objective or a function"
            raise TypeError(f"objective must be {expected}, got {describe(objective)}")
        objective = AutogradObjective(objective)
    random = torch.from_numpy(np.random.default_rng(0).standard_normal((5, *point.shape)))
    errors = list(_errors(objective, point, [V.to(point) / V.norm() for V in random]))
    for complaint, error in errors:
        if not error <= tolerance:  # also NaN
            name = type(objective).__name__
            raise ValueError(f"{name}: {complaint}, relative error {error:.1e}")
    return errors[0][1]


def _errors(f: AbstractObjective, X: Tensor, V: list[Tensor]) -> Iterator[tuple[str, float]]:
    """Yield what may be wrong with f at X and along V, and the relative error that was found."""
    before, name = X.clone(), type(f).__name__
    value, gradient = f.value_and_gradient(X)
    if not torch.equal(before, X):
        raise ValueError(f"{name}: value_and_gradient must not change X")
    if gradient.shape != X.shape:
        found = tuple(gradient.shape)
        raise ValueError(f"{name}: the gradient must have shape {tuple(X.shape)}, got {found}")
    value, gradient = value.detach(), gradient.detach().to(X)

    def gradient_at(X: Tensor) -> Tensor:
        return f.value_and_gradient(X)[1]

    slopes = [_error_along(f.value, X, one, (gradient * one).sum(), gradient) for one in V]
    yield "gradient differs from the slopes of value", max(slopes)
    if f.samples:
        every = torch.arange(f.samples, device=X.device)
        half, other = every[: (len(every) + 1) // 2], 1.1 * X
        mean = f.sample_gradient(X, every)
        single = f.sample_gradient(X, half) - f.sample_gradient(other, half)
        difference = f.sample_difference(X, other, half)
        error = max(_relative(mean - gradient, gradient), _relative(difference - single, single))
        yield "sample_gradient differs from the gradient", error
    quadratic = f.quadratic()
    if quadratic is not None:
        form = quadratic.like(X)
        product = form.second_derivative(X)
        linear = torch.zeros_like(X) if form.C is None else form.C
        terms = torch.stack([0.5 * (X * product).sum(), (X * linear).sum()])
        constant = terms.new_tensor(form.constant)
        error = _relative(terms.sum() + constant - value, terms.abs().sum() + constant.abs())
        error = max(error, _relative(product + linear - gradient, gradient))
        yield "quadratic differs from value_and_gradient", error
    hessian = f.hessian(X)
    if hessian is not None and not f.twice_by_autograd:  # autograd may have no second derivatives
        images = [hessian(one) for one in V]
        curved = [_error_along(gradient_at, X, *pair) for pair in zip(V, images, strict=True)]
        yield "hessian differs from the slopes of the gradient", max(curved)
    bound = f.curvature()
    if bound is not None:
        rate = max(float((gradient_at(X + one) - gradient).norm()) for one in V)
        excess = max(0.0, rate / bound - 1) if bound else rate
        yield "curvature is too small for the gradients", excess


def _relative(error: Tensor, scale: Tensor) -> float:
    return float(error.norm() / scale.norm().clamp_min(torch.finfo(torch.float64).tiny))


def _error_along(
    function: Callable[[Tensor], Tensor],
    X: Tensor,
    V: Tensor,
    slope: Tensor,
    scale: Tensor | None = None,
) -> float:
    """Return the error of a slope along V, relative to ``scale`` or to what was measured.

    The best of several central differences counts. Where there is next to no slope, the rounding of
    the function is all that is seen.
    """
    errors, unit = [], X.norm().clamp_min(1.0)
    for step in (10.0**-k for k in range(2, 8)):
        ahead, behind = (function(X + h * unit * V).detach().double() for h in (step, -step))
        measured = (ahead - behind) / (2 * step * unit)
        rounding = 1e-6 * torch.maximum(ahead.norm(), behind.norm()) / unit
        size = (measured if scale is None else scale).norm()
        errors.append(_relative(measured - slope, size + rounding))
    return min(errors)
