"""The right-invariant metric on O(p, q) that the adapters share, for NumPy arrays and tensors alike.

Tangent vectors at X are K X with K = J S, S skew. The metric is <K1 X, K2 X>_X = tr(K1^T K2) = <S1, S2>_F: it does not
change when points and vectors are multiplied by a group element from the right. It is not the metric of the
embedding, tr(U^T V), which O(p, q) does not keep.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from jorth.arrays import ArrayT, like_input, to_tensor, unit_roundoff
from jorth.group import exp
from jorth.signature import Signature


def skew(M: ArrayT) -> ArrayT:
    """(M - M^T) / 2 for M (..., n, n)."""
    return (M - M.swapaxes(-1, -2)) / 2


def gradient_coordinates(X: ArrayT, G: ArrayT, s: ArrayT) -> ArrayT:
    """S of the Riemannian gradient J S X: skew(J G X^T), since <G, J S X>_F = <skew(J G X^T), S>_F for all skew S."""
    return skew(s[:, None] * (G @ X.swapaxes(-1, -2)))


def projection_coordinates(X: ArrayT, U: ArrayT, s: ArrayT) -> ArrayT:
    """S of the tangent vector J S X nearest to an ambient U: skew(J U X^-1), X^-1 = J X^T J.

    Nearest in the norm ||U X^-1||_F, which is the metric's on tangent vectors. It is the identity on those.
    """
    return skew(s[:, None] * ((U * s) @ X.swapaxes(-1, -2)) * s)


def embed(X: ArrayT, S: ArrayT, s: ArrayT) -> ArrayT:
    """The tangent vector J S X in the ambient space."""
    return s[:, None] * (S @ X)


def connection(A: ArrayT, B: ArrayT) -> ArrayT:
    """The Levi-Civita derivative of the field X -> B X along A X, divided by X; A and B in the Lie algebra.

    Koszul's formula for right-invariant fields, whose bracket is minus the commutator [A, B] = A B - B A:
    2 <connection(A, B), C> = -<[A, B], C> + <[B, C], A> - <[C, A], B>, hence
    connection(A, B) = ([B, A] + [B^T, A] + [A^T, B]) / 2.
    """
    At, Bt = A.swapaxes(-1, -2), B.swapaxes(-1, -2)
    found: ArrayT = (_commutator(B, A) + _commutator(Bt, A) + _commutator(At, B)) / 2
    return found


def _commutator(A: ArrayT, B: ArrayT) -> ArrayT:
    return A @ B - B @ A


def hessian_coordinates(X: ArrayT, G: ArrayT, H: ArrayT, S: ArrayT, s: ArrayT) -> ArrayT:
    """S of the Riemannian Hessian along J S X, from the Euclidean gradient G and its derivative H along J S X.

    The derivative of skew(J G X^T) in the frame of right-invariant fields, plus the connection of that frame.
    """
    K, Xt = s[:, None] * S, X.swapaxes(-1, -2)
    gradient = s[:, None] * gradient_coordinates(X, G, s)
    return skew(s[:, None] * (H @ Xt + G @ Xt @ K.swapaxes(-1, -2) + connection(K, gradient)))


def geodesic_step(K: ArrayT, signature: Signature) -> ArrayT:
    """exp(K - K^T) exp(K^T): the geodesic from X along K X is at this times X after unit time.

    exp(K) X is that geodesic only where K and K^T commute: for pure rotations and pure boosts.
    """
    Kt = K.swapaxes(-1, -2)
    return exp(K - Kt, signature) @ exp(Kt, signature)


@contextmanager
def naming(names: str) -> Iterator[None]:
    """An error of a step names the arguments that it was made from."""
    try:
        yield
    except ValueError as error:
        raise ValueError(
            f"{names} must be of a size at which the step is finite: {error}"
        ) from None


def bounded_exp(K: ArrayT, signature: Signature) -> ArrayT:
    """exp(K / sqrt(1 + (b / L)^2)), b = ||K[+,-]||_F the boost in K: a retraction for steps of any length.

    ||exp(K)||_2 <= e^b, so a plain exponential overflows on the long trial steps of a line search. Here the boost stays
    below L = log(1/u) / 2, u the unit roundoff: there the step has condition number 1/u, and no digit survives
    a longer one. A step of moderate size is exp(K) up to a relative b^2 / 2 L^2 of its length (L is 18 in float64,
    8 in float32). The result is in the identity component always, and the step of -K is the inverse of the step of K.
    """
    algebra = to_tensor(K, "K")
    boost = (algebra + algebra.mT) / 2  # ||boost||_F^2 = 2 ||K[+,-]||_F^2
    largest = (
        boost.abs().amax(dim=(-2, -1), keepdim=True).clamp(min=1.0)
    )  # so that no square overflows
    b = largest * torch.linalg.matrix_norm(boost / largest, keepdim=True) / math.sqrt(2)
    limit = -math.log(unit_roundoff(algebra)) / 2
    return like_input(exp(algebra / torch.hypot(torch.ones_like(b), b / limit), signature), K)
