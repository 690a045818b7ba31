"""X = X0 exp(J S): what one would write with torch alone."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from jorth.group.retractions import matrix_exp
from jorth.solvers.baselines.parametrized import Parametrized
from jorth.solvers.loop.problem import Problem


@dataclass(frozen=True, kw_only=True)
class Exponential(Parametrized):
    """X = exp(J S) X0 with S skew, a torch parametrisation under torch's own optimisers.

    It stays in the component of the start. The base X0 never moves unless ``rebase`` says so, and the rounding of a
    matrix exponential grows with ||S||: far from the start the residual is above that of the other methods, and is
    reported. (X0 stands on the right so that thin starts are possible.)
    """

    name = "exponential"

    def form(self, problem: Problem, X: Tensor) -> nn.Module:
        """The exponential form at X."""
        return ExponentialForm(X, problem.signs)


class ExponentialForm(nn.Module):
    """exp(J S) X0 for a parametrised skew weight S."""

    X0: Tensor
    signs: Tensor

    def __init__(self, X0: Tensor, signs: Tensor) -> None:
        super().__init__()
        self.register_buffer("X0", X0.clone())
        self.register_buffer("signs", signs)
        n = len(X0)
        self.S = nn.Parameter(torch.zeros((n, n), dtype=X0.dtype, device=X0.device))
        parametrize.register_parametrization(self, "S", _Skew())

    def forward(self) -> Tensor:
        """X."""
        X: Tensor = matrix_exp(self.signs[:, None] * self.S) @ self.X0
        return X


class _Skew(nn.Module):
    def forward(self, weight: Tensor) -> Tensor:
        upper = weight.triu(1)
        return upper - upper.mT
