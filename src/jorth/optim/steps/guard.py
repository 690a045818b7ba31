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


@cache
def largest_norm(dtype: torch.dtype) -> float:
    """u^(-1/2), u the unit roundoff: rounding changes X^T J X by u ||X||^2 = 1 there."""
    return float((2 / torch.finfo(dtype).eps) ** 0.5)


@cache
def largest_residual(dtype: torch.dtype) -> float:
    """u^(1/2): half the digits."""
    return 1 / largest_norm(dtype)


def too_far(dtype: torch.dtype, max_norm: float | None) -> str:
    """Why a step is not taken as it is that ends where `may_be_written` is false."""
    limit = largest_norm(dtype) if max_norm is None else max_norm
    return (
        f"a step would end beyond ||X|| = {limit:.2g} or with a residual above "
        f"{largest_residual(dtype):.2g}, where X^T J X = J is lost in the rounding of {dtype}: "
        "lr is too large, nothing in the loss keeps X bounded, or X had lost it before and needs "
        "jorth.polish"
    )


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
