"""Which pairs of indices to treat next. Every choice takes a seed: an integer or a NumPy generator.

A matching is an integer array (n // 2, 2) of disjoint pairs; when n is odd one index rests.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth.arrays import describe, to_tensor

Pairs = NDArray[np.int64]
Seed = int | np.random.Generator


def random_matching(n: int, *, seed: Seed) -> Pairs:
    """A uniformly random matching: a permutation cut into twos. Shape (n // 2, 2)."""
    order = np.random.default_rng(seed).permutation(_at_least_two(n))
    return order[: n - n % 2].reshape(-1, 2)


def random_pairs(n: int, count: int, *, seed: Seed) -> Pairs:
    """``count`` pairs of different indices, uniform with replacement. Shape (count, 2)."""
    rng = np.random.default_rng(seed)
    first = rng.integers(_at_least_two(n), size=count)
    second = rng.integers(n - 1, size=count)
    return np.stack([first, second + (second >= first)], axis=1)


def all_pairs(n: int, *, seed: Seed | None = None) -> Pairs:
    """All n (n - 1) / 2 pairs i < j: in random order with a seed, row by row with None. Shape (n (n - 1) / 2, 2)."""
    pairs = np.stack(np.triu_indices(_at_least_two(n), k=1), axis=1).astype(np.int64)
    return pairs if seed is None else pairs[np.random.default_rng(seed).permutation(len(pairs))]


def round_robin(n: int, *, seed: Seed | None = None) -> Pairs:
    """A tournament: n - 1 matchings (n for odd n) that together hold every pair once. Shape (rounds, n // 2, 2).

    The circle method: one index stays, the others turn. A seed shuffles the indices and the rounds.
    """
    size = _at_least_two(n) + n % 2  # an odd n plays with a bye
    turning = np.arange(size - 1)
    rounds = np.stack([np.roll(turning, shift) for shift in range(size - 1)])
    table = np.concatenate([np.full((size - 1, 1), size - 1), rounds], axis=1)
    half = size // 2
    pairs = np.stack([table[:, :half], table[:, half:][:, ::-1]], axis=2)
    if n % 2:
        pairs = pairs[:, 1:]  # the first pair of each round holds the bye
    if seed is not None:
        rng = np.random.default_rng(seed)
        pairs = rng.permutation(n)[pairs][rng.permutation(len(pairs))]
    return pairs.astype(np.int64)


def greedy_matching(weights: Any, *, seed: Seed) -> Any:
    """The matching that takes the heaviest remaining pair again and again. Shape (n // 2, 2).

    Found by rounds of mutual choice: every free index points at its heaviest free partner, and pairs that point at each
    other are heaviest among all that meet them. A few rounds of O(n^2) in place of a sort of all pairs.

    Args:
        weights: (n, n) symmetric, NumPy or torch, larger is sooner; the diagonal is ignored.
        seed: Decides between equal weights.

    Returns:
        An integer array, or a tensor on the device of ``weights``.
    """
    matrix = to_tensor(weights, "weights")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape[0] < 2:
        raise ValueError(f"weights must have shape (n, n) with n at least 2, got {describe(weights)}")
    if bool(torch.isnan(matrix).any()):
        raise ValueError("weights must not be NaN, got NaN")
    n = matrix.shape[0]
    # shuffled positions decide ties: of equal partners the one that comes first
    order = torch.from_numpy(np.random.default_rng(seed).permutation(n)).to(matrix.device)
    pairs = order[_mutual_choices(matrix[order][:, order])]
    return pairs if isinstance(weights, Tensor) else pairs.numpy()


def _mutual_choices(weights: Tensor) -> Tensor:
    n = len(weights)
    free = torch.arange(n, device=weights.device)
    found = []
    while len(free) > 1:
        choice = _first_largest(weights[free][:, free])
        here = torch.arange(len(free), device=weights.device)
        mutual = (choice[choice] == here) & (here < choice)
        found.append(torch.stack([free[mutual], free[choice[mutual]]], dim=1))
        left = torch.ones(len(free), dtype=torch.bool, device=weights.device)
        left[here[mutual]] = False
        left[choice[mutual]] = False
        free = free[left]
    return torch.cat(found)


def _first_largest(weights: Tensor) -> Tensor:
    """Each row's heaviest partner, ties by one order on all pairs, so that some two always choose each other."""
    n = len(weights)
    masked = weights.clone().fill_diagonal_(-torch.inf)
    best = masked.amax(dim=1, keepdim=True)
    index = torch.arange(n, device=weights.device)
    low, high = torch.minimum(index[:, None], index), torch.maximum(index[:, None], index)
    rank = torch.where(masked == best, low * n + high, n * n)
    rank.fill_diagonal_(n * n)
    return rank.argmin(dim=1)


def _at_least_two(n: int) -> int:
    if n < 2:
        raise ValueError(f"n must be at least 2 to form pairs, got {n}")
    return n
