"""Shared settings: one torch thread per worker, reproducible hypothesis, the gpu marker."""

import pytest
import torch
from hypothesis import settings

settings.register_profile("jorth", deadline=None, derandomize=True)
settings.load_profile("jorth")


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    torch.set_num_threads(1)


def pytest_collection_modifyitems(items):
    if torch.cuda.is_available():
        return
    for item in items:
        if "gpu" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))
