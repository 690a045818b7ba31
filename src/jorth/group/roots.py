"""Principal square roots of J-orthogonal matrices, which are J-orthogonal themselves.

The root of X is the generalised polar factor of I + X: I + X = X^(1/2) (X^(1/2) + X^(-1/2)). The
Newton iteration for that factor, Y <- (Y + J Y^-T J) / 2, uses the structure of the group, so its
errors grow like u ||X||, where those of a root of a general matrix grow like u ||X||^2.

Reference: N. J. Higham, D. S. Mackey, N. Mackey and F. Tisseur, Functions preserving matrix groups
and iterations for the matrix square root, SIAM J. Matrix Anal. Appl. 26 (2005), Theorem 4.7.
"""

from __future__ import annotations

import torch
from torch import Tensor

MAX_STEPS = 60


def square_root(X: Tensor, signs: Tensor) -> Tensor:
    """X^(1/2) (..., n, n) for J-orthogonal X in float64 without eigenvalues on (-inf, 0].

    Convergence is quadratic. The step after one that changes Y by less than sqrt(u) is the last:
    it makes derivatives, which lag by one step, as accurate as Y.
    """
    identity = torch.eye(X.shape[-1], dtype=X.dtype, device=X.device)
    small = torch.finfo(X.dtype).eps ** 0.5
    Y = (identity + X) / 2
    last = X.shape[:-2].numel() == 0
    for _ in range(MAX_STEPS):
        before, Y = Y, _newton_step(Y, signs)
        if last:
            break
        change = torch.linalg.matrix_norm((Y - before).detach())
        last = bool((change <= small * torch.linalg.matrix_norm(Y.detach())).all())
    return Y


def _newton_step(Y: Tensor, signs: Tensor) -> Tensor:
    inverse, _ = torch.linalg.inv_ex(Y)  # infinite or NaN where Y is singular
    step: Tensor = (Y + signs[:, None] * inverse.mT * signs) / 2
    return step
