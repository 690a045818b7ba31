"""Negatives."""

import pytest
import torch

from jorth.kge.batches import Negatives
from jorth.kge.graph import Known, both_directions
from tests.kge.models import random_triples


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
            assert competes[row, column] == (x != answer and not (reject and fact))
