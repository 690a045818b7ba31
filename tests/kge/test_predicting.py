"""`predict`, against scipy's softmax of scores of single triples."""

import numpy as np
import pytest
import torch
from scipy.special import softmax

from jorth.kge import NamedModel, predict
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
    with pytest.raises(TypeError, match=r"model.irreflexive must be a bool tensor \(3,\)"):
        predict(NamedModel(model(), NAMES, KINDS, irreflexive=mask[:2]), 0, 0)


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
    with pytest.raises(ValueError, match="one of head and tail must be given"):
        predict(own, "e1", "near", "e2")
    with pytest.raises(ValueError, match="one of head and tail must be given"):
        predict(own, relation="near")
    with pytest.raises(ValueError, match="head: there is no entity 'e33'; did you mean 'e3"):
        predict(own, "e33", "near")
    with pytest.raises(ValueError, match="there is no relation 'nera'; did you mean 'near'"):
        predict(own, "e3", "nera")
    with pytest.raises(ValueError, match="tail must be from 0 to 11, got 12"):
        predict(own, None, 0, 12)
    with pytest.raises(ValueError, match="head and relation must be equally many, or one; got 2"):
        predict(own, [1, 2], [0, 1, 2])
    with pytest.raises(TypeError, match=r"model must be a jorth\.kge\.NamedModel or"):
        predict("model", 1, 1)
    with torch.no_grad():
        own.model.bias[2] = torch.nan
    with pytest.raises(ValueError, match="must have scores that are numbers, got 1 NaN"):
        predict(own, 1, 1)
