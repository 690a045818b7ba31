"""V applied to two rows in place, compiled: the arithmetic of `apply`."""

from __future__ import annotations

import numpy as np

from jorth.plane.apply import SMALL_BOOST, SMALL_TURN
from jorth.plane.compiled.roots import compiled


@compiled
def apply_pair(
    X: np.ndarray, i: int, j: int, v11: float, v12: float, v21: float, v22: float
) -> None:
    """X[(i, j), :] <- V X[(i, j), :] for X (n, k), in place: see `jorth.plane.apply`."""
    if np.sign(v11) * np.sign(v12) * np.sign(v21) * np.sign(v22) > 0.0:
        _hyperbolic(X, i, j, v11, v21, v22)
    elif v11 > SMALL_TURN and v22 > SMALL_TURN:
        _small_turn(X, i, j, v12, v21, v11)
    else:
        for k in range(X.shape[1]):
            a, b = X[i, k], X[j, k]
            X[i, k] = v11 * a + v12 * b
            X[j, k] = v21 * a + v22 * b


@compiled
def _hyperbolic(X: np.ndarray, i: int, j: int, v11: float, sinh: float, cosh: float) -> None:
    """Sums and differences of the rows scaled by u and 1/u; as an increment when u is near 1."""
    if v11 > 0.0 and cosh > 0.0 and abs(sinh) < SMALL_BOOST:
        even = sinh * sinh / (1.0 + cosh)
        grow, shrink = 0.5 * (even + sinh), 0.5 * (even - sinh)
        for k in range(X.shape[1]):
            a, b = X[i, k], X[j, k]
            up, down = (a + b) * grow, (a - b) * shrink
            X[i, k] = a + (up + down)
            X[j, k] = b + (up - down)
        return
    if sinh * cosh > 0.0:
        u = cosh + sinh
        grow, shrink = 0.5 * u, 0.5 / u
    else:
        inverse = cosh - sinh
        grow, shrink = 0.5 / inverse, 0.5 * inverse
    side = 1.0 if v11 * cosh > 0.0 else -1.0
    for k in range(X.shape[1]):
        a, b = X[i, k], X[j, k]
        up, down = (a + b) * grow, (a - b) * shrink
        X[i, k] = side * (up + down)
        X[j, k] = up - down


@compiled
def _small_turn(X: np.ndarray, i: int, j: int, v12: float, v21: float, cosine: float) -> None:
    even = -v21 * v21 / (1.0 + cosine)
    for k in range(X.shape[1]):
        a, b = X[i, k], X[j, k]
        X[i, k] = a + (even * a + v12 * b)
        X[j, k] = b + (v21 * a + even * b)


@compiled
def apply_pairs(X: np.ndarray, pairs: np.ndarray, V: np.ndarray) -> None:
    """`apply_pair` over pairs (m, 2) and V (m, 2, 2), one after the other; the pairs may share indices."""
    for t in range(pairs.shape[0]):
        apply_pair(X, pairs[t, 0], pairs[t, 1], V[t, 0, 0], V[t, 0, 1], V[t, 1, 0], V[t, 1, 1])
