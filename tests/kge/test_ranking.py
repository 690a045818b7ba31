"""Ranking, against PyKEEN's RankBasedEvaluator and against counting by hand."""

import numpy as np
import pytest
import torch

from jorth.kge import Frequencies, Triples, evaluate, ranking
from jorth.kge.ranking import SIDES, TIES
from tests.kge.models import random_triples, scattered
from tests.kge.real_data import folder

pytest.importorskip("pykeen")

from pykeen.datasets import UMLS, Kinships, Nations
from pykeen.datasets.base import PathDataset
from pykeen.evaluation import RankBasedEvaluator
from pykeen.metrics.ranking import HitsAtK, InverseHarmonicMeanRank

from jorth.adapters.pykeen import UltraE as PykeenUltraE


def mini(**options):
    path = folder("WN18RR-mini")
    return PathDataset(
        training_path=path / "train.txt",
        testing_path=path / "test.txt",
        validation_path=path / "test.txt",
        eager=True,
        **options,
    )


GRAPHS = {"nations": Nations, "kinships": Kinships, "umls": UMLS, "WN18RR-mini": mini}


def pykeen_metrics(evaluator, side, ties):
    """PyKEEN's metrics, computed from its ranks.

    Its realistic ranks are float32, which is exact, unlike the mean of their reciprocals.
    """
    sides = ("head", "tail") if side == "both" else (side,)
    ranks = np.concatenate(
        [part.astype(np.float64) for one in sides for part in evaluator.ranks[one, ties]]
    )
    hits = {f"hits@{k}": float(HitsAtK(k)(ranks)) for k in (1, 3, 10)}
    return {"mrr": float(InverseHarmonicMeanRank()(ranks)), **hits}


def facts_of(triples, factory):
    """A graph with the numbers of PyKEEN."""
    names = [
        [str(number) for number in range(count)]
        for count in (factory.num_entities, factory.real_num_relations)
    ]
    return Triples(*names, triples, triples[:0], triples[:0])


def round_scores(module, name):
    """Let a method of a module give scores in whole millionths."""
    method = getattr(module, name)
    setattr(module, name, lambda *args, **kwargs: torch.round(1e6 * method(*args, **kwargs)))


def anchor_filters(triples):
    """Triples whose filtering makes PyKEEN leave out the anchor of every query.

    (h, r, h) takes h off the tails of (h, r, ?), and (t, r, t) takes t off the heads of (?, r, t).
    """
    h, r, t = triples.unbind(-1)
    return torch.unique(torch.cat([torch.stack([h, r, h], 1), torch.stack([t, r, t], 1)]), dim=0)


@pytest.mark.parametrize("ruled", [False, True])
@pytest.mark.parametrize("reciprocal", [False, True])
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("name", GRAPHS)
def test_equals_pykeen(name, tied, reciprocal, ruled):
    data = GRAPHS[name](create_inverse_triples=reciprocal)
    training, test = data.training, data.testing.mapped_triples[:200]
    test = torch.cat([test, test[:3, [0, 1, 0]]])  # with the anchor as the answer, known or not
    known = [training.mapped_triples, data.validation.mapped_triples, data.testing.mapped_triples]
    # without a loop among the test triples, as PyKEEN restores the scores of all true answers
    graph = facts_of(torch.cat([training.mapped_triples, test]), training)
    rule = graph.irreflexive if ruled else None
    filters = [*known, anchor_filters(test[rule[test[:, 1]]])] if ruled else known
    model = scattered(training.num_entities, training.real_num_relations, reciprocal=reciprocal)
    # a third of the entities at one point, the next third at another: equal scores in every row
    if tied:
        third = training.num_entities // 3
        with torch.no_grad():
            for first in (0, third):
                model.points[first : first + third] = model.points[first].clone()
                model.bias[first : first + third] = model.bias[first].clone()
    evaluator = RankBasedEvaluator(clear_on_finalize=False)
    pykeen_model = PykeenUltraE.from_jorth(model, training, random_seed=0)
    # to the bit: a product rounds equal columns differently, depending on where they stand
    if tied:
        round_scores(pykeen_model.interaction, "forward")
        for name in ("score_heads", "score_tails"):
            round_scores(model, name)
    theirs = evaluator.evaluate(
        pykeen_model, test, additional_filter_triples=filters, batch_size=64, use_tqdm=False
    )
    ours = evaluate(model, test, torch.cat(known), irreflexive=rule)
    assert tied == (
        ours.metrics(ties="optimistic")["mrr"] > ours.metrics(ties="pessimistic")["mrr"] + 0.01
    )
    for side in SIDES:
        for ties in TIES:
            expected, found = pykeen_metrics(evaluator, side, ties), ours.metrics(side, ties)
            for key, value in expected.items():
                assert abs(found[key] - value) <= 1e-12, (side, ties, key)
            final = theirs.get_metric(f"{side}.{ties}.mrr")
            assert abs(found["mrr"] - final) < (
                1e-6 if ties == "realistic" else 1e-12
            )  # float32 there
    assert ours.mrr == ours.metrics()["mrr"]
    assert ours.hits(3) == ours.metrics()["hits@3"]


class Table:
    """Scores from a table (entities, relations, entities)."""

    def __init__(self, scores):
        self.scores = scores
        self.n_entities, self.n_relations = scores.shape[:2]

    def score_tails(self, head, relation):
        return self.scores[head, relation]

    def score_heads(self, relation, tail):
        return self.scores[:, relation, tail].T


