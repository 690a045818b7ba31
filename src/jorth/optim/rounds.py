"""The pairs of a step: rounds on the host, and their codes on a device."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth.plane import greedy_matching, random_matching, tournament
from jorth.plane.pairs import partners, rounds_in_tournament, upload
from jorth.signature import Signature

SHUFFLES = 64
"""Tournaments after which they recur, so that a device need not be told for ever."""


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


def numbered_rounds(
    n: int, matching: Literal["tournament", "random"], count: int, seed: int, turn: int
) -> NDArray[np.int64]:
    """The ``count`` rounds of a turn, which are numbered from 0; shape (count, n // 2, 2).

    They depend on seed and turn alone, so that runs can resume and ranks agree. "tournament" goes
    through one shuffled tournament after the other, and through the same ones again after
    `SHUFFLES`; "random" draws every round independently.
    """
    if n < 2:
        return np.empty((0, 0, 2), dtype=np.int64)
    if matching == "random":
        rng = np.random.default_rng([seed, turn])
        return np.stack([random_matching(n, seed=rng) for _ in range(count)])
    length = rounds_in_tournament(n)
    first, start = divmod(turn * count, length)
    tables = [
        tournament(n, seed=np.random.default_rng([seed, number % SHUFFLES]))
        for number in range(first, (turn * count + count - 1) // length + 1)
    ]
    return np.concatenate(tables)[start : start + count]


def pair_codes(signs: NDArray[np.int8], rounds: NDArray[np.int64]) -> NDArray[np.int16]:
    """Partners (r, n) of rounds (r, m, 2): p where the signs are equal, -1 - p where they are not.

    An index without a partner is its own.
    """
    partner = partners(len(signs), rounds)
    return np.where(signs[partner] == signs, partner, -1 - partner).astype(np.int16)
