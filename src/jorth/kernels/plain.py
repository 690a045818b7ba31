"""One Jacobi round in plain torch: what the kernels compute, for devices without Triton."""

from __future__ import annotations

import torch
from torch import Tensor

from jorth.plane import apply_columns, apply_rows, solve_plane


def plain_round(
    A: Tensor,
    C: Tensor | None,
    X: Tensor,
    Y: Tensor,
    pairs: Tensor,
    signs: Tensor,
    *,
    factor: float,
    theta: float,
    everywhere: bool,
) -> tuple[Tensor, Tensor]:
    """X <- V X and Y <- V Y V^T in place for disjoint pairs (m, 2): the decrease and the unbounded flag of each.

    P = [A Y + C X^T]_BB and Q = factor Y_BB (x) A_BB; theta < 0 is relative to the largest entry of Q.
    """
    P = A[pairs] @ Y[pairs].mT
    if C is not None:
        P = P + C[pairs] @ X[pairs].mT
    rows, columns = pairs[:, :, None], pairs[:, None, :]
    block, weight = Y[rows, columns], factor * A[rows, columns]
    block = (block + block.mT) / 2
    Q = (block[:, :, None, :, None] * weight[:, None, :, None, :]).reshape(-1, 4, 4)
    bound = -theta * Q.abs().amax(dim=(-2, -1)) if theta < 0 else torch.full_like(P[:, 0, 0], theta)
    V, decrease, unbounded = solve_plane(
        P, Q, signs[pairs], theta=bound, components="all" if everywhere else "identity", check=False
    )
    apply_rows(X, pairs, V)
    apply_rows(Y, pairs, V)
    apply_columns(Y, pairs, V.mT)
    return decrease, unbounded
