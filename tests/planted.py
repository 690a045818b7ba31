"""Alignment problems whose answer lies near the identity, where every descent method finds it.

The points of `jorth.random_point` have rotations of any angle, and f has other minima and saddles
where an angle comes near a half turn: which method ends there depends on the seed.
"""

import numpy as np
import scipy.linalg

import jorth


def near_identity(sig, *, cond, turn=0.5, seed):
    """exp(K) times a symmetric boost of the given condition; K turns by at most ``turn``."""
    Z = jorth.random_point(sig, cond=cond, seed=seed)
    values, V = np.linalg.eigh(Z.T @ Z)
    M = np.random.default_rng(seed).standard_normal((sig.n, sig.n))
    K = (M - M.T) * np.equal.outer(sig.signs, sig.signs)
    return scipy.linalg.expm(K * (turn / np.linalg.norm(K, 2))) @ (V * np.sqrt(values)) @ V.T


def near_procrustes(rows, sig, *, source_condition=2.0, point_condition=4.0, noise=0.0, seed):
    """(source, target, X) as from `planted_procrustes`, with an X near the identity."""
    source, _, _ = jorth.datasets.planted_procrustes(
        rows, sig, source_condition=source_condition, seed=seed
    )
    X = near_identity(sig, cond=point_condition, seed=seed)
    errors = np.random.default_rng(seed + 1).standard_normal(source.shape)
    return source, source @ X + noise * errors, X
