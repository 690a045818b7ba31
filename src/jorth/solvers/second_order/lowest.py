"""The smallest eigenvalue of a symmetric operator: dense where it is small, else by Lanczos."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

DENSE = 300
"""The largest dimension at which the operator is formed: that of the skew matrices for n = 25."""
BASIS = 40
"""The Lanczos vectors between two restarts."""
ACCURACIES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)
"""The residuals, relative to the norm of the operator, on the way to the one that is wanted: if
that is out of reach, the best of them is returned."""
RELATIVE = 0.01
"""The residual, relative to the eigenvalue, that is enough; its error is far below that, as it is
of second order in the residual."""

Vector = NDArray[np.float64]
Operator = Callable[[Vector], Vector]


@dataclass(frozen=True)
class Lowest:
    """A Rayleigh quotient, which is never below the smallest eigenvalue, and its unit vector.

    Some eigenvalue lies within ``error`` = ||H v - value v|| of it.
    """

    value: float
    vector: Vector
    error: float


def lowest(product: Operator, dimension: int, accuracy: float, most: int) -> Lowest:
    """The smallest eigenvalue, by about ``most`` products at most if the operator is large.

    Args:
        product: v -> H v.
        dimension: That of v.
        accuracy: The residual that is enough in any case, relative to the norm of H; it should not
            be below the rounding of the product.
        most: The most products.
    """
    if dimension <= DENSE:
        H = np.stack([product(unit) for unit in np.eye(dimension)], axis=1)
        values, vectors = eigh((H + H.T) / 2)
        product(vectors[:, np.argmax(abs(values))])  # for the size of what it is made of
        return _rayleigh(H @ vectors[:, 0], vectors[:, 0])
    start = np.random.default_rng(0).standard_normal(dimension)
    start /= np.linalg.norm(start)
    norm, used = _norm(product, start)
    best = _rayleigh(product(start), start)
    if norm == 0:
        return best
    for wanted in (*(step for step in ACCURACIES if step > accuracy), accuracy):
        restarts = (most - used) // BASIS
        found = None if restarts < 1 else _lanczos(product, norm, best, start, wanted, restarts)
        if found is None:
            break
        best = found[0]
        used += found[1]
        if best.error <= RELATIVE * abs(best.value):
            break
    return best


def _norm(product: Operator, start: Vector) -> tuple[float, int]:
    """||H||_2 from below by a few steps of the power method, and the products that they took."""
    norm, image = 0.0, start
    for taken in range(1, 6):
        image = product(image)
        length = float(np.linalg.norm(image))
        if length <= norm:
            return norm, taken
        norm = length
        image = image / length
    return norm, 5


def _lanczos(
    product: Operator, norm: float, known: Lowest, start: Vector, wanted: float, restarts: int
) -> tuple[Lowest, int] | None:
    """One call of ARPACK from what is known; None if it does not reach the residual.

    The operator is shifted by its norm: ARPACK compares residuals with the eigenvalue itself, which
    may be zero.
    """
    taken = 0

    def shifted(v: Vector) -> Vector:
        nonlocal taken
        taken += 1
        return product(v) - norm * v

    size = len(start)
    operator = LinearOperator((size, size), matvec=shifted, dtype=np.float64)
    try:
        _, vectors = eigsh(
            operator, 1, which="SA", v0=known.vector + 0.1 * start, ncv=BASIS,
            tol=wanted, maxiter=restarts,
        )  # fmt: skip
    except ArpackError:
        return None
    vector = vectors[:, 0] / np.linalg.norm(vectors[:, 0])
    return _rayleigh(product(vector), vector), taken + 1


def _rayleigh(image: Vector, vector: Vector) -> Lowest:
    value = float(vector @ image)
    return Lowest(value, vector, float(np.linalg.norm(image - value * vector)))
