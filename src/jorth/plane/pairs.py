"""Which pairs of indices to treat next. A seed is an integer or a NumPy generator.

A matching is an integer array (n // 2, 2) of disjoint pairs; when n is odd, one index is left out.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth._inputs import generator, whole_number

Pairs = NDArray[np.int64]
Seed = int | np.random.Generator


def random_matching(n: int, *, seed: Seed) -> Pairs:
    """Return a uniformly random matching (n // 2, 2): a permutation cut into twos."""
    size = whole_number(n, "n", 2)
    return generator(seed).permutation(size)[: size - size % 2].reshape(-1, 2)


def random_pairs(n: int, count: int, *, seed: Seed) -> Pairs:
    """Return pairs (count, 2) of different indices, uniform with replacement."""
    rng = generator(seed)
    size = whole_number(n, "n", 2)
    drawn = whole_number(count, "count", 0)
    first = rng.integers(size, size=drawn)
    second = rng.integers(size - 1, size=drawn)
    return np.stack([first, second + (second >= first)], axis=1)


def all_pairs(n: int, *, seed: Seed | None = None) -> Pairs:
    """Return all pairs i < j (n (n - 1) / 2, 2), in random order with a seed."""
    pairs = _rows_of_pairs(whole_number(n, "n", 2))
    return pairs.copy() if seed is None else pairs[generator(seed).permutation(len(pairs))]


@lru_cache(maxsize=4)
def _rows_of_pairs(n: int) -> Pairs:
    return np.stack(np.triu_indices(n, k=1), axis=1).astype(np.int64)


def tournament(n: int, *, seed: Seed | None = None) -> Pairs:
    """Return matchings that together hold every pair once: n - 1 rounds, or n for odd n.

    The shape is (rounds, n // 2, 2). In the circle method one index stays and the others rotate. A
    seed shuffles the indices and the rounds.

    Args:
        n: The number of indices.
        seed: A number or a NumPy generator; without one the order is fixed.

    >>> jorth.plane.tournament(4).shape
    (3, 2, 2)
    """
    pairs = _tournament(whole_number(n, "n", 2))
    if seed is None:
        return pairs.copy()
    rng = generator(seed)
    return rng.permutation(n)[pairs][rng.permutation(len(pairs))]


@lru_cache(maxsize=16)
def _tournament(n: int) -> Pairs:
    return tournament_rounds(n, np.arange(rounds_in_tournament(n)))


def tournament_rounds(n: int, turns: NDArray[np.int64]) -> Pairs:
    """Return the rounds (r, n // 2, 2) of `tournament` with these numbers (r,).

    Neighbours have neighbouring partners, j = s - i modulo n - 1, so that a device reads the
    partners' columns as fast as the columns themselves.
    """
    size = n + n % 2  # an odd n plays with a bye
    rotating = (np.arange(size - 1) - turns[:, None]) % (size - 1)
    table = np.concatenate([np.full((len(turns), 1), size - 1), rotating], axis=1)
    half = size // 2
    pairs = np.stack([table[:, :half], table[:, half:][:, ::-1]], axis=2)
    return pairs[:, n % 2 :].astype(np.int64)  # the first pair of each round holds the bye


def rounds_in_tournament(n: int) -> int:
    """Return the number of rounds in which every pair of n indices meets once."""
    return n - 1 + n % 2 if n > 1 else 0


# -- rounds as tables of partners, on a device


def partners(n: int, rounds: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the partners (r, n) of rounds of disjoint pairs (r, m, 2); one's own without one."""
    table = np.tile(np.arange(n), (len(rounds), 1))
    turn = np.arange(len(rounds))[:, None]
    table[turn, rounds[:, :, 0]] = rounds[:, :, 1]
    table[turn, rounds[:, :, 1]] = rounds[:, :, 0]
    return table


def round_tables(n: int, rounds: NDArray[np.int64], device: torch.device) -> list[Tensor]:
    """Return the two indices of every pair (r, ceil(n / 2)) and every index's partner (r, n).

    They are int32, on a device that is not waited for. An index without a partner is its own.
    """
    partner, own = partners(n, rounds), np.arange(n)
    first = np.broadcast_to(own, partner.shape)[own <= partner].reshape(len(partner), -1)
    second = np.take_along_axis(partner, first, axis=1)
    return [upload(table.astype(np.int32), device) for table in (first, second, partner)]


def upload(table: NDArray[Any], device: torch.device) -> Tensor:
    """Return a copy of an array on a device, which is not waited for."""
    tensor = torch.from_numpy(np.array(table))
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor
