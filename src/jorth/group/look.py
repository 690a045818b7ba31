"""Three norms of a small matrix in one compiled call. Import where used: it loads numba."""

from __future__ import annotations

import math

import numpy as np

from jorth.compiling import compiler

compiled = compiler()
SQUARINGS = 6
"""X^T X is squared so often that ||X||_2 is known to ln(k) / 2^9: 0.8 per cent for k = 64."""


@compiled
def look(
    X: np.ndarray, G: np.ndarray, signs: np.ndarray, gram: np.ndarray
) -> tuple[float, float, float]:
    """||X||_2 to one per cent, the scaled violation and the gradient norm of X, G (n, k).

    The same as `spectral_norm`, `scaled_violation` and `gradient_norm`, which call some twenty
    functions of torch. All arrays are contiguous and float64.
    """
    norm = _spectral_norm(X)
    return norm, _violation(X, signs, gram, norm), _gradient_norm(X, G, signs)


@compiled
def gradient_size(X: np.ndarray, G: np.ndarray, norm: float) -> float:
    """||G X^T||_F / max(1, norm^2), as `jorth.solvers.loop.scale` has it."""
    largest = _largest(G)
    if not 0.0 < largest < math.inf:
        return largest
    size = max(1.0, norm)
    M = np.dot(G / largest, (X / size).T)
    return largest * math.sqrt(_sum_of_squares(M.ravel())) / size


@compiled
def _largest(M: np.ndarray) -> float:
    """max |m_ij|, or NaN if there is one."""
    largest = 0.0
    for entry in M.ravel():
        size = abs(entry)
        if not size <= largest:  # also if it is NaN
            largest = size
        if math.isnan(largest):
            break
    return largest


@compiler(fastmath={"reassoc", "contract"})
def _sum_of_squares(values: np.ndarray) -> float:
    """The sum of values^2 (t,); the order of the terms is free."""
    total = 0.0
    for t in range(values.shape[0]):
        total += values[t] * values[t]
    return total


@compiled
def _spectral_norm(X: np.ndarray) -> float:
    """||X||_2 from powers of X^T X, as `jorth.group.norms.by_squaring` has it."""
    largest = _largest(X)
    if not 0.0 < largest < math.inf:
        return largest
    scaled = X / largest
    power = np.dot(scaled.T, scaled)
    size = math.sqrt(_sum_of_squares(power.ravel()))
    logarithm = math.log(size)
    share = 1.0
    for _ in range(SQUARINGS):
        power /= size
        power = np.dot(power, power)
        size = math.sqrt(_sum_of_squares(power.ravel()))
        share /= 2.0
        logarithm += share * math.log(size)
    logarithm -= share * math.log(X.shape[1]) / 4.0
    return largest * math.exp(logarithm / 2.0)


@compiled
def _violation(X: np.ndarray, signs: np.ndarray, gram: np.ndarray, norm: float) -> float:
    """max |X^T J X - gram| / max(1, norm^2)."""
    if not norm < math.inf:
        return math.nan
    n, k = X.shape
    scale = max(norm, 1.0)
    scaled = X / scale  # no square overflows
    signed = np.empty_like(scaled)
    for i in range(n):
        for j in range(k):
            signed[i, j] = signs[i] * scaled[i, j]
    product = np.dot(scaled.T, signed)
    worst = 0.0
    for i in range(k):
        for j in range(k):
            worst = max(worst, abs(product[i, j] - gram[i, j] / scale / scale))
    return worst


@compiled
def _gradient_norm(X: np.ndarray, G: np.ndarray, signs: np.ndarray) -> float:
    """||skew(J G X^T)||_F; NaN and infinity in G are what the answer is."""
    size = _largest(G)
    if not 0.0 < size < math.inf:
        return size
    M = np.dot(G / size, X.T)
    n = X.shape[0]
    largest = 0.0
    for i in range(n):
        for j in range(i):
            M[i, j] = (signs[i] * M[i, j] - signs[j] * M[j, i]) / 2.0
            slope = abs(M[i, j])
            if math.isnan(slope):
                return math.nan
            largest = max(largest, slope)
    if not 0.0 < largest < math.inf:
        return size * largest
    total = 0.0
    for i in range(n):
        for j in range(i):
            slope = M[i, j] / largest
            total += slope * slope
    return size * largest * math.sqrt(2.0 * total)
