"""Matrices that are J-orthogonal by construction: hyperbolic CS form and exponential form."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from jorth import _inputs
from jorth._inputs import suggestion
from jorth.group.elements import check_feasible
from jorth.group.exp_log import cayley_step, matrix_exp
from jorth.group.sampling import compose_cs
from jorth.linalg import cs_decomposition
from jorth.signature import Signature
from jorth.ultrahyperbolic.points import without_autocast

FACTORS = ("U1", "U2", "V1", "V2")


def cs_parametrization(module: nn.Module, name: str, signature: Signature) -> nn.Module:
    """Write a J-orthogonal parameter (..., n, n) as X = diag(U1, U2) H(mu) diag(V1, V2)^T.

    Any optimiser of torch can train the free weights,
    ``module.parametrizations[name].parameters()``; the paper (CSDM) uses Adam. X stays in the
    component of its present value. The module is changed in place and returned.

    Args:
        module: The owner of the parameter.
        name: The parameter's name, for example "weight" of a `JOrthogonalLinear`.
        signature: The signs of J.

    >>> layer = jorth.nn.JOrthogonalLinear(jorth.Signature(2, 1))
    >>> layer = jorth.nn.cs_parametrization(layer, "weight", layer.signature)
    >>> optimizer = torch.optim.Adam(layer.parameters())
    """
    return _register(module, name, CSParametrization(signature))


def exponential_parametrization(module: nn.Module, name: str, signature: Signature) -> nn.Module:
    """Write a J-orthogonal parameter (..., n, n), or a thin one, as X = exp(J S) X0 with S skew.

    X0 is the present value, where S = 0. The free weights are the entries of S above the diagonal.
    X stays in the component of X0, but the rounding error of the exponential grows with ||S||. The
    module is changed in place and returned.

    Args:
        module: The owner of the parameter.
        name: The parameter's name, for example "weight" of a `JOrthogonalLinear`.
        signature: The signs of J.

    >>> layer = jorth.nn.JOrthogonalLinear(jorth.Signature(2, 1))
    >>> layer = jorth.nn.exponential_parametrization(layer, "weight", layer.signature)
    >>> optimizer = torch.optim.Adam(layer.parameters())
    """
    return _register(module, name, ExponentialParametrization(signature))


def _register(
    module: nn.Module, name: str, form: CSParametrization | ExponentialParametrization
) -> nn.Module:
    if not isinstance(module, nn.Module):
        raise TypeError(f"module must be a torch.nn.Module, got {_inputs.describe(module)}")
    if not (isinstance(name, str) and isinstance(getattr(module, name, None), Tensor)):
        owner = type(module).__name__
        found = f"{_inputs.describe(name)}{suggestion(name, dict(module.named_parameters()))}"
        raise ValueError(f"name must be that of a parameter of {owner}, got {found}")
    form.check_shape(getattr(module, name), name)
    parametrize.register_parametrization(module, name, form)
    return module


class CSParametrization(nn.Module):
    """X (..., n, n) from mu (..., min(p, q)) and four square weights A, one per orthogonal factor.

    A factor is U = cayley(A - A^T) U0, or with ``triangular`` U0 cayley(L - L^T), L the lower
    triangle of A, as in torch's own parametrisation; optimisers take different paths for the two.
    Assigning a J-orthogonal matrix sets A to zero and U0 to the factor of its CS decomposition.
    """

    U1: Tensor
    U2: Tensor
    V1: Tensor
    V2: Tensor

    def __init__(self, signature: Signature, *, triangular: bool = False) -> None:
        super().__init__()
        self.signature = signature = _inputs.check_signature(signature)
        _inputs.check_flag(triangular, "triangular")
        self.triangular = triangular
        for name in FACTORS:
            self.register_buffer(name, torch.empty(0))

    def forward(self, mu: Tensor, *weights: Tensor) -> Tensor:
        with without_autocast(mu):
            U1, U2, V1, V2 = (
                self._factor(A, getattr(self, name))
                for name, A in zip(FACTORS, weights, strict=True)
            )
            return compose_cs(U1, U2, mu, V1, V2, self.signature)

    def _factor(self, A: Tensor, base: Tensor) -> Tensor:
        if not self.triangular:
            return cayley_step(A - A.mT, base)
        L = A.tril()
        return cayley_step(L.mT - L, base.mT).mT  # the transpose of cayley(L - L^T)^T U0^T

    def check_shape(self, X: Tensor, name: str) -> None:
        """Raise a ValueError for a shape that this form does not have."""
        thin = X.ndim >= 2 and X.shape[-2] == self.signature.n > X.shape[-1]
        if thin:
            form = "square for the CS form (exponential_parametrization takes thin matrices)"
            raise ValueError(f"{name} must be {form}, got {_inputs.describe(X)}")
        _inputs.check_own_floats(X, name)
        _inputs.square_matrix(X, self.signature, name)

    def right_inverse(self, X: Tensor) -> tuple[Tensor, ...]:
        """Return mu and zero weights; the CS factors of X become the U0."""
        if not isinstance(X, Tensor):
            raise TypeError(f"X must be a torch tensor, got {_inputs.describe(X)}")
        self.check_shape(X, "X")
        cs = cs_decomposition(X.detach(), self.signature)
        for name in FACTORS:
            setattr(self, name, getattr(cs, name).contiguous())
        return cs.mu.contiguous(), *(torch.zeros_like(getattr(self, name)) for name in FACTORS)

    def extra_repr(self) -> str:
        return f"{self.signature}, triangular={self.triangular}"


class ExponentialParametrization(nn.Module):
    """X = exp(J S) X0 (..., n, k) with a skew S from the upper triangle of a weight (..., n, n).

    Assigning a matrix makes it X0 and sets the weight to zero. X^T J X = X0^T J X0 for any weight.
    """

    base: Tensor

    def __init__(self, signature: Signature) -> None:
        super().__init__()
        self.signature = signature = _inputs.check_signature(signature)
        self.register_buffer("base", torch.empty(0))

    def forward(self, weight: Tensor) -> Tensor:
        with without_autocast(weight):
            return exponential_form(weight, self.base, self.signature.vector(weight))

    def check_shape(self, X: Tensor, name: str) -> None:
        """Raise a ValueError for a shape that this form does not have."""
        n = self.signature.n
        if X.ndim < 2 or X.shape[-2] != n or not 1 <= X.shape[-1] <= n:
            wanted = f"shape (..., {n}, k) with k from 1 to {n} for {self.signature}"
            raise ValueError(f"{name} must have {wanted}, got {_inputs.describe(X)}")

    def right_inverse(self, X: Tensor) -> Tensor:
        """Return a zero weight; X becomes X0."""
        if not isinstance(X, Tensor):
            raise TypeError(f"X must be a torch tensor, got {_inputs.describe(X)}")
        self.check_shape(X, "X")
        n = self.signature.n
        _inputs.check_own_floats(X, "X")
        point = X.detach()
        _inputs.check_finite(point, "X")
        if point.shape[-1] == n:
            check_feasible(point, self.signature)
        self.base = point.clone()
        return point.new_zeros((*point.shape[:-1], n))

    def extra_repr(self) -> str:
        return str(self.signature)


def exponential_form(
    weight: Tensor,
    base: Tensor,
    signs: Tensor,
    exponential: Callable[[Tensor], Tensor] = matrix_exp,
) -> Tensor:
    """Return exp(J S) base with S = W - W^T, W the part of the weight above the diagonal."""
    upper = weight.triu(1)
    X: Tensor = exponential(signs[:, None] * (upper - upper.mT)) @ base
    return X
