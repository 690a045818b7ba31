"""Plane turns row by row: how much of itself and of its partner every row gains in a round.

In a round of disjoint pairs row i with partner p becomes

    cos(a) x_i + sin(a) x_p    if their signs are equal,
    cosh(a) x_i + sinh(a) x_p  if they are opposite,

with a = -s_i Theta_ip: exp(-J Theta) for the plane (i, p) alone. Both rows of a pair have the same
formula, since Theta is skew. It is applied as the increment (cos(a) - 1) x_i + sin(a) x_p, so that
feasibility drifts least.
"""

from __future__ import annotations

import torch
from torch import Tensor


def turn_factors(angles: Tensor, signs: Tensor, codes: Tensor) -> tuple[Tensor, Tensor]:
    """The factors of rows and of their partners (b, r, n), float64, from angles Theta (b, n, n).

    Args:
        angles: Skew.
        signs: (n,).
        codes: (r, n), the partner p of each row, or -1 - p if its sign is opposite:
            `jorth.kernels.pairings.pair_codes`.
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
