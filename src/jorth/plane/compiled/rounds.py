"""One round of disjoint pairs, compiled: coefficients, solution and application in one pass. It loads numba."""

from __future__ import annotations

import numpy as np

from jorth.plane.compiled.roots import compiled
from jorth.plane.compiled.rows import apply_pair
from jorth.plane.compiled.sweeps import cross_products, kronecker_step, null_lengths
from jorth.plane.proximal import NEAR_NULL


@compiled
def propose_round(
    trial: np.ndarray,
    X: np.ndarray,
    G: np.ndarray,
    XD: np.ndarray,
    A: np.ndarray,
    L: float,
    scalar: bool,
    has_d: bool,
    signs: np.ndarray,
    pairs: np.ndarray,
    theta: float,
    all_components: bool,
) -> tuple[float, float, bool]:
    """The best steps on disjoint pairs of rows of X, applied to ``trial``, a copy of it.

    P = G Z^T, and Q = L (Z D Z^T) (x) A_BB with ``XD`` = X D; A_BB is the identity where A has no rows, and Q = L I if
    ``scalar``. Returns the decrease, the part <V - I, P> of it, and whether a plane has no minimiser.
    """
    total, linear, endless = 0.0, 0.0, False
    for t in range(pairs.shape[0]):
        i, j = pairs[t, 0], pairs[t, 1]
        p11, p12, p21, p22 = cross_products(G, X, i, j)
        y11, y12, y22, y_plus, y_minus = 1.0, 0.0, 1.0, 2.0, 2.0
        if not scalar:
            y11, y12, _, y22 = cross_products(X, XD, i, j)
            y_plus, y_minus = y11 + 2.0 * y12 + y22, y11 - 2.0 * y12 + y22
            if not has_d and min(y_plus, y_minus) < NEAR_NULL * (y11 + y22):
                y_plus, y_minus = null_lengths(X, i, j)
        a11, a12, a22 = L, 0.0, L
        if A.shape[0] > 0:
            a11, a12, a22 = L * A[i, i], L * A[i, j], L * A[j, j]
        v11, v12, v21, v22, decrease, unbounded = kronecker_step(
            p11, p12, p21, p22, y11, y12, y22, y_plus, y_minus, a11, a12, a22,
            theta, signs[i] != signs[j], all_components,
        )  # fmt: skip
        endless = endless or unbounded
        total += decrease
        if decrease > 0.0:
            linear += (v11 - 1.0) * p11 + v12 * p12 + v21 * p21 + (v22 - 1.0) * p22
            apply_pair(trial, i, j, v11, v12, v21, v22)
    return total, linear, endless
