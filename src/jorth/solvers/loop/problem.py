"""A problem made ready: objective, signature and start that agree with each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jorth.arrays import check_finite, check_signature, describe, to_tensor, unit_roundoff
from jorth.group import residual
from jorth.objectives import AbstractObjective, AutogradObjective
from jorth.signature import Signature
from jorth.solvers.loop.budget import CountedObjective

FEASIBLE = 1e3
"""A start may violate the constraint by this many n u ||x0||^2: the drift of a long run, not a mistake."""


@dataclass
class Problem:
    """What a solver works on."""

    objective: CountedObjective
    signature: Signature
    signs: Tensor
    """(n,) in the dtype and on the device of X."""
    rng: np.random.Generator
    stop_unbounded: bool = True
    """Whether the user wants a run to end where f is found to be unbounded below."""
    bounded: bool = False
    """Whether f is known to be bounded below: a plane without a minimiser, or ||X|| that grows for ever, then says only
    that the infimum is not attained, or out of reach."""

    @property
    def ends_unbounded(self) -> bool:
        """Whether a plane without a minimiser ends the run."""
        return self.stop_unbounded and not self.bounded


def is_bounded(objective: AbstractObjective, signature: Signature) -> bool:
    """Whether f is known to be bounded below on the feasible set, which is compact where all signs are equal."""
    return signature.p == 0 or signature.q == 0 or objective.bounded_below()


def as_objective(objective: Any) -> AbstractObjective:
    """An objective as it is; a function X -> scalar tensor through autograd."""
    if isinstance(objective, AbstractObjective):
        return objective
    if callable(objective):
        return AutogradObjective(objective)
    raise TypeError(
        "objective must be a jorth objective or a function of X that returns a scalar tensor, "
        f"got {describe(objective)}"
    )


def agreed_signature(signature: Signature | None, objective: AbstractObjective) -> Signature:
    """The one signature that argument and objective name."""
    if signature is None:
        if objective.signature is None:
            raise ValueError("signature must be given: the objective has none, got None")
        return objective.signature
    check_signature(signature)
    if objective.signature is not None and objective.signature != signature:
        raise ValueError(
            f"signature must be the objective's, {objective.signature}, got {signature}"
        )
    return signature


def starting_point(x0: Any, objective: AbstractObjective, signature: Signature) -> Tensor:
    """A fresh tensor to start from: x0, or the identity in the dtype and on the device of the data."""
    data, n = objective.data(), signature.n
    if x0 is None:
        dtype = torch.float64 if data is None else data.dtype
        X = torch.eye(n, dtype=dtype, device=None if data is None else data.device)
    else:
        X = to_tensor(x0, "x0").detach().clone(memory_format=torch.contiguous_format)
    if X.ndim != 2 or X.shape[0] != n or not 1 <= X.shape[1] <= n:
        raise ValueError(
            f"x0 must have shape ({n}, k) with k at most {n} and at least 1 for {signature}, got {describe(x0)}"
        )
    rows, columns = objective.shape()
    if rows not in (None, n) or columns not in (None, X.shape[1]):
        wanted = tuple("any" if size is None else size for size in (rows, columns))
        raise ValueError(
            f"x0 must have the shape {wanted} that the objective expects, got {tuple(X.shape)}"
        )
    if data is not None and (data.dtype != X.dtype or data.device != X.device):
        raise TypeError(
            f"x0 must have the dtype and device of the objective's data ({data.dtype}, {data.device}), "
            f"got ({X.dtype}, {X.device})"
        )
    check_finite(X, "x0")
    if X.shape[1] == n:
        _check_feasible(X, signature)
    objective.check_start(X)
    return X


def _check_feasible(X: Tensor, signature: Signature) -> None:
    found, allowed = residual(X, signature), FEASIBLE * signature.n * unit_roundoff(X)
    if found > allowed:
        raise ValueError(
            f"x0 must be J-orthogonal for {signature}, got a scaled residual of {found:.3g} where rounding explains "
            f"{allowed:.1g}; jorth.polish(x0, signature) finds the nearest J-orthogonal matrix"
        )
