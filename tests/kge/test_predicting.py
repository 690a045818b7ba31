"""`predict`, against scipy's softmax of scores of single triples."""

import numpy as np
import pytest
import torch
from scipy.special import softmax

from jorth.kge import NamedModel, evaluate, predict
from tests.kge.models import random_triples, scattered

ENTITIES, RELATIONS = 12, 3
NAMES = [f"e{k}" for k in range(ENTITIES)]
KINDS = ["likes", "near", "part_of"]


def model(**options):
    return scattered(ENTITIES, RELATIONS, **options)


def named(**options):
    return NamedModel(model(**options), NAMES, KINDS)


def scores_of(own, anchor, code):
    """Scores of all answers to one query, a triple at a time."""
    with torch.no_grad():
        return np.array([own(torch.tensor([anchor, code, e])).item() for e in range(ENTITIES)])


def wanted(own, anchor, code, k, without=()):
    scores = scores_of(own, anchor, code)
    shares = softmax(scores)
    order = [e for e in np.argsort(-scores) if e not in without][:k]
    return [(NAMES[e], scores[e], shares[e]) for e in order]


def same(found, expected):
    assert [answer.entity for answer in found] == [name for name, *_ in expected]
    ours = [(answer.score, answer.probability) for answer in found]
    np.testing.assert_allclose(ours, [row[1:] for row in expected], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("options", [{}, {"reciprocal": True}], ids=str)
def test_tails_and_heads(options):
    own = named(**options)
    same(predict(own, "e3", "near", k=5), wanted(own.model, 3, 1, 5))
    same(predict(own, relation="near", tail="e3", k=5), wanted(own.model, 3, 1 + RELATIONS, 5))
    same(predict(own, None, 2, 7, k=4), wanted(own.model, 7, 2 + RELATIONS, 4))
    every = predict(own, "e3", "near", k=1000)
    assert len(every) == ENTITIES
    assert sum(answer.probability for answer in every) == pytest.approx(1, abs=1e-14)


def test_known_answers_are_left_out_and_keep_their_share():
    own, known = named(), random_triples(80, ENTITIES, RELATIONS, seed=1)
    facts = {tuple(fact) for fact in known.tolist()}
    for h, r, t in known[:3].tolist():
        tails = {e for e in range(ENTITIES) if (h, r, e) in facts}
        heads = {e for e in range(ENTITIES) if (e, r, t) in facts}
        assert t in tails
        assert h in heads
        found = predict(own, h, r, k=ENTITIES, known=known)
        same(found, wanted(own.model, h, r, ENTITIES, tails))
        assert len(found) == ENTITIES - len(tails)
        found = predict(own, None, r, t, k=3, known=known)
        same(found, wanted(own.model, t, r + RELATIONS, 3, heads))
    assert predict(own, 0, 0, known=known[:0]) == predict(own, 0, 0)


def alike(found, expected):
    """Answers to the same queries: products of other shapes round differently."""
    for ours, theirs in zip(found, expected, strict=True):
        same(ours, theirs)


def test_no_entity_answers_its_own_query_of_an_irreflexive_relation():
    mask = torch.tensor([False, True, False])
    own = NamedModel(model(), NAMES, KINDS, irreflexive=mask)
    scores = scores_of(own.model, 3, 1)
    scores[3] = -np.inf
    shares = softmax(scores)
    found = predict(own, "e3", "near", k=ENTITIES)
    expected = [(NAMES[e], scores[e], shares[e]) for e in np.argsort(-scores)[:-1]]
    same(found, expected)
    assert "e3" not in [answer.entity for answer in predict(own, None, 1, "e3", k=ENTITIES)]
    same(predict(own, "e3", "likes", k=ENTITIES), wanted(own.model, 3, 0, ENTITIES))
    both = predict(own, "e3", KINDS, k=ENTITIES)
    assert [len(answers) for answers in both] == [ENTITIES, ENTITIES - 1, ENTITIES]
    assert len(predict(own, 3, 1, k=ENTITIES, known=torch.tensor([[3, 1, 3]]))) == ENTITIES - 1
    with pytest.raises(TypeError, match=r"irreflexive must be a torch.bool tensor \(3,\)"):
        predict(NamedModel(model(), NAMES, KINDS, irreflexive=mask[:2]), 0, 0)


COUNTS = torch.tensor([5, 40, 2])


def judged(own, h, r, t, facts=(), barred=False):
    """Score and ranks of a triple, from the scores of all triples with one other end."""
    ends = []
    for anchor, code, answer, fact in (
        (t, r + RELATIONS, h, lambda x: (x, r, t)),
        (h, r, t, lambda x: (h, r, x)),
    ):
        scores = scores_of(own, anchor, code)
        if barred:
            scores[anchor] = -np.inf
        others = [x for x in range(ENTITIES) if fact(x) not in facts and x != answer]
        rank = 1 + sum(scores[x] > scores[answer] for x in others)
        ends.append((np.log(softmax(scores)[answer]), rank))
    return sum(end[0] for end in ends) + np.log(COUNTS[r].item()), [end[1] for end in ends]


@pytest.mark.parametrize("filtered", [False, True])
@pytest.mark.parametrize("reciprocal", [False, True])
def test_triples(filtered, reciprocal):
    mask = torch.tensor([False, True, False])
    own = model(reciprocal=reciprocal)
    whole = NamedModel(own, NAMES, KINDS, irreflexive=mask, frequencies=COUNTS)
    triples = random_triples(40, ENTITIES, RELATIONS, seed=2)
    triples = triples[triples[:, 0] != triples[:, 2]]
    known = triples if filtered else None
    facts = set(map(tuple, triples.tolist())) if filtered else set()
    asked = triples[::4].tolist()
    h, r, t = zip(*asked, strict=True)
    found = predict(whole, h, r, t, known=known)
    for fact, triple in zip(found, asked, strict=True):
        score, ranks = judged(own, *triple, facts, bool(mask[triple[1]]))
        np.testing.assert_allclose(fact.score, score, rtol=1e-10)
        assert [fact.head_rank, fact.tail_rank] == ranks
    assert evaluate(whole, triples[::4], known, irreflexive=mask).optimistic.tolist() == [
        [fact.head_rank, fact.tail_rank] for fact in found
    ]
    (one,) = predict(whole, NAMES[h[0]], KINDS[r[0]], [NAMES[t[0]]], known=known)
    np.testing.assert_allclose(one, found[0], rtol=1e-10)
    single = predict(whole, h[0], r[0], t[0], known=known)
    np.testing.assert_allclose(single, found[0], rtol=1e-10)
    # a loop of an irreflexive relation is behind everything
    assert predict(whole, "e3", "near", "e3") == (-np.inf, ENTITIES, ENTITIES)
    assert predict(whole, [], "near", "e3") == []


def test_relations():
    own, mask = model(), torch.tensor([False, True, False])
    whole = NamedModel(own, NAMES, KINDS, irreflexive=mask, frequencies=COUNTS)
    rows = predict(whole, [1, 5], None, [2, 0])
    for row, (h, t) in zip(rows, ((1, 2), (5, 0)), strict=True):
        scores = np.array([judged(own, h, r, t, barred=r == 1)[0] for r in range(RELATIONS)])
        order = np.argsort(-scores)
        assert [link.relation for link in row] == [KINDS[r] for r in order]
        np.testing.assert_allclose([link.score for link in row], scores[order], rtol=1e-10)
        shares = [link.probability for link in row]
        np.testing.assert_allclose(shares, softmax(scores)[order], rtol=1e-10)
        few = predict(whole, NAMES[h], None, NAMES[t], k=2)
        assert [link.relation for link in few] == [KINDS[r] for r in order[:2]]
        left = predict(whole, h, tail=t, known=torch.tensor([[h, order[0], t]]))
        assert [link.relation for link in left] == [KINDS[r] for r in order[1:]]
    loops = predict(whole, 4, tail=4)
    assert {link.relation for link in loops} == {"likes", "part_of"}
    assert sum(link.probability for link in loops) == pytest.approx(1, abs=1e-12)
    # without frequencies all relations are equally frequent
    plain = {link.relation: link.score for link in predict(named(), 1, tail=2)}
    for r, kind in enumerate(KINDS):
        expected = judged(own, 1, r, 2)[0] - np.log(COUNTS[r].item())
        assert plain[kind] == pytest.approx(expected, rel=1e-10)


def test_several_queries():
    own = named()
    both = predict(own, ["e1", "e2"], "near", k=3)
    alike(both, [predict(own, "e1", "near", k=3), predict(own, "e2", "near", k=3)])
    pairs = predict(own, None, ["likes", 2], np.array([4, 5]), k=3)
    alike(pairs, [predict(own, None, 0, "e4", k=3), predict(own, None, "part_of", 5, k=3)])
    alike(predict(own, "e1", KINDS, k=2)[2:], [predict(own, "e1", "part_of", k=2)])
    alike(predict(own, torch.tensor([1]), "near", k=3), both[:1])
    assert predict(own, [], "near") == []


def test_bad_input():
    own = named()
    for given, got in ({"relation": "near"}, "relation"), ({"tail": [1]}, "tail"), ({}, "none"):
        with pytest.raises(ValueError, match=f"at least two of head, .* given, got {got}"):
            predict(own, **given)
    with pytest.raises(ValueError, match=r"head, relation, tail must be .* got 2, 1, 3"):
        predict(own, [1, 2], "near", [1, 2, 3])
    with pytest.raises(ValueError, match="head: there is no entity 'e33'; did you mean 'e3"):
        predict(own, "e33", "near")
    with pytest.raises(ValueError, match="there is no relation 'nera'; did you mean 'near'"):
        predict(own, "e3", "nera")
    with pytest.raises(ValueError, match="tail must be from 0 to 11, got 12"):
        predict(own, None, 0, 12)
    with pytest.raises(ValueError, match="head, relation must be equally many, or one; got 2"):
        predict(own, [1, 2], [0, 1, 2])
    with pytest.raises(TypeError, match=r"model must be a jorth\.kge\.NamedModel or"):
        predict("model", 1, 1)
    with torch.no_grad():
        own.model.bias[2] = torch.nan
    with pytest.raises(ValueError, match="scores of the model must be numbers, got 1 NaN"):
        predict(own, 1, 1)
