"""Training and ranking on a CUDA device."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import jorth
from jorth.kge import evaluate, train
from jorth.kge.batches import Negatives
from jorth.kge.graph import Known
from tests.kge.device_checks import check_arcs
from tests.kge.models import random_triples, scattered
from tests.kge.test_training import GRAPH, QUICK

pytestmark = pytest.mark.gpu


def test_ranks_are_those_of_the_cpu():
    model, triples = scattered(40, 3), random_triples(60, 40, 3)
    here = evaluate(model, triples, triples)
    there = evaluate(model.to("cuda"), triples.cuda(), triples.cuda())
    assert np.array_equal(here.optimistic, there.optimistic)
    assert np.array_equal(here.pessimistic, there.pessimistic)


@pytest.mark.parametrize("method", ["j-jobcd", "vr-j-jobcd"])
def test_training(method):
    config = replace(QUICK, method=method, device="cuda", epochs=10, lr=0.05)
    result = train(GRAPH, config)
    assert result.model.points.is_cuda
    assert result.history["loss"][-1] < 0.9 * result.history["loss"][0]
    R = result.model.relations.detach()
    assert (
        torch.as_tensor(jorth.residual(R, config.signature)).max()
        < 100 * config.signature.n * 2.0**-53
    )


@pytest.mark.filterwarnings("ignore:Synchronization debug mode is a prototype")
@pytest.mark.parametrize("reject", [False, True])
def test_drawing_negatives_does_not_wait_for_the_device(reject):
    triples = random_triples(300, 90, 3).cuda()
    known = Known(triples, 90, 3) if reject else None
    generator = torch.Generator("cuda").manual_seed(0)
    negatives = Negatives(90, 40, known)
    sampler = negatives.epoch(generator)
    torch.cuda.set_sync_debug_mode("error")
    try:
        drawn = [sampler.next(triples[:20]) for _ in range(5)]
        negatives.excluded(triples[:20], drawn[0])
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert all(part.is_cuda for part in drawn)


def test_arcs():
    check_arcs("cuda")
