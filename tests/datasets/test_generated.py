import mpmath
import numpy as np
import pytest
from sklearn.datasets import load_digits

from jorth import Signature
from jorth.datasets import digits, planted_procrustes, positive_definite

U = np.finfo(float).eps / 2


def test_positive_definite_has_the_eigenvalues():
    n, cond = 9, 1e10
    A = positive_definite(n, cond=cond, seed=3)
    np.testing.assert_array_equal(A, A.T)
    with mpmath.workdps(40):
        eigenvalues = sorted(
            float(value) for value in mpmath.eigsy(mpmath.matrix(A.tolist()), eigvals_only=True)
        )
    # forming A in floating point moves an eigenvalue by a few n u ||A||
    np.testing.assert_allclose(eigenvalues, np.geomspace(1 / cond, 1, n), rtol=0, atol=10 * n * U)
    off_diagonal = A[~np.eye(n, dtype=bool)]
    assert np.abs(off_diagonal).max() > 0.05  # the eigenvectors are not the unit vectors
    assert not np.array_equal(A, positive_definite(n, cond=cond, seed=4))


def test_positive_definite_near_the_limit_has_a_cholesky_factor():
    np.linalg.cholesky(positive_definite(20, cond=1e13, seed=0))


def test_digits_are_the_images_in_the_unit_interval():
    images = digits()
    assert images.shape == (1797, 64)
    assert (images.min(), images.max()) == (0.0, 1.0)
    np.testing.assert_array_equal(images * 16, load_digits().data)
    assert (~images.any(axis=0)).sum() == 3


def test_planted_source_has_the_condition():
    source, target, X = planted_procrustes(40, Signature(3, 2), source_condition=7.0, seed=2)
    singular = np.linalg.svd(source, compute_uv=False)
    np.testing.assert_allclose(singular, np.sqrt(40) * np.geomspace(1, 1 / 7, 5), rtol=1e-13)
    assert np.linalg.norm(source @ X - target) < 1e-13


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: positive_definite(3, cond=0.5), "cond must be a number of at least 1 and below"),
        (
            lambda: positive_definite(3, cond=1e17),
            r"cond must be .* below 1/\(n u\) = 3.0e\+15, got 1e\+17",
        ),
        (lambda: positive_definite(3, cond=float("nan")), "cond must be a number"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
