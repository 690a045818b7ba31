"""Dense algebra on small matrices without calls from Python: loops where a call of BLAS costs more.

Every result goes into an array that the caller owns.
"""

from __future__ import annotations

import math

import numpy as np

from jorth.compiling import INTERPRETED, compiler, lapack_integer, lapack_solve

WRITTEN_OUT = 14
"""The largest n for which loops are faster than BLAS and LAPACK."""
DOUBLE = ord("d")
"""The kind of numbers, for LAPACK."""
SINGULAR = 1e-14
"""A pivot below this share of the largest diagonal entry counts as zero."""

compiled = compiler(fastmath={"reassoc", "contract"}, nogil=True)
"""Sums may be reassociated into vector registers; all else is IEEE arithmetic."""


@compiled
def multiply(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """a b for square matrices of one size."""
    n = len(a)
    if n > WRITTEN_OUT:
        np.dot(a, b, out)
        return
    for i in range(n):
        for j in range(n):
            out[i, j] = a[i, 0] * b[0, j]
        for k in range(1, n):
            weight = a[i, k]
            for j in range(n):
                out[i, j] += weight * b[k, j]


@compiled
def add(weight: float, a: np.ndarray, out: np.ndarray) -> None:
    """out <- out + weight a; loops compile in a tenth of the time of array expressions."""
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            out[i, j] += weight * a[i, j]


@compiled
def assign(weight: float, a: np.ndarray, out: np.ndarray) -> None:
    """out <- weight a."""
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            out[i, j] = weight * a[i, j]


@compiled
def congruence(U: np.ndarray, B: np.ndarray, between: np.ndarray, out: np.ndarray) -> None:
    """U^T B U; ``between`` is overwritten."""
    multiply(B, U, between)
    multiply(U.T, between, out)


@compiled
def inner(a: np.ndarray, b: np.ndarray) -> float:
    """<a, b>_F."""
    total = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            total += a[i, j] * b[i, j]
    return total


@compiled
def norm(a: np.ndarray) -> float:
    """||a||_F."""
    return math.sqrt(inner(a, a))


@compiled
def solve(a: np.ndarray, b: np.ndarray) -> None:
    """b <- a^-1 b for regular a, which is overwritten: LU with row exchanges."""
    n = len(a)
    if n > WRITTEN_OUT:
        _solve_large(a, b)
        return
    for k in range(n):
        pivot = k
        for i in range(k + 1, n):
            if abs(a[i, k]) > abs(a[pivot, k]):
                pivot = i
        if pivot != k:
            for j in range(n):
                a[k, j], a[pivot, j] = a[pivot, j], a[k, j]
                b[k, j], b[pivot, j] = b[pivot, j], b[k, j]
        inverse = 1.0 / a[k, k]
        for i in range(k + 1, n):
            factor = a[i, k] * inverse
            for j in range(k + 1, n):
                a[i, j] -= factor * a[k, j]
            for j in range(n):
                b[i, j] -= factor * b[k, j]
    for k in range(n - 1, -1, -1):
        inverse = 1.0 / a[k, k]
        for j in range(n):
            b[k, j] *= inverse
        for i in range(k):
            factor = a[i, k]
            for j in range(n):
                b[i, j] -= factor * b[k, j]


@compiled
def _solve_by_lapack(a: np.ndarray, b: np.ndarray) -> None:
    """`solve` for larger matrices; b is NaN if a is singular."""
    n = len(a)
    a_turned, b_turned = np.empty((n, n)), np.empty((n, n))
    pivots = np.empty(n, lapack_integer)
    for i in range(n):
        for j in range(n):
            a_turned[j, i] = a[i, j]
            b_turned[j, i] = b[i, j]
    failed = lapack_solve(DOUBLE, n, n, a_turned.ctypes, n, pivots.ctypes, b_turned.ctypes, n)
    for i in range(n):
        for j in range(n):
            b[i, j] = b_turned[j, i] if failed == 0 else math.nan


def _solve_in_python(a: np.ndarray, b: np.ndarray) -> None:
    """`_solve_by_lapack` where numba compiles nothing, and cannot call LAPACK by its address."""
    b[:] = np.linalg.solve(a, b)


_solve_large = _solve_in_python if INTERPRETED else _solve_by_lapack


@compiled
def cholesky(H: np.ndarray) -> bool:
    """H <- L with H = L L^T, from and into the lower triangle; False if H is not definite."""
    d = len(H)
    largest = 0.0
    for k in range(d):
        largest = max(largest, abs(H[k, k]))
    for k in range(d):
        for j in range(k + 1):
            total = H[k, j]
            for c in range(j):
                total -= H[k, c] * H[j, c]
            if j < k:
                H[k, j] = total / H[j, j]
            elif total > SINGULAR * largest:
                H[k, k] = math.sqrt(total)
            else:
                return False
    return True


@compiled
def cholesky_solve(L: np.ndarray, x: np.ndarray) -> None:
    """x <- (L L^T)^-1 x."""
    d = len(L)
    for k in range(d):
        total = x[k]
        for c in range(k):
            total -= L[k, c] * x[c]
        x[k] = total / L[k, k]
    for k in range(d - 1, -1, -1):
        x[k] /= L[k, k]
        for c in range(k):
            x[c] -= L[k, c] * x[k]
