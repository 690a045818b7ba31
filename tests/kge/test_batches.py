"""Queries and negatives."""

import pytest
import torch

from jorth.kge.batches import Negatives, Queries
from jorth.kge.graph import Known
from tests.kge.models import random_triples


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def test_every_triple_is_asked_from_both_ends():
    triples = random_triples(20, 9, 3)
    queries = Queries(triples, 3).epoch(seeded())
    assert len(queries) == 40
    asked = sorted((h, r, t) if r < 3 else (t, r - 3, h) for h, r, t in queries.tolist())
    assert asked == sorted(2 * [tuple(triple) for triple in triples.tolist()])
    assert (queries[:, 1] < 3).sum() == 20
    assert not torch.equal(queries, Queries(triples, 3).epoch(seeded(1)))


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
    queries = Queries(triples, 2).epoch(seeded())[:30]
    facts = {tuple(fact) for fact in triples.tolist()}
    negatives = Negatives(8, count, Known(triples, 8, 2) if reject else None)
    drawn = negatives.epoch(seeded()).next(queries)
    shown = torch.arange(8) if drawn is None else drawn
    competes = torch.ones(30, len(shown), dtype=torch.bool)
    competes[negatives.excluded(queries, drawn).places()] = False
    for row, (anchor, code, answer) in enumerate(queries.tolist()):
        for column, x in enumerate(shown.tolist()):
            fact = ((anchor, code, x) if code < 2 else (x, code - 2, anchor)) in facts
            assert competes[row, column] == (x != answer and not (reject and fact))
