"""Queries, negatives and losses."""

import math

import pytest
import torch

from jorth.kge.batches import Negatives, Queries, logistic, self_adversarial, softmax
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


def test_bernoulli_asks_where_there_are_many_answers():
    """Relation 0 has one head with 30 tails, relation 1 the reverse, relation 2 is one to one."""
    one, many = torch.zeros(30, dtype=torch.int64), torch.arange(30)
    triples = torch.cat(
        [
            torch.stack([a, torch.full((30,), r), b], 1)
            for r, (a, b) in enumerate([(one, many), (many, one), (many, many)])
        ]
    )
    for sides, expected in (("bernoulli", (30 / 31, 1 / 31, 0.5)), ("uniform", (0.5, 0.5, 0.5))):
        queries = Queries(triples, 3, sides)
        epochs = torch.cat([queries.epoch(seeded(seed)) for seed in range(100)])
        assert len(epochs) == 9000
        for r, share in enumerate(expected):
            tails, heads = int((epochs[:, 1] == r).sum()), int((epochs[:, 1] == r + 3).sum())
            assert tails + heads == 3000
            assert abs(tails / 3000 - share) < 4 * math.sqrt(
                share * (1 - share) / 3000
            )  # four standard deviations
        # a question for the head names the tail first
        backwards = epochs[epochs[:, 1] == 3 + 1]
        assert (backwards[:, 0] == 0).all()


def test_shapes_and_range():
    queries = random_triples(6, 50, 2)
    for count, shared, shape in ((7, True, (7,)), (7, False, (6, 7))):
        drawn = Negatives(50, count, shared, None).draw(queries, seeded())
        assert drawn.shape == shape
    many = Negatives(50, 2000, True, None).draw(queries, seeded())
    assert set(many.tolist()) == set(range(50))
    assert Negatives(50, None, True, None).draw(queries, seeded()) is None


@pytest.mark.parametrize("everything", [True, False])
def test_known_answers_are_left_out(everything):
    triples = random_triples(60, 8, 2)
    queries = Queries(triples, 2, "both").epoch(seeded())[:30]
    facts = {tuple(fact) for fact in triples.tolist()}
    negatives = Negatives(8, None if everything else 5, False, Known(triples, 8, 2))
    candidates = negatives.draw(queries, seeded())
    shown = torch.arange(8).expand(30, 8) if everything else candidates
    scores = negatives.leave_out(torch.zeros(shown.shape), queries, candidates)
    for row, (anchor, code, _) in enumerate(queries.tolist()):
        for column, x in enumerate(shown[row].tolist()):
            true = ((anchor, code, x) if code < 2 else (x, code - 2, anchor)) in facts
            assert (scores[row, column] == -torch.inf) == true


def test_without_rejection_only_the_answer_itself_is_none():
    queries = random_triples(5, 8, 2)
    everything = Negatives(8, None, True, None).leave_out(torch.zeros(5, 8), queries, None)
    assert torch.equal(everything.isinf().nonzero()[:, 1], queries[:, 2])
    drawn = Negatives(8, 20, False, None)
    assert (
        drawn.leave_out(torch.zeros(5, 20), queries, drawn.draw(queries, seeded())).isfinite().all()
    )


def test_losses_are_their_formulas():
    positive, negative = torch.randn(4, dtype=torch.float64), torch.randn(4, 3, dtype=torch.float64)
    s, log = torch.sigmoid, torch.log
    expected = -(log(s(positive)) + log(1 - s(negative)).sum(1)).mean()
    assert abs(logistic(positive, negative) - expected) < 1e-13
    weights = torch.softmax(2 * negative, 1)
    expected = -(log(s(positive)) + (weights * log(1 - s(negative))).sum(1)).mean()
    assert abs(self_adversarial(positive, negative, 2.0) - expected) < 1e-13
    both = torch.cat([positive[:, None], negative], 1)
    expected = torch.nn.functional.cross_entropy(both, torch.zeros(4, dtype=torch.int64))
    assert abs(softmax(positive, negative) - expected) < 1e-13


def test_self_adversarial_weights_carry_no_gradient():
    negative = torch.tensor([[0.3, -1.0]], dtype=torch.float64, requires_grad=True)
    self_adversarial(torch.zeros(1, dtype=torch.float64), negative).backward()
    weights = torch.softmax(negative.detach(), 1)
    assert torch.allclose(negative.grad, weights * torch.sigmoid(negative.detach()), rtol=1e-12)


@pytest.mark.parametrize("loss", [logistic, self_adversarial, softmax])
def test_what_is_left_out_has_no_part(loss):
    positive = torch.tensor([0.5, 2.0], requires_grad=True)
    negative = torch.tensor([[1.0, -torch.inf], [-torch.inf, -torch.inf]], requires_grad=True)
    value = loss(positive, negative)
    value.backward()
    alone = (
        loss(positive[:1], negative[:1, :1]) + loss(positive[1:], torch.full((1, 1), -1e9))
    ) / 2
    assert abs(value - alone) < 1e-6
    assert positive.grad.isfinite().all()
    assert (negative.grad.nan_to_num(7.0).ravel()[1:] == 0).all()


@pytest.mark.parametrize("loss", [logistic, self_adversarial, softmax])
def test_large_scores_do_not_overflow(loss):
    value = loss(torch.tensor([-1e4]), torch.tensor([[1e4, -1e4]]))
    assert value.isfinite()
    assert value > 1e4
