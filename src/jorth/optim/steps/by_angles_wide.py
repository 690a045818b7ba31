"""The angles of a step of larger matrices on a device, in a few launches."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from jorth.kernels.angles import BOOST_REACH, FIRST_GAIN
from jorth.kernels.device_turns import rows_of_tile, warps
from jorth.optim.steps import by_angles_on_device as device_step
from jorth.optim.steps.by_angles_on_device import device_codes, device_signs, is_for_kernels

MOST_ROWS = 256
ENTRIES = 2048
"""The entries of a tile."""


class Turns(NamedTuple):
    """The factors (b, sides, r, n) of a step, its codes (r, n), and which gradients are finite."""

    codes: Tensor
    even: Tensor
    odd: Tensor
    finite: Tensor


def is_wide(group: dict[str, Any], X: Tensor) -> bool:
    """Whether `next_turns` can take a step of this group, for matrices X (b, n, n)."""
    larger = X.shape[-1] > device_step.MOST_ROWS
    return larger and is_for_kernels(group, X, MOST_ROWS) and group["curvature"] == "per-plane"


def next_turns(group: dict[str, Any], X: Tensor, G: Tensor, state: dict[str, Tensor]) -> Turns:
    """The turns of matrices X (b, n, n) along gradients G; the state changes in place."""
    from jorth.kernels.by_triton.wide_steps import next_halves, ordered_factors, slope_sums

    b, n, _ = X.shape
    signature, sides = group["signature"], state["gain"].shape[1]
    products = torch.empty_like(state["momentum"])
    for number, left in enumerate((True, False) if sides == 2 else (group["side"] == "left",)):
        torch.bmm(G if left else G.mT, X.mT if left else X, out=products[:, number])
    signs, codes = device_signs(signature, X.device), device_codes(group, X.device)
    norm = torch.linalg.vector_norm(state["root"], dim=(-2, -1), dtype=torch.float64)
    tile = {"R": ENTRIES // rows_of_tile(n), "N": rows_of_tile(n), "num_warps": warps(ENTRIES // 2)}
    blocks = -(-n // tile["R"])
    double: dict[str, Any] = {"dtype": torch.float64, "device": X.device}
    sums = torch.empty((b, sides, blocks, 8), **double)
    halves = torch.empty((b, sides, n, n), **double)
    scalars = X.new_empty((b, sides, 4))
    finite = torch.empty(b, dtype=torch.bool, device=X.device)
    averages = (
        state["momentum"], state["momentum_weight"], state["root"], state["root_weight"],
    )  # fmt: skip
    slope_sums[(b * sides, blocks)](
        products, *averages, norm, signs, sums, n, group["decay"], group["eps"], 1.0, **tile
    )
    next_halves[(b * sides, blocks)](
        products, *averages, state["gain"], signs, sums, halves, scalars, finite, n,
        float(group["lr"]), group["momentum"], group["decay"], group["eps"],
        FIRST_GAIN if group["gain_rate"] > 0 else 1.0, group["gain_rate"], group["max_angle"],
        BOOST_REACH / math.sqrt(max(signature.p, signature.q, 1)), 1.0,
        0 if group["max_angle"] <= 1 else 2,
        SIDES=sides, BLOCKS=rows_of_tile(blocks + 1), **tile,
    )  # fmt: skip
    state["momentum_weight"].copy_(scalars[..., 0, None, None])
    state["root_weight"].copy_(scalars[..., 1, None, None])
    state["gain"].copy_(scalars[..., 2:])
    even, odd = torch.empty((2, b, sides, len(codes), n), **double)
    ordered_factors[(b * sides, -(-len(codes) // tile["R"]))](
        halves, codes, even, odd, len(codes), n, **tile
    )
    return Turns(codes, even, odd, finite)
