"""The gradient on the group: the slope in every plane, the tangent vector, the multiplier."""

from __future__ import annotations

import math

from torch import Tensor

from jorth import _inputs
from jorth._inputs import ArrayT, Convertible, describe, frobenius, like_input, tensor_alike
from jorth.group.elements import finite_thin
from jorth.signature import Signature


def riemannian_gradient(
    X: ArrayT | Convertible, G: ArrayT | Convertible, signature: Signature
) -> ArrayT:
    """Return J S X, S = skew(J G X^T): the tangent vector for the Euclidean gradient G (..., n, k).

    The derivative of f along it is 2 ||S||_F^2 >= 0, and it vanishes exactly at critical points.
    (The paper's G - J X G^T X J is not tangent, and a step against it can raise f.)

    Args:
        X: (..., n, k), J-orthogonal or thin.
        G: (..., n, k), the Euclidean gradient at X.
        signature: The signs of J.

    >>> G = np.array([[0.0, 1.0], [1.0, 0.0]])
    >>> np.array_equal(jorth.riemannian_gradient(np.eye(2), G, jorth.Signature(1, 1)), G)
    True
    """
    point = finite_thin(X, signature)
    gradient = tensor_alike(G, "G", point, "X")
    if gradient.shape != point.shape:
        raise ValueError(f"G must have the shape of X {tuple(point.shape)}, got {describe(G)}")
    _inputs.check_finite(gradient, "G")
    s = signature.vector(point)
    tangent = s[:, None] * (skew_gradient(point, gradient, s) @ point)
    _inputs.check_overflow(tangent, "X and G", "the tangent vector")
    return like_input(tangent, X, G)


def skew_gradient(X: Tensor, G: Tensor, signs: Tensor) -> Tensor:
    """Return S = skew(J G X^T), 0 exactly at critical points; 2 S_ij is the slope in plane ij."""
    M = signs[:, None] * (G @ X.mT)
    return (M - M.mT) / 2


def symmetric_multiplier(X: Tensor, G: Tensor, signs: Tensor) -> Tensor:
    """Return the Lagrange multiplier sym(J X^T G) of the constraint X^T J X = J."""
    M = signs[:, None] * (X.mT @ G)
    return (M + M.mT) / 2


def gradient_norm(X: Tensor, G: Tensor, signs: Tensor) -> float:
    """Return ||skew(J G X^T)||_F, where no product overflows or underflows before the norm does."""
    size = float(G.abs().max())
    if not 0 < size < math.inf:
        return size
    return size * frobenius(skew_gradient(X, G / size, signs))
