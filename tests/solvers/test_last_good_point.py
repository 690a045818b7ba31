"""A stochastic run that leaves the range of floats between two scores ends as NON_FINITE, at its last good point."""

import numpy as np
import pytest

import jorth
from jorth import Signature, Status
from jorth.datasets import planted_procrustes


@pytest.mark.parametrize("seed", range(10))
def test_steps_that_are_far_too_long(seed):
    signature = Signature(2, 2)
    source, target, _ = planted_procrustes(9, signature, noise=0.1, seed=seed)
    method = jorth.VarianceReduced(batch=5, difference_batch=2, probability=0.5, safety=1e-300)
    result = jorth.minimize(
        jorth.Procrustes(source, target),
        signature=signature,
        method=method,
        seed=seed,
        max_iterations=3,
    )
    assert result.status in (Status.NON_FINITE, Status.MAX_ITERATIONS)
    assert np.isfinite([result.value, result.gradient_norm]).all()
    assert jorth.residual(result.x, signature) <= 1e-10
    value = np.square(source @ result.x - target).sum() / (2 * len(source))
    assert result.value == pytest.approx(value, rel=1e-10)
