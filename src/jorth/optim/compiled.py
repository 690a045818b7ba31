"""The rounds of a batch of matrices on the CPU, compiled."""

from __future__ import annotations

import numpy as np

from jorth.plane.compiled.roots import compiled
from jorth.solvers.sweeps import sweep_majoriser


@compiled
def sweep_batch(
    X: np.ndarray,
    centre: np.ndarray,
    L: float,
    signs: np.ndarray,
    pairs: np.ndarray,
    all_components: bool,
) -> None:
    """`sweep_majoriser` on every matrix of X (b, n, n), in place; one that is at its centre already rests."""
    for k in range(X.shape[0]):
        if not np.array_equal(X[k], centre[k]):
            sweep_majoriser(X[k], centre[k], L, signs, pairs, 0.0, all_components)
