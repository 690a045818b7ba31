"""Which pairs of indices to treat next. A seed is an integer or a NumPy generator.

A matching is an integer array (n // 2, 2) of disjoint pairs; when n is odd, one index is left out.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth._inputs import describe, generator, to_tensor, whole_number

Pairs = NDArray[np.int64]
Seed = int | np.random.Generator
Matching = Literal["tournament", "random", "greedy"]
MATCHINGS = ("tournament", "random", "greedy")
"""All pairs in turn, a random matching each time, or the steepest pairs."""

MUTUAL_ROUNDS = 32


def random_matching(n: int, *, seed: Seed) -> Pairs:
    """A uniformly random matching: a permutation cut into twos. Shape (n // 2, 2).

    Args:
        n: The number of indices.
        seed: A number or a NumPy generator.
    """
    size = whole_number(n, "n", 2)
    return generator(seed).permutation(size)[: size - size % 2].reshape(-1, 2)


def random_pairs(n: int, count: int, *, seed: Seed) -> Pairs:
    """``count`` pairs of different indices, uniform with replacement. Shape (count, 2).

    Args:
        n: The number of indices.
        count: The number of pairs.
        seed: A number or a NumPy generator.
    """
    rng = generator(seed)
    size = whole_number(n, "n", 2)
    drawn = whole_number(count, "count", 0)
    first = rng.integers(size, size=drawn)
    second = rng.integers(size - 1, size=drawn)
    return np.stack([first, second + (second >= first)], axis=1)


def all_pairs(n: int, *, seed: Seed | None = None) -> Pairs:
    """All pairs i < j, in random order with a seed, else row by row. Shape (n (n - 1) / 2, 2).

    Args:
        n: The number of indices.
        seed: A number or a NumPy generator; without one the order is fixed.
    """
    pairs = _rows_of_pairs(whole_number(n, "n", 2))
    return pairs.copy() if seed is None else pairs[generator(seed).permutation(len(pairs))]


@lru_cache(maxsize=4)
def _rows_of_pairs(n: int) -> Pairs:
    return np.stack(np.triu_indices(n, k=1), axis=1).astype(np.int64)


def tournament(n: int, *, seed: Seed | None = None) -> Pairs:
    """Matchings that together hold every pair once: n - 1 rounds, or n for odd n.

    The shape is (rounds, n // 2, 2). In the circle method one index stays and the others rotate. A
    seed shuffles the indices and the rounds.

    Args:
        n: The number of indices.
        seed: A number or a NumPy generator; without one the order is fixed.
    """
    n = whole_number(n, "n", 2)
    size = n + n % 2  # an odd n plays with a bye
    rotating = np.arange(size - 1)
    rounds = (rotating - rotating[:, None]) % (size - 1)
    table = np.concatenate([np.full((size - 1, 1), size - 1), rounds], axis=1)
    half = size // 2
    pairs = np.stack([table[:, :half], table[:, half:][:, ::-1]], axis=2)
    if n % 2:
        pairs = pairs[:, 1:]  # the first pair of each round holds the bye
    if seed is not None:
        rng = generator(seed)
        pairs = rng.permutation(n)[pairs][rng.permutation(len(pairs))]
    return pairs.astype(np.int64)


_cached_tournament = lru_cache(maxsize=16)(tournament)


def rounds_in_tournament(n: int) -> int:
    """The number of rounds in which every pair of n indices meets once."""
    return n - 1 + n % 2 if n > 1 else 0


def shuffled_tournament(n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """`tournament` with this seed, from a cached table: (rounds, n // 2, 2)."""
    table = _cached_tournament(n)
    return rng.permutation(n)[table][rng.permutation(len(table))]


def greedy_matching(weights: Any, *, seed: Seed) -> Any:
    """The matching that takes the heaviest remaining pair each time. Shape (n // 2, 2).

    In each round every free index chooses its heaviest free partner, and pairs that choose each
    other are matched: no pair that shares an index with them is heavier. Some ten rounds of O(n^2)
    replace a sort of all pairs, which remains for what an adversarial order of the weights leaves.

    Args:
        weights: (n, n), NumPy or torch; heavier pairs come first. The larger of w_ij and w_ji
            counts, the diagonal does not.
        seed: Decides between equal weights.

    Returns:
        An integer array, or a tensor on the device of ``weights``.
    """
    matrix = to_tensor(weights, "weights").detach()
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape[0] < 2:
        raise ValueError(f"weights must have shape (n, n) with n >= 2, got {describe(weights)}")
    if bool(torch.isnan(matrix).any()):
        raise ValueError("weights must not be NaN, got NaN")
    number = torch.from_numpy(generator(seed).random(len(matrix))).to(matrix.device)
    ranks = torch.frac(1e6 * number[:, None] * number)  # symmetric; they decide ties
    pairs = _mutual_choices(torch.maximum(matrix, matrix.mT), ranks)
    return pairs if isinstance(weights, Tensor) else pairs.numpy()


def _mutual_choices(weights: Tensor, ranks: Tensor) -> Tensor:
    free = torch.arange(len(weights), device=weights.device)
    found = []
    for _ in range(MUTUAL_ROUNDS):
        if len(free) < 2:
            break
        partner = _favourite(weights[free][:, free], ranks[free][:, free])
        here = torch.arange(len(free), device=weights.device)
        mutual = (partner[partner] == here) & (here < partner)
        found.append(torch.stack([free[mutual], free[partner[mutual]]], dim=1))
        left = torch.ones(len(free), dtype=torch.bool, device=weights.device)
        left[here[mutual]] = False
        left[partner[mutual]] = False
        free = free[left]
    if len(free) > 1:
        found.append(_by_sorting(weights[free][:, free], ranks[free][:, free], free))
    return torch.cat(found)


def _favourite(weights: Tensor, ranks: Tensor) -> Tensor:
    """Each row's heaviest partner; ties go by rank, so that some two always choose each other."""
    masked = weights.clone().fill_diagonal_(-torch.inf)
    best = masked.amax(dim=1, keepdim=True)
    return torch.where(masked == best, ranks, 2.0).fill_diagonal_(3.0).argmin(dim=1)


def _by_sorting(weights: Tensor, ranks: Tensor, names: Tensor) -> Tensor:
    rows, columns = np.triu_indices(len(weights), k=1)
    order = np.lexsort((ranks.cpu().numpy()[rows, columns], -weights.cpu().numpy()[rows, columns]))
    used = np.zeros(len(weights), dtype=bool)
    chosen = []
    for edge in order:
        i, j = rows[edge], columns[edge]
        if not (used[i] or used[j]):
            used[i] = used[j] = True
            chosen.append((i, j))
    return names[torch.tensor(chosen, dtype=torch.int64, device=names.device).reshape(-1, 2)]


# -- rounds as tables of partners, on a device


class RoundTables(NamedTuple):
    """The two indices of every pair (r, ceil(n / 2)) and every index's partner (r, n), all int32.

    An index without a partner is its own.
    """

    first: Tensor
    second: Tensor
    partner: Tensor


def tournament_rounds(n: int, turns: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rounds of `tournament` with these numbers, as partners (r, n).

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
