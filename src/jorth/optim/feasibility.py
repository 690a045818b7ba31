"""What an optimiser asks of its parameters at the start."""

from __future__ import annotations

import torch
from torch import Tensor

from jorth.arrays import check_finite, square_matrix
from jorth.group import residual
from jorth.optim.guard import largest_residual
from jorth.signature import Signature


def check_feasible(X: Tensor, signature: Signature, name: str) -> None:
    """An error that names the parameter unless X (..., n, n) is J-orthogonal up to half the digits of its dtype."""
    square_matrix(X, signature, name)
    check_finite(X, name)
    worst = float(torch.as_tensor(residual(X, signature)).max()) if X.numel() else 0.0
    if worst > largest_residual(X):
        raise ValueError(
            f"{name} must be J-orthogonal for {signature}, got a scaled residual of {worst:.3g}; "
            f"start with jorth.nn.init.j_orthogonal_"
        )
