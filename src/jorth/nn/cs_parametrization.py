"""CSDM: the hyperbolic CS decomposition as a parametrisation of torch."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from jorth.arrays import check_signature, describe, shown, square_matrix
from jorth.decompositions import cs_decomposition
from jorth.group.cs_form import compose_cs
from jorth.group.retractions import cayley_step
from jorth.signature import Signature

FACTORS = ("U1", "U2", "V1", "V2")


def cs_parametrization(module: nn.Module, name: str, signature: Signature) -> nn.Module:
    """Let ``module.name`` (..., n, n), J-orthogonal now, be so by construction: X = diag(U1, U2) H(mu) diag(V1, V2)^T.

    The free weights, ``module.parametrizations[name].parameters()``, are for any optimiser of torch; in the paper
    (CSDM) that is Adam. The component of the start is kept. The module is changed in place and returned.

    Args:
        module: The owner of the parameter.
        name: The parameter's name, "weight" of a `JOrthogonalLinear`.
        signature: The signs of J.
    """
    check_signature(signature)
    if not isinstance(module, nn.Module):
        raise TypeError(f"module must be a torch.nn.Module, got {describe(module)}")
    if not (isinstance(name, str) and isinstance(getattr(module, name, None), Tensor)):
        raise ValueError(
            f"name must be that of a parameter of {type(module).__name__}, got {shown(name)}"
        )
    square_matrix(getattr(module, name), signature, name)
    parametrize.register_parametrization(module, name, CSParametrization(signature))
    return module


class CSParametrization(nn.Module):
    """X (..., n, n) from mu (..., min(p, q)) and four square weights A, one for each orthogonal factor.

    A factor is the Cayley transform of A - A^T times its value at the last assignment: A = 0 there. Assigning a
    J-orthogonal matrix to the parameter sets the factors to its CS decomposition.
    """

    U1: Tensor
    U2: Tensor
    V1: Tensor
    V2: Tensor

    def __init__(self, signature: Signature) -> None:
        super().__init__()
        self.signature = check_signature(signature)
        for name in FACTORS:
            self.register_buffer(name, torch.empty(0))

    def forward(self, mu: Tensor, *weights: Tensor) -> Tensor:
        """X."""
        U1, U2, V1, V2 = (
            cayley_step(A - A.mT, getattr(self, name))
            for name, A in zip(FACTORS, weights, strict=True)
        )
        return compose_cs(U1, U2, mu, V1, V2, self.signature)

    def right_inverse(self, X: Tensor) -> tuple[Tensor, ...]:
        """Mu and zero weights, with the CS factors of X as the base."""
        if not isinstance(X, Tensor):
            raise TypeError(f"X must be a torch tensor, got {describe(X)}")
        cs = cs_decomposition(X.detach(), self.signature)
        for name in FACTORS:
            setattr(self, name, getattr(cs, name).contiguous())
        return cs.mu.contiguous(), *(torch.zeros_like(getattr(self, name)) for name in FACTORS)
