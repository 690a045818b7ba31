"""The compiled sweep: one step annihilates, convergence is quadratic,
and what cannot go on says so."""

from itertools import pairwise

import numpy as np
import pytest

from jorth.decompositions import singular
from jorth.decompositions.jacobi import STEEP, boost, length, rotation, sweep


def largest_cosine(rows):
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return np.abs(units @ units.T - np.eye(len(rows))).max()


@pytest.mark.parametrize("ratio", [1e-12, 1e-3, 0.99, 1.0, 30.0])
@pytest.mark.parametrize("cosine", [1e-9, -0.1, 0.7, -0.999, 0.99999])
def test_one_step(ratio, cosine):
    a, b = np.array([1.0, 0.0]), ratio * np.array([cosine, np.sqrt(1 - cosine**2)])
    c, s = rotation(cosine, 1.0, ratio)
    assert c * c + s * s == pytest.approx(1, abs=1e-14)
    assert abs(s) <= c * (1 + 1e-15)  # the smaller angle
    turned = np.stack([c * a - s * b, s * a + c * b])
    assert abs(turned[0] @ turned[1]) <= 1e-14 * ratio
    cosh, sinh = boost(a, b, cosine, 1.0, ratio)
    assert (cosh - sinh) * (cosh + sinh) == pytest.approx(1, abs=1e-14 * cosh**2)
    boosted = np.stack([cosh * a + sinh * b, sinh * a + cosh * b])
    assert abs(boosted[0] @ boosted[1]) <= 1e-14 * cosh**2 * ratio


def test_both_forms_of_the_boost_agree():
    """At |tanh 2 mu| = STEEP one formula takes over from the other."""
    for steepness in (STEEP * (1 - 1e-12), STEEP * (1 + 1e-12)):
        a, b = np.array([1.0, 0.0]), np.array([steepness, np.sqrt(1 - steepness**2)])
        cosh, sinh = boost(a, b, steepness, 1.0, 1.0)
        assert sinh / cosh == pytest.approx(np.tanh(-np.arctanh(steepness) / 2), rel=1e-14)
        assert cosh == pytest.approx(np.cosh(np.arctanh(steepness) / 2), rel=1e-14)


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1.0, 1e160, 1e300])
def test_length(scale):
    assert length(scale * np.array([3.0, 0.0, -4.0])) == pytest.approx(5 * scale, rel=1e-15)
    assert length(np.zeros(3)) == 0.0


def test_convergence_is_quadratic():
    rows = np.random.default_rng(0).standard_normal((30, 40))
    signs = np.where(np.arange(30) % 3 > 0, 1, -1).astype(np.int8)
    lengths, turned = np.linalg.norm(rows, axis=1), np.eye(30)
    history = []
    while sweep(rows, turned, lengths, signs, 1e-15):
        history.append(largest_cosine(rows))
        np.testing.assert_allclose(lengths, np.linalg.norm(rows, axis=1), rtol=1e-14)
    assert len(history) <= 12
    # from 1e-2 on every sweep squares the largest cosine,
    # up to a factor for close values, until rounding
    tail = [value for value in history if value < 1e-2]
    assert len(tail) >= 2
    assert all(after <= max(100 * before**2, 1e-14) for before, after in pairwise(tail))


def test_parallel_columns_of_opposite_sign():
    with pytest.raises(ValueError, match="two columns of opposite sign became parallel"):
        singular.one_sided_jacobi(
            np.array([[1.0, 1.0], [0.0, 0.0]]), np.array([1, -1], dtype=np.int8)
        )


def test_no_convergence_is_an_error(monkeypatch):
    monkeypatch.setattr(singular, "MAX_SWEEPS", 2)
    G = np.random.default_rng(1).standard_normal((20, 20))
    with pytest.raises(
        RuntimeError, match=r"did not converge: \d+ pairs were not orthogonal in sweep 2"
    ):
        singular.one_sided_jacobi(G / np.abs(G).max(), np.array([1, -1] * 10, dtype=np.int8))
