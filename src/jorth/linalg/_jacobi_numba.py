"""One-sided J-Jacobi sweeps, compiled. Import this only where it is used: it loads numba.

The columns of G are stored as rows here, so that each is contiguous in memory.
"""

from __future__ import annotations

import math

import numpy as np

from jorth.plane._numba import apply_pair, compiled, compiled_sum

STEEP = 0.9
"""Above this |tanh 2 mu| a boost is formed from sums and differences, which do not cancel."""


@compiled
def orthogonality(rows: int) -> float:
    """Return the cosine of two columns of so many rows that rounding leaves, 2 sqrt(rows) u.

    For few rows it is 8 u: rounding of a step and of the product of two entries alone is 6 u.
    """
    return max(2.0 * math.sqrt(rows), 8.0) * 2.0**-53


@compiled
def length(row: np.ndarray) -> float:
    """Return ||row||_2 without overflow or underflow."""
    largest = 0.0
    for value in row:
        largest = max(largest, abs(value))
    if largest == 0.0:
        return 0.0
    return largest * math.sqrt(_squares(row, 1.0 / largest))


@compiled
def _length_near(row: np.ndarray, size: float) -> float:
    """Return `length` in one pass if ``size`` is of its order of magnitude."""
    total = _squares(row, 1.0 / size)
    return size * math.sqrt(total) if 1e-100 < total < 1e100 else length(row)


@compiled_sum
def _squares(row: np.ndarray, scale: float) -> float:
    total = 0.0
    for value in row:
        total += (value * scale) * (value * scale)
    return total


@compiled_sum
def _cosine(a: np.ndarray, b: np.ndarray, scale_a: float, scale_b: float) -> float:
    total = 0.0
    for k in range(a.shape[0]):
        total += (a[k] * scale_a) * (b[k] * scale_b)
    return total


@compiled_sum
def _null_lengths(a: np.ndarray, b: np.ndarray, scale: float) -> tuple[float, float]:
    """Return ``scale`` times the lengths of a + b and a - b, each to full relative accuracy."""
    plus, minus = 0.0, 0.0
    for k in range(a.shape[0]):
        x, y = a[k] * scale, b[k] * scale
        plus += (x + y) * (x + y)
        minus += (x - y) * (x - y)
    return math.sqrt(plus), math.sqrt(minus)


@compiled
def rotation(cosine: float, length_i: float, length_j: float) -> tuple[float, float]:
    """Return (c, s) of the smaller angle with (c g_i - s g_j) . (s g_i + c g_j) = 0.

    ``cosine`` is that of the angle between g_i and g_j.
    """
    cotangent = (length_j / length_i - length_i / length_j) / (2.0 * cosine)  # of twice the angle
    t = math.copysign(1.0, cotangent) / (abs(cotangent) + math.hypot(1.0, cotangent))
    c = 1.0 / math.sqrt(1.0 + t * t)
    return c, t * c


@compiled
def boost(
    a: np.ndarray, b: np.ndarray, cosine: float, length_a: float, length_b: float
) -> tuple[float, float]:
    """Return (cosh mu, sinh mu) with (cosh a + sinh b) . (sinh a + cosh b) = 0, or cosh = inf.

    tanh 2 mu = -2 a . b / (|a|^2 + |b|^2); where that is close to +-1,
    e^(2 mu) = |a - b| / |a + b|.
    """
    steepness = -2.0 * cosine / (length_a / length_b + length_b / length_a)
    if abs(steepness) < STEEP:
        t = steepness / (1.0 + math.sqrt((1.0 - steepness) * (1.0 + steepness)))
        cosh = 1.0 / math.sqrt((1.0 - t) * (1.0 + t))
        return cosh, t * cosh
    plus, minus = _null_lengths(a, b, 1.0 / length_a)
    u = math.sqrt(minus / plus)
    return 0.5 * (u + 1.0 / u), 0.5 * (u - 1.0 / u)


@compiled
def sweep(
    G: np.ndarray, X: np.ndarray, lengths: np.ndarray, signs: np.ndarray, tolerance: float
) -> int:
    """Make one pass over all pairs of rows of G (n, m), with the same steps on X (n, n).

    A pair is skipped if |g_i . g_j| <= tolerance |g_i| |g_j|. ``lengths`` (n,) holds the lengths of
    the rows of G and is updated. Returns the number of steps taken, or -1 if two rows of opposite
    sign are parallel and equally long, or a row is zero.
    """
    n = G.shape[0]
    steps = 0
    for i in range(n - 1):
        for j in range(i + 1, n):
            if lengths[i] == 0.0 or lengths[j] == 0.0:
                return -1
            cosine = _cosine(G[i], G[j], 1.0 / lengths[i], 1.0 / lengths[j])
            if abs(cosine) <= tolerance:
                continue
            steps += 1
            if signs[i] == signs[j]:
                c, s = rotation(cosine, lengths[i], lengths[j])
                apply_pair(G, i, j, c, -s, s, c)
                apply_pair(X, i, j, c, -s, s, c)
            else:
                cosh, sinh = boost(G[i], G[j], cosine, lengths[i], lengths[j])
                if not math.isfinite(cosh):
                    return -1
                apply_pair(G, i, j, cosh, sinh, sinh, cosh)
                apply_pair(X, i, j, cosh, sinh, sinh, cosh)
            lengths[i] = _length_near(G[i], lengths[i])
            lengths[j] = _length_near(G[j], lengths[j])
    return steps


@compiled
def eigh_of_definite(
    A: np.ndarray,
    signs: np.ndarray,
    max_sweeps: int,
    values: np.ndarray,
    X: np.ndarray,
    solved: np.ndarray,
) -> None:
    """Compute lambda (b, n), X (b, n, n) of the symmetric A (b, n, n) that are positive definite.

    ``solved`` (b,) says which these are; the others are left for other ways. A Cholesky
    factorisation with pivots is followed by J-Jacobi on its factor, as in `one_sided_jacobi`.
    """
    n = len(signs)
    tolerance = orthogonality(n)
    factor, basis = np.empty((n, n)), np.empty((n, n))
    lengths, permuted = np.empty(n), np.empty_like(signs)
    order = np.empty(n, np.int64)
    for k in range(len(A)):
        solved[k] = False
        factor[:] = A[k]
        for i in range(n):
            order[i] = i
        if not _pivoted_cholesky(factor, order):
            continue
        basis[:] = 0.0
        for i in range(n):
            basis[i, order[i]] = 1.0
            permuted[i] = signs[order[i]]
            lengths[i] = length(factor[i])
        for _ in range(max_sweeps):
            steps = sweep(factor, basis, lengths, permuted, tolerance)
            if steps <= 0:
                solved[k] = steps == 0
                break
        if solved[k]:
            _sorted_pairs(basis, lengths, permuted, signs, values[k], X[k])


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
    basis: np.ndarray,
    lengths: np.ndarray,
    permuted: np.ndarray,
    signs: np.ndarray,
    values: np.ndarray,
    X: np.ndarray,
) -> None:
    """Put the shortest row left of its sign to each position, as an eigenvalue and a column."""
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
            X[i, place] = basis[best, i]
