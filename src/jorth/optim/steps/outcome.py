"""What the two kinds of step share: their outcome, and the pairs that they go through."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from jorth.kernels.pairings import numbered_rounds, rounds_in_tournament
from jorth.plane import greedy_matching


class Outcome(NamedTuple):
    """Matrices (b, n, k) after a step, which gradients were finite, which steps not taken whole.

    Both masks are (b,).
    """

    X: Tensor
    finite: Tensor
    too_far: Tensor


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
