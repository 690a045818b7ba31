"""Initialisers in the style of torch.nn.init."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from jorth.arrays import describe, square_matrix
from jorth.group import random_point
from jorth.signature import Signature


def j_orthogonal_(
    tensor: Tensor,
    signature: Signature,
    *,
    cond: float = 1.0,
    component: tuple[int, int] = (1, 1),
    seed: int | np.random.Generator | torch.Generator = 0,
) -> Tensor:
    """Fill a tensor (..., n, n) with independent random J-orthogonal matrices in place.

    Args:
        tensor: float32 or float64.
        signature: The signs of J.
        cond: The condition number of each matrix; with 1 the matrices are orthogonal as well.
        component: The signs of det X[+,+] and det X[-,-].
        seed: An integer, or a generator of NumPy or torch, which several layers can share.

    Returns:
        The tensor itself.
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"tensor must be a torch tensor, got {describe(tensor)}")
    shape = square_matrix(tensor, signature, "tensor").shape
    if isinstance(seed, torch.Generator):
        seed = int(torch.randint(2**63 - 1, (), generator=seed, device=seed.device))
    batch = tuple(shape[:-2])
    point = random_point(
        signature, cond=cond, component=component, batch=batch, seed=seed, dtype=tensor.dtype
    )
    with torch.no_grad():
        return tensor.copy_(point)
