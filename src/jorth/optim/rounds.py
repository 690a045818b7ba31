"""The pairs of a step: rounds on the host, and their codes on a device."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth.kernels.pairings import (
    SHUFFLES,
    numbered_rounds,
    pair_codes,
    rounds_in_tournament,
    upload,
)
from jorth.plane import greedy_matching
from jorth.signature import Signature

_GIVEN: ContextVar[Tensor | None] = ContextVar("given", default=None)


def rounds_of(group: dict[str, Any], squared_weights: Tensor) -> NDArray[np.int64]:
    """The rounds of this step; "greedy" weighs pairs by the root mean square of (b, n, n)."""
    n = group["signature"].n
    seed, turn = group["seed"], group["turn"]
    if group["matching"] != "greedy" or n < 2:
        count = group["rounds_per_gradient"] or rounds_in_tournament(n)
        return numbered_rounds(n, group["matching"], count, seed, turn)
    weights = squared_weights.mean(dim=0).nan_to_num(0.0).sqrt()
    pairs = greedy_matching(weights, seed=np.random.default_rng([seed, turn]))
    matching: NDArray[np.int64] = pairs.cpu().numpy()
    return matching[None]


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
