"""Definite pencils: the shifts mu for which A - mu J is positive definite."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jorth.linalg.batch import Floats

MAX_BISECTIONS = 100


@dataclass(frozen=True)
class ShiftSearch:
    """What is known of the mu for which A - mu J is positive definite.

    Attributes:
        shift: One of them, or where A - mu J comes closest to it.
        factor: R with A - shift J = R^T R, or None if there is no such mu.
        low: Each of them is above this.
        high: Each of them is below this.
    """

    shift: float
    factor: Floats | None
    low: float = -math.inf
    high: float = math.inf


def is_definite_pencil(A: Floats, signs: NDArray[np.int8]) -> bool:
    """Check whether A - mu J is positive definite for some mu, for a finite symmetric A (n, n)."""
    if np.all(signs == signs[0]) or cholesky_factor(A) is not None:
        return True
    return find_shift(A, signs).factor is not None


def cholesky_factor(A: Floats) -> Floats | None:
    """Return R with A = R^T R, or None if A is not positive definite."""
    from scipy.linalg import LinAlgError, cholesky

    try:
        R: Floats = cholesky(A)
    except LinAlgError:
        return None
    return R


def subtract_shift(A: Floats, signs: NDArray[Any], shift: float) -> Floats:
    """Return A - shift J."""
    shifted = A.copy()
    shifted.flat[:: len(A) + 1] -= shift * signs
    return shifted


def find_shift(A: Floats, signs: NDArray[Any]) -> ShiftSearch:
    """ShiftSearch for mu with A - mu J positive definite, for signs of both kinds.

    A bisection in which a vector z with z^T (A - mu J) z <= 0 proves each cut. It is as deep as z
    allows, so that low > high where no mu is in sight. A is scaled, so that nothing overflows.
    """
    half = math.frexp(float(np.abs(A).max()))[1] // 2
    A = np.ldexp(A, -2 * half)
    plus, minus = signs > 0, signs < 0
    low = -float(np.linalg.eigvalsh(A[np.ix_(minus, minus)])[0])
    high = float(np.linalg.eigvalsh(A[np.ix_(plus, plus)])[0])
    best, least = 0.5 * (low + high), -math.inf
    R = None
    for _ in range(MAX_BISECTIONS):
        shift = 0.5 * (low + high)
        if not low < shift < high:
            break
        shifted = subtract_shift(A, signs, shift)
        R = cholesky_factor(shifted)
        if R is not None:
            best = shift
            break
        value, form = _lowest_eigenpair(shifted, signs)
        best, least = (shift, value) if value > least else (best, least)
        # z^T (A - mu J) z > 0 requires mu < bound if z^T J z > 0, else mu > bound
        bound = shift + min(value, 0.0) / form if form else shift
        low = low if form > 0 else bound
        high = high if form < 0 else bound
    last = 0.5 * (low + high)
    if R is None and _lowest_eigenpair(subtract_shift(A, signs, last), signs)[0] > least:
        best = last
    best, low, high = (math.ldexp(number, 2 * half) for number in (best, low, high))
    return ShiftSearch(best, None if R is None else np.ldexp(R, half), low, high)


def _lowest_eigenpair(A: Floats, signs: NDArray[Any]) -> tuple[float, float]:
    """Return the smallest eigenvalue of A, and z^T J z of its unit vector z."""
    from scipy.linalg import eigh

    value, vector = eigh(A, subset_by_index=[0, 0])
    return float(value[0]), float(signs @ vector[:, 0] ** 2)
