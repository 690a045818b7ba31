"""What may be a parameter's value: finite matrices that are J-orthogonal to half their digits.

The columns of a thin matrix X (n, k) are J-orthonormal, X^T J X = diag(+-1), and keep their signs.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from jorth.group.elements import column_signs, residual
from jorth.signature import Signature

DRIFT = 8
"""A Newton step is due at ||X^T J X - J||_F = `DRIFT` u ||X||_F^2, where one rounding causes 2."""
NEWTON_RADIUS = 0.5
"""||J X^T J X - I||_F up to which a Newton step makes it less than half; due at half of that."""


@cache
def largest_norm(dtype: torch.dtype) -> float:
    """u^(-1/2) / 4, u the unit roundoff: one rounding changes X^T J X by at most 1/8 there."""
    return float((2 / torch.finfo(dtype).eps) ** 0.5) / 4


@cache
def largest_residual(dtype: torch.dtype) -> float:
    """u^(1/2): half the digits."""
    return float((torch.finfo(dtype).eps / 2) ** 0.5)


def too_far(dtype: torch.dtype, max_norm: float | None) -> str:
    """Why a step is not taken as it is that ends where `settled` or `within_norm` say no."""
    limit = largest_norm(dtype) if max_norm is None else max_norm
    return (
        f"a step would end beyond ||X|| = {limit:.2g} or with a residual above "
        f"{largest_residual(dtype):.2g}, where X^T J X = J is lost in the rounding of {dtype}: "
        "lr is too large, nothing in the loss keeps X bounded, or X had lost it before and needs "
        "jorth.polish"
    )


def settled(moved: Tensor, X: Tensor, signature: Signature) -> tuple[Tensor, Tensor]:
    """Return matrices (b, n, k) without drift, and which of them may take the place of X: (b,).

    These are finite and J-orthogonal to half their digits. Turns of rows leave X^T J X as it is,
    with its errors; turns of columns, X R, multiply an error E to R^T E R. Boosts of both sides
    that cancel each other in X thus blow it up exponentially. A Newton step
    X (3 I - J X^T J X) / 2 takes it away while it is small; what is far from the group is not
    brought back.
    """
    finite = torch.isfinite(moved).all(dim=-1).all(dim=-1)
    kept = torch.where(finite[:, None, None], moved, X)
    rows, columns = kept.double(), column_signs(X, signature)
    E = columns[..., None] * (rows.mT @ (signature.vector(rows)[:, None] * rows))
    E.diagonal(dim1=-2, dim2=-1).sub_(1)
    squares = rows.square().sum(dim=-1)
    longest = squares.amax(dim=-1).clamp(min=1.0)  # at most ||X||_2^2, and cheap
    near = E.abs().amax(dim=(-2, -1)) <= largest_residual(X.dtype) * longest
    size, due = torch.linalg.matrix_norm(E), DRIFT * torch.finfo(X.dtype).eps / 2 * squares.sum(-1)
    drifted = near & (size > due.clamp(max=NEWTON_RADIUS / 2)) & (size <= NEWTON_RADIUS)
    kept = torch.where(drifted[:, None, None], (rows - 0.5 * rows @ E).to(X.dtype), kept)
    if X.device.type == "cpu" and not bool(near.all()):  # a device has no branches for the host
        exact: Tensor = residual(kept, signature, gram=torch.diag_embed(columns))
        near |= exact <= largest_residual(X.dtype)
    return kept, finite & near


def within_norm(moved: Tensor, X: Tensor, max_norm: float | None) -> Tensor:
    """Which matrices are finite and not beyond ``max_norm`` unless X was farther out: (b,).

    None stands for `largest_norm`.
    """
    limit = largest_norm(X.dtype) if max_norm is None else max_norm
    norm = torch.linalg.matrix_norm(moved)
    within: Tensor = (norm <= limit) | (norm <= torch.linalg.matrix_norm(X))  # false for NaN
    return within
