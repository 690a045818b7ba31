"""The real data, where JORTH_DATA names a folder that has it."""

import os

import numpy as np
import pytest

from jorth.datasets import REGISTRY, load
from jorth.datasets.loading import data_folder, find


def real(name, *args, **options):
    if not os.environ.get("JORTH_DATA"):
        pytest.skip("JORTH_DATA is not set")
    if find(REGISTRY[name], data_folder()) is None:
        pytest.skip(f"data set {name} is not in JORTH_DATA")
    return load(name, *args, **options)


def test_mnist_of_the_eigenvalue_problem():
    D = real("mnist", 1000, 780, subset="first")
    assert D.shape == (1000, 780)
    assert (D.min(), D.max()) == (0.0, 1.0)
    assert abs((D**2).sum() / 8.589e4 - 1) < 1e-4


def test_w1a_is_complete():
    D = real("w1a")
    assert D.shape == (2477, 300)
    assert set(np.unique(D)) == {0.0, 1.0}
    assert (D**2).sum() == 28410
    assert D.any(axis=0).sum() == 290
