"""Problems with known answers, from a seed, and scikit-learn's digits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jorth._inputs import check_signature, generator, nonnegative_number, real_number, whole_number
from jorth.extras import needs
from jorth.group import random_point
from jorth.signature import Signature


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
    """Return a Procrustes problem with a known answer: target = source X + noise.

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

    >>> source, target, X = jorth.datasets.planted_procrustes(100, jorth.Signature(3, 1))
    >>> np.allclose(source @ X, target)
    True
    """
    n = check_signature(signature).n
    rows = whole_number(m, "m", 1)
    rng = generator(seed)
    if rows < n:
        raise ValueError(f"m must be at least n = {n} for a source of full rank, got {rows}")
    finite = "a finite number of at least 1"
    condition = real_number(source_condition, "source_condition", finite, lambda x: 1 <= x < np.inf)
    boost = real_number(point_condition, "point_condition", finite, lambda x: 1 <= x < np.inf)
    deviation = nonnegative_number(noise, "noise")
    U, _, Vt = np.linalg.svd(rng.standard_normal((rows, n)), full_matrices=False)
    source = np.sqrt(rows) * (U * np.geomspace(1.0, 1.0 / condition, n)) @ Vt
    X = random_point(signature, cond=boost, seed=rng)
    target = source @ X + deviation * rng.standard_normal((rows, n))
    if not np.isfinite(target).all():
        raise ValueError("noise must be small enough for a finite target, got overflow")
    return PlantedProcrustes(source, target, X)


def digits() -> NDArray[np.float64]:
    """Return 1797 images of digits (1797, 64), 8 x 8 pixels in [0, 1]. Three columns are zero.

    >>> jorth.datasets.digits().shape
    (1797, 64)
    """
    with needs("jorth.datasets.digits", "sklearn"):
        from sklearn.datasets import load_digits

    images: NDArray[np.float64] = load_digits().data / 16.0
    return images
