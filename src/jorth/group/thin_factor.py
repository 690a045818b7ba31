"""The polar factor of a thin matrix: columns that are J-orthonormal with given signs."""

from __future__ import annotations

import torch
from torch import Tensor

from jorth._inputs import unit_roundoff
from jorth.group.polishing import MAX_STEPS, SCHULZ_RADIUS, PolishError
from jorth.signature import Signature


def thin_factor(E: Tensor, signature: Signature, columns: Signature) -> Tensor:
    """The factor W of E = W S (b, n, k), W^T J W = C = diag(columns), S = (C E^T J E)^(1/2).

    The steps are those of `jorth.polish`, from the right: E (3 I - M) / 2 where M = C E^T J E is
    near I, and E (I + M^-1) / 2 elsewhere. They take an eigenvalue m of M to (m + 2 + 1 / m) / 4,
    and so the negative real axis, where S does not exist, into itself.

    Raises:
        PolishError: S does not exist, or the iteration does not find it.
    """
    s, c = signature.vector(E), columns.vector(E)
    identity = torch.eye(columns.n, dtype=E.dtype, device=E.device)
    rounding_level = 4 * signature.n * unit_roundoff(E)
    W = E
    for _ in range(MAX_STEPS):
        M = c[:, None] * (W.mT @ (s[:, None] * W))
        distance = torch.linalg.matrix_norm(M - identity)
        near = (distance < SCHULZ_RADIUS)[:, None, None]
        done = distance <= rounding_level * torch.linalg.matrix_norm(W).square().clamp(min=1.0)
        if bool(done.all()):
            return W
        if not bool(torch.isfinite(distance).all()):
            break
        inverse, _ = torch.linalg.inv_ex(M)  # a singular M gives inf or NaN, which is seen above
        step = torch.where(near, (3 * identity - M) / 2, (identity + inverse) / 2)
        W = torch.where(done[:, None, None], W, W @ step)
    raise PolishError(
        f"the iteration reaches no factor with J-orthonormal columns for {signature} in "
        f"{int((~done).sum())} of {done.numel()} matrices"
    )
