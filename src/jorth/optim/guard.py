"""What may be written into a parameter: finite matrices that are J-orthogonal still."""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from torch import Tensor

from jorth.arrays import unit_roundoff
from jorth.group import residual
from jorth.signature import Signature

PROBES = 16


def largest_norm(X: Tensor) -> float:
    """u^(-1/2), u the unit roundoff: rounding alone changes X^T J X by u ||X||^2 = 1 there, as much as J."""
    return 1 / math.sqrt(unit_roundoff(X))


def largest_residual(X: Tensor) -> float:
    """u^(1/2): half the digits."""
    return math.sqrt(unit_roundoff(X))


def left_the_group(X: Tensor) -> str:
    """The words for a step that may not be written."""
    return (
        f"a step would end beyond ||X|| = {largest_norm(X):.2g} or with a residual above {largest_residual(X):.2g}, "
        f"where X^T J X = J is lost in the rounding of {X.dtype}: lr is too large, or the loss does not hold X back"
    )


def may_be_written(moved: Tensor, X: Tensor, signature: Signature) -> Tensor:
    """Which of the matrices ``moved`` (b, n, n) may take the place of X: a mask (b,).

    They are finite, J-orthogonal to half the digits, and not beyond `largest_norm` unless X was farther out.
    """
    norm: Tensor = torch.linalg.matrix_norm(moved)
    near: Tensor = (norm <= largest_norm(X)) | (
        norm <= torch.linalg.matrix_norm(X)
    )  # false for NaN
    return near & _feasible(torch.where(near[:, None, None], moved, X), signature)


def _feasible(X: Tensor, signature: Signature) -> Tensor:
    """Whether `residual` is at most `largest_residual`, of finite matrices (b, n, n).

    The largest entry of E = X^T J X - J is at most that of E Z, Z of random signs, but for once in 2^16: turning the
    sign that belongs to it moves its row of E Z by twice as much. So E Z, in O(n^2), tells most matrices; the residual
    itself is computed for the others.
    """
    s = signature.vector(X)
    Z = _probes(signature.n).to(X)
    violation = (X.mT @ (s[:, None] * (X @ Z)) - s[:, None] * Z).abs().amax(dim=(-2, -1))
    longest = X.square().sum(dim=-1).amax(dim=-1).clamp(min=1.0)  # at most ||X||_2^2, and cheap
    feasible = violation <= largest_residual(X) * longest
    if bool(feasible.all()):
        return feasible
    exact: Tensor = residual(X, signature) <= largest_residual(X)
    return exact


@lru_cache(maxsize=16)
def _probes(n: int) -> Tensor:
    """Random signs (n, 16), or the identity where that is no larger."""
    if n <= PROBES:
        return torch.eye(n, device="cpu")
    generator = torch.Generator("cpu").manual_seed(0)
    return 1 - 2 * torch.randint(2, (n, PROBES), generator=generator, device="cpu").float()
