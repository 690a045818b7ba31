"""The fused loss against torch's cross-entropy on scores whose left-out columns are taken away."""

import pytest
import torch

from jorth.kge.loss import distance_softmax
from tests.kge.fused.batch import loss_by_cross_entropy, random_batch, value_and_gradients


@pytest.fixture(autouse=True, params=["fastest", "torch"])
def _backend(request, monkeypatch):
    """Both the backend of this machine and torch's own operations, the reference of all others."""
    if request.param == "torch":
        monkeypatch.setattr("jorth.kge.loss.backend_for", lambda signed: None)


def fused(batch):
    rest = dict(area=batch.area, smoothing=batch.smoothing, excluded=batch.excluded)
    return distance_softmax(*batch.tensors.values(), **rest)


@pytest.mark.parametrize("leave", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("shape", [(7, 11, 4), (1, 1, 2), (33, 130, 33)])
def test_loss_and_gradients_are_those_of_cross_entropy(shape, smoothing, leave):
    for seed in range(3):
        batch = random_batch(*shape, smoothing=smoothing, leave=leave, seed=seed)
        ours = value_and_gradients(fused, batch)
        theirs = value_and_gradients(loss_by_cross_entropy, batch)
        for one, other in zip(ours, theirs, strict=True):
            # acosh near one loses half the digits in the oracle: rounding u of g becomes sqrt(u)
            assert torch.allclose(one, other, rtol=1e-7, atol=1e-9)


def test_a_row_without_competitors_costs_nothing():
    batch = random_batch(rows=5, smoothing=0.2)
    assert batch.lists[-1] >= set(batch.entities.tolist())  # everything is left out
    loss, signed, _, _, truth = value_and_gradients(fused, batch)
    assert loss.isfinite()
    assert signed[-1].abs().max() == 0
    assert truth[-1] == pytest.approx(0, abs=1e-15)


def test_large_scores_do_not_overflow():
    batch = random_batch(dtype=torch.float32)
    with torch.no_grad():
        batch.tensors["signed"] *= 1e15
        batch.tensors["truth"] -= 1e4
    assert all(part.isfinite().all() for part in value_and_gradients(fused, batch))
