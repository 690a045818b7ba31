"""How good a point is: the Riemannian gradient, the multiplier, block stationarity."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from jorth.arrays import ArrayT, check_signature, describe, like_input, to_tensor
from jorth.objectives import AbstractObjective
from jorth.plane import all_pairs, random_pairs
from jorth.plane.solve import solve_plane
from jorth.signature import Signature
from jorth.solvers.problem import as_objective


def riemannian_gradient(X: ArrayT, G: ArrayT, signature: Signature) -> ArrayT:
    """The tangent vector J S X with S = skew(J G X^T), for the Euclidean gradient G (..., n, k) at X (..., n, k).

    The derivative of f along it is 2 ||S||_F^2 >= 0, and it vanishes exactly at critical points. (The paper's
    G - J X G^T X J vanishes at the same points but is not tangent: stepping against it can raise f.)
    """
    point, gradient = _pair_of(X, G, signature)
    s = signature.vector(point)
    return like_input(s[:, None] * (skew_gradient(point, gradient, s) @ point), X)


def multiplier(X: ArrayT, G: ArrayT, signature: Signature) -> ArrayT:
    """The Lagrange multiplier sym(J X^T G) of the constraint X^T J X = J, for square X."""
    point, gradient = _pair_of(X, G, signature)
    return like_input(symmetric_multiplier(point, gradient, signature.vector(point)), X)


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
) -> BlockStationarity:
    """The mean over pairs of ||V - I||_F^2, V the best plane step at X: zero exactly at block-stationary points.

    Block stationarity is stronger than criticality: no step in any plane, to any component, lowers the surrogate.

    Args:
        objective: An objective or a torch function.
        X: (n, k).
        signature: The signs of J.
        theta: The proximal weight of the plane problems, an absolute number as in the paper.
        pairs: All pairs when None, else that many pairs drawn at random; the standard error is then that of the mean.
        curvature: A Lipschitz constant of the gradient, for objectives that are neither quadratic nor know one.
        seed: Of the sample.
    """
    function = as_objective(objective)
    point = to_tensor(X, "X")
    n = check_signature(signature).n
    index = all_pairs(n) if pairs is None else random_pairs(n, pairs, seed=seed)
    P, Q = pair_coefficients(function, point, index, curvature)
    signs = torch.as_tensor(signature.signs[index], device=point.device)
    V = solve_plane(P, Q, signs, theta=theta).V
    distance = (V - torch.eye(2, dtype=V.dtype, device=V.device)).square().sum(dim=(-2, -1))
    spread = 0.0 if pairs is None or pairs < 2 else float(distance.std() / np.sqrt(len(index)))
    return BlockStationarity(distance.mean().item(), spread, len(index))


def pair_coefficients(
    objective: AbstractObjective, X: Tensor, pairs: Any, curvature: float | None = None
) -> tuple[Tensor, Tensor]:
    """P (m, 2, 2) and Q (m, 4, 4) of left steps: exact for a quadratic, L (Z Z^T) (x) I_2 otherwise."""
    index = torch.as_tensor(pairs, device=X.device)
    Z, G = X[index], objective.value_and_gradient(X)[1][index]
    P = G @ Z.mT
    form = objective.quadratic()
    if form is not None:
        form = form.like(X)
        Y = Z @ Z.mT if form.D is None else Z @ form.D @ Z.mT
        A = form.A[index[:, :, None], index[:, None, :]]
        return P, kronecker(Y, A)
    L = curvature if curvature is not None else objective.curvature()
    if L is None:
        raise ValueError("curvature must be given for an objective that knows none, got None")
    return P, kronecker(Z @ Z.mT, L * torch.eye(2, dtype=X.dtype, device=X.device).expand(len(index), 2, 2))


def kronecker(Y: Tensor, A: Tensor) -> Tensor:
    """Y (x) A for batches of 2x2 matrices: (..., 4, 4)."""
    return torch.einsum("...ac,...bd->...abcd", Y, A).reshape(*Y.shape[:-2], 4, 4)


def _pair_of(X: Any, G: Any, signature: Signature) -> tuple[Tensor, Tensor]:
    point, gradient = to_tensor(X, "X"), to_tensor(G, "G")
    n = check_signature(signature).n
    if point.ndim < 2 or point.shape[-2] != n:
        raise ValueError(f"X must have shape (..., {n}, k) for {signature}, got {describe(X)}")
    if gradient.shape != point.shape:
        raise ValueError(f"G must have the shape of X {tuple(point.shape)}, got {describe(G)}")
    return point, gradient
