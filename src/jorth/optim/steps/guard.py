"""What may be a parameter's value: finite matrices that are J-orthogonal to half their digits.

The columns of a thin matrix X (n, k) are J-orthonormal, X^T J X = diag(+-1), and keep their signs.
"""

from __future__ import annotations

from functools import cache, lru_cache

import torch
from torch import Tensor

from jorth.group.elements import column_signs, residual
from jorth.signature import Signature

PROBES = 16
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
    """Why a step is not taken as it is that ends where `may_be_written` is false."""
    limit = largest_norm(dtype) if max_norm is None else max_norm
    return (
        f"a step would end beyond ||X|| = {limit:.2g} or with a residual above "
        f"{largest_residual(dtype):.2g}, where X^T J X = J is lost in the rounding of {dtype}: "
        "lr is too large, nothing in the loss keeps X bounded, or X had lost it before and needs "
        "jorth.polish"
    )


def without_drift(X: Tensor, signature: Signature) -> Tensor:
    """Return X (b, n, k) after a Newton step X (3 I - J X^T J X) / 2 where rounding has added up.

    Turns of rows leave X^T J X as it is, with its errors; turns of columns, X R, multiply an error
    E to R^T E R. Boosts of both sides that cancel each other in X thus blow it up exponentially.
    The step takes it away while it is small, so that what is far from the group is not brought
    back by it.
    """
    rows = X.double()
    s, columns = signature.vector(rows), column_signs(rows, signature)
    E = columns[..., None] * (rows.mT @ (s[:, None] * rows))
    E.diagonal(dim1=-2, dim2=-1).sub_(1)
    size = torch.linalg.matrix_norm(E)
    due = DRIFT * torch.finfo(X.dtype).eps / 2 * rows.square().sum(dim=(-2, -1))
    drifted = (size > due.clamp(max=NEWTON_RADIUS / 2)) & (size <= NEWTON_RADIUS)
    longest = rows.square().sum(dim=-1).amax(dim=-1).clamp(min=1.0)
    drifted &= E.abs().amax(dim=(-2, -1)) <= largest_residual(X.dtype) * longest
    return torch.where(drifted[:, None, None], (rows - 0.5 * rows @ E).to(X.dtype), X)


def may_be_written(
    moved: Tensor, X: Tensor, signature: Signature, max_norm: float | None = None
) -> Tensor:
    """Which of the matrices ``moved`` (b, n, k) may take the place of X: a mask (b,).

    Such a matrix is finite, J-orthogonal to half the digits, and within the norm.
    """
    near = within_norm(moved, X, max_norm)
    return near & feasible(torch.where(near[:, None, None], moved, X), X, signature)


def within_norm(moved: Tensor, X: Tensor, max_norm: float | None) -> Tensor:
    """Which matrices are finite and not beyond ``max_norm`` unless X was farther out: (b,).

    None stands for `largest_norm`.
    """
    limit = largest_norm(X.dtype) if max_norm is None else max_norm
    norm = torch.linalg.matrix_norm(moved)
    within: Tensor = (norm <= limit) | (norm <= torch.linalg.matrix_norm(X))  # false for NaN
    return within


def feasible(moved: Tensor, X: Tensor, signature: Signature) -> Tensor:
    """Which matrices ``moved`` (b, n, k) are finite and J-orthogonal to half the digits: (b,)."""
    finite = torch.isfinite(moved).all(dim=-1).all(dim=-1)
    kept = torch.where(finite[:, None, None], moved, X)
    return finite & _feasible(kept, signature, column_signs(X, signature))


def _feasible(X: Tensor, signature: Signature, columns: Tensor) -> Tensor:
    """Whether `residual` is at most `largest_residual`, for finite matrices (b, n, k).

    The signs of their columns are (k,) or (b, k).

    With probability 1 - 2^-16 the largest entry of E = X^T J X - J is at most that of E Z, where Z
    has random signs: flipping the sign that multiplies the entry changes its row of E Z by twice
    its size. So E Z, in O(n^2), clears most matrices; the others need the residual itself.
    """
    s = signature.vector(X)
    on_host = X.device.type == "cpu"
    if on_host:
        Z = probes(X.shape[-1]).to(X)
        image = X.mT @ (s[:, None] * (X @ Z))
    else:  # there are no branches on what a device knows: the whole product
        Z = torch.eye(X.shape[-1], dtype=X.dtype, device=X.device)
        image = X.mT @ (s[:, None] * X)
    violation = (image - columns[..., None] * Z).abs().amax(dim=(-2, -1))
    longest = X.square().sum(dim=-1).amax(dim=-1).clamp(min=1.0)  # at most ||X||_2^2, and cheap
    feasible = violation <= largest_residual(X.dtype) * longest
    if not on_host or bool(feasible.all()):
        return feasible
    gram = torch.diag_embed(columns)
    exact: Tensor = residual(X, signature, gram=gram) <= largest_residual(X.dtype)
    return exact


@lru_cache(maxsize=16)
def probes(n: int) -> Tensor:
    """Random signs (n, 16), or the identity if that is no larger."""
    if n <= PROBES:
        return torch.eye(n, device="cpu")
    generator = torch.Generator("cpu").manual_seed(0)
    return 1 - 2 * torch.randint(2, (n, PROBES), generator=generator, device="cpu").float()