@pytest.mark.parametrize("rule", [None, [True, False], [True, True]], ids=str)
@pytest.mark.parametrize("filtered", [False, True])
def test_counting_by_hand(filtered, rule, monkeypatch):
    """Whole scores with many ties, and -inf among them; loops, also of irreflexive relations."""
    scores = np.random.default_rng(0).integers(4, size=(7, 2, 7)).astype(float)
    scores[scores == 0] = -np.inf
    loops = [[0, 0, 0], [5, 1, 5], [6, 0, 6]]
    facts = np.unique([*random_triples(30, 7, 2).tolist(), *loops], axis=0)
    test = torch.tensor([*facts[::3].tolist(), *loops])
    known = torch.from_numpy(facts)
    table = Table(torch.from_numpy(scores.copy()))
    mask = None if rule is None else torch.tensor(rule)
    monkeypatch.setattr(ranking, "SCORES_ON_CPU", 4 * 7)
    found = evaluate(table, test, known if filtered else None, irreflexive=mask)
    assert np.array_equal(table.scores, scores)
    true = {tuple(fact) for fact in facts.tolist()} if filtered else set()
    for row, (h, r, t) in enumerate(test.tolist()):
        barred = rule is not None and rule[r]
        for side, (anchor, answer) in enumerate([(t, h), (h, t)]):
            facts_to = [(x, r, t) if side == 0 else (h, r, x) for x in range(7)]
            others = [
                scores[facts_to[x]]
                for x in range(7)
                if x != answer and facts_to[x] not in true and not (barred and x == anchor)
            ]
            above = sum(s > scores[h, r, t] for s in others)
            level = sum(s == scores[h, r, t] for s in others)
            if barred and h == t:  # behind all others, whatever its score
                level = others.count(-np.inf)
                above = len(others) - level
            assert found.optimistic[row, side] == 1 + above
            assert found.pessimistic[row, side] == 1 + above + level


def test_relations_that_are_irreflexive():
    train = [[0, 0, 1], [0, 1, 1], [2, 1, 2], [1, 3, 0]]
    graph = Triples(tuple("abc"), tuple("rstu"), train, [[1, 0, 1]], [[1, 2, 2]])
    # s has a loop; t is not in training; the loop of r is not in training
    assert graph.irreflexive.tolist() == [True, False, False, True]


@pytest.mark.parametrize("filtered", [False, True])
def test_the_most_frequent_answers(filtered):
    facts = np.unique(random_triples(60, 7, 3).numpy(), axis=0)
    facts = np.concatenate([facts[facts[:, 1] < 2], [[0, 2, 1]]])  # nearly nothing of the last one
    train, test = facts[::2], torch.from_numpy(np.concatenate([facts[1::2], [[3, 2, 4]]]))
    graph = Triples(tuple("abcdefg"), tuple("rst"), train, test[:0], test)
    heads, tails = np.zeros((2, 3, 7))
    for h, r, t in train.tolist():
        heads[r, h] += 1
        tails[r, t] += 1
    counts = Table(torch.zeros(7, 3, 7))
    counts.score_heads = lambda r, t: torch.from_numpy(heads)[r]
    counts.score_tails = lambda h, r: torch.from_numpy(tails)[r]
    known = graph.known if filtered else None
    for rule in (None, graph.irreflexive):
        found = evaluate(Frequencies(graph), test, known, irreflexive=rule)
        wanted = evaluate(counts, test, known, irreflexive=rule)
        assert np.array_equal(found.optimistic, wanted.optimistic)
        assert np.array_equal(found.pessimistic, wanted.pessimistic)
    with pytest.raises(TypeError, match=r"graph must be a jorth\.kge\.Triples"):
        Frequencies(graph.train)


def test_breakdown_and_batches(monkeypatch):
    model = scattered(30, 3)
    test = random_triples(50, 30, 3, seed=1)
    whole = evaluate(model, test, test)
    with monkeypatch.context() as patch:
        patch.setattr(ranking, "SCORES_ON_CPU", 7 * 30)
        small = evaluate(model, test, test)
    assert np.array_equal(whole.optimistic, small.optimistic)
    # what is ranked is known, whether it is among ``known`` or not
    assert np.array_equal(whole.optimistic, evaluate(model, test, test[:1]).optimistic)
    assert not np.array_equal(whole.optimistic, evaluate(model, test).optimistic)
    parts = whole.by_relation(["a", "b", "c"])
    assert set(parts) == {"a", "b", "c"}
    assert sum(len(part.triples) for part in parts.values()) == 50
    mean = sum(part.metrics("head")["mrr"] * len(part.triples) for part in parts.values()) / 50
    assert abs(mean - whole.metrics("head")["mrr"]) < 1e-14
    assert whole.metrics("head") != whole.metrics("tail")
    assert whole.metrics()["count"] == 100
    assert set(whole.by_relation()) == {0, 1, 2}


def test_bad_input():
    model, test = scattered(5, 2), torch.tensor([[0, 1, 4]])
    with pytest.raises(
        TypeError, match=r"triples must be an int64 tensor \(N, 3\), got a torch.float32 tensor"
    ):
        evaluate(model, test.float())
    with pytest.raises(ValueError, match="triples must hold at least one"):
        evaluate(model, test[:0])
    with pytest.raises(ValueError, match="entities of known must be from 0 to 4, got 0 to 5"):
        evaluate(model, test, torch.tensor([[5, 0, 1]]))
    for bad in (True, [True, False], torch.ones(2), torch.ones(3, dtype=torch.bool)):
        with pytest.raises(TypeError, match=r"irreflexive must be a torch.bool tensor \(2,\), got"):
            evaluate(model, test, irreflexive=bad)
    with torch.no_grad():
        model.bias[2] = torch.nan
    with pytest.raises(ValueError, match="must be numbers, got 1 NaN"):
        evaluate(model, test)
