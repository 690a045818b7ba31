"""How good a point is: the Riemannian gradient, the multiplier, block stationarity."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from jorth.arrays import (
    ArrayT,
    check_alike,
    check_finite,
    check_overflow,
    check_signature,
    describe,
    like_input,
    positive_number,
    to_tensor,
    whole_number,
)
from jorth.objectives import AbstractObjective
from jorth.plane import all_pairs, random_pairs, solve_rows
from jorth.signature import Signature
from jorth.solvers.problem import as_objective


def riemannian_gradient(X: ArrayT, G: ArrayT, signature: Signature) -> ArrayT:
    """The tangent vector J S X with S = skew(J G X^T), for the Euclidean gradient G (..., n, k) at X (..., n, k).

    The derivative of f along it is 2 ||S||_F^2 >= 0, and it vanishes exactly at critical points. (The paper's
    G - J X G^T X J vanishes at the same points but is not tangent: stepping against it can raise f.)
    """
    point, gradient = _pair_of(X, G, signature)
    s = signature.vector(point)
    tangent = s[:, None] * (skew_gradient(point, gradient, s) @ point)
    check_overflow(tangent, "X and G", "the tangent vector")
    return like_input(tangent, X)


def multiplier(X: ArrayT, G: ArrayT, signature: Signature) -> ArrayT:
    """The Lagrange multiplier sym(J X^T G) of the constraint X^T J X = J, for square X."""
    point, gradient = _pair_of(X, G, signature)
    if point.shape[-1] != signature.n:
        raise ValueError(f"X must be square for the multiplier with {signature}, got {describe(X)}")
    found = symmetric_multiplier(point, gradient, signature.vector(point))
    check_overflow(found, "X and G", "the multiplier")
    return like_input(found, X)


def skew_gradient(X: Tensor, G: Tensor, s: Tensor) -> Tensor:
    """S = skew(J G X^T): zero exactly at critical points; 2 S_ij is the slope in the plane (i, j)."""
    M = s[:, None] * (G @ X.mT)
    return (M - M.mT) / 2


def symmetric_multiplier(X: Tensor, G: Tensor, s: Tensor) -> Tensor:
    """Lambda = sym(J X^T G)."""
    M = s[:, None] * (X.mT @ G)
    return (M + M.mT) / 2


class BlockStationarity(NamedTuple):
    """The mean over pairs of the squared distance from I to the best step, its standard error, and how many pairs."""

    value: float
    standard_error: float
    pairs: int


def block_stationarity(
    objective: Any,
    X: Any,
    signature: Signature,
    *,
    theta: float = 1e-5,
    pairs: int | None = None,
    curvature: float | None = None,
    seed: int = 0,
    gradient: Any = None,
) -> BlockStationarity:
    """The mean over pairs of ||V - I||_F^2, V the best plane step at X: zero exactly at block-stationary points.

    Block stationarity is stronger than criticality: no step in any plane, to any component, lowers the surrogate. A
    plane in which the surrogate has no minimiser, since it falls for ever, is infinitely far from it: the value and the
    standard error are then inf.

    Args:
        objective: An objective or a torch function.
        X: (n, k).
        signature: The signs of J.
        theta: The proximal weight of the plane problems, an absolute number as in the paper.
        pairs: All pairs when None, else that many pairs drawn at random; the standard error is then that of the mean.
        curvature: A Lipschitz constant of the gradient, for objectives that are neither quadratic nor know one.
        seed: Of the sample.
        gradient: That of the objective at X, where it is known; else it is evaluated.
    """
    function, n = as_objective(objective), check_signature(signature).n
    point = _point_of(function, X, signature)
    if n < 2:
        raise ValueError(f"signature must have n of at least 2 for a pair, got {signature}")
    if pairs is not None:
        whole_number(pairs, "pairs", 1, instead="None or ")
    if curvature is not None:
        positive_number(curvature, "curvature")
    index = all_pairs(n) if pairs is None else random_pairs(n, pairs, seed=seed)
    G = (function.value_and_gradient(point)[1] if gradient is None else to_tensor(gradient, "gradient")).detach()
    if not bool(torch.isfinite(G).all()):
        raise ValueError("objective must have a finite gradient at X, got NaN or infinity")
    signs, where = torch.as_tensor(signature.signs[index], device=point.device), torch.as_tensor(index)
    A, D = _pair_curvature(function, point, where.to(point.device), curvature)
    solution = solve_rows(G[where], point[where], A, signs, D=D, theta=theta)
    distance = (solution.V - torch.eye(2, dtype=point.dtype, device=point.device)).square().sum(dim=(-2, -1))
    distance = torch.where(solution.unbounded, torch.inf, distance)
    value = distance.mean().item()
    spread = 0.0 if pairs is None or pairs < 2 else float(distance.std() / np.sqrt(len(index)))
    return BlockStationarity(value, spread if value < np.inf else np.inf, len(index))


def _point_of(objective: AbstractObjective, X: Any, signature: Signature) -> Tensor:
    """X (n, k) as the objective takes it."""
    point, n, data = to_tensor(X, "X").detach(), signature.n, objective.data()
    rows, columns = objective.shape()
    wanted = (n, point.shape[-1] if columns is None else columns) if point.ndim else (n,)
    if point.ndim != 2 or tuple(point.shape) != wanted or rows not in (None, n) or not point.numel():
        expects = f"{rows or 'n'}, {columns or 'k'}"
        raise ValueError(f"X must have shape ({expects}), the objective's, and fit {signature}, got {describe(X)}")
    check_finite(point, "X")
    if data is not None:
        check_alike(point, "X", data, "the objective's data")
    return point


def _pair_curvature(
    objective: AbstractObjective, X: Tensor, index: Tensor, curvature: float | None
) -> tuple[Tensor | float, Tensor | None]:
    """A and D of Q = (Z D Z^T) (x) A for left steps: A_BB of a quadratic, else L."""
    form = objective.quadratic()
    if form is not None:
        form = form.like(X)
        return form.A[index[:, :, None], index[:, None, :]], form.D
    L = curvature if curvature is not None else objective.curvature()
    if L is None:
        raise ValueError("curvature must be given for an objective that knows none, got None")
    return L, None


def _pair_of(X: Any, G: Any, signature: Signature) -> tuple[Tensor, Tensor]:
    point, gradient = to_tensor(X, "X"), to_tensor(G, "G")
    n = check_signature(signature).n
    if point.ndim < 2 or point.shape[-2] != n:
        raise ValueError(f"X must have shape (..., {n}, k) for {signature}, got {describe(X)}")
    if gradient.shape != point.shape:
        raise ValueError(f"G must have the shape of X {tuple(point.shape)}, got {describe(G)}")
    check_alike(gradient, "G", point, "X")
    check_finite(point, "X")
    check_finite(gradient, "G")
    return point, gradient
