"""The protocol of an objective: value and gradient, and what else a solver can use."""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth._distributed import Ranks
from jorth._inputs import describe, frobenius, is_number, to_tensor, unit_roundoff
from jorth.signature import Signature

Gradient = Callable[[Tensor], Tensor]
Product = Callable[[Tensor], Tensor]
"""V -> f''(X)[V], for V shaped like X."""


class NotTwiceDifferentiable(RuntimeError):
    """Autograd has no second derivatives of a function."""


@dataclass(frozen=True)
class QuadraticForm:
    """f(X) = 1/2 tr(X^T A X D) + <C, X> + constant, A (n, n) and D (k, k) symmetric, C (n, k).

    None stands for D = I and for C = 0.
    """

    A: Tensor
    C: Tensor | None
    D: Tensor | None
    constant: float = 0.0

    def like(self, X: Tensor) -> QuadraticForm:
        """Return the form with the dtype and device of X."""
        C, D = (None if matrix is None else matrix.to(X) for matrix in (self.C, self.D))
        return replace(self, A=self.A.to(X), C=C, D=D)

    def second_derivative(self, V: Tensor) -> Tensor:
        """Return A V D, which is f''(X)[V] at every X."""
        image = self.A @ V
        return image if self.D is None else image @ self.D


class AbstractObjective(ABC):
    """A differentiable function of X (n, k). Only `value_and_gradient` must be given.

    Whatever else is known about f is given by overriding the other methods and attributes.
    """

    signature: Signature | None = None
    """The signature, for objectives that are tied to one."""
    batch: int = 0
    """The number of problems, if there are several for `minimize` to solve at once."""
    samples: int = 0
    """The number N of terms of f = 1/N sum f_i; 0 if f is not a finite sum."""
    nonsmooth: bool = False
    """Whether f has narrow peaks nearly everywhere, so that the curvature along a step says
    nothing: coordinate methods then average slopes over steps instead."""
    defined_everywhere: bool = True
    """Whether f exists at every feasible X; otherwise `check_start` is called with the start."""
    speaks_torch: bool = False
    """Whether the data came as tensors: without a start, the result is then a tensor."""
    ranks: Ranks | None = None
    """The processes that evaluate f together, if there are several."""
    twice_by_autograd: bool = False
    """Whether `hessian` differentiates other people's code, which may have no second derivatives:
    its products are then checked against gradients before they are used."""

    keeps_graphs: bool = True
    """Whether all products of autograd at one X share the graph of the gradient."""

    @abstractmethod
    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return f(X), a scalar tensor, and the Euclidean gradient, shaped like X."""

    def value(self, X: Tensor) -> Tensor:
        return self.value_and_gradient(X)[0]

    def sample_gradient(self, X: Tensor, index: Tensor) -> Tensor:
        """Return the mean gradient of the terms f_i, i in ``index``."""
        raise NotImplementedError(f"{type(self).__name__} is not a finite sum")

    def sample_difference(self, X: Tensor, Y: Tensor, index: Tensor) -> Tensor:
        """Return the mean of grad f_i(X) - grad f_i(Y), i in ``index``."""
        return self.sample_gradient(X, index) - self.sample_gradient(Y, index)

    def quadratic(self) -> QuadraticForm | None:
        """Return f as a quadratic form, if it is one: solvers then take exact steps."""
        return None

    def hessian(self, X: Tensor) -> Product | None:
        """Return V -> f''(X)[V], exact to rounding, if f has such products.

        It is the second derivative of f as a function of all matrices; the constraint is not in it.
        """
        form = self.quadratic()
        return None if form is None else form.like(X).second_derivative

    def second_order(self, X: Tensor) -> tuple[Tensor, Tensor, Product | None]:
        """Return f(X), the gradient, and what `hessian` returns, which may share their work."""
        return *self.value_and_gradient(X), self.hessian(X)

    def curvature(self) -> float | None:
        """Return a Lipschitz constant of the gradient, if one is known."""
        return None

    def bounded_below(self) -> bool:
        """Tell whether f is known to be bounded below: then no run ends as UNBOUNDED."""
        return False

    def data(self) -> Tensor | None:
        """Return a tensor of the data, if there is one, for its dtype and device."""
        return None

    def shape(self) -> tuple[int | None, int | None]:
        """Return the (n, k) that X must have; None stands for any size."""
        return None, None

    def check_start(self, X: Tensor) -> None:
        """Raise a ValueError with a remedy unless f is defined at X."""
        raise NotImplementedError(f"{type(self).__name__} must check its start")

    def fingerprint(self) -> str:
        """Return a hash of the data, by which a checkpoint recognises its problem."""
        return type(self).__name__


class Objective(AbstractObjective):
    """An objective from two plain NumPy functions.

    Args:
        value: X (n, k) -> float.
        gradient: X (n, k) -> (n, k), the Euclidean gradient.
        hessian: X (n, k), V (n, k) -> (n, k), the derivative of the gradient along V, which
            "riemannian-newton" uses. When omitted, differences of gradients stand for it. A wrong
            one makes the method slow; `jorth.objectives.check_objective` finds it.

    >>> sig = jorth.Signature(2, 1)
    >>> f = jorth.Objective(lambda X: np.sum(X**2), lambda X: 2 * X)
    >>> round(jorth.minimize(f, jorth.random_point(sig), signature=sig).value, 6)
    3.0
    """

    def __init__(
        self,
        value: Callable[[Any], float],
        gradient: Callable[[Any], Any],
        hessian: Callable[[Any, Any], Any] | None = None,
    ) -> None:
        given = {"value": value, "gradient": gradient, "hessian": hessian}
        for name, function in given.items():
            if not (callable(function) or (name == "hessian" and function is None)):
                of = "X and V" if name == "hessian" else "X"
                raise TypeError(f"{name} must be a function of {of}, got {describe(function)}")
        self._value, self._gradient, self._hessian = value, gradient, hessian

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        return self.value(X), _matrix(self._gradient(_copy(X)), "gradient", X)

    def hessian(self, X: Tensor) -> Product | None:
        given = self._hessian
        return None if given is None else lambda V: _matrix(given(_copy(X), _copy(V)), "hessian", X)

    def value(self, X: Tensor) -> Tensor:
        return _matrix(self._value(_copy(X)), "value", X.new_zeros(()))


def _copy(X: Tensor) -> NDArray[Any]:
    """Return a copy for a user's function, which may write into it."""
    copy: NDArray[Any] = X.detach().cpu().numpy().copy()
    return copy


