"""Sweeps of the J-Jacobi method: right steps on tr(X^T A X), compiled."""

from __future__ import annotations

import numpy as np

from jorth.plane.compiled.roots import compiled
from jorth.plane.compiled.rows import apply_pair, conjugate_pair, cross_products, null_lengths
from jorth.plane.proximal import LARGEST_SQUARE, NEAR_NULL, RELATIVE_THETA


@compiled
def sweep_trace(
    W: np.ndarray,
    F: np.ndarray,
    X: np.ndarray,
    signs: np.ndarray,
    pairs: np.ndarray,
    rounding: float,
    stop_unbounded: bool,
) -> int:
    """J-Jacobi steps that diagonalise W = X^T A X, in O(n) each; columns of X are given as rows.

    A step makes w_ij zero. For opposite signs tanh 2 mu = -2 w_ij / (w_ii + w_jj) minimises the
    trace in that plane; for equal signs tan 2 phi = 2 w_ij / (w_jj - w_ii) leaves the trace as it
    is and makes convergence quadratic. Returns the number t of pairs done, or -t - 1 if the sweep
    stopped at an unbounded one.

    If A = M^T M, F holds the columns of M X as rows: products and null lengths are formed from
    them, no plane is unbounded, and W is not used. Otherwise F has no columns, and W is updated.
    ``rounding`` is the error of the squares that make up a row of F, or an entry of W, relative to
    the largest row of X; whatever is smaller is meaningless.
    """
    one_sided = F.shape[1] > 0
    largest = _largest_row(X)
    for t in range(pairs.shape[0]):
        i, j = pairs[t, 0], pairs[t, 1]
        if one_sided:
            a, c, _, b = cross_products(F, F, i, j)
        else:
            a, c, b = W[i, i], W[i, j], W[j, j]
        if c == 0.0 or (one_sided and a + b <= rounding * largest):
            continue
        if signs[i] == signs[j]:
            ratio = 0.5 * (b - a) / c
            tangent = np.copysign(1.0, ratio) / (abs(ratio) + np.hypot(1.0, ratio))
            cosine = 1.0 / np.sqrt(1.0 + tangent * tangent)
            v11, v12, v21, v22 = cosine, -tangent * cosine, tangent * cosine, cosine
        else:
            plus, minus = a + b + 2.0 * c, a + b - 2.0 * c
            gap = -4.0 * c
            least = min(plus, minus)
            if not least > NEAR_NULL * abs(a + b):
                x_plus, x_minus = null_lengths(X, i, j)
                if one_sided:
                    plus, minus = null_lengths(F, i, j)
                    weight = RELATIVE_THETA * (plus + minus)  # with it the infimum is attained
                    plus, minus = plus + weight, minus + weight
                    gap = minus - plus
                    u2 = np.sqrt(minus / plus)
                    if 0.5 * (u2 * x_plus + x_minus / u2) > LARGEST_SQUARE:
                        continue
                elif least < -rounding * max(largest, x_plus + x_minus) and stop_unbounded:
                    return -t - 1
                elif least <= rounding * max(largest, x_plus + x_minus):
                    continue
            root_plus, root_minus = np.sqrt(plus), np.sqrt(minus)
            product = np.sqrt(root_plus * root_minus)
            total = root_plus + root_minus
            cosh, sinh = 0.5 * total / product, 0.5 * gap / (total * product)
            v11, v12, v21, v22 = cosh, sinh, sinh, cosh
        apply_pair(X, i, j, v11, v12, v21, v22)
        if one_sided:
            apply_pair(F, i, j, v11, v12, v21, v22)
        else:
            conjugate_pair(W, i, j, v11, v12, v21, v22)
            W[i, j] = W[j, i] = 0.0
    return len(pairs)


@compiled
def _largest_row(X: np.ndarray) -> float:
    """The largest ||x_i||^2."""
    largest = 0.0
    for i in range(X.shape[0]):
        largest = max(largest, np.sum(X[i] * X[i]))
    return largest
