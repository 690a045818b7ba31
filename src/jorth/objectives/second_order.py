"""Products f''(X)[V]: by differentiating twice, or as differences of gradients."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from jorth._inputs import frobenius, unit_roundoff

Gradient = Callable[[Tensor], Tensor]
Product = Callable[[Tensor], Tensor]

RIGHT = 0.05
"""The relative error beyond which a product does not belong to the gradients."""
ROUNDING = 1e3
"""The rounding errors of a gradient, in units of the last place, that a check allows for."""


class NotTwiceDifferentiable(RuntimeError):
    """Autograd has no second derivatives of a function."""


def twice_differentiated(function: Callable[[Tensor], Tensor], X: Tensor) -> Product:
    """V -> f''(X)[V] of a scalar torch function by differentiating its gradient.

    The graph of the gradient is made once; each product is one pass back through it. A custom
    torch.autograd.Function without second derivatives may raise a `NotTwiceDifferentiable`, or
    pass its slope on as a constant: `belongs_to` finds out.
    """
    leaf = X.detach().clone().requires_grad_(True)
    try:
        with torch.enable_grad():
            (gradient,) = torch.autograd.grad(function(leaf).reshape(()), leaf, create_graph=True)
    except RuntimeError as error:
        raise NotTwiceDifferentiable(str(error)) from error

    def product(V: Tensor) -> Tensor:
        if not gradient.requires_grad:  # it is the same at every X
            return torch.zeros_like(V)
        try:
            (image,) = torch.autograd.grad(
                gradient, leaf, V.to(gradient), retain_graph=True, allow_unused=True
            )
        except RuntimeError as error:
            raise NotTwiceDifferentiable(str(error)) from error
        zero = torch.zeros_like(V)
        return zero if image is None else zero + image.detach()  # torch's ZeroTensor has no memory

    return product


def difference(gradient: Gradient, X: Tensor, V: Tensor) -> Tensor:
    """f''(X)[V] as a central difference of two gradients, to about u^(2/3) of its size."""
    size = frobenius(V)
    if not 0 < size < math.inf:
        return torch.zeros_like(V) if size == 0 else V * math.nan
    step = _step(X)
    turn = V * (step / size)
    return (gradient(X + turn) - gradient(X - turn)) * (size / (2 * step))


def belongs_to(gradient: Gradient, product: Product, X: Tensor) -> bool:
    """Whether a product is the derivative of the gradient, along one fixed direction.

    It costs two gradients. Second derivatives that autograd silently takes for zero show here.
    """
    V = torch.arange(1, X.numel() + 1, dtype=torch.float64).cos().reshape(X.shape).to(X)
    try:
        found = product(V)
    except NotTwiceDifferentiable:
        return False
    step, size = _step(X), frobenius(V)
    ahead, behind = gradient(X + V * (step / size)), gradient(X - V * (step / size))
    expected = (ahead - behind) * (size / (2 * step))
    noise = ROUNDING * unit_roundoff(X) * (frobenius(ahead) + frobenius(behind)) * size / step
    return bool(frobenius(found - expected) <= RIGHT * frobenius(expected) + noise)


def _step(X: Tensor) -> float:
    """The length of X + t V - X that balances truncation, h^2, and rounding, u / h."""
    return float(unit_roundoff(X) ** (1 / 3) * max(1.0, frobenius(X)))
