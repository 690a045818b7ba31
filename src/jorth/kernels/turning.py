"""Products of plane turns: rotations by given angles and boosts by given rapidities."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth.kernels.device_turns import turned as device_turned
from jorth.signature import Signature


def turned(
    X: Tensor,
    angles: Tensor,
    signature: Signature,
    rounds: NDArray[np.int64] | Tensor,
    only: Tensor | None = None,
) -> Tensor:
    """T X (b, n, k), float64, where T is the product of the turns of all pairs of the rounds.

    The turn of the plane (i, j) is exp of -J Theta restricted to it: a rotation by Theta_ij, or a
    boost of that rapidity. So T is exp(-J Theta) up to second order, and J-orthogonal to rounding
    at any Theta.

    Args:
        X: Matrices.
        angles: The skew Theta (b, n, n), float64.
        signature: The signs of the rows.
        rounds: Rounds of disjoint pairs (r, m, 2); for a device also their `pair_codes` there.
        only: A mask (b,) of the matrices that are wanted; the others have no meaning.
    """
    if X.device.type != "cpu":
        return device_turned(X, angles, signature, rounds, only)
    from jorth.plane.compiled.turning import turn_batch

    assert not isinstance(rounds, Tensor)
    moved = X.to(torch.float64, copy=True, memory_format=torch.contiguous_format)
    if only is not None:
        moved[only] = turned(X[only], angles[only], signature, rounds)
        return moved
    theta = angles.contiguous().numpy()
    turn_batch(moved.numpy(), theta, signature.signs, rounds.reshape(-1, 2))
    return moved
