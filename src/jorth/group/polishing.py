"""Polishing: the J-orthogonal matrix near a given one."""

from __future__ import annotations

import torch
from torch import Tensor

from jorth._inputs import ArrayT, Convertible, explained, like_input, unit_roundoff
from jorth.group.elements import finite_square
from jorth.signature import Signature

SCHULZ_RADIUS = 0.5
MAX_STEPS = 60


class PolishError(ValueError):
    """The iteration finds no J-orthogonal matrix nearby."""


@explained
def polish(X: ArrayT | Convertible, signature: Signature) -> ArrayT:
    """The J-orthogonal factor W of X = W S, S = (J X^T J X)^(1/2), for X (..., n, n) near O(p, q).

    Where ||J X^T J X - I||_F is below 1/2 this takes the inverse-free Schulz step
    X (3 I - J X^T J X) / 2, further away the Newton step (X + J X^-T J) / 2. Both converge
    quadratically. A perturbation E of a feasible X must satisfy about ||E|| ||X|| < 1; beyond that
    S need not exist, and a PolishError is raised.

    Args:
        X: (..., n, n), nearly J-orthogonal.
        signature: The signs of J.

    Returns:
        An array like X with a residual at rounding level; an X that has one already is unchanged.
        The derivative is that of W: on the group, the projection onto the tangent space.
    """
    return like_input(orthogonal_factor(finite_square(X, signature), signature, "X"), X)


def orthogonal_factor(matrix: Tensor, signature: Signature, name: str) -> Tensor:
    """The factor W of `polish` for finite tensors (..., n, n); errors call them ``name``."""
    s = signature.vector(matrix)
    identity = torch.eye(signature.n, dtype=matrix.dtype, device=matrix.device)
    rounding_level = 4 * signature.n * unit_roundoff(matrix)
    point = matrix.clone()
    for _ in range(MAX_STEPS):
        M = s[:, None] * (point.mT @ (s[:, None] * point))
        distance = torch.linalg.matrix_norm(M - identity)
        scaled = distance / torch.linalg.matrix_norm(point).square().clamp(min=1.0)
        converged = scaled <= rounding_level
        if bool(converged.all()):
            return _with_derivatives(point, s) if point.requires_grad else point
        if not bool(torch.isfinite(scaled).all()):
            break
        point = torch.where(converged[..., None, None], point, _step(point, M, distance, s))
    raise _error(name, signature, int((~converged).sum()), converged.numel(), scaled.amax().item())


def _with_derivatives(W: Tensor, s: Tensor) -> Tensor:
    """W with the first and second derivatives of the factor, of which each step adds one order.

    The steps so far may have been none.
    """
    stepped = W
    for _ in range(2):
        stepped = 1.5 * stepped - 0.5 * stepped @ (
            s[:, None] * (stepped.mT @ (s[:, None] * stepped))
        )
    return W.detach() + (stepped - stepped.detach())


def _error(name: str, signature: Signature, bad: int, count: int, scaled: float) -> PolishError:
    failed = f"{bad} of {count} matrices for {signature}"
    return PolishError(
        f"{name} has no J-orthogonal factor that the iteration can reach ({failed}, last scaled "
        f"residual {scaled:.3g}); a perturbation E of a feasible {name} needs about "
        f"||E|| ||{name}|| < 1"
    )


def _step(X: Tensor, M: Tensor, distance: Tensor, s: Tensor) -> Tensor:
    near = (distance < SCHULZ_RADIUS)[..., None, None]
    schulz = 1.5 * X - 0.5 * X @ M
    if bool(near.all()):
        return schulz
    inverse, _ = torch.linalg.inv_ex(X)  # a singular X gives inf or NaN, which the caller sees
    newton = (X + s[:, None] * inverse.mT * s) / 2
    return torch.where(near, schulz, newton)
