"""What may be a parameter's value: finite matrices that are J-orthogonal to half their digits."""

from __future__ import annotations

from functools import cache, lru_cache

import torch
from torch import Tensor

from jorth.arrays import check_finite, square_matrix
from jorth.group import residual
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


def check_feasible(X: Tensor, signature: Signature, name: str) -> None:
    """Raise an error that names the parameter unless X (..., n, n) is J-orthogonal."""
    square_matrix(X, signature, name)
    check_finite(X, name)
    worst = float(torch.as_tensor(residual(X, signature)).max()) if X.numel() else 0.0
    if worst > largest_residual(X.dtype):
        raise ValueError(
            f"{name} must be J-orthogonal for {signature}, got a scaled residual of {worst:.3g}; "
            f"start with jorth.nn.init.j_orthogonal_"
        )


def left_the_group(dtype: torch.dtype) -> str:
    """Why a step may not be written."""
    return (
        f"a step would end beyond ||X|| = {largest_norm(dtype):.2g} or with a residual above "
        f"{largest_residual(dtype):.2g}, where X^T J X = J is lost in the rounding of {dtype}: "
        "lr is too large, or the loss does not hold X back"
    )


def may_be_written(moved: Tensor, X: Tensor, signature: Signature) -> Tensor:
    """Which of the matrices ``moved`` (b, n, n) may take the place of X: a mask (b,).

    They are finite, J-orthogonal to half the digits, and not beyond `largest_norm` unless X was
    farther out.
    """
    norm: Tensor = torch.linalg.matrix_norm(moved)
    near: Tensor = (norm <= largest_norm(X.dtype)) | (norm <= torch.linalg.matrix_norm(X))
    # false for NaN
    return near & _feasible(torch.where(near[:, None, None], moved, X), signature)


def _feasible(X: Tensor, signature: Signature) -> Tensor:
    """Whether `residual` is at most `largest_residual`, for finite matrices (b, n, n).

    The largest entry of E = X^T J X - J is at most that of E Z, Z of random signs, with a
    probability of 1 - 2^-16: turning the sign that belongs to it moves its row of E Z by twice as
    much. So E Z, in O(n^2), tells most matrices; the residual itself is computed for the others.
    """
    s = signature.vector(X)
    Z = _probes(signature.n).to(X)
    violation = (X.mT @ (s[:, None] * (X @ Z)) - s[:, None] * Z).abs().amax(dim=(-2, -1))
    longest = X.square().sum(dim=-1).amax(dim=-1).clamp(min=1.0)  # at most ||X||_2^2, and cheap
    feasible = violation <= largest_residual(X.dtype) * longest
    if bool(feasible.all()):
        return feasible
    exact: Tensor = residual(X, signature) <= largest_residual(X.dtype)
    return exact


@lru_cache(maxsize=16)
def _probes(n: int) -> Tensor:
    """Random signs (n, 16), or the identity if that is no larger."""
    if n <= PROBES:
        return torch.eye(n, device="cpu")
    generator = torch.Generator("cpu").manual_seed(0)
    return 1 - 2 * torch.randint(2, (n, PROBES), generator=generator, device="cpu").float()
