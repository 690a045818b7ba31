"""Problems of a batch whose X has run away: unbounded, not attained, or neither can be told."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from jorth._inputs import unit_roundoff
from jorth.group.elements import scaled_violation
from jorth.linalg.cs import cs_decomposition
from jorth.objectives.quadratic import is_definite
from jorth.signature import Signature
from jorth.solvers.problem import Status
from jorth.solvers.termination import (
    INWARD,
    LEAST_ROOM,
    NOISE,
    classify_divergence,
    rounding_pattern,
)

FAR = 10.0
"""From this norm on it is asked whether X runs away."""

Evaluate = Callable[[Tensor, Tensor], Tensor]
"""f (b,) at X (b, n, n) for the problems of an index (b,)."""


def far_statuses(
    X: Tensor, A: Tensor, signature: Signature, evaluate: Evaluate
) -> dict[int, Status | None]:
    """What f does as ||X|| grows, for the problems with a large X whose A is not definite.

    Args:
        X: (B, n, n), in float64.
        A: (B, n, n) or (1, n, n), the quadratic part of f.
        signature: The signs of J.
        evaluate: f for some of the problems.

    Returns:
        NOT_ATTAINED, UNBOUNDED or None, for the index of each of these problems.
    """
    if signature.p == 0 or signature.q == 0:
        return {}
    limit = 1 / math.sqrt(unit_roundoff(X))
    norms = X.square().sum((1, 2)).sqrt() / math.sqrt(X.shape[-1])
    far = (norms >= FAR).nonzero()[:, 0].tolist()
    asked = [i for i in far if not is_definite(A[i if len(A) > 1 else 0])]
    found: dict[int, Status | None] = dict.fromkeys(asked)
    if not asked:
        return found
    signs = signature.vector(X)
    sizes = torch.linalg.matrix_norm(X[asked], ord=2).tolist()
    sound = scaled_violation(X[asked], signs, torch.diag(signs)) <= math.sqrt(unit_roundoff(X))
    for beyond in (True, False):
        chosen = [
            i
            for i, size, fine in zip(asked, sizes, sound.tolist(), strict=True)
            if fine and (LEAST_ROOM * size <= limit) == beyond
        ]
        if chosen:
            index = torch.tensor(chosen, device=X.device)
            ends = _statuses(X[index], index, signature, evaluate, limit if beyond else None)
            found.update(zip(chosen, ends, strict=True))
    return found


def _statuses(
    X: Tensor, index: Tensor, signature: Signature, evaluate: Evaluate, limit: float | None
) -> list[Status | None]:
    """Classify f at four norms up to that of each X, and with a limit at one beyond it."""
    cs = cs_decomposition(X, signature)
    largest = cs.mu[:, :1]
    large = cs.mu >= largest / 4
    exponents = [torch.full_like(largest, t) for t in INWARD]
    if limit is not None:
        exponents.append(1 + ((math.log(limit) - largest) / largest).clamp(max=0.25))
    points = [replace(cs, mu=torch.where(large, t * cs.mu, cs.mu)).compose() for t in exponents]
    eps = torch.finfo(X.dtype).eps
    moves = eps * rounding_pattern(X)
    values, rounding = [], []
    for point in points:
        value, *near = (evaluate(point * (1 + side * moves), index) for side in (0, 1, -1))
        changes = torch.stack([(other - value).abs() for other in near]).amax(0)
        values.append(value)
        rounding.append(NOISE * changes + eps * value.abs())
    tables = (torch.stack(part, dim=1).tolist() for part in (values, rounding))
    return [classify_divergence(*rows) for rows in zip(*tables, strict=True)]
