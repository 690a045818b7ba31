"""Rounds of disjoint pairs, and their tables on a device."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth.plane import tournament

Matching = Literal["tournament", "random", "greedy"]
MATCHINGS = ("tournament", "random", "greedy")
"""All pairs in turn, a random matching each time, or the steepest pairs."""

_cached_tournament = lru_cache(maxsize=16)(tournament)


def rounds_in_tournament(n: int) -> int:
    """The number of rounds in which every pair of n indices meets once."""
    return n - 1 + n % 2 if n > 1 else 0


def shuffled_tournament(n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """`jorth.plane.tournament` with this seed, from a cached table: (rounds, n // 2, 2)."""
    table = _cached_tournament(n)
    return rng.permutation(n)[table][rng.permutation(len(table))]


class RoundTables(NamedTuple):
    """The two indices of every pair (r, ceil(n / 2)) and every index's partner (r, n), all int32.

    An index without a partner is its own.
    """

    first: Tensor
    second: Tensor
    partner: Tensor


def tournament_rounds(n: int, turns: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rounds of `jorth.plane.tournament` with these numbers, as partners (r, n).

    Neighbours have neighbouring partners, partner(c) = s - c modulo n - 1, so that a device reads
    the partners' columns as fast as the columns themselves.
    """
    modulus = rounds_in_tournament(n)
    table = np.empty((len(turns), n), dtype=np.int64)
    own = np.arange(modulus)
    sums = (modulus - 2 - 2 * np.asarray(turns)) % modulus
    table[:, :modulus] = (sums[:, None] - own) % modulus
    if n % 2 == 0:  # the index that would meet itself meets the last one
        alone = np.argmax(table[:, :modulus] == own, axis=1)
        table[np.arange(len(turns)), alone] = n - 1
        table[:, n - 1] = alone
    return table


def partners(n: int, rounds: NDArray[np.int64]) -> NDArray[np.int64]:
    """The partners (r, n) of rounds of disjoint pairs (r, m, 2)."""
    table = np.tile(np.arange(n), (len(rounds), 1))
    turn = np.arange(len(rounds))[:, None]
    table[turn, rounds[:, :, 0]] = rounds[:, :, 1]
    table[turn, rounds[:, :, 1]] = rounds[:, :, 0]
    return table


def round_tables(partner: NDArray[np.int64], device: torch.device) -> RoundTables:
    """The tables on a device, uploaded without waiting for it."""
    own = np.arange(partner.shape[1])
    first = np.broadcast_to(own, partner.shape)[own <= partner].reshape(len(partner), -1)
    second = np.take_along_axis(partner, first, axis=1)
    tables = (first, second, partner)
    return RoundTables(*(upload(table.astype(np.int32), device) for table in tables))


def upload(table: NDArray[Any], device: torch.device) -> Tensor:
    """A copy of an array on a device, which is not waited for."""
    tensor = torch.from_numpy(np.array(table))
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor
