"""Negatives."""

import pytest
import torch

from jorth.kge.batches import Batch, BatchLoss, Negatives
from jorth.kge.graph import Known, both_directions
from tests.kge.models import random_triples, scattered


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("count", [1, 7, 24, 49])
def test_negatives_come_from_a_permutation(count):
    """No batch has an entity twice, nor two batches of one permutation."""
    queries = random_triples(6, 50, 2)
    sampler = Negatives(50, count, None).epoch(seeded())
    per_round = 50 // count
    for _ in range(3):
        drawn = torch.cat([sampler.next(queries) for _ in range(per_round)])
        assert drawn.shape == (count * per_round,)
        assert len(set(drawn.tolist()) & set(range(50))) == count * per_round
    again = Negatives(50, count, None).epoch(seeded())
    assert torch.equal(
        torch.cat([again.next(queries) for _ in range(3 * per_round)])[-count:], drawn[-count:]
    )


@pytest.mark.parametrize("reject", [False, True])
@pytest.mark.parametrize("count", [5, None])
def test_the_answer_and_known_answers_do_not_compete(count, reject):
    triples = random_triples(60, 8, 2)
    queries = both_directions(triples, 2)[45:75]
    facts = {tuple(fact) for fact in triples.tolist()}
    negatives = Negatives(8, count, Known(triples, 8, 2) if reject else None)
    drawn = negatives.epoch(seeded()).next(queries)
    shown = torch.arange(8) if drawn is None else drawn
    competes = torch.ones(30, len(shown), dtype=torch.bool)
    competes[negatives.excluded(queries, drawn).places()] = False
    for row, (anchor, code, answer) in enumerate(queries.tolist()):
        for column, x in enumerate(shown.tolist()):
            fact = ((anchor, code, x) if code < 2 else (x, code - 2, anchor)) in facts
            own = x == anchor and count is None and not reject  # its score is another one
            assert competes[row, column] == (x != answer and not (reject and fact) and not own)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("reciprocal", [False, True])
def test_the_loss_among_all_entities(smoothing, reciprocal):
    """The cross-entropy of the model's own scores, loops among them, and its gradients."""
    model = scattered(8, 2, reciprocal=reciprocal)
    with torch.no_grad():
        model.loops.copy_(torch.tensor([0.5, -2.0, 1.0, 0.0]))
    queries = both_directions(torch.tensor([[0, 0, 1], [3, 1, 3], [5, 1, 2], [7, 0, 7]]), 2)
    anchor, code, answer = queries.unbind(-1)
    scores = model._score_all(anchor, code)
    rows = torch.arange(len(queries))
    others = torch.ones_like(scores)
    others[rows, anchor] = others[rows, answer] = 0
    weights = smoothing * others / (others.sum(1) + 1)[:, None]
    weights[rows, anchor] = smoothing / (others.sum(1) + 1) / 2
    weights[rows, answer] = 0
    weights[rows, answer] = 1 - weights.sum(1)
    wanted = scores.logsumexp(1) - (weights * scores).sum(1)
    loss = BatchLoss(model, Negatives(8, None, None), smoothing, 0.0)(Batch(queries, None))
    assert torch.allclose(loss, wanted.mean(), rtol=1e-12)
    parts = list(model.weights().values())
    ours = torch.autograd.grad(loss, parts)
    theirs = torch.autograd.grad(wanted.mean(), parts)
    for one, other in zip(ours, theirs, strict=True):
        assert torch.allclose(one, other, rtol=1e-9, atol=1e-12)
