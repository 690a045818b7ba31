"""`procrustes` with fewer rows than columns: f is not coercive, and there is an answer all the same."""

import numpy as np
import pytest
import scipy.sparse
import torch

import jorth
from jorth import Procrustes, Signature, Status, procrustes
from jorth.estimators import LorentzAligner

SHAPES = [(1, 2, 1), (2, 5, 3), (7, 8, 5), (1, 6, 2), (3, 4, 0), (3, 4, 4)]


def test_one_row():
    result = procrustes(np.ones((1, 2)), np.ones((1, 2)), Signature(1, 1))
    assert result.status is Status.CONVERGED
    assert result.value == 0
    assert np.array_equal(result.x, np.eye(2))


@pytest.mark.parametrize(("m", "n", "p"), SHAPES)
@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array], ids=["dense", "sparse"])
def test_a_planted_isometry_of_few_points_is_met(m, n, p, kind):
    """target = source R: the least value is zero, at R and elsewhere."""
    sig, rng = Signature(p, n - p), np.random.default_rng(m)
    source = rng.standard_normal((m, n))
    target = (
        source @ jorth.random_point(sig, cond=4.0, seed=1)
        if 0 < p < n
        else source @ jorth.random_point(sig, seed=1)
    )
    result = procrustes(kind(source), target, sig, max_iterations=500)
    assert result.value <= 1e-12 * np.sum(target**2)
    assert result.residual <= 1e3 * n * 2.0**-53
    exact = np.sum((source @ result.x - target) ** 2) / (2 * m)
    assert abs(result.value - exact) <= 1e-12 * (1 + np.sum(target**2))


@pytest.mark.parametrize(("m", "n", "p"), SHAPES)
def test_points_that_no_isometry_maps(m, n, p):
    """Two points of other norms <x, x>_J: f is above zero, and a critical point or the end of the way is returned."""
    sig, rng = Signature(p, n - p), np.random.default_rng(m + 10)
    source, target = rng.standard_normal((2, m, n))
    result = procrustes(source, target, sig, max_iterations=500)
    assert result.status in (Status.CONVERGED, Status.STALLED, Status.MAX_ITERATIONS)
    assert result.value <= np.sum((source - target) ** 2) / (2 * m)
    assert np.isfinite(result.x).all()


def test_thin_and_data_of_low_rank():
    sig, rng = Signature(4, 2), np.random.default_rng(5)
    source, target = rng.standard_normal((3, 6)), rng.standard_normal((3, 2))
    thin = procrustes(source, target, sig, max_iterations=300)
    assert thin.x.shape == (6, 2)
    assert thin.value < np.sum((source[:, :2] - target) ** 2) / 6
    low = rng.standard_normal((20, 3)) @ rng.standard_normal((3, 6))
    assert procrustes(low, low, sig, max_iterations=300).value <= 1e-20 * np.sum(low**2)


def test_the_value_and_gradient_are_those_of_the_rows():
    rng = np.random.default_rng(6)
    source, target, X = (
        rng.standard_normal((3, 8)),
        rng.standard_normal((3, 8)),
        rng.standard_normal((8, 8)),
    )
    value, gradient = Procrustes(source, target).value_and_gradient(torch.from_numpy(X))
    assert value.item() == pytest.approx(np.sum((source @ X - target) ** 2) / 6, rel=1e-13)
    np.testing.assert_allclose(gradient.numpy(), source.T @ (source @ X - target) / 3, atol=1e-12)


def test_the_aligner_fits_few_points():
    rng = np.random.default_rng(7)
    points = rng.standard_normal((3, 6))
    aligner = LorentzAligner(Signature(4, 2)).fit(points, points)
    np.testing.assert_allclose(aligner.transform(points), points, atol=1e-7)
