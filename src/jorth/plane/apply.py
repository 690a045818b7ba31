"""Steps V applied to rows, in place, for disjoint pairs at once.

So that feasibility drifts least, a boost scales the sum and the difference of two rows by u and
1/u, and steps near the identity are added as increments (V - I) x.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from jorth._inputs import check_own_floats, describe, tensor_alike, to_array, to_tensor

SMALL_BOOST = 0.3
SMALL_TURN = 0.9


def apply_rows(X: Any, pairs: Any, V: Any) -> None:
    """X[..., B, :] <- V_B X[..., B, :] in place for every pair B.

    Args:
        X: (..., n, k), NumPy or torch; changed in place.
        pairs: (m, 2), disjoint indices that all matrices of a batch share.
        V: (..., m, 2, 2), as `solve_plane` returns them.

    Pairs and V on a device are not checked, since that would read them back. Where X is not finite
    or overflows, so is the result.

    >>> X = np.eye(2)
    >>> jorth.plane.apply_rows(X, np.array([[0, 1]]), np.array([[[1.25, 0.75], [0.75, 1.25]]]))
    >>> X
    array([[1.25, 0.75],
           [0.75, 1.25]])
    """
    _apply(*_checked(X, pairs, V))


@torch.no_grad()
def _apply(X: Tensor, pairs: Tensor, V: Tensor) -> None:
    v11, v12, v21, v22 = V.flatten(-2).unbind(-1)
    hyperbolic = v11.sign() * v12.sign() * v21.sign() * v22.sign() > 0
    u = torch.where(v21 * v22 > 0, v22 + v21, 1 / (v22 - v21))
    small_boost = hyperbolic & (v11 > 0) & (v22 > 0) & (v21.abs() < SMALL_BOOST)
    small_turn = ~hyperbolic & (v11 > SMALL_TURN) & (v22 > SMALL_TURN)
    even = v21 * v21 / (1 + v22)
    grow = torch.where(small_boost, even + v21, u) / 2
    shrink = torch.where(small_boost, even - v21, 1 / u) / 2
    side = torch.where(v11 * v22 > 0, 1.0, -1.0).to(V)
    m11 = torch.where(hyperbolic, side * grow, torch.where(small_turn, -even, v11))
    m12 = torch.where(hyperbolic, side * shrink, v12)
    m21 = torch.where(hyperbolic, grow, v21)
    m22 = torch.where(hyperbolic, -shrink, torch.where(small_turn, -even, v22))
    mixed, keep = hyperbolic.to(V)[..., None], (small_boost | small_turn).to(V)[..., None]
    # hyperbolic pairs are combined as (xi + xj, xi - xj), the others as (xi, xj)
    i, j = pairs[:, 0], pairs[:, 1]
    xi, xj = X[..., i, :], X[..., j, :]
    first = torch.addcmul(xi, mixed, xj)
    second = torch.addcmul(mixed * xi, 1 - 2 * mixed, xj)
    X[..., i, :] = keep * xi + (m11[..., None] * first + m12[..., None] * second)
    X[..., j, :] = keep * xj + (m21[..., None] * first + m22[..., None] * second)


def _checked(X: Any, pairs: Any, V: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Return all as tensors on the device of X; what lies on the host is checked."""
    check_own_floats(X, "X")
    if isinstance(X, np.ndarray) and (not X.flags.writeable or min(X.strides, default=0) < 0):
        raise ValueError("X must be writable with positive strides, got one that is not")
    matrix = to_tensor(X, "X")
    steps = tensor_alike(V, "V", matrix, "X")
    if matrix.ndim < 2:
        raise ValueError(f"X must have shape (..., n, k), got {describe(X)}")
    index = pairs
    if not isinstance(pairs, Tensor):
        array = to_array(pairs, "pairs")
        index = torch.from_numpy(array) if array.dtype.kind == "i" else torch.empty(0)
    if index.shape[1:] != (2,) or index.dtype not in (torch.int64, torch.int32):
        raise ValueError(f"pairs must be integers of shape (m, 2), got {describe(pairs)}")
    batch = steps.shape[:-3]
    fits = len(batch) < matrix.ndim - 1 and all(
        own in (1, other) for own, other in zip(batch[::-1], matrix.shape[-3::-1], strict=False)
    )
    if steps.shape[-3:] != (len(index), 2, 2) or not fits:
        expected = f"(..., {len(index)}, 2, 2) to go with pairs"
        raise ValueError(f"V must have shape {expected}, got {describe(V)} and X {describe(X)}")
    if index.device.type == "cpu":
        flat, size = index.flatten().numpy(), matrix.shape[-2]
        if flat.size and (flat.min() < 0 or flat.max() >= size):
            found = f"values from {flat.min()} to {flat.max()}"
            raise ValueError(f"pairs must index 0 .. {size - 1}, got {found} and an X of that size")
        if np.unique(flat).size != flat.size:
            raise ValueError("pairs must be disjoint, got an index twice")
    if steps.device.type == "cpu":
        _check_steps(steps, V)
    return matrix, index.to(matrix.device).long(), steps


def _check_steps(steps: Tensor, V: Any) -> None:
    """Check that all steps are rotations, reflections, boosts or flips."""
    size = steps.abs().amax(dim=(-2, -1), keepdim=True).clamp(min=1.0)
    scaled, defects = steps / size, []
    for signs in ([1.0, 1.0], [1.0, -1.0]):
        s = torch.tensor(signs).to(steps)
        gram = scaled.mT @ (s[:, None] * scaled)
        defects.append((gram - torch.diag(s) / size.square()).abs().amax(dim=(-2, -1)))
    wrong = ~(torch.minimum(*defects) <= 64 * torch.finfo(steps.dtype).eps)
    if bool(wrong.any()):
        found = f"{describe(V)} with {int(wrong.sum())} of {wrong.numel()} that are none"
        raise ValueError(f"V must hold rotations, reflections, boosts or flips, got {found}")
