"""Newton's method for the zero of a field with values in the Lie algebra {K : J K skew}."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

Field = Callable[[Tensor], Tensor]
"""From points (..., n, n) to matrices (..., n, n) of the Lie algebra; NaN where it has no value."""
Move = Callable[[Tensor, Tensor], Tensor]
"""From a point and steps (..., n, n) in the Lie algebra to other points."""

MAX_STEPS = 50
SHORTEST = 2.0**-10
"""The least share of a Newton step that is tried."""
SPACING = 1e-7
"""The length of the steps whose differences are the derivative."""
NEAR = 1e-9
"""Below this norm of the field, steps that do not decrease it meet the level of rounding."""


def find_zero(field: Field, move: Move, point: Tensor, signs: Tensor) -> tuple[Tensor, float]:
    """A point (n, n) in float64 near a zero, and the norm of the field there.

    The derivative is a matrix of order n (n - 1) / 2 of differences, from one call of the field.
    Steps are halved until they decrease the field, and end where none does: at a zero that is the
    level of rounding. Whether the norm is small is for the caller to judge.
    """
    basis = algebra_basis(signs)
    value = field(point)
    size = _norm(value)
    for _ in range(MAX_STEPS):
        if not 0 < size < math.inf:
            break
        step = _newton_step(field, move, point, value, basis)
        share = 1.0
        while share >= SHORTEST:
            trial = move(point, share * step)
            found = field(trial)
            if _norm(found) <= (1 - share / 4) * size:
                break
            share = share / 2 if size > NEAR else 0.0
        else:
            break
        point, value, size = trial, found, _norm(found)
    return point, size


def algebra_basis(signs: Tensor) -> Tensor:
    """An orthonormal basis (n (n - 1) / 2, n, n) of the Lie algebra."""
    n = len(signs)
    row, column = torch.tril_indices(n, n, offset=-1)
    basis = signs.new_zeros(len(row), n, n)
    which = torch.arange(len(row))
    basis[which, row, column] = signs[row] * math.sqrt(0.5)
    basis[which, column, row] = -signs[column] * math.sqrt(0.5)
    return basis


def _newton_step(field: Field, move: Move, point: Tensor, value: Tensor, basis: Tensor) -> Tensor:
    """The step, zero where the derivative is not finite; the shortest one where it is singular."""
    slopes = (field(move(point, SPACING * basis)) - value) / SPACING
    slopes = slopes.nan_to_num().flatten(1) @ basis.flatten(1).mT  # row i: derivative along i
    target = -(basis * value).sum(dim=(-2, -1))
    coordinates = torch.linalg.lstsq(slopes.mT, target[:, None], driver="gelsd").solution[:, 0]
    step: Tensor = (coordinates[:, None, None] * basis).sum(dim=0)
    return step


def _norm(value: Tensor) -> float:
    size = float(torch.linalg.matrix_norm(value))
    return math.inf if math.isnan(size) else size
