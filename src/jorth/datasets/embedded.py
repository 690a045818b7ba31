"""Data that come with scikit-learn and need no download."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from jorth._inputs import check_signature, real_number
from jorth.extras import needs
from jorth.signature import Signature

RIDGE_RANGE = "a number from 1e-12 to 1e12"
"""Without a ridge A is singular, as three pixels are always 0; rounding hides a smaller one."""


class TraceProblem(NamedTuple):
    """rows (m, n), A = rows^T rows / m, and the minimum of tr(X^T A X) over X^T J X = J."""

    rows: NDArray[np.float64]
    A: NDArray[np.float64]
    optimum: float


def digits() -> NDArray[np.float64]:
    """1797 images of digits (1797, 64), 8 x 8 pixels in [0, 1]. Three columns are zero."""
    with needs("jorth.datasets.digits", "sklearn"):
        from sklearn.datasets import load_digits

    images: NDArray[np.float64] = load_digits().data / 16.0
    return images


def digits_trace(signature: Signature, *, ridge: float = 0.05) -> TraceProblem:
    """The trace problem of the `digits`, with a ridge on A.

    The ridge consists of additional rows, so that A is still a mean over rows. The optimum is the
    sum of |lambda| over the eigenvalues of A x = lambda J x, by `scipy.linalg.eigh`.

    Args:
        signature: The signs of J, 64 of them.
        ridge: What is added to the diagonal of A.
    """
    signature = check_signature(signature)
    if signature.n != 64:
        raise ValueError(f"signature must have n = 64 for the digits, got {signature}")
    weight = real_number(ridge, "ridge", RIDGE_RANGE, lambda number: 1e-12 <= number <= 1e12)
    images = digits()
    count = len(images) + 64
    ridge_rows = np.sqrt(weight * count) * np.eye(64)
    rows = np.concatenate([images, ridge_rows])
    A = rows.T @ rows / count
    inverse = scipy.linalg.eigh(np.diag(signature.signs.astype(float)), A, eigvals_only=True)
    return TraceProblem(rows, A, float(np.abs(1 / inverse).sum()))
