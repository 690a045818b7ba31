"""A plane without a minimiser is not a stationary one."""

import math

import numpy as np
import pytest

import jorth
from jorth import HyperbolicEigenvalue, Signature, Status
from jorth.stopping import BlockStationary

SIG = Signature(2, 2)
UNBOUNDED = HyperbolicEigenvalue(np.eye(4), sense="max")


def test_unbounded_planes_count_as_infinitely_far():
    X = jorth.random_point(SIG, cond=5, seed=1)
    found = jorth.block_stationarity(UNBOUNDED, X, SIG)
    assert found == (math.inf, math.inf, 6)
    sampled = jorth.block_stationarity(UNBOUNDED, X, SIG, pairs=50, seed=1)
    assert sampled == (math.inf, math.inf, 50)


@pytest.mark.parametrize("method", ["riemannian-lbfgs", "gs-jobcd", "j-jobcd"])
def test_a_run_does_not_converge_where_planes_are_unbounded(method):
    x0 = jorth.random_point(SIG, cond=5, seed=1)
    result = jorth.minimize(
        UNBOUNDED, x0, signature=SIG, method=method, stop=BlockStationary(1e-12), max_iterations=200
    )
    assert result.status is not Status.CONVERGED


@pytest.mark.parametrize("cond", [1e4, 1.8e8, 1e10])
def test_rows_close_to_the_light_cone_are_bounded(cond):
    """Z Z^T loses its smaller null form from cond(X) = u^(-1/2) on; the rows do not."""
    sig = Signature(1, 1)
    X = jorth.random_point(sig, cond=cond, seed=2)
    found = jorth.block_stationarity(jorth.Quadratic(np.eye(2)), X, sig, theta=0.0)
    # the best step undoes the boost, X^-1 or minus that: ||V - I||^2 = 2 (cosh - 1)^2 + 2 sinh^2 is about ||X||_F^2
    assert found.value == pytest.approx(np.linalg.norm(X) ** 2, rel=8 / math.sqrt(cond))
