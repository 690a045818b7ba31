"""The arithmetic of `jorth.solvers.jobcd.anderson` on small matrices, without calls from Python."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from jorth.solvers.riemannian.compiled_algebra import cholesky, cholesky_solve, compiled, solve


@compiled
def relative_move(Y: np.ndarray, X: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """K = (T - J T^T J) / 2 for T = Y J X^T J."""
    n = len(Y)
    K = np.zeros((n, n))
    for i in range(n):
        for j in range(i):
            forth, back = 0.0, 0.0
            for k in range(n):
                forth += Y[i, k] * signs[k] * X[j, k]
                back += Y[j, k] * signs[k] * X[i, k]
            K[i, j] = 0.5 * signs[j] * (forth - back)
            K[j, i] = -signs[i] * signs[j] * K[i, j]
    return K


@compiled
def moved_by(K: np.ndarray, X: np.ndarray) -> np.ndarray:
    """cay(K) X = 2 (I - K/2)^-1 X - X."""
    n = len(K)
    matrix, Y = np.empty((n, n)), np.empty((n, n))
    for i in range(n):
        for j in range(n):
            matrix[i, j] = -0.5 * K[i, j]
            Y[i, j] = X[i, j]
        matrix[i, i] += 1.0
    solve(matrix, Y)
    for i in range(n):
        for j in range(n):
            Y[i, j] = 2.0 * Y[i, j] - X[i, j]
    return Y


Rows = tuple[Any, Any, Any]
"""The differences (memory, n^2), the sums of the same shape and the Gram matrix."""


@compiled
def remember(
    rows: Rows, slot: int, used: int, K: np.ndarray, move: np.ndarray, step: np.ndarray
) -> None:
    """Put k = K - move into a slot of the differences, and step + k into that of the sums."""
    changes, sums, gram = rows
    n = len(K)
    for i in range(n):
        for j in range(n):
            change = K[i, j] - move[i, j]
            changes[slot, n * i + j] = change
            sums[slot, n * i + j] = step[i, j] + change
    for t in range(used):
        total = 0.0
        for c in range(n * n):
            total += changes[t, c] * changes[slot, c]
        gram[slot, t] = gram[t, slot] = total


@compiled
def extrapolate(rows: Rows, used: int, K: np.ndarray, damping: float) -> tuple[np.ndarray, bool]:
    """K - sum_i gamma_i sums_i for the gamma that minimises ||K - sum_i gamma_i changes_i||.

    The second value is False if there is none.
    """
    changes, sums, gram = rows
    n = len(K)
    step = K.copy()
    scale, gamma, scaled = np.empty(used), np.empty(used), np.empty((used, used))
    for t in range(used):
        if not gram[t, t] > 0.0:
            return step, False
        scale[t] = math.sqrt(gram[t, t])
    for t in range(used):
        total = 0.0
        for i in range(n):
            for j in range(n):
                total += changes[t, n * i + j] * K[i, j]
        gamma[t] = total / scale[t]
        for other in range(used):
            scaled[t, other] = gram[t, other] / scale[t] / scale[other]
        scaled[t, t] += damping
    if not cholesky(scaled):
        return step, False
    cholesky_solve(scaled, gamma)
    for t in range(used):
        weight = gamma[t] / scale[t]
        if not math.isfinite(weight):
            return step, False
        for i in range(n):
            for j in range(n):
                step[i, j] -= weight * sums[t, n * i + j]
    return step, True


def compile_kernels() -> None:
    """Call every function once, so that compilation is not on the clock."""
    K = np.array([[0.0, 0.1], [0.1, 0.0]])
    rows = (np.zeros((1, 4)), np.zeros((1, 4)), np.zeros((1, 1)))
    moved_by(relative_move(np.eye(2), np.eye(2), np.array([1.0, -1.0])), np.eye(2))
    remember(rows, 0, 1, K, -K, K)
    extrapolate(rows, 1, K, 1.0)
