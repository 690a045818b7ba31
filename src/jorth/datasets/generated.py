"""Generated problems: everything from a seed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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
    U, _, Vt = np.linalg.svd(rng.standard_normal((m, n)), full_matrices=False)
    source = np.sqrt(m) * (U * np.geomspace(1.0, 1.0 / source_condition, n)) @ Vt
    X = random_point(signature, cond=point_condition, seed=rng)
    target = source @ X + noise * rng.standard_normal((m, n))
    return PlantedProcrustes(source, target, X)
