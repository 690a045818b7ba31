"""Rounds on the majoriser of one gradient for a batch of small matrices, in one launch."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth.kernels.available import runs_triton

LARGEST = 128
"""The most rows: few enough for the pairs of one program."""
WIDTH = 4
"""Columns that a lane takes at a time."""


def fits_batch_rounds(X: Tensor) -> bool:
    """Whether `batch_rounds` takes matrices (b, n, k) like these."""
    return runs_triton(X.device) and 2 <= X.shape[-2] <= LARGEST and len(X) > 0


def batch_rounds(
    X: Tensor,
    G: Tensor,
    L: float,
    rounds: NDArray[np.int64],
    signs: NDArray[np.int8],
    *,
    everywhere: bool,
) -> Tensor:
    """The matrices (b, n, k) after rounds (r, m, 2) on <Y - X, G> + L/2 ||Y - X||^2; float64 inside.

    One program a matrix takes it through all rounds; a pair is a lane.
    """
    if not rounds.size:
        return X.clone(memory_format=torch.contiguous_format)
    prepared = prepare_rounds(X, G, L, rounds, signs)
    launch_rounds(*prepared, everywhere=everywhere)
    return prepared[0].mT.to(X.dtype, memory_format=torch.contiguous_format)


def prepare_rounds(
    X: Tensor, G: Tensor, L: float, rounds: NDArray[np.int64], signs: NDArray[np.int8]
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """X^T and centre^T = (X - G / L)^T in float64, pairs (2, r, m), signs and L on the device."""
    moved = X.mT.to(torch.float64, copy=True, memory_format=torch.contiguous_format)
    centre = (moved - G.mT / L).contiguous()
    pairs = torch.from_numpy(np.ascontiguousarray(np.moveaxis(rounds, 2, 0), dtype=np.int32)).to(
        X.device
    )
    curvature = torch.full((1,), L, dtype=torch.float64, device=X.device)
    return moved, centre, pairs, torch.from_numpy(signs.copy()).to(X.device), curvature


def launch_rounds(
    moved: Tensor,
    centre: Tensor,
    pairs: Tensor,
    signs: Tensor,
    curvature: Tensor,
    *,
    everywhere: bool,
) -> None:
    """The one launch: ``moved`` changes in place."""
    from jorth.kernels.batch_kernels import majoriser_rounds

    batch, k, n = moved.shape
    _, rounds, m = pairs.shape
    lanes = max(32, 1 << (m - 1).bit_length())
    majoriser_rounds[(batch,)](
        moved, centre, pairs[0], pairs[1], signs, curvature, rounds, n, k, m,
        EPS=2.0**-52, ALL=everywhere, LANES=lanes, WIDTH=WIDTH, num_warps=lanes // 32, num_stages=1,
    )  # fmt: skip
