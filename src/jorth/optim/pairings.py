"""Which pairs a step treats: a function of seed and turn alone, so that runs resume and ranks agree."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from jorth.group.slopes import skew_gradient
from jorth.plane import greedy_matching, random_matching, tournament

Matching = Literal["tournament", "random", "greedy"]
MATCHINGS = ("tournament", "random", "greedy")


def whole_tournament(n: int) -> int:
    """The number of rounds in which every pair of n indices meets once."""
    return n - 1 + n % 2 if n > 1 else 0


def choose_rounds(
    n: int, matching: Matching, rounds: int, seed: int, turn: int
) -> NDArray[np.int64]:
    """The rounds (r, n // 2, 2) of the given turn, counted from 0.

    "tournament" goes through one shuffled tournament after the other, ``rounds`` at a time; "random" draws each round
    by itself.
    """
    if n < 2:
        return np.empty((0, 0, 2), dtype=np.int64)
    if matching == "random":
        rng = np.random.default_rng([seed, turn])
        return np.stack([random_matching(n, seed=rng) for _ in range(rounds)])
    length = whole_tournament(n)
    first, last = divmod(turn * rounds, length)[0], (turn * rounds + rounds - 1) // length
    tables = [
        tournament(n, seed=np.random.default_rng([seed, number]))
        for number in range(first, last + 1)
    ]
    start = turn * rounds - first * length
    return np.concatenate(tables)[start : start + rounds]


def greedy_round(X: Tensor, G: Tensor, signs: Tensor, seed: int, turn: int) -> NDArray[np.int64]:
    """One round (1, n // 2, 2) for all matrices (b, n, n): greedy on the root mean square of their slopes."""
    weights = skew_gradient(X, G, signs).square().mean(dim=0).nan_to_num(0.0)
    pairs: NDArray[np.int64] = (
        greedy_matching(weights.sqrt(), seed=np.random.default_rng([seed, turn])).cpu().numpy()
    )
    return pairs[None]
