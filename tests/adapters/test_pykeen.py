import pickle
from copy import deepcopy

import pytest
import torch

import jorth
from tests.kge.models import SIGNATURE, scattered

pytest.importorskip("pykeen")

from pykeen.datasets import Nations
from pykeen.hpo import hpo_pipeline
from pykeen.pipeline import pipeline
from pykeen.utils import NoRandomSeedNecessary

from jorth.adapters.pykeen import JOrthogonalRepresentation, UltraE


def both_models(reciprocal):
    factory = Nations(create_inverse_triples=reciprocal).training
    ours = scattered(
        factory.num_entities,
        factory.real_num_relations,
        reciprocal=reciprocal,
        alpha=1.3,
        delta=2.0,
    )
    return ours, UltraE.from_jorth(ours, factory, random_seed=0), factory


@pytest.mark.parametrize("reciprocal", [False, True])
def test_scores_agree(reciprocal):
    ours, theirs, factory = both_models(reciprocal)
    h, r, t = factory.mapped_triples[:20].unbind(-1)
    if reciprocal:
        assert int(r.max()) < ours.n_relations
    tails = theirs.predict_t(torch.stack([h, r], 1))
    assert torch.allclose(tails, ours.score_tails(h, r), rtol=0, atol=1e-10)
    heads = theirs.predict_h(torch.stack([r, t], 1))
    assert torch.allclose(heads, ours.score_heads(r, t), rtol=0, atol=1e-10)
    if not reciprocal:
        scores = theirs.predict_hrt(torch.stack([h, r, t], 1))[:, 0]
        assert torch.allclose(scores, ours(torch.stack([h, r, t], 1)), rtol=0, atol=1e-10)