def _matrix(answer: Any, name: str, X: Tensor) -> Tensor:
    """Return what a user's function has returned as a tensor like X, which may be a number."""
    try:
        found = to_tensor(np.array(float(answer)) if is_number(answer) else answer, name)
    except (TypeError, ValueError) as error:
        expected = f"an array of shape {tuple(X.shape)}" if X.ndim else "a number"
        raise TypeError(f"{name} must return {expected}, got {describe(answer)}") from error
    if found.shape != X.shape and not (X.ndim == 0 and found.numel() == 1):
        wanted = f"shape {tuple(X.shape)}" if X.ndim else "a number"
        raise ValueError(f"{name} must return {wanted}, got {tuple(found.shape)}")
    return found.detach().double().to(X).reshape(X.shape)


def hash_tensors(name: str, *tensors: Tensor | None) -> str:
    """Return a short hash of the bytes of some tensors."""
    digest = hashlib.sha256(name.encode())
    for tensor in tensors:
        if tensor is not None:
            digest.update(str((tuple(tensor.shape), tensor.dtype)).encode())
            digest.update(np.ascontiguousarray(tensor.detach().cpu().numpy()).data)
    return digest.hexdigest()[:16]


def difference(gradient: Gradient, X: Tensor, V: Tensor) -> Tensor:
    """Return f''(X)[V] as a central difference of two gradients, to about u^(2/3) of its size."""
    size = frobenius(V)
    if not 0 < size < math.inf:
        return torch.zeros_like(V) if size == 0 else V * math.nan
    ahead, behind, step = _gradients_around(gradient, X, V / size)
    return (ahead - behind) * (size / (2 * step))


def is_derivative(gradient: Gradient, product: Product, X: Tensor) -> bool:
    """Check that a product is the derivative of the gradient, along one fixed direction.

    It costs two gradients. Second derivatives that autograd silently takes for zero show here:
    an error of 5 per cent is allowed, beside a thousand rounding errors of the gradients.
    """
    V = torch.arange(1, X.numel() + 1, dtype=torch.float64).cos().reshape(X.shape).to(X)
    V = V / frobenius(V)
    try:
        found = product(V)
    except NotTwiceDifferentiable:
        return False
    ahead, behind, step = _gradients_around(gradient, X, V)
    expected = (ahead - behind) / (2 * step)
    rounding = 1e3 * unit_roundoff(X) * (frobenius(ahead) + frobenius(behind)) / step
    return bool(frobenius(found - expected) <= 0.05 * frobenius(expected) + rounding)


def _gradients_around(gradient: Gradient, X: Tensor, V: Tensor) -> tuple[Tensor, Tensor, float]:
    """Return the gradients at X +- h V, and the h that balances errors of h^2 and u / h."""
    step = float(unit_roundoff(X) ** (1 / 3) * max(1.0, frobenius(X)))
    return gradient(X + step * V), gradient(X - step * V), step
