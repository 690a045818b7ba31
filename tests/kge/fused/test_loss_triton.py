"""The fused loss on a CUDA device: that of the CPU, in chunks too, in a graph too."""

import pytest
import torch

from jorth.kge.loss import distance_softmax
from tests.kge.fused.backend_checks import check, check_edges, check_shapes, exact_batch, on

_loss_triton = pytest.importorskip("jorth.kge._loss_triton", exc_type=ImportError)
BACKEND = _loss_triton.loss_and_gradients
pytestmark = pytest.mark.gpu


def test_equals_the_reference():
    check_shapes(BACKEND, "cuda")
    check_edges(BACKEND, "cuda")


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_chunks_of_rows(dtype, monkeypatch):
    monkeypatch.setattr(_loss_triton, "MOST_BYTES", 3 * 700 * 8)
    check(BACKEND, exact_batch(11, 700, 5, dtype=dtype, device="cuda"), "cuda")


def test_in_a_graph():
    """Captured with its backward pass, and replayed on other numbers."""
    batch, other = (
        exact_batch(40, 300, 6, dtype=torch.float64, device="cuda", seed=seed) for seed in (0, 1)
    )
    given = [part.clone().requires_grad_() for part in batch.tensors.values()]
    rest = dict(area=batch.area, smoothing=0.1, excluded=on(batch.excluded, "cuda"))

    def value_and_gradients():
        loss = distance_softmax(*given, **rest)
        return loss.detach(), torch.autograd.grad(loss, given)

    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        value_and_gradients()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = value_and_gradients()
    with torch.no_grad():
        for part, new in zip(given, other.tensors.values(), strict=True):
            part.copy_(new)
    graph.replay()
    expected = value_and_gradients()
    assert torch.equal(found[0], expected[0])
    assert all(torch.equal(one, two) for one, two in zip(found[1], expected[1], strict=True))
