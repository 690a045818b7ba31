"""Products of plane rotations, circular and hyperbolic, by given angles.

In a round of disjoint pairs row i with partner p becomes

    cos(a) x_i + sin(a) x_p    if their signs are equal,
    cosh(a) x_i + sinh(a) x_p  if they are opposite,

with a = -s_i Theta_ip: exp(-J Theta) for the plane (i, p) alone. Both rows of a pair have the same
formula, since Theta is skew. It is applied as the increment (cos(a) - 1) x_i + sin(a) x_p, so that
feasibility drifts least. On the CPU numba takes one plane after the other, by three shears each.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth._triton import runs_triton
from jorth.optim.rounds import pair_codes
from jorth.plane.pairs import upload
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
        codes = rounds
        if not isinstance(codes, Tensor):
            codes = upload(pair_codes(signature.signs, codes), X.device)
        even, odd = turn_factors(angles, signature.vector(angles), codes)
        if X.numel() and runs_triton(X.device) and 2 <= X.shape[-2] <= MOST_ROWS:
            return triton_turned(X, codes, even, odd, only)
        return torch_turned(X, codes, even, odd)
    from jorth.optim._rotations_numba import turn_batch

    assert not isinstance(rounds, Tensor)
    moved = X.to(torch.float64, copy=True, memory_format=torch.contiguous_format)
    if only is not None:
        moved[only] = turned(X[only], angles[only], signature, rounds)
        return moved
    theta = angles.contiguous().numpy()
    turn_batch(moved.numpy(), theta, signature.signs, rounds.reshape(-1, 2))
    return moved


def turn_factors(angles: Tensor, signs: Tensor, codes: Tensor) -> tuple[Tensor, Tensor]:
    """The factors of rows and of their partners (b, r, n), float64, from angles Theta (b, n, n).

    Args:
        angles: Skew.
        signs: (n,).
        codes: (r, n), the partner p of each row, or -1 - p if its sign is opposite:
            `jorth.optim.rounds.pair_codes`.
    """
    opposite, partner = split_codes(codes)
    own = torch.arange(len(signs), device=angles.device)
    a = -(signs.double()[:, None] * angles.double())[:, own, partner]
    half = torch.where(opposite, (0.5 * a).sinh(), (0.5 * a).sin())
    odd = torch.where(opposite, a.sinh(), a.sin())
    return torch.where(opposite, 2.0, -2.0) * half.square(), odd


def split_codes(codes: Tensor) -> tuple[Tensor, Tensor]:
    """Whether signs are opposite, and the partners (int64), of codes (r, n)."""
    opposite = codes < 0
    return opposite, torch.where(opposite, -1 - codes, codes).long()


def torch_turned(X: Tensor, codes: Tensor, even: Tensor, odd: Tensor) -> Tensor:
    """The matrices X (b, n, k), float64, after rounds: all matrices and pairs of a round at once.

    Args:
        X: Real matrices on one device.
        codes: (r, n): `jorth.optim.rounds.pair_codes`.
        even: (b, r, n), float64: `turn_factors`.
        odd: The same.
    """
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
    """`torch_turned` in one launch, for the matrices of a mask (b,), with or without their boosts.

    X may be a batch of transposes, and the result then is one too.
    """
    from jorth.optim._rotations_triton import turn_strips

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
