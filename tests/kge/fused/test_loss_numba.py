"""The compiled fused loss against torch's own operations: blocks, threads, and what is far off."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from jorth.kge import _loss_numba
from jorth.kge.loss import by_torch, distance_softmax
from tests.kge.fused.backend_checks import check_edges, check_shapes
from tests.kge.fused.batch import random_batch, value_and_gradients


def compiled(batch):
    rest = dict(area=batch.area, smoothing=batch.smoothing, excluded=batch.excluded)
    return distance_softmax(*batch.tensors.values(), **rest)


def reference(batch):
    return by_torch(*batch.tensors.values(), batch.area, batch.smoothing, batch.excluded)


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def test_against_the_reference_in_double_precision():
    check_shapes(_loss_numba.loss_and_gradients, "cpu")


def test_edges():
    check_edges(_loss_numba.loss_and_gradients, "cpu")


def assert_close(batch, rtol):
    """Entries differ by sums of some hundred roundings, relative to the largest of a tensor."""
    ours, theirs = (value_and_gradients(function, batch) for function in (compiled, reference))
    for one, other in zip(ours, theirs, strict=True):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        assert (one - other).abs().max() <= rtol * other.abs().max()


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_blocks_and_threads(dtype, smoothing, count, threads, monkeypatch):
    """31 rows in blocks of 8, shared among threads: the last ones are not full."""
    monkeypatch.setattr(_loss_numba, "CACHE", 1)
    monkeypatch.setattr(_loss_numba, "THREAD_ROWS", 1)
    threads(count)
    batch = random_batch(31, 57, 6, smoothing=smoothing, dtype=dtype)
    assert_close(batch, 1000 * torch.finfo(dtype).eps)
    again = [value_and_gradients(compiled, batch) for _ in range(3)]
    for parts in zip(*again, strict=True):
        assert all(torch.equal(part, parts[0]) for part in parts)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_hyperbolic_points_near_and_far(dtype):
    """|<x, y>| from 1, exactly, to 1e30, where squares overflow in float32."""
    size = torch.cat([torch.tensor([0.0]), torch.logspace(-20, 30, 200, dtype=torch.float64)])
    g = (1 + size).to(dtype)
    batch = random_batch(2, len(g), 1, leave=False, dtype=dtype)
    with torch.no_grad():
        batch.tensors["signed"].copy_(torch.tensor([[1.0], [-1.0]]))
        batch.tensors["candidates"].copy_(g[:, None])
    batch = replace(batch, area=0.01)
    assert_close(batch, 1000 * torch.finfo(dtype).eps)
    slopes = torch.autograd.grad(compiled(batch), batch.tensors["candidates"])[0]
    assert slopes.isfinite().all()
    assert slopes[0] == 0  # at |g| = 1


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["signed", "candidates", "bias", "truth"])
def test_what_is_not_finite_shows(name, bad):
    batch = random_batch(40, 40, 4, leave=False)
    with torch.no_grad():
        batch.tensors[name][(3,) * batch.tensors[name].ndim] = bad
    ours = value_and_gradients(compiled, batch)
    assert not all(bool(part.isfinite().all()) for part in ours)
