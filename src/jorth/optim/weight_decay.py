"""Decoupled weight decay on the group: towards the maximal compact subgroup, or the identity."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from jorth.signature import Signature

LARGEST_PULL = 0.25
"""The largest ||Theta||_F of decay: beyond, products of plane turns are no exponential."""


def pull(
    X: Tensor, signature: Signature, towards: Literal["compact", "identity"], share: float
) -> Tensor:
    """The angles (b, n, n), float64, that take a share off X (b, n, n), or `LARGEST_PULL`."""
    angles = share * decay_angles(X, signature, towards)
    size = torch.linalg.matrix_norm(angles, keepdim=True)
    limited: Tensor = angles * (LARGEST_PULL / size.clamp(min=LARGEST_PULL))
    return limited


def decay_angles(
    X: Tensor, signature: Signature, towards: Literal["compact", "identity"]
) -> Tensor:
    """The angles (b, n, n), float64, of a whole step from X (b, n, n) to the goal.

    X = exp(B) Q is the polar decomposition: B symmetric with JB + BJ = 0, its eigenvalues the
    rapidities of X, and Q orthogonal. "compact" gives J B, so that a share t of the angles takes X
    to exp((1 - t) B) Q. "identity" adds J (Q - Q^T) / 2, which turns the rotations of Q, by their
    sines, towards the identity, too.
    """
    signs = signature.vector(X).double()
    B = rapidities(X, signature)
    if towards == "identity":
        Q = torch.matrix_exp(-B) @ X.double()
        B = B + (Q - Q.mT) / 2
    return signs[:, None] * B


def rapidities(X: Tensor, signature: Signature) -> Tensor:
    """B = log(X X^T) / 2 (b, n, n), float64.

    W = X X^T = exp(2 B) has the blocks cosh(2 B) on the diagonal, and sinh(2 B) beside it. With
    the eigenvalues cosh(2 r) of the smaller diagonal block W_a, the block of B beside it is
    r / sinh(2 r), a function of W_a, times that of W.
    """
    few, many = signature.positions(X.device)
    if len(many) < len(few):
        few, many = many, few
    rows = X.double()
    A, C = rows[:, few], rows[:, many]
    values, vectors = torch.linalg.eigh(A @ A.mT)
    twice = values.clamp(min=1.0).acosh()
    ratio = torch.where(twice > 1e-4, twice / twice.sinh(), 1 - twice.square() / 6) / 2
    beside = (vectors * ratio[:, None, :]) @ (vectors.mT @ (A @ C.mT))
    B = torch.zeros_like(rows)
    B[:, few[:, None], many] = beside
    B[:, many[:, None], few] = beside.mT
    return B
