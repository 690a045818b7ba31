"""One-sided J-Jacobi, compiled. Import this only where it is used: it loads numba.

The columns of G are stored as rows here, so that each is contiguous in memory.
"""

from __future__ import annotations

import math

import numpy as np

from jorth._numba import compiler

compiled = compiler()
compiled_sum = compiler(fastmath={"reassoc", "contract"}, inline=True)
"""For sums, which may be reassociated into vector registers; all else is IEEE arithmetic."""


@compiled
def orthogonalise(
    W: np.ndarray,
    signs: np.ndarray,
    tolerance: float,
    max_sweeps: int,
    lengths: np.ndarray,
    steps: np.ndarray,
) -> None:
    """Make the columns of b matrices G (m, n) orthogonal by rotations and boosts, in place.

    W (b, n, m + n) holds the columns of each G as rows, followed by those of an X that takes the
    same steps; signs and lengths (b, n) are those of the columns. Computes the steps (b,) of the
    last sweep: 0 at convergence, -1 if two columns of opposite sign are parallel and equally long,
    or a column is zero.
    """
    for k in range(W.shape[0]):
        for _ in range(max_sweeps):
            steps[k] = _sweep(W[k], signs[k], tolerance, lengths[k])
            if steps[k] <= 0:
                break


# one long function: every compiled function adds a tenth of a second to the first call
@compiled
def _sweep(W: np.ndarray, signs: np.ndarray, tolerance: float, lengths: np.ndarray) -> int:
    """Make one pass over all pairs and return the number of steps taken, or -1.

    A pair is skipped if |a . b| <= tolerance |a| |b|. A step takes (a, b) to
    (c a + r b, s a + c b), with r = -s for equal signs, where c and s are those of the smaller
    angle, and r = s, c = cosh mu, s = sinh mu for opposite ones.
    """
    n = W.shape[0]
    m = W.shape[1] - n
    steps = 0
    for i in range(n - 1):
        for j in range(i + 1, n):
            a, b, length_a, length_b = W[i], W[j], lengths[i], lengths[j]
            if length_a == 0.0 or length_b == 0.0:
                return -1
            cosine = _product(a, b, m, 1.0 / length_a, 1.0 / length_b)
            if abs(cosine) <= tolerance:
                continue
            steps += 1
            if signs[i] == signs[j]:
                cotangent = (length_b / length_a - length_a / length_b) / (2.0 * cosine)  # double
                t = math.copysign(1.0, cotangent) / (abs(cotangent) + math.hypot(1.0, cotangent))
                c = 1.0 / math.sqrt(1.0 + t * t)
                s = t * c
                r = -s
            else:
                t = -2.0 * cosine / (length_a / length_b + length_b / length_a)  # tanh 2 mu
                if abs(t) < 0.9:
                    t = t / (1.0 + math.sqrt((1.0 - t) * (1.0 + t)))
                    c = 1.0 / math.sqrt((1.0 - t) * (1.0 + t))
                    s = t * c
                else:  # e^(2 mu) = |a - b| / |a + b| does not cancel
                    plus, minus = _null_lengths(a, b, m, 1.0 / length_a)
                    u = math.sqrt(minus / plus)
                    c, s = 0.5 * (u + 1.0 / u), 0.5 * (u - 1.0 / u)
                    if not math.isfinite(c):
                        return -1
                r = s
            if r * s > 0.09:  # a long boost: a + b grows by e^mu and a - b shrinks
                grow = 0.5 * (c + s) if s > 0.0 else 0.5 / (c - s)
                shrink = 0.25 / grow
                for k in range(W.shape[1]):
                    up, down = (a[k] + b[k]) * grow, (a[k] - b[k]) * shrink
                    a[k], b[k] = up + down, up - down
            else:
                change = r * s / (1.0 + c)  # c - 1
                for k in range(W.shape[1]):
                    x, y = a[k], b[k]
                    a[k], b[k] = x + (change * x + r * y), y + (s * x + change * y)
            for row in (i, j):
                size = lengths[row]
                square = _product(W[row], W[row], m, 1.0 / size, 1.0 / size)
                if not 1e-100 < square < 1e100:  # the length has changed by orders of magnitude
                    size = 0.0
                    for k in range(m):
                        size = max(size, abs(W[row, k]))
                    if size > 0.0:
                        square = _product(W[row], W[row], m, 1.0 / size, 1.0 / size)
                lengths[row] = size * math.sqrt(square)
    return steps


@compiled_sum
def _product(a: np.ndarray, b: np.ndarray, m: int, scale_a: float, scale_b: float) -> float:
    """Return scale_a scale_b a . b over the first m entries."""
    total = 0.0
    for k in range(m):
        total += (a[k] * scale_a) * (b[k] * scale_b)
    return total


@compiled_sum
def _null_lengths(a: np.ndarray, b: np.ndarray, m: int, scale: float) -> tuple[float, float]:
    """Return ``scale`` times the lengths of a + b and a - b, each to full relative accuracy."""
    plus, minus = 0.0, 0.0
    for k in range(m):
        x, y = a[k] * scale, b[k] * scale
        plus += (x + y) * (x + y)
        minus += (x - y) * (x - y)
    return math.sqrt(plus), math.sqrt(minus)
