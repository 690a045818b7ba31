"""Generated matrices and problems: everything from a seed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jorth.arrays import generator, is_number, whole_number
from jorth.group import random_point
from jorth.signature import Signature


def randn(m: int, n: int, *, seed: int | np.random.Generator = 0) -> NDArray[np.float64]:
    """A matrix (m, n) of independent standard normal entries: the paper's "randn"."""
    return generator(seed).standard_normal((whole_number(m, "m", 1), whole_number(n, "n", 1)))


def graded(m: int, n: int, *, smallest: float = 1e-12, seed: int | np.random.Generator = 0) -> NDArray[np.float64]:
    """A matrix B D (m, n): B of condition number 10, D diagonal, falling geometrically from 1 to ``smallest``.

    Its condition number is of the order of 1/smallest, but it comes from the scaling of the columns alone: methods that
    work on columns, such as one-sided Jacobi, keep high relative accuracy on it.
    """
    if not is_number(smallest) or not 0.0 < smallest <= 1.0:
        raise ValueError(f"smallest must be a number above 0 and at most 1, got {smallest!r}")
    B = _conditioned(whole_number(m, "m", 1), whole_number(n, "n", 1), 10.0, generator(seed))
    return B * np.geomspace(1.0, smallest, n)


def positive_definite(n: int, *, cond: float = 1e3, seed: int | np.random.Generator = 0) -> NDArray[np.float64]:
    """A symmetric positive definite A (n, n): eigenvalues 1 to 1/cond in geometric sequence, random eigenvectors.

    The rounding of A moves its eigenvalues by up to about n u, so 1/cond must stay above that.
    """
    roundoff = whole_number(n, "n", 1) * np.finfo(np.float64).eps / 2
    if not is_number(cond) or not 1.0 <= cond < 1.0 / roundoff:
        raise ValueError(f"cond must be a number of at least 1 and below 1/(n u) = {1.0 / roundoff:.1e}, got {cond!r}")
    Q = np.linalg.svd(generator(seed).standard_normal((n, n)))[0]
    A = (Q * np.geomspace(1.0, 1.0 / cond, n)) @ Q.T
    symmetric: NDArray[np.float64] = (A + A.T) / 2
    return symmetric


class PlantedProcrustes(NamedTuple):
    """source (m, n), target (m, n) and the planted X (n, n)."""

    source: NDArray[np.float64]
    target: NDArray[np.float64]
    X: NDArray[np.float64]


def planted_procrustes(
    m: int,
    signature: Signature,
    *,
    source_condition: float = 10.0,
    point_condition: float = 10.0,
    noise: float = 0.0,
    seed: int | np.random.Generator = 0,
) -> PlantedProcrustes:
    """A Procrustes problem with a known answer: target = source X + noise, X in the identity component.

    The source is Gaussian with its singular values replaced by a geometric sequence of ratio ``source_condition``,
    scaled so that source^T source / m has its largest eigenvalue 1.

    Args:
        m: The number of rows, at least n.
        signature: The signs of J.
        source_condition: The condition number of the source.
        point_condition: The condition number of X.
        noise: The standard deviation of the noise on each entry of the target.
        seed: An integer or a NumPy generator.
    """
    n = signature.n
    if m < n:
        raise ValueError(f"m must be at least n = {n} for a source of full rank, got {m}")
    rng = np.random.default_rng(seed)
    source = _conditioned(m, n, source_condition, rng, largest=np.sqrt(m))
    X = random_point(signature, cond=point_condition, seed=rng)
    target = source @ X + noise * rng.standard_normal((m, n))
    return PlantedProcrustes(source, target, X)


def _conditioned(m: int, n: int, cond: float, rng: np.random.Generator, *, largest: float = 1.0) -> NDArray[np.float64]:
    """A Gaussian (m, n) with its singular values replaced by a geometric sequence from ``largest`` to largest/cond."""
    U, _, Vt = np.linalg.svd(rng.standard_normal((m, n)), full_matrices=False)
    product: NDArray[np.float64] = largest * (U * np.geomspace(1.0, 1.0 / cond, min(m, n))) @ Vt
    return product
