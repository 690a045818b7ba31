"""Training and ranking on a CUDA device."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import jorth
from jorth.kge import evaluate, train
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


def test_arcs():
    check_arcs("cuda")
