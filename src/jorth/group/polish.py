"""Polishing: the J-orthogonal matrix near a given one."""

from __future__ import annotations

import torch
from torch import Tensor

from jorth._inputs import ArrayT, Convertible, like_input, unit_roundoff
from jorth.group.elements import finite_square
from jorth.signature import Signature

SCHULZ_RADIUS = 0.5
"""Bounds ||J X^T J X - I||_F for Schulz steps, which need it below 1 to converge."""


class PolishError(ValueError):
    """The iteration finds no J-orthogonal matrix nearby.

    >>> jorth.polish(np.zeros((2, 2)), jorth.Signature(1, 1))
    Traceback (most recent call last):
    jorth.PolishError: X has no J-orthogonal factor that the iteration can reach ...
    """


def polish(X: ArrayT | Convertible, signature: Signature) -> ArrayT:
    """Return the J-orthogonal factor W of X = W S, S = (J X^T J X)^(1/2), for X near O(p, q).

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

    >>> sig = jorth.Signature(2, 1)
    >>> X = jorth.random_point(sig) + 1e-3
    >>> jorth.residual(jorth.polish(X, sig), sig) < 1e-14
    True
    """
    return like_input(orthogonal_factor(finite_square(X, signature), signature, "X"), X)


def orthogonal_factor(
    X: Tensor,
    signature: Signature,
    name: str,
    *,
    columns: Signature | None = None,
    max_steps: int = 60,
) -> Tensor:
    """Return the factor W of `polish` for a finite tensor (..., n, n); errors call it ``name``.

    A thin X (..., n, k) has the factor W with W^T J W = diag(columns). There the Newton step is X
    (I + M^-1) / 2, M = diag(columns) X^T J X.
    """
    s = signature.vector(X)
    c = s if columns is None else columns.vector(X)
    identity = torch.eye(len(c), dtype=X.dtype, device=X.device)
    rounding_level = 4 * signature.n * unit_roundoff(X)
    W = X.clone()
    for _ in range(max_steps):
        M = c[:, None] * (W.mT @ (s[:, None] * W))
        distance = torch.linalg.matrix_norm(M - identity)
        scaled = distance / torch.linalg.matrix_norm(W).square().clamp(min=1.0)
        converged = scaled <= rounding_level
        if bool(converged.all()):
            return _with_derivatives(W, s, c) if W.requires_grad else W
        if not bool(torch.isfinite(scaled).all()):
            break
        near = (distance < SCHULZ_RADIUS)[..., None, None]
        step = 1.5 * W - 0.5 * W @ M
        if not bool(near.all()):  # a singular matrix gives inf or NaN, which is seen above
            if columns is None:
                newton = (W + s[:, None] * torch.linalg.inv_ex(W)[0].mT * s) / 2
            else:
                newton = W @ (identity + torch.linalg.inv_ex(M)[0]) / 2
            step = torch.where(near, step, newton)
        W = torch.where(converged[..., None, None], W, step)
    failed = f"{int((~converged).sum())} of {converged.numel()} matrices for {signature}"
    kind = "J-orthogonal factor" if columns is None else "factor with J-orthonormal columns"
    raise PolishError(
        f"{name} has no {kind} that the iteration can reach ({failed}, last scaled residual "
        f"{scaled.amax().item():.3g}); a perturbation E of a feasible {name} needs about "
        f"||E|| ||{name}|| < 1"
    )


def _with_derivatives(W: Tensor, s: Tensor, c: Tensor) -> Tensor:
    """Return W with the first and second derivatives of the factor: each step adds one order.

    The steps so far may have been none.
    """
    stepped = W
    for _ in range(2):
        M = c[:, None] * (stepped.mT @ (s[:, None] * stepped))
        stepped = 1.5 * stepped - 0.5 * stepped @ M
    return W.detach() + (stepped - stepped.detach())
