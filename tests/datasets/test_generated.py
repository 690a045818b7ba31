import numpy as np
from sklearn.datasets import load_digits

from jorth import Signature
from jorth.datasets import digits, planted_procrustes


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
