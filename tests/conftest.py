"""Shared settings: torch's threads, reproducible hypothesis and generators, the gpu marker."""

import gc
import os

import numpy as np
import pytest
import torch
from hypothesis import seed, settings

from tests.seeds import SHIFT

settings.register_profile("jorth", deadline=None, derandomize=True)
settings.load_profile("jorth")


@pytest.fixture(autouse=True, scope="session")
def number_of_threads():
    """One thread of torch per worker, unless JORTH_TEST_THREADS asks for more."""
    torch.set_num_threads(int(os.environ.get("JORTH_TEST_THREADS", "1")))


@pytest.fixture(autouse=True)
def global_generators():
    """What a test draws from the global generators does not hang on the tests before it."""
    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002 - scikit-learn and pymanopt draw from there


def pytest_configure(config):
    """Compile the kernels once, before there are several workers.

    Two processes that compile at the same time may get code that rounds differently, but a run that
    is resumed in another process must be equal to the bit.
    """
    if not hasattr(config, "workerinput") and getattr(config.option, "numprocesses", None):
        run_every_method()


def run_every_method():
    import jorth
    from jorth.solvers import METHODS

    for n in (4, 12):
        signature = jorth.Signature(n // 2, n // 2)
        source, target, _ = jorth.datasets.planted_procrustes(2 * n, signature, seed=0)
        for method in METHODS:
            options = dict(signature=signature, method=method, max_iterations=3)
            jorth.minimize(jorth.Procrustes(source, target), **options)
            if method != "vr-j-jobcd":
                jorth.minimize(jorth.Quadratic(np.eye(n)), **options)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """A file stays with one worker: what its tests share is made once."""
    from xdist.scheduler import LoadFileScheduling

    return LoadFileScheduling(config, log)


def pytest_collection_finish():
    """What is loaded by now stays until the end: the collector need not visit it again."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(items):
    for item in items:
        if SHIFT and getattr(item.obj, "is_hypothesis_test", False):
            seed(SHIFT)(item.obj)  # without it the examples are drawn from the name of the test
        if not torch.cuda.is_available() and item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))
