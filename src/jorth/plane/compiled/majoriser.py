"""Pair steps on the majoriser of one gradient, compiled: one round, or many one after the other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jorth.plane.compiled.pair import kronecker_step
from jorth.plane.compiled.roots import compiled
from jorth.plane.compiled.rows import apply_pair, cross_products, null_lengths
from jorth.plane.proximal import NEAR_NULL


class PairCurvature(NamedTuple):
    """Q = L (Z D Z^T) (x) A_BB for the two rows Z of X, or Q = L I if it is ``scalar``.

    ``XD`` is X D. If A has no rows, A_BB is the identity.
    """

    L: float
    XD: np.ndarray
    A: np.ndarray
    has_d: bool
    scalar: bool


@compiled
def propose_round(
    trial: np.ndarray,
    X: np.ndarray,
    G: np.ndarray,
    curvature: PairCurvature,
    signs: np.ndarray,
    pairs: np.ndarray,
    theta: float,
    all_components: bool,
) -> tuple[float, float, bool]:
    """The best steps on disjoint pairs of rows of X, applied to ``trial``, a copy of X.

    P = G Z^T. Returns the decrease, the linear part <V - I, P> of the surrogate, and whether a
    plane has no minimiser.
    """
    L, XD, A, has_d, scalar = curvature
    total = 0.0
    linear = 0.0
    any_unbounded = False
    for t in range(pairs.shape[0]):
        i, j = pairs[t, 0], pairs[t, 1]
        P = cross_products(G, X, i, j)
        Y = (1.0, 0.0, 1.0, 2.0, 2.0)
        if not scalar:
            y11, y12, _, y22 = cross_products(X, XD, i, j)
            y_plus, y_minus = y11 + 2.0 * y12 + y22, y11 - 2.0 * y12 + y22
            if not has_d and min(y_plus, y_minus) < NEAR_NULL * (y11 + y22):
                y_plus, y_minus = null_lengths(X, i, j)
            Y = (y11, y12, y22, y_plus, y_minus)
        block = (L, 0.0, L)
        if A.shape[0] > 0:
            block = (L * A[i, i], L * A[i, j], L * A[j, j])
        v11, v12, v21, v22, decrease, unbounded = kronecker_step(
            P, Y, block, theta, signs[i] != signs[j], all_components
        )
        any_unbounded = any_unbounded or unbounded
        total += decrease
        if decrease > 0.0:
            linear += (v11 - 1.0) * P[0] + v12 * P[1] + v21 * P[2] + (v22 - 1.0) * P[3]
            apply_pair(trial, i, j, v11, v12, v21, v22)
    return total, linear, any_unbounded


@compiled
def sweep_majoriser(
    X: np.ndarray,
    centre: np.ndarray,
    L: float,
    signs: np.ndarray,
    pairs: np.ndarray,
    theta: float,
    all_components: bool,
) -> float:
    """Pair steps on rows of X for L/2 ||X - centre||^2, in place; returns the total decrease.

    With centre = X_t - G / L this is <X - X_t, G> + L/2 ||X - X_t||^2 up to a constant, the
    majoriser of an L-smooth f.
    """
    total = 0.0
    for t in range(pairs.shape[0]):
        i, j = pairs[t, 0], pairs[t, 1]
        y11, y12, _, y22 = cross_products(X, X, i, j)
        c11, c12, c21, c22 = cross_products(centre, X, i, j)
        P = (L * (y11 - c11), L * (y12 - c12), L * (y12 - c21), L * (y22 - c22))
        y_plus, y_minus = y11 + 2.0 * y12 + y22, y11 - 2.0 * y12 + y22
        if min(y_plus, y_minus) < NEAR_NULL * (y11 + y22):
            y_plus, y_minus = null_lengths(X, i, j)
        Y = (y11, y12, y22, y_plus, y_minus)
        v11, v12, v21, v22, decrease, _ = kronecker_step(
            P, Y, (L, 0.0, L), theta, signs[i] != signs[j], all_components
        )
        if decrease > 0.0:
            total += decrease
            apply_pair(X, i, j, v11, v12, v21, v22)
    return total


@compiled
def sweep_batch(
    X: np.ndarray,
    centre: np.ndarray,
    L: float,
    signs: np.ndarray,
    pairs: np.ndarray,
    theta: float,
    all_components: bool,
) -> np.ndarray:
    """The decreases (b,) of `sweep_majoriser` on each X (b, n, k); one at its centre stays."""
    decrease = np.zeros(X.shape[0])
    for m in range(X.shape[0]):
        if not np.array_equal(X[m], centre[m]):
            decrease[m] = sweep_majoriser(X[m], centre[m], L, signs, pairs, theta, all_components)
    return decrease
