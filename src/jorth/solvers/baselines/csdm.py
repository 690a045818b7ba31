"""CSDM: the hyperbolic CS decomposition as a parametrisation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn
from torch.nn.utils.parametrizations import orthogonal

from jorth.arrays import check_choice
from jorth.decompositions import cs_decomposition
from jorth.group.cs_form import compose_cs
from jorth.signature import Signature
from jorth.solvers.baselines.parametrized import Parametrized
from jorth.solvers.loop.problem import Problem

MAPS = ("cayley", "matrix_exp", "householder")
FACTORS = ("U1", "U2", "V1", "V2")


@dataclass(frozen=True, kw_only=True)
class CSDM(Parametrized):
    """CSDM: X = diag(U1, U2) H(mu) diag(V1, V2)^T with free orthogonal factors and free mu.

    The factors are torch's own orthogonal parametrisations, started at the CS decomposition of x0, so that any point
    of any component can be a start; the component is kept. (The paper runs Adam on this form; L-BFGS needs fewer
    gradients and is the default.)

    Args:
        optimizer: "lbfgs" or "adam".
        learning_rate: None takes 1 for L-BFGS and 0.03 for Adam.
        memory: The number of pairs that L-BFGS keeps.
        rebase: After so many steps of L-BFGS the form is set up anew at the current point; None never does.
        orthogonal_map: Of torch: "cayley" (cheapest, feasible to rounding), "matrix_exp" or "householder".
    """

    rebase: int | None = 100
    orthogonal_map: Literal["cayley", "matrix_exp", "householder"] = "cayley"
    name = "csdm"
    thin = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self.orthogonal_map, "orthogonal_map", MAPS)

    def form(self, problem: Problem, X: Tensor) -> nn.Module:
        """The CS form of X."""
        return CSForm(X, problem.signature, self.orthogonal_map)


class CSForm(nn.Module):
    """X (n, n) from its CS decomposition, with orthogonal factors as parametrised weights."""

    def __init__(self, X: Tensor, signature: Signature, orthogonal_map: str) -> None:
        super().__init__()
        self.signature = signature
        cs = cs_decomposition(X, signature)
        self.mu = nn.Parameter(cs.mu.clone())
        for name in FACTORS:
            setattr(self, name, _factor(getattr(cs, name).contiguous(), orthogonal_map))

    def forward(self) -> Tensor:
        """X."""
        U1, U2, V1, V2 = (getattr(self, name).weight for name in FACTORS)
        return compose_cs(U1, U2, self.mu, V1, V2, self.signature)


def _factor(U: Tensor, orthogonal_map: str) -> nn.Module:
    """A module whose weight is orthogonal and is U at first; an empty one has nothing to learn."""
    module = nn.Module()
    if U.numel() == 0:
        module.register_buffer("weight", U)
        return module
    module.register_parameter("weight", nn.Parameter(U.clone()))
    orthogonal(module, "weight", orthogonal_map=orthogonal_map)
    module.weight = U
    return module
