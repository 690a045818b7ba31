"""The gradient on the group: slopes in every plane, the tangent vector, the multiplier."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from jorth.arrays import (
    ArrayT,
    check_alike,
    check_finite,
    check_overflow,
    check_signature,
    describe,
    frobenius,
    like_input,
    to_tensor,
)
from jorth.signature import Signature


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


def gradient_norm(X: Tensor, gradient: Tensor, signs: Tensor) -> float:
    """||skew(J G X^T)||_F, whatever the scale of f: no product with G overflows or underflows before the norm does."""
    size = float(gradient.abs().max())
    if not 0 < size < math.inf:
        return size
    return size * frobenius(skew_gradient(X, gradient / size, signs))


def scaled_violation(X: Tensor, signs: Tensor, gram: Tensor, norm: float) -> float:
    """Max |X^T J X - gram| / max(1, norm^2), also where the square of the norm overflows."""
    if norm > math.sqrt(torch.finfo(X.dtype).max) / 1e3:
        return scaled_violation(X / norm, signs, gram / norm / norm, 1.0)
    violation = (X.mT @ (signs[:, None] * X) - gram).abs().max().item()
    return violation / max(1.0, norm * norm)


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
