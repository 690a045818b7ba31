"""Ranking, against PyKEEN's RankBasedEvaluator and against counting by hand."""

import numpy as np
import pytest
import torch

from jorth.kge import Config, NamedModel, Training, evaluate
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


def round_scores(module, name):
    """Let a method of a module give scores in whole millionths."""
    method = getattr(module, name)
    setattr(module, name, lambda *args, **kwargs: torch.round(1e6 * method(*args, **kwargs)))


def anchor_filters(triples):
    """Triples whose filtering makes PyKEEN leave out the anchor of every query.

    (h, r, h) takes h off the tails of (h, r, ?), and (t, r, t) takes t off the heads of (?, r, t).
    Both queries of a triple (x, r, x) have the answer x, whose score PyKEEN restores.
    """
    h, r, t = triples.unbind(-1)
    return torch.unique(torch.cat([torch.stack([h, r, h], 1), torch.stack([t, r, t], 1)]), dim=0)


@pytest.mark.parametrize("exclude_anchor", [False, True])
@pytest.mark.parametrize("reciprocal", [False, True])
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("name", GRAPHS)
def test_equals_pykeen(name, tied, reciprocal, exclude_anchor):
    data = GRAPHS[name](create_inverse_triples=reciprocal)
    training, test = data.training, data.testing.mapped_triples[:200]
    test = torch.cat([test, test[:3, [0, 1, 0]]])  # with the anchor as the answer, known or not
    known = [training.mapped_triples, data.validation.mapped_triples, data.testing.mapped_triples]
    filters = [*known, anchor_filters(test)] if exclude_anchor else known
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
    ours = evaluate(model, test, torch.cat(known), exclude_anchor=exclude_anchor)
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


@pytest.mark.parametrize("exclude_anchor", [False, True])
@pytest.mark.parametrize("filtered", [False, True])
def test_counting_by_hand(filtered, exclude_anchor):
    """Whole scores with many ties, and -inf among them."""
    scores = np.random.default_rng(0).integers(4, size=(7, 2, 7)).astype(float)
    scores[scores == 0] = -np.inf
    facts = np.unique(random_triples(30, 7, 2).numpy(), axis=0)
    test, known = torch.from_numpy(facts[::3]), torch.from_numpy(facts)
    table = Table(torch.from_numpy(scores.copy()))
    options = dict(exclude_anchor=exclude_anchor, batch_size=4)
    found = evaluate(table, test, known if filtered else None, **options)
    assert np.array_equal(table.scores, scores)
    true = {tuple(fact) for fact in facts.tolist()} if filtered else set()
    for row, (h, r, t) in enumerate(test.tolist()):
        others = [set(range(7)) - ({anchor} if exclude_anchor else set()) for anchor in (t, h)]
        heads = [scores[x, r, t] for x in others[0] | {h} if x == h or (x, r, t) not in true]
        tails = [scores[h, r, x] for x in others[1] | {t} if x == t or (h, r, x) not in true]
        for side, candidates in enumerate((heads, tails)):
            assert found.optimistic[row, side] == 1 + sum(s > scores[h, r, t] for s in candidates)
            assert found.pessimistic[row, side] == sum(s >= scores[h, r, t] for s in candidates)


def test_breakdown_and_batches():
    model = scattered(30, 3)
    test = random_triples(50, 30, 3, seed=1)
    whole, small = evaluate(model, test, test), evaluate(model, test, test, batch_size=7)
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


def test_the_model_in_a_named_model_or_a_training():
    model, triples = scattered(9, 2), random_triples(20, 9, 2)
    named = NamedModel(model, tuple("abcdefghi"), ("r", "s"))
    training = Training(
        model,
        named.entities,
        named.relations,
        history={},
        best_epoch=1,
        message="",
        config=Config(),
    )
    wanted = evaluate(model, triples, triples).optimistic
    for holder in (named, training):
        assert np.array_equal(evaluate(holder, triples, triples).optimistic, wanted)
    nothing = NamedModel(None, (), ())
    for bad in (None, "model", {}, nothing, triples, type(model)):
        with pytest.raises(TypeError, match=r"model must be a jorth\.kge\.UltraE, a NamedModel"):
            evaluate(bad, triples)


def test_bad_input():
    model, test = scattered(5, 2), torch.tensor([[0, 1, 4]])
    with pytest.raises(
        TypeError, match=r"triples must be an int64 tensor \(N, 3\), got a torch.float32 tensor"
    ):
        evaluate(model, test.float())
    with pytest.raises(ValueError, match="triples must hold at least one"):
        evaluate(model, test[:0])
    with pytest.raises(ValueError, match="entities of known must be from 0 to 4, got 1 to 5"):
        evaluate(model, test, torch.tensor([[5, 0, 1]]))
    with torch.no_grad():
        model.bias[2] = torch.nan
    with pytest.raises(ValueError, match="must be numbers, got 1 NaN"):
        evaluate(model, test)
