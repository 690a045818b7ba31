"""Turns of matrices on a device by given angles: one Triton launch, or plain torch."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth.kernels.available import runs_triton
from jorth.kernels.pairings import pair_codes, upload
from jorth.kernels.turn_factors import split_codes, turn_factors
from jorth.signature import Signature

MOST_ROWS = 256
"""The most rows that one Triton program takes through all rounds."""
MOST_ENTRIES = 4096
"""The most entries of a strip."""
ENOUGH_PROGRAMS = 1024
"""Strips are narrow unless there are so many programs without that."""


def turned(
    X: Tensor,
    angles: Tensor,
    signature: Signature,
    rounds: NDArray[np.int64] | Tensor,
    only: Tensor | None = None,
) -> Tensor:
    """T X, float64, for matrices X (b, n, k) on a device: `jorth.kernels.turning.turned`."""
    codes = rounds
    if not isinstance(codes, Tensor):
        codes = upload(pair_codes(signature.signs, codes), X.device)
    even, odd = turn_factors(angles, signature.vector(angles), codes)
    return turned_by(X, codes, even, odd, only)


def turned_by(
    X: Tensor, codes: Tensor, even: Tensor, odd: Tensor, only: Tensor | None = None
) -> Tensor:
    """The matrices X (b, n, k), float64, after rounds of turns of their rows.

    Args:
        X: Real matrices on one device.
        codes: (r, n): `jorth.kernels.pairings.pair_codes`.
        even: (b, r, n), float64: `jorth.kernels.turn_factors`.
        odd: The same.
        only: (b,), the matrices that are wanted; the others have no meaning.
    """
    if X.numel() and runs_triton(X.device) and 2 <= X.shape[-2] <= MOST_ROWS:
        return triton_turned(X, codes, even, odd, only)
    return torch_turned(X, codes, even, odd)


def torch_turned(X: Tensor, codes: Tensor, even: Tensor, odd: Tensor) -> Tensor:
    """One round after the other, all matrices and pairs at once."""
    x = X.double()
    _, partner = split_codes(codes)
    for turn in range(len(codes)):
        e, o = even[:, turn, :, None], odd[:, turn, :, None]
        x = x + (e * x + o * x[:, partner[turn]])
    return x


def triton_turned(
    X: Tensor,
    codes: Tensor,
    even: Tensor,
    odd: Tensor,
    only: Tensor | None = None,
    *,
    boosts: bool = True,
) -> Tensor:
    """All rounds in one launch, with or without their boosts.

    X may be a batch of transposes, and the result then is one too.
    """
    from jorth.kernels.by_triton.turns import turn_strips

    transposed = not X.is_contiguous() and X.mT.is_contiguous()
    X = X if transposed else X.contiguous()
    out = torch.empty_like(X, dtype=torch.float64)
    even, odd = (
        factor if factor[0].is_contiguous() else factor.contiguous() for factor in (even, odd)
    )
    b, n, k = X.shape
    rows = rows_of_tile(n)
    width = strip_width(b, k, rows)
    turn_strips[(b, -(-k // width))](
        X, out, codes.contiguous(), even, odd,
        codes if only is None else only, len(codes), n, k, X.stride(1), X.stride(2),
        even.stride(0),
        N=rows, W=width, HAS_MASK=only is not None, BOOSTS=int(boosts),
        num_warps=warps(rows * width), num_stages=1,
    )  # fmt: skip
    return out


def strip_width(b: int, k: int, rows: int) -> int:
    """Columns per program, a power of two: few for few matrices, so that all processors work."""
    width = 1 << max(k - 1, 1).bit_length()
    width = min(width, max(MOST_ENTRIES // rows, 2))
    while width > 4 and b * -(-k // width) < ENOUGH_PROGRAMS:
        width //= 2
    return width


def rows_of_tile(n: int) -> int:
    """The next power of two."""
    return 1 << (n - 1).bit_length()


def warps(entries: int) -> int:
    """Four to eight entries per thread."""
    return min(max(entries // 128, 1), 16)
