"""Rounds of disjoint pairs on the majoriser of one gradient, for a batch of matrices.

The majoriser <Y - X, G> + L/2 ||Y - X||_F^2 of an L-smooth function has the gradient G + L (Y - X) at any Y, so that
one round after the other can be run on it without a new gradient, each pair exactly: Q = L (Z Z^T) (x) I_2, Z the two
rows.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth.kernels import batch_rounds, fits_batch_rounds
from jorth.plane import apply_rows, solve_plane, solve_rows
from jorth.plane.solve import Components
from jorth.signature import Signature


def run_rounds(
    X: Tensor,
    G: Tensor,
    L: float,
    rounds: NDArray[np.int64],
    signature: Signature,
    *,
    everywhere: bool,
) -> Tensor:
    """The matrices (b, n, n) after the rounds (r, m, 2): compiled and in float64 on the CPU, batched on a device.

    There small matrices take all rounds in one launch.

    Args:
        X: (b, n, n), where the majoriser is centred and the steps start.
        G: (b, n, n), the gradient there. A matrix whose gradient is zero or not finite stays as it is.
        L: The curvature.
        rounds: Disjoint pairs of rows in each round.
        signature: The signs of the rows.
        everywhere: Whether steps may change the component.
    """
    finite = torch.isfinite(G).all(dim=-1).all(dim=-1)[:, None, None]
    G = torch.where(finite, G, 0.0)
    if X.device.type == "cpu":
        return compiled_rounds(X, G, L, rounds, signature, everywhere)
    if fits_batch_rounds(X):
        return batch_rounds(X, G, L, rounds, signature.signs, everywhere=everywhere)
    return batched_rounds(X, G, L, rounds, signature, everywhere)


def compiled_rounds(
    X: Tensor,
    G: Tensor,
    L: float,
    rounds: NDArray[np.int64],
    signature: Signature,
    everywhere: bool,
) -> Tensor:
    """One matrix after the other, pair by pair."""
    from jorth.plane.compiled.sweeps import sweep_batch

    moved = X.to(torch.float64, copy=True, memory_format=torch.contiguous_format)
    centre = (moved - G.double() / L).contiguous()
    sweep_batch(
        moved.numpy(), centre.numpy(), L, signature.signs, rounds.reshape(-1, 2), everywhere
    )
    return moved.to(X)


def batched_rounds(
    X: Tensor,
    G: Tensor,
    L: float,
    rounds: NDArray[np.int64],
    signature: Signature,
    everywhere: bool,
) -> Tensor:
    """All matrices and all pairs of a round at once."""
    moved = X.clone(memory_format=torch.contiguous_format)
    for pairs in rounds:
        index = torch.from_numpy(pairs).to(X.device)
        gradient = G + L * (moved - X)
        V = _pair_steps(
            moved[:, index].double(),
            gradient[:, index].double(),
            L,
            signature.signs[pairs],
            everywhere,
        )
        apply_rows(moved, index, V.to(X.dtype))
    return moved


def _pair_steps(
    Z: Tensor, G: Tensor, L: float, signs: NDArray[np.int8], everywhere: bool
) -> Tensor:
    """The best V (b, m, 2, 2) for rows Z and their gradients G, both (b, m, 2, n).

    ||V Z|| does not change under an orthogonal V: for equal signs the surrogate is linear, <V, P - L Z Z^T>.
    """
    V = Z.new_empty((*Z.shape[:2], 2, 2))
    components: Components = "all" if everywhere else "identity"
    opposite = signs[:, 0] != signs[:, 1]
    for kind in (True, False):
        where = np.flatnonzero(opposite == kind)
        if not where.size:
            continue
        at = torch.from_numpy(where).to(Z.device)
        sign = torch.from_numpy(signs[where]).to(Z.device).expand(len(Z), -1, -1)
        rows, slopes = Z[:, at], G[:, at]
        if kind:
            V[:, at] = solve_rows(slopes, rows, L, sign, components=components, check=False).V
        else:
            linear = (slopes - L * rows) @ rows.mT
            V[:, at] = solve_plane(linear, 0.0, sign, components=components, check=False).V
    return V
