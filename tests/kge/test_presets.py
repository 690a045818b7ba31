"""Settings by name, and sizes that are chosen for the graph."""

from dataclasses import asdict, replace

import pytest
import torch

from jorth.kge import Config, Triples, evaluate, hierarchy_with_cycles, train

SIZES = ("epochs", "batch_size", "large_batch", "evaluate_every")
OPEN = ("p", *SIZES, "smoothing", "negatives", "regularisation")


def graph_of(entities, triples, seed=0):
    """A graph with three relations and the given numbers of entities and training triples."""
    random = torch.Generator().manual_seed(seed)
    train_triples = torch.stack(
        [torch.randint(size, (triples,), generator=random) for size in (entities, 3, entities)], 1
    )
    names = tuple(map(str, range(entities)))
    return Triples(names, ("a", "b", "c"), train_triples, train_triples[:9], train_triples[9:18])


def test_a_preset_is_changed_by_name():
    assert Config.preset("default") == Config()
    preset = Config.preset("FB15k-237")
    assert Config.preset("FB15k-237", epochs=3) == replace(preset, epochs=3)
    with pytest.raises(ValueError, match=r'preset must be one of "default", "WN18RR", '):
        Config.preset("best")


def test_options_of_a_preset_hold_for_its_own_optimiser():
    own = {"max_norm": 100.0}
    assert Config.preset("FB15k-237", method="vr-j-jobcd").relation_options == own
    assert Config.preset("FB15k-237", method="csdm").relation_options == {}
    given = {"betas": (0.8, 0.9)}
    changed = Config.preset("FB15k-237", method="csdm", relation_options=given)
    assert changed.relation_options == given


@pytest.mark.parametrize(
    ("entities", "triples", "batch", "epochs", "negatives"),
    [
        (30, 90, 64, 200, "all"),
        (121, 580, 64, 105, "all"),
        (14, 1600, 160, 100, "all"),
        (2000, 5000, 500, 100, "all"),
        (41000, 87000, 1024, 100, 4096),
    ],
)
def test_sizes_follow_the_graph(entities, triples, batch, epochs, negatives):
    graph = graph_of(entities, triples)
    fitted = Config().fitted(graph)
    assert (fitted.batch_size, fitted.epochs, fitted.negatives) == (batch, epochs, negatives)
    assert fitted == Config().fitted(graph_of(entities, triples, seed=1))
    assert fitted.fitted(graph) == fitted
    changed = [name for name, value in asdict(Config()).items() if getattr(fitted, name) != value]
    assert sorted(changed) == sorted(OPEN)
    assert fitted.smoothing == (0.25 if negatives == "all" else 0.1)
    assert fitted.large_batch == 8 * batch
    assert fitted.p == (13 if entities == 14 else 29 if entities == 30 else 31)
    assert 12 <= epochs / fitted.evaluate_every < 14


@pytest.mark.parametrize("seed", [0, 1])
def test_defaults_learn_a_graph(seed):
    graph = hierarchy_with_cycles(depth=3, seed=seed)
    n = len(graph.entities)
    chance = sum(1 / rank for rank in range(1, n + 1)) / n
    assert chance < 0.11
    result = train(graph)
    assert evaluate(result.model, graph.test, graph.known).mrr > 0.5  # measured: 0.89 to 0.94
    assert evaluate(result.model, graph.train, graph.known).mrr > 0.9  # measured: 1
