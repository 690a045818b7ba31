"""The mean of several J-orthogonal matrices: the exponential barycentre."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from jorth import _inputs
from jorth._inputs import (
    ArrayT,
    Convertible,
    describe,
    explained,
    like_input,
    tensor_alike,
    unit_roundoff,
)
from jorth.group.elements import check_feasible, component, finite_square
from jorth.group.logarithm import check_principal, log_at
from jorth.group.newton import find_zero
from jorth.group.retractions import matrix_exp
from jorth.signature import Signature


@explained
def mean(Xs: ArrayT | Convertible, signature: Signature, *, weights: Any = None) -> ArrayT:
    """The Karcher mean M (n, n) of Xs (m, n, n): sum w_i log(M^-1 X_i) = 0.

    It is the exponential barycentre, the mean of the connection of `transport`. It is invariant
    under translations from both sides and under inversion: mean(A X_i B) = A mean(X_i) B and
    mean(X_i^-1) = mean(X_i)^-1, which no Riemannian mean is unless p or q is 0. Of two matrices it
    is the midpoint X exp(log(X^-1 Y) / 2), of commuting ones exp(sum w_i log(X_i)). On orthogonal
    matrices it is the Riemannian mean.

    It exists and is unique for matrices near each other. Newton's method starts at the one of the
    largest weight from which all others have a principal logarithm; its derivatives cost O(m n^5).
    float32 is computed in float64, and the result carries no gradient.

    Reference: X. Pennec and V. Arsigny, Exponential barycenters of the canonical Cartan connection
    and invariant means on Lie groups, in Matrix Information Geometry, Springer 2013.

    Args:
        Xs: (m, n, n), J-orthogonal, all in one component.
        signature: The signs of J.
        weights: (m,), at least 0, of any scale; equal ones if omitted.

    Raises:
        ValueError: The matrices are in several components, or so far apart that they have no
            logarithms or Newton's method finds no mean.
    """
    points = finite_square(Xs, signature, "Xs")
    if points.ndim != 3 or not len(points):
        expected = f"shape (m, {signature.n}, {signature.n}) with m of at least 1"
        raise ValueError(f"Xs must have {expected}, got {describe(Xs)}")
    check_feasible(points, signature, "Xs")
    w = _weights(weights, points)
    used = points.detach()[w > 0].double().cpu()
    found = barycentre(used, (w[w > 0] / w.sum()).double().cpu(), signature)
    return like_input(found.to(points), Xs, weights)


def barycentre(X: Tensor, weights: Tensor, signature: Signature) -> Tensor:
    """`mean` of float64 matrices on the CPU with weights whose sum is 1."""
    components = torch.as_tensor(component(X, signature))
    if bool((components != components[0]).any()):
        count = len(torch.unique(components, dim=0))
        raise ValueError(f"Xs must be in one component of O(p, q), got {count} components")
    s = signature.vector(X)

    def field(M: Tensor) -> Tensor:
        relative = (s[:, None] * M.mT * s)[..., None, :, :] @ X
        return (weights[:, None, None] * log_at(relative, s)).sum(dim=-3)

    def move(M: Tensor, step: Tensor) -> Tensor:
        return M @ matrix_exp(step)

    M, size = find_zero(field, move, _start(X, weights, signature), s)
    relative = s[:, None] * M.mT * s @ X
    _check_logs(relative, signature)
    norms = torch.linalg.matrix_norm(relative, ord=2)
    limit = 1e3 * signature.n * unit_roundoff(X) * float((norms**2).max())
    if not size <= max(1e-9, limit):
        raise ValueError(f"Xs must be near each other to have a mean, got {_left(size)}")
    return M


def _left(size: float) -> str:
    return f"||sum w_i log(M^-1 X_i)|| = {size:.3g} where Newton's method ended"


def _start(X: Tensor, weights: Tensor, signature: Signature) -> Tensor:
    """The matrix of the largest weight from which all others have a principal logarithm."""
    s = signature.vector(X)
    error = None
    for i in torch.argsort(weights, descending=True, stable=True):
        try:
            _check_logs(s[:, None] * X[i].mT * s @ X, signature)
        except ValueError as found:
            error = error or found
        else:
            return X[i]
    raise ValueError(str(error))


def _check_logs(relative: Tensor, signature: Signature) -> None:
    check_principal(relative, signature, "X_i^-1 X_j of the Xs")


def _weights(value: Any, points: Tensor) -> Tensor:
    if value is None:
        return points.new_ones(len(points))
    weights = tensor_alike(value, "weights", points, "Xs").detach()
    if weights.shape != (len(points),):
        expected = f"shape ({len(points)},) for Xs of shape {tuple(points.shape)}"
        raise ValueError(f"weights must have {expected}, got {describe(value)}")
    _inputs.check_finite(weights, "weights")
    weights = weights / weights.abs().max().clamp(min=torch.finfo(weights.dtype).tiny)
    if bool((weights < 0).any()) or not bool((weights > 0).any()):
        negative, count = int((weights < 0).sum()), len(weights)
        found = f"{negative} negative of {count}" if negative else "zeros only"
        raise ValueError(f"weights must be at least 0, and one above it, got {found}")
    return weights
