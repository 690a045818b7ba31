"""`eigh` of many small positive definite matrices, compiled. Import where used: it loads numba."""

from __future__ import annotations

import math

import numpy as np

from jorth.decompositions.jacobi import length, sweep
from jorth.plane.compiled.roots import compiled


@compiled
def eigh_of_definite(
    A: np.ndarray,
    signs: np.ndarray,
    max_sweeps: int,
    values: np.ndarray,
    X: np.ndarray,
    solved: np.ndarray,
) -> None:
    """lambda (b, n) and X (b, n, n) of the symmetric A (b, n, n) that are positive definite.

    ``solved`` (b,) says which these are; the others are left for other ways. A Cholesky
    factorisation with pivots is followed by J-Jacobi on its factor, as in `one_sided_jacobi`.
    """
    n = len(signs)
    tolerance = math.sqrt(n) * 2.0**-52
    factor, turned = np.empty((n, n)), np.empty((n, n))
    lengths, permuted = np.empty(n), np.empty_like(signs)
    order = np.empty(n, np.int64)
    for k in range(len(A)):
        solved[k] = False
        factor[:] = A[k]
        for i in range(n):
            order[i] = i
        if not _pivoted_cholesky(factor, order):
            continue
        turned[:] = 0.0
        for i in range(n):
            turned[i, order[i]] = 1.0
            permuted[i] = signs[order[i]]
            lengths[i] = length(factor[i])
        for _ in range(max_sweeps):
            steps = sweep(factor, turned, lengths, permuted, tolerance)
            if steps <= 0:
                solved[k] = steps == 0
                break
        if solved[k]:
            _sorted_pairs(turned, lengths, permuted, signs, values[k], X[k])


@compiled
def _pivoted_cholesky(A: np.ndarray, order: np.ndarray) -> bool:
    """Replace A by the lower L with A[order, order] = L L^T; False if a pivot is not positive."""
    n = len(A)
    for j in range(n):
        best = j
        for i in range(j + 1, n):
            if A[i, i] > A[best, best]:
                best = i
        if not A[best, best] > 0.0:
            return False
        if best != j:
            order[j], order[best] = order[best], order[j]
            for i in range(n):
                A[j, i], A[best, i] = A[best, i], A[j, i]
            for i in range(n):
                A[i, j], A[i, best] = A[i, best], A[i, j]
        root = math.sqrt(A[j, j])
        A[j, j] = root
        for i in range(j + 1, n):
            A[i, j] /= root
            A[j, i] = 0.0
        for i in range(j + 1, n):
            for c in range(j + 1, i + 1):
                A[i, c] -= A[i, j] * A[c, j]
                A[c, i] = A[i, c]
    return True


@compiled
def _sorted_pairs(
    turned: np.ndarray,
    lengths: np.ndarray,
    permuted: np.ndarray,
    signs: np.ndarray,
    values: np.ndarray,
    X: np.ndarray,
) -> None:
    """At each position the shortest row of its sign that is left, as an eigenvalue and a column."""
    n = len(signs)
    used = np.zeros(n, np.bool_)
    for place in range(n):
        best = -1
        for i in range(n):
            fits = not used[i] and permuted[i] == signs[place]
            if fits and (best < 0 or lengths[i] < lengths[best]):
                best = i
        used[best] = True
        values[place] = signs[place] * lengths[best] ** 2
        for i in range(n):
            X[i, place] = turned[best, i]
