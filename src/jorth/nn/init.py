"""Initialisers in the style of torch.nn.init."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from jorth._inputs import check_own_floats, check_signature, describe, square_matrix
from jorth.group import random_point
from jorth.signature import Signature

__all__ = ["j_orthogonal_"]


def j_orthogonal_(
    tensor: Tensor,
    signature: Signature,
    *,
    columns: Signature | None = None,
    cond: float = 1.0,
    component: tuple[int, int] = (1, 1),
    seed: int | np.random.Generator | torch.Generator = 0,
) -> Tensor:
    """Fill a tensor with independent random matrices X, X^T J X = J or that of fewer columns.

    Args:
        tensor: (..., n, n), or thin (..., n, k) together with ``columns``; float32 or float64.
        signature: The signs of J.
        columns: The k signs of X^T J X for a thin X, at most as many of each kind as in J. X then
            consists of columns of a full matrix, to which ``cond`` and ``component`` apply.
        cond: The condition number of each matrix; with 1 the matrices are orthogonal as well.
        component: The signs of det X[+,+] and det X[-,-].
        seed: An integer, or a generator of NumPy or torch, which several layers can share.

    Returns:
        The tensor itself.

    >>> X = jorth.nn.init.j_orthogonal_(torch.empty(3, 3), jorth.Signature(2, 1), cond=10)
    >>> jorth.residual(X, jorth.Signature(2, 1)) < 1e-6
    True
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"tensor must be a torch tensor, got {describe(tensor)}")
    check_own_floats(tensor, "tensor")
    signature = check_signature(signature)
    columns = None if columns is None else check_signature(columns, "columns")
    if columns is None:
        batch = square_matrix(tensor, signature, "tensor").shape[:-2]
    else:
        _check_thin(tensor, signature, columns)
        batch = tensor.shape[:-2]
    point = random_point(
        signature,
        cond=cond,
        component=component,
        columns=None if columns is None else (columns.p, columns.q),
        batch=tuple(batch),
        seed=_of_numpy(seed),
        dtype=tensor.dtype,
    )
    if columns is not None:
        order = np.concatenate([columns.positive, columns.negative])
        point = point[..., np.argsort(order)]  # from the positive ones first
    with torch.no_grad():
        return tensor.copy_(point)


def integer_seed(seed: int | np.random.Generator | torch.Generator) -> int:
    """Return the seed itself, or one drawn from the generator, which moves on."""
    drawn = _of_numpy(seed)
    return int(drawn.integers(2**63)) if isinstance(drawn, np.random.Generator) else drawn


def _of_numpy(seed: int | np.random.Generator | torch.Generator) -> int | np.random.Generator:
    if isinstance(seed, torch.Generator):
        return int(torch.randint(2**63 - 1, (), generator=seed, device=seed.device))
    return seed


def _check_thin(tensor: Tensor, signature: Signature, columns: Signature) -> None:
    n, k = signature.n, columns.n
    if columns.p > signature.p or columns.q > signature.q:
        expected = f"at most as many signs of each kind as {signature}"
        raise ValueError(f"columns must have {expected}, got {columns}")
    if tuple(tensor.shape[-2:]) != (n, k):
        expected = f"shape (..., {n}, {k}) for {signature} and columns of {columns}"
        raise ValueError(f"tensor must have {expected}, got {describe(tensor)}")
