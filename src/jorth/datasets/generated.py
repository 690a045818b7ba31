"""Matrices and problems generated from a seed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jorth._inputs import check_signature, generator, real_number, whole_number
from jorth.group import random_point
from jorth.signature import Signature


def randn(m: int, n: int, *, seed: int | np.random.Generator = 0) -> NDArray[np.float64]:
    """A matrix (m, n) of independent standard normal entries: the paper's "randn".

    Args:
        m: The number of rows.
        n: The number of columns.
        seed: A number or a NumPy generator.
    """
    return generator(seed).standard_normal((whole_number(m, "m", 1), whole_number(n, "n", 1)))


def graded(
    m: int, n: int, *, smallest: float = 1e-12, seed: int | np.random.Generator = 0
) -> NDArray[np.float64]:
    """A matrix B D (m, n): B has condition 10, D is diagonal, geometric from 1 to ``smallest``.

    Its condition number is of the order of 1/smallest, but only because of the scaling of the
    columns: methods that work on columns, such as one-sided Jacobi, keep high relative accuracy.

    Args:
        m: The number of rows.
        n: The number of columns.
        smallest: The last entry of D.
        seed: A number or a NumPy generator.
    """
    expected = "a number above 0 and at most 1"
    least = real_number(smallest, "smallest", expected, lambda x: 0 < x <= 1)
    rows = whole_number(m, "m", 1)
    columns = whole_number(n, "n", 1)
    return _conditioned(rows, columns, 10.0, generator(seed)) * np.geomspace(1.0, least, columns)


def positive_definite(
    n: int, *, cond: float = 1e3, seed: int | np.random.Generator = 0
) -> NDArray[np.float64]:
    """A symmetric positive definite A (n, n) with eigenvalues geometric from 1 to 1/cond.

    The eigenvectors are random. Rounding moves the eigenvalues of A by up to about n u, so 1/cond
    must be larger than that.

    Args:
        n: The size of A.
        cond: The condition number of A.
        seed: A number or a NumPy generator.
    """
    limit = 2.0 / (whole_number(n, "n", 1) * np.finfo(np.float64).eps)
    expected = f"a number of at least 1 and below 1/(n u) = {limit:.1e}"
    ratio = real_number(cond, "cond", expected, lambda number: bool(1 <= number < limit))
    Q = np.linalg.svd(generator(seed).standard_normal((n, n)))[0]
    A = (Q * np.geomspace(1.0, 1.0 / ratio, n)) @ Q.T
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
    """A Procrustes problem with a known answer: target = source X + noise.

    X is in the identity component. The source is Gaussian with its singular values replaced by a
    geometric sequence of ratio ``source_condition``, scaled so that the largest eigenvalue of
    source^T source / m is 1.

    Args:
        m: The number of rows, at least n.
        signature: The signs of J.
        source_condition: The condition number of the source.
        point_condition: The condition number of X.
        noise: The standard deviation of the noise on each entry of the target.
        seed: An integer or a NumPy generator.
    """
    n = check_signature(signature).n
    rows = whole_number(m, "m", 1)
    rng = generator(seed)
    if rows < n:
        raise ValueError(f"m must be at least n = {n} for a source of full rank, got {rows}")
    condition = _at_least_one(source_condition, "source_condition")
    boost = _at_least_one(point_condition, "point_condition")
    deviation = real_number(noise, "noise", "a number of at least 0", lambda x: 0 <= x < np.inf)
    source = _conditioned(rows, n, condition, rng, largest=np.sqrt(rows))
    X = random_point(signature, cond=boost, seed=rng)
    target = source @ X + deviation * rng.standard_normal((rows, n))
    if not np.isfinite(target).all():
        raise ValueError("noise must be small enough for a finite target, got overflow")
    return PlantedProcrustes(source, target, X)


def _at_least_one(value: object, name: str) -> float:
    return real_number(value, name, "a finite number of at least 1", lambda x: 1 <= x < np.inf)


def _conditioned(
    m: int, n: int, cond: float, rng: np.random.Generator, *, largest: float = 1.0
) -> NDArray[np.float64]:
    """A Gaussian matrix (m, n) with singular values geometric from ``largest`` to largest/cond."""
    U, _, Vt = np.linalg.svd(rng.standard_normal((m, n)), full_matrices=False)
    product: NDArray[np.float64] = largest * (U * np.geomspace(1.0, 1.0 / cond, min(m, n))) @ Vt
    return product
