"""The right-invariant metric on O(p, q), as the adapters for pymanopt and geoopt use it.

Tangent vectors at X are K X with K = J S, S skew. The metric <K1 X, K2 X>_X = tr(K1^T K2) =
<S1, S2>_F does not change when points and vectors are multiplied by a group element from the right.
It is not the metric of the embedding, tr(U^T V), which O(p, q) does not preserve.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from jorth._inputs import check_overflow, unit_roundoff
from jorth.group import exp
from jorth.group.gradient import skew_gradient
from jorth.signature import Signature

Step = Callable[[Tensor, Signature], Tensor]
"""From K to the group element by which a point is multiplied."""


def skew(M: Tensor) -> Tensor:
    """Return (M - M^T) / 2 for M (..., n, n)."""
    return (M - M.mT) / 2


def projection_coordinates(X: Tensor, U: Tensor, s: Tensor) -> Tensor:
    """Return S of the tangent vector J S X nearest to an ambient U: skew(J U X^-1), X^-T = J X J.

    It is nearest in the norm ||U X^-1||_F, which on tangent vectors is that of the metric. A
    tangent vector is its own nearest.
    """
    return skew_gradient(s[:, None] * X * s, U, s)


def embed(X: Tensor, S: Tensor, s: Tensor) -> Tensor:
    """Return the tangent vector J S X in the ambient space."""
    return s[:, None] * (S @ X)


def hessian_coordinates(X: Tensor, G: Tensor, H: Tensor, S: Tensor, s: Tensor) -> Tensor:
    """Return S of the Riemannian Hessian along J S X.

    G is the Euclidean gradient and H its derivative along J S X. The result is the derivative of
    skew(J G X^T) in the frame of right-invariant fields, plus the connection of that frame, which
    by Koszul's formula takes B X along K X to ([B, K] + [B^T, K] + [K^T, B]) X / 2.
    """
    K, B = s[:, None] * S, s[:, None] * skew_gradient(X, G, s)
    connection = (B @ K - K @ B + B.mT @ K - K @ B.mT + K.mT @ B - B @ K.mT) / 2
    return skew(s[:, None] * (H @ X.mT + G @ X.mT @ K.mT + connection))


def geodesic_step(K: Tensor, signature: Signature) -> Tensor:
    """Return exp(K - K^T) exp(K^T): this times X is the geodesic from X along K X after unit time.

    exp(K) X is that geodesic only where K and K^T commute: for pure rotations and pure boosts.
    """
    return exp(K - K.mT, signature) @ exp(K.mT, signature)


def bounded_exp(K: Tensor, signature: Signature) -> Tensor:
    """Return exp(K / sqrt(1 + (b / L)^2)), b = ||K[+,-]||_F: a retraction for steps of any length.

    A plain exponential overflows on the long trial steps of a line search. Here the boost stays
    below L = log(1/u) / 2, where the step has condition number 1/u. A step of moderate size is
    exp(K) up to a relative b^2 / 2 L^2 of its length. The step of -K is the inverse of that of K.
    """
    boost = (K + K.mT) / 2  # ||boost||_F^2 = 2 ||K[+,-]||_F^2
    # dividing by the largest entry keeps the squares from overflowing
    largest = boost.abs().amax(dim=(-2, -1), keepdim=True).clamp(min=1.0)
    b = largest * torch.linalg.matrix_norm(boost / largest, keepdim=True) / math.sqrt(2)
    limit = -math.log(unit_roundoff(K)) / 2
    return exp(K / torch.hypot(torch.ones_like(b), b / limit), signature)


def apply_step(step: Step, X: Tensor, S: Tensor, signature: Signature, names: str) -> Tensor:
    """Return step(J S) X, or a ValueError that names the arguments where that is not finite."""
    try:
        found = step(signature.vector(S)[:, None] * S, signature) @ X
    except ValueError as error:
        expected = "of a size at which the step is finite"
        raise ValueError(f"{names} must be {expected}: {error}") from None
    check_overflow(found, names, "the step")
    return found
