"""The step in the invariant metric on a device: one launch, and nothing waits for it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jorth.kernels.angles import BOOST_REACH, FIRST_GAIN
from jorth.kernels.available import runs_triton
from jorth.kernels.device_turns import rows_of_tile, warps
from jorth.kernels.pairings import (
    SHUFFLES,
    numbered_rounds,
    pair_codes,
    rounds_in_tournament,
    upload,
)
from jorth.optim.steps.guard import DRIFT, largest_norm, largest_residual
from jorth.signature import Signature

MOST_ROWS = 64
"""The largest matrix that one program takes through a whole step."""
LARGEST_ANGLE = 3.0
"""Half tangents have poles at pi."""
_GIVEN: ContextVar[Tensor | None] = ContextVar("given", default=None)


def is_one_launch(group: dict[str, Any], X: Tensor) -> bool:
    """Whether a step of this group is for `one_launch`, for matrices X (b, n, k)."""
    return (
        runs_triton(X.device)
        and X.numel() > 0
        and X.is_contiguous()
        and 2 <= X.shape[-2] == X.shape[-1] <= MOST_ROWS
        and X.dtype in (torch.float32, torch.float64)
        and group["metric"] == "invariant"
        and group["curvature"] != "scheduled"
        and group["matching"] != "greedy"
        and group["weight_decay"] == 0
        and group["max_angle"] <= LARGEST_ANGLE
    )


def one_launch(
    group: dict[str, Any], X: Tensor, G: Tensor, state: dict[str, Tensor], counts: Tensor
) -> None:
    """Move contiguous matrices X (b, n, n) and their state in place.

    Args:
        group: The options.
        X: The matrices.
        G: Their gradients.
        state: Contiguous batches of what `by_angles.state_shapes` names, and "step".
        counts: (2,), int32: grow by the number of gradients that are not finite, and of steps
            that would lead too far.
    """
    from jorth.kernels.by_triton.whole_steps import whole_steps

    b, n, _ = X.shape
    signature, sides = group["signature"], 2 if group["side"] == "both" else 1
    signs = device_signs(signature, X.device)
    codes = device_codes(group, X.device)
    lr, on_device = group["lr"], isinstance(group["lr"], Tensor) and group["lr"].is_cuda
    max_norm = largest_norm(X.dtype) if group["max_norm"] is None else group["max_norm"]
    rows = rows_of_tile(n)
    whole_steps[(b,)](
        X, G.contiguous(), state["step"], state["momentum"], state["momentum_weight"],
        state["root"], state["root_weight"], state["gain"], signs, codes,
        X.new_empty((b, sides, n + 2 * len(codes), n), dtype=torch.float64), counts,
        n, len(codes), lr if on_device else X, 0.0 if on_device else float(lr),
        group["momentum"], group["decay"], group["eps"],
        FIRST_GAIN if group["gain_rate"] > 0 else 1.0, group["gain_rate"], group["max_angle"],
        BOOST_REACH / math.sqrt(max(signature.p, signature.q, 1)), max_norm,
        DRIFT * torch.finfo(X.dtype).eps / 2, largest_residual(X.dtype),
        -1.0 if group["maximize"] else 1.0,
        0 if group["max_angle"] <= 1 else 2,
        LEFT=group["side"] != "right", SIDES=sides, PER_PLANE=group["curvature"] == "per-plane",
        HAS_LR=on_device, N=rows, num_warps=warps(rows * rows), num_stages=1,
    )  # fmt: skip


@lru_cache(maxsize=64)
def device_signs(signature: Signature, device: torch.device) -> Tensor:
    """The signs (n,) on a device, float64."""
    return upload(signature.signs.astype(np.float64), device)  # Triton's dots need all in float64


def device_codes(group: dict[str, Any], device: torch.device) -> Tensor:
    """The rounds of this step, as `pair_codes` on the device."""
    given = _GIVEN.get()
    return codes_of_turn(group, device) if given is None else given


@contextmanager
def given_codes(codes: Tensor) -> Iterator[None]:
    """Have steps read their rounds from this tensor, when they run.

    A step in a CUDA graph thus has the rounds that the tensor holds at the time of the replay,
    rather than those of the step that was captured.
    """
    before = _GIVEN.set(codes)
    try:
        yield
    finally:
        _GIVEN.reset(before)


def codes_of_turn(group: dict[str, Any], device: torch.device) -> Tensor:
    """The rounds of the group's next step, which depend on its number."""
    signature = group["signature"]
    length = rounds_in_tournament(signature.n)
    count, turn = group["rounds_per_gradient"] or length, group["turn"]
    if group["matching"] == "tournament" and count == length:
        turn %= SHUFFLES
    return _uploaded_codes(signature, group["matching"], count, group["seed"], turn, device)


@lru_cache(maxsize=256)
def _uploaded_codes(  # what rounds depend on
    signature: Signature, matching: Any, count: int, seed: int, turn: int, device: torch.device
) -> Tensor:
    rounds = numbered_rounds(signature.n, matching, count, seed, turn)
    return upload(pair_codes(signature.signs, rounds), device)
