"""Queries and negatives."""

import math

import pytest
import torch

from jorth.kge.batches import Negatives, Queries
from jorth.kge.graph import Known
from tests.kge.models import random_triples


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def test_both_sides_ask_every_triple_from_both_ends():
    triples = random_triples(20, 9, 3)
    queries = Queries(triples, 3, "both").epoch(seeded())
    assert len(queries) == 40
    asked = sorted((h, r, t) if r < 3 else (t, r - 3, h) for h, r, t in queries.tolist())
    assert asked == sorted(2 * [tuple(triple) for triple in triples.tolist()])
    assert (queries[:, 1] < 3).sum() == 20
    assert not torch.equal(queries, Queries(triples, 3, "both").epoch(seeded(1)))


@pytest.mark.parametrize("count", [1, 7, 24, 49])
def test_shared_negatives_come_from_a_permutation(count):
    """No batch has an entity twice, nor two batches of one permutation."""
    queries = random_triples(6, 50, 2)
    sampler = Negatives(50, count, True, None).epoch(seeded())
    per_round = 50 // count
    for _ in range(3):
        drawn = torch.cat([sampler.next(queries) for _ in range(per_round)])
        assert drawn.shape == (count * per_round,)
        assert len(set(drawn.tolist()) & set(range(50))) == count * per_round
    again = Negatives(50, count, True, None).epoch(seeded())
    assert torch.equal(
        torch.cat([again.next(queries) for _ in range(3 * per_round)])[-count:], drawn[-count:]
    )


def test_negatives_of_each_query_are_uniform_on_all_but_the_answer():
    queries = torch.tensor([[0, 0, 0], [1, 1, 3], [2, 0, 5]])
    drawn = Negatives(6, 10_000, False, None).epoch(seeded()).next(queries)
    assert drawn.shape == (3, 10_000)
    for row, answer in zip(drawn, queries[:, 2].tolist(), strict=True):
        share = torch.bincount(row, minlength=6) / 10_000
        assert share[answer] == 0
        others = share[torch.arange(6) != answer]
        assert (others - 0.2).abs().max() < 5 * math.sqrt(0.2 * 0.8 / 10_000)


@pytest.mark.parametrize("reject", [False, True])
@pytest.mark.parametrize("candidates", ["shared", "each", "all"])
def test_the_answer_and_known_answers_do_not_compete(candidates, reject):
    triples = random_triples(60, 8, 2)
    queries = Queries(triples, 2, "both").epoch(seeded())[:30]
    facts = {tuple(fact) for fact in triples.tolist()}
    known = Known(triples, 8, 2) if reject else None
    count, shared = {"shared": (5, True), "each": (5, False), "all": (None, True)}[candidates]
    negatives = Negatives(8, count, shared, known)
    drawn = negatives.epoch(seeded()).next(queries)
    shown = (torch.arange(8) if drawn is None else drawn).expand(30, -1)
    scores = negatives.exclude(torch.zeros(shown.shape), queries, drawn)
    for row, (anchor, code, answer) in enumerate(queries.tolist()):
        for column, x in enumerate(shown[row].tolist()):
            fact = ((anchor, code, x) if code < 2 else (x, code - 2, anchor)) in facts
            away = x == answer or (reject and fact)
            assert (scores[row, column] == -torch.inf) == away
    # candidates that someone else has chosen may hold the answer
    if candidates == "each":
        scores = negatives.exclude(torch.zeros(30, 1), queries, queries[:, 2:])
        assert (scores == -torch.inf).all()