def with_negatives(positive, others):
    """With 8 ``others`` for every triple: 4 in place of its head, then 4 in place of its tail."""
    negative = positive.repeat_interleave(8, dim=0)
    places = torch.arange(len(negative))
    negative[places, places // 4 % 2 * 2] = others
    return torch.cat([positive, negative])


@pytest.mark.parametrize("signature", [SIGNATURE, jorth.Signature(5, 1), jorth.Signature(3, 4)])
@pytest.mark.parametrize("inverse", [False, True])
def test_scores_and_slopes_are_those_of_the_interaction(inverse, signature):
    """Those of PyKEEN's own score_hrt, which has a matrix for every triple."""
    factory = Nations(create_inverse_triples=inverse).training
    model = UltraE(triples_factory=factory, signature=signature, alpha=1.2, spread=0.5).double()
    seeded = torch.Generator().manual_seed(0)
    with torch.no_grad():
        model.relation_representations[0].weight.normal_(0, 0.3, generator=seeded)
        model.entity_representations[1]._embeddings.weight.normal_(generator=seeded)
    positive = factory.mapped_triples[::50].clone()
    positive[:, 1] = torch.randint(factory.num_relations, (len(positive),), generator=seeded)
    others = torch.randint(factory.num_entities, (8 * len(positive),), generator=seeded)
    triples = with_negatives(positive, others)
    triples = torch.cat([triples, triples[:3, [0, 1, 0]]])
    assert (int(triples[:, 1].max()) >= factory.real_num_relations) == inverse
    weights = torch.randn(len(triples), 1, generator=seeded, dtype=torch.float64)
    found = []
    for score in (model.score_hrt, super(UltraE, model).score_hrt):
        scores = score(triples)
        slopes = torch.autograd.grad((weights * scores).sum(), list(model.parameters()))
        found.append((scores.detach(), *slopes))
    for ours, expected in zip(*found, strict=True):
        assert ours.shape == expected.shape
        assert torch.allclose(ours, expected, rtol=0, atol=1e-10 * expected.abs().max())


def small_model(**options):
    options = {"signature": SIGNATURE, "spread": 0.5, "random_seed": 0} | options
    return UltraE(triples_factory=Nations().training, **options).double()


def test_pipeline_trains_and_evaluates():
    result = pipeline(
        dataset="nations",
        model=UltraE,
        model_kwargs=dict(signature=jorth.Signature(6, 2)),
        optimizer_kwargs=dict(lr=0.03),
        loss="crossentropy",
        training_loop="lcwa",
        training_kwargs=dict(num_epochs=8, use_tqdm=False),
        evaluator_kwargs=dict(batch_size=64),
        evaluation_kwargs=dict(use_tqdm=False),
        random_seed=0,
        device="cpu",
    )
    assert result.losses[-1] < 0.95 * result.losses[0]
    # by chance: (1 + 1/2 + ... + 1/14) / 14 = 0.23
    assert result.get_metric("both.realistic.mrr") > 0.3
    isometries = result.model.relation_representations[0]
    R = isometries().detach()
    assert (torch.linalg.matrix_norm(R - isometries.base, ord=2) > 0.05).all()
    assert jorth.residual(R, jorth.Signature(6, 2)).max() < 100 * 8 * 2.0**-24


def test_a_trained_model_is_saved(tmp_path):
    result = pipeline(
        dataset="nations",
        model=UltraE,
        model_kwargs=dict(signature=jorth.Signature(3, 2)),
        training_loop="lcwa",
        training_kwargs=dict(num_epochs=1, use_tqdm=False),
        evaluation_kwargs=dict(use_tqdm=False),
        random_seed=0,
        device="cpu",
    )
    result.save_to_directory(tmp_path)
    triples = Nations().training.mapped_triples[:40]
    expected = result.model.score_hrt(triples)
    loaded = torch.load(tmp_path / "trained_model.pkl", weights_only=False)
    for copy in (loaded, pickle.loads(pickle.dumps(result.model)), deepcopy(result.model)):
        assert torch.equal(copy.score_hrt(triples), expected)
        copy.reset_parameters_()
        assert not torch.allclose(copy.score_hrt(triples), expected)


def start(**options):
    """The points and the matrices that a model starts with."""
    model = small_model(**options)
    return model.entity_representations[0]().detach(), model.relation_representations[0]().detach()


def test_seeds_of_the_start():
    """One seed, one start: PyKEEN's unless there is an explicit one, else by torch's generator."""

    def same(one, two):
        found = {torch.equal(x, y) for x, y in zip(one, two, strict=True)}
        assert len(found) == 1
        return found.pop()

    first = start(random_seed=1)
    assert same(first, start(random_seed=1))
    assert not same(first, start(random_seed=2))
    assert same(first, start(random_seed=2, seed=1))
    for absent in (None, NoRandomSeedNecessary):
        torch.manual_seed(0)
        drawn = start(random_seed=absent)
        assert not same(drawn, start(random_seed=absent))
        torch.manual_seed(0)
        assert same(drawn, start(random_seed=absent))


def test_a_model_of_jorth_is_the_start_of_training():
    """PyKEEN's loops reset the parameters, and then write to them."""
    theirs, factory = both_models(False)[1:]
    triples = factory.mapped_triples[:40]
    expected = theirs.score_hrt(triples).detach()
    for _ in range(2):
        with torch.no_grad():
            for parameter in theirs.parameters():
                parameter.add_(0.1)
        assert not torch.allclose(theirs.score_hrt(triples), expected)
        theirs.reset_parameters_()
        assert torch.equal(theirs.score_hrt(triples), expected)


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("start", ["shared", "separate", "identity"])
def test_the_start_is_that_of_jorth(inverse, start):
    """Also the start to which PyKEEN's training loops reset."""
    factory = Nations(create_inverse_triples=inverse).training
    options = dict(signature=SIGNATURE, spread=0.5, start=start, seed=3)
    ours = jorth.kge.UltraE(
        factory.num_entities, factory.real_num_relations, reciprocal=inverse, **options
    )
    theirs = UltraE(triples_factory=factory, random_seed=0, **options).double()
    with torch.no_grad():
        theirs.relation_representations[0].weight.fill_(1.0)
    theirs.reset_parameters_()
    points, matrices = theirs.entity_representations[0](), theirs.relation_representations[0]()
    assert torch.allclose(points, ours.points, rtol=0, atol=1e-6)
    assert torch.allclose(matrices, ours.relations, rtol=0, atol=1e-6)
    assert torch.equal(matrices, torch.eye(SIGNATURE.n).expand_as(matrices)) == (
        start == "identity"
    )


def test_base_is_checked_and_comes_before_start():
    n = SIGNATURE.n
    base = torch.as_tensor(jorth.random_point(SIGNATURE, batch=(55,), seed=0))
    assert torch.equal(start(base=base, start="shared")[1], base)
    refused = r"base must be J-orthogonal for .*, got a scaled residual of"
    wrong = base.clone()
    wrong[7] *= 1 + 1e-6
    for bad in (torch.ones(55, n, n), wrong):
        with pytest.raises(ValueError, match=refused):
            small_model(base=bad)
        with pytest.raises(ValueError, match=refused):
            JOrthogonalRepresentation(55, signature=SIGNATURE, base=bad)


def test_another_graph_is_refused():
    ours = scattered(5, 2)
    with pytest.raises(
        ValueError,
        match=r"triples_factory must have \(5, 2\) entities and relations .*got \(14, 55\)",
    ):
        UltraE.from_jorth(ours, Nations().training)


@pytest.mark.filterwarnings("ignore")  # PyKEEN's and optuna's own
def test_hyperparameters_are_searched_by_name():
    found = hpo_pipeline(
        dataset="nations",
        model="UltraE",
        n_trials=2,
        training_kwargs={"num_epochs": 1, "use_tqdm": False},
        evaluation_kwargs={"use_tqdm": False},
        stopper="nop",
        device="cpu",
        save_model_directory=None,
    )
    assert {trial.state.name for trial in found.study.trials} == {"COMPLETE"}
    assert "model.embedding_dim" in found.study.best_params


def test_a_model_that_has_learned_loops_comes_with_a_warning():
    ours, _, factory = both_models(False)
    with torch.no_grad():
        ours.loops[0] = -3.0
    with pytest.warns(RuntimeWarning, match=r"PyKEEN does not know the loops of model"):
        UltraE.from_jorth(ours, factory, random_seed=0)
