"""One block of the structural probe's loss, compiled. Import where used: it loads numba."""

from __future__ import annotations

import math

import numpy as np

from jorth._numba import compiler
from jorth.ultrahyperbolic import SLOPE_FLOOR


@compiler(fastmath={"contract"})
def block_terms(
    g: np.ndarray, targets: np.ndarray, scale: float, alpha: float, own: np.ndarray, upper: bool
) -> tuple[float, float, float]:
    """Overwrite g by d(T - c d)^2 / dg and return three sums: see `probe.block_terms`."""
    loss, mixed, squares = 0.0, 0.0, 0.0
    for i in range(g.shape[0]):
        for j in range(g.shape[1]):
            if j == own[i] or (upper and j < own[i]):
                g[i, j] = 0.0
                continue
            x = abs(g[i, j])
            if x > 1e8:
                d, slope = math.log(x) + math.log(2.0), 1.0 / x
            elif x >= 1.0:
                square = (x - 1.0) * (x + 1.0)
                d = math.log1p((x - 1.0) + math.sqrt(square))
                slope = 1.0 / math.sqrt(max(square, SLOPE_FLOOR))
            else:
                square = (1.0 - x) * (1.0 + x)
                d = math.atan2(math.sqrt(square), x)
                slope = -1.0 / math.sqrt(max(square, SLOPE_FLOOR))
            if x == 1.0:
                slope = 0.0
            d *= alpha
            target = targets[i, j]
            error = target - scale * d
            loss += error * error
            mixed += target * d
            squares += d * d
            g[i, j] = -2.0 * scale * alpha * error * (slope if g[i, j] >= 0.0 else -slope)
    return loss, mixed, squares
