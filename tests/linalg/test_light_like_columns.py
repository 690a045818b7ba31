"""A column on the light cone: A^T J A is singular, and rounding must not pass for definite."""

import numpy as np
import pytest

import jorth
from jorth import Signature

SIG = Signature.of([1, -1, 1, 1, -1, 1, -1, 1, 1])


def light_like(seed):
    """(m, 3) of full rank, with one column a of <a, a>_J = 0 up to rounding,
    and the others orthogonal to it."""
    rng = np.random.default_rng(seed)
    X = jorth.random_point(SIG, cond=3.0, seed=seed)
    plus, minus = SIG.positive, SIG.negative
    columns = np.stack([X[:, plus[0]], X[:, plus[1]], X[:, plus[2]] + X[:, minus[0]]], axis=1)
    return columns @ np.linalg.qr(rng.standard_normal((3, 3)))[0]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("seed", range(20))
def test_every_such_matrix_is_refused(seed, dtype):
    """The smallest eigenvalue comes out as some u / 10 of either sign."""
    A = light_like(seed).astype(dtype)
    with pytest.raises(ValueError, match=r"A\^T J A must be positive definite"):
        jorth.hyperbolic_qr(A, SIG)
    with pytest.raises(ValueError, match=r"A\^T J A must be positive definite"):
        jorth.indefinite_lstsq(A, np.ones(SIG.n, dtype), SIG)


def test_some_come_out_as_positive():
    """Without a margin for rounding these would pass:
    the eigenvalue relative to A^T A, as it is computed."""
    J, least = np.diag(SIG.signs.astype(float)), []
    for seed in range(40):
        Q, _ = np.linalg.qr(light_like(seed))
        least.append(np.linalg.eigvalsh(Q.T @ J @ Q)[0])
    assert max(least) > 0
    assert np.abs(least).max() < 4 * SIG.n * 2.0**-53
