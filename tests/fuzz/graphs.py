"""Knowledge graphs: right calls and what their answers are."""

from __future__ import annotations

import atexit
import importlib.util
import os
import shutil
import tempfile
from pathlib import Path

import numpy as np
import torch

import jorth
from jorth import Signature, kge
from tests.fuzz.calls import Call
from tests.fuzz.mutations import As
from tests.fuzz.oracles import close, exact, feasible, signs, size

SIG = Signature.of([1, -1, 1, -1])
N = SIG.n
GRAPH = kge.hierarchy_with_cycles(branching=3, depth=2)
ENTITIES, RELATIONS = len(GRAPH.entities), len(GRAPH.relations)


# -- UltraE


def model():
    return kge.UltraE(ENTITIES, RELATIONS, signature=SIG, seed=2)


def made(**given):
    found = kge.UltraE(**given)
    return found.points.detach(), found.relations.detach(), found.bias.detach()


def check_made(result, given):
    points, relations, bias = result
    assert points.shape == (given["entities"], given["signature"].n)
    assert bias.shape == (given["entities"],)
    assert len(relations) == given["relations"] * (2 if given["reciprocal"] else 1)
    assert points.dtype == given["dtype"]
    feasible(relations, given["signature"])


def wanted_score(heads, relations, tails):
    """-d^2(R E_h, E_t) + 5 from the definition, with R J-orthogonal."""
    own = model()
    heads, relations, tails = (np.asarray(index).astype(int) for index in (heads, relations, tails))
    E, R, s = exact(own.embeddings()), exact(own.relations), signs(SIG)
    moved = (R[relations] @ E[heads][..., None])[..., 0]
    g = np.abs((moved * s * E[tails]).sum(axis=-1))
    arc = np.where(g >= 1, np.arccosh(np.maximum(g, 1)), np.arccos(np.minimum(g, 1)))
    return 5 - arc * arc


def scored(triples):
    return model()(triples).detach()


def check_scored(result, given):
    triples = np.asarray(given["triples"])
    wanted = wanted_score(triples[..., 0], triples[..., 1], triples[..., 2])
    close(result, wanted, 5 + size(wanted), 1e-6)


def scored_tails(head, relation):
    return model().score_tails(head, relation).detach()


def check_tails(result, given):
    head, relation = np.asarray(given["head"]), np.asarray(given["relation"])
    wanted = wanted_score(head[:, None], relation[:, None], np.arange(ENTITIES)[None])
    close(result, wanted, 5 + size(wanted), 1e-6)


def scored_heads(relation, tail):
    return model().score_heads(relation, tail).detach()


def check_heads(result, given):
    tail, relation = np.asarray(given["tail"]), np.asarray(given["relation"])
    wanted = wanted_score(np.arange(ENTITIES)[None], relation[:, None], tail[:, None])
    close(result, wanted, 5 + size(wanted), 1e-6)


def some_triples(rng):
    return GRAPH.train[torch.from_numpy(rng.integers(len(GRAPH.train), size=4))]


# -- evaluation


def ranked(triples, known, exclude_anchor, batch_size):
    found = kge.evaluate(
        model(), triples, known, exclude_anchor=exclude_anchor, batch_size=batch_size
    )
    return found.ranks("tail", "pessimistic")


def check_ranked(result, given):
    triples = np.asarray(given["triples"])
    wanted = []
    known = {tuple(row) for row in triples.tolist()}
    known |= (
        set()
        if given["known"] is None
        else {tuple(row) for row in np.asarray(given["known"]).tolist()}
    )
    for h, r, t in triples.tolist():
        scores = wanted_score(np.full(ENTITIES, h), np.full(ENTITIES, r), np.arange(ENTITIES))
        others = [
            e
            for e in range(ENTITIES)
            if e != t
            and (given["known"] is None or (h, r, e) not in known)
            and not (given["exclude_anchor"] and e == h)
        ]
        wanted.append(1 + sum(scores[e] >= scores[t] for e in others))
    assert np.abs(np.array(wanted) - result).max(initial=0) <= 1  # scores may be equal to rounding


def ranking_figures(side, ties):
    return kge.evaluate(model(), GRAPH.valid, GRAPH.known).metrics(side, ties)


def check_figures(result, given):
    assert 0 < result["mrr"] <= 1
    assert result["hits@1"] <= result["hits@3"] <= result["hits@10"]


def ranking_hits(k):
    return kge.evaluate(model(), GRAPH.valid, GRAPH.known).hits(k)


def check_hits(result, given):
    assert 0 <= result <= 1


# -- use of a model


def named():
    return kge.NamedModel(model(), GRAPH.entities, GRAPH.relations)


def numbers_of(names, keys):
    """The numbers of one key or of several, and whether there are several."""
    several = isinstance(keys, (list, tuple)) or np.ndim(keys) > 0
    keys = list(keys) if several else [keys]
    keys = [key.item() if isinstance(key, (np.ndarray, torch.Tensor)) else key for key in keys]
    return [names.index(key) if isinstance(key, str) else int(key) for key in keys], several


def predicted(**given):
    return kge.predict(named(), **given)


def check_predicted(result, given):
    heads, some = numbers_of(GRAPH.entities, given["head"])
    relations, more = numbers_of(GRAPH.relations, given["relation"])
    rows = result if some or more else [result]
    assert len(rows) == max(len(heads), len(relations))
    known = {tuple(row) for row in np.asarray(given["known"] or torch.zeros(0, 3)).tolist()}
    for place, row in enumerate(rows):
        h, r = heads[place % len(heads)], relations[place % len(relations)]
        scores = wanted_score(np.full(ENTITIES, h), np.full(ENTITIES, r), np.arange(ENTITIES))
        shares = np.exp(scores.astype(float))
        shares /= shares.sum()
        left = [e for e in range(ENTITIES) if (h, r, e) not in known]
        assert len(row) == min(given["k"], len(left))
        for answer, best in zip(row, np.sort(scores[left])[::-1], strict=False):
            number = GRAPH.entities.index(answer.entity)
            assert number in left
            close(answer.score, scores[number], 10, 1e-6)
            close(answer.score, best, 10, 1e-6)
            close(answer.probability, shares[number], 1, 1e-6)


def neighbours(entity, k):
    return kge.nearest(named(), entity, k)


def check_neighbours(result, given):
    own, several = numbers_of(GRAPH.entities, given["entity"])
    E, s = exact(model().embeddings()), signs(SIG)
    for number, row in zip(own, result if several else [result], strict=True):
        g = np.abs((E * s) @ E[number])
        arc = np.where(g >= 1, np.arccosh(np.maximum(g, 1)), np.arccos(np.minimum(g, 1)))
        assert len(row) == min(int(given["k"]), ENTITIES - 1)
        found = [neighbour.distance for neighbour in row]
        close(np.array(found), np.sort(np.delete(arc, number))[: len(row)], 1, 1e-6)


def explained(relation):
    return kge.explain(named(), relation)


def check_explained(result, given):
    every = result if isinstance(result, list) else [result]
    keys = range(RELATIONS) if given["relation"] is None else given["relation"]
    own, _ = numbers_of(GRAPH.relations, list(keys) if isinstance(keys, range) else keys)
    assert [one.relation for one in every] == [GRAPH.relations[number] for number in own]
    for number, one in zip(own, every, strict=True):
        norm = float(np.linalg.norm(exact(model().relations)[number].astype(float), 2))
        close(np.exp(one.rapidities[0]), norm, norm, 1e-6)


def depths_of(relation):
    return kge.depths(GRAPH, relation)


def check_depths(result, given):
    (number,), _ = numbers_of(GRAPH.relations, given["relation"])
    if GRAPH.relations[number] == "parent":
        assert result == {name: name.count(".") for name in GRAPH.entities}


def projected(**given):
    found = kge.project_to_disc(kge.UltraE(6, 1, **given))
    return found.points, found.kept, found.agreement


def check_projected(result, given):
    points, kept, agreement = result
    assert (np.linalg.norm(points, axis=1) <= 1).all()
    assert 0 <= kept <= 1
    assert np.isnan(agreement) or -1 <= agreement <= 1


# -- graphs


def check_held_out(result, given):
    rest, held = result
    share, train = float(given["share"]), torch.as_tensor(np.asarray(given["train"]))
    assert len(rest) + len(held) == len(train)
    assert not set(map(tuple, rest.tolist())) & set(map(tuple, held.tolist()))
    largest = int(torch.unique(train, dim=0, return_counts=True)[1].max())
    assert abs(len(held) - max(1, round(share * len(train)))) < largest
    together = sorted(map(tuple, np.concatenate([rest, held]).tolist()))
    assert together == sorted(map(tuple, np.asarray(train).tolist()))


def generated(**given):
    graph = kge.hierarchy_with_cycles(**given)
    return graph.train, graph.valid, graph.test


def check_generated(result, given):
    b, depth = int(given["branching"]), int(given["depth"])
    nodes = sum(b**level for level in range(depth + 1))
    every = torch.cat(list(result))
    assert int(every[:, (0, 2)].max()) == nodes - 1
    assert len(result[1]) == len(result[2]) >= 1


def _folder() -> Path:
    name = tempfile.mkdtemp(prefix="jorth-fuzz-")
    atexit.register(shutil.rmtree, name, ignore_errors=True)
    return Path(name)


FOLDER = _folder()
for _part in ("train", "test"):
    lines = ["\t".join((f"e{k}", "next", f"e{k + 1}")) for k in range(30)]
    (FOLDER / f"{_part}.txt").write_text("\n".join(lines))
(FOLDER / "settings.toml").write_text('epochs = 3\nmethod = "csdm"\n')
MODEL = FOLDER / "model"
kge.save_model(MODEL, kge.NamedModel(model(), GRAPH.entities, GRAPH.relations))


def loaded_triples(path, seed):
    graph = kge.load_triples(path, seed=seed)
    return graph.train, graph.valid, graph.test


def check_loaded(result, given):
    train, valid, test = result
    assert (len(train), len(valid), len(test)) == (27, 3, 30)


def loaded_model(folder, device):
    return kge.load_model(folder, device=device).model.points.detach()


def check_loaded_model(result, given):
    assert torch.equal(result, model().points.detach())


def read(path):
    return kge.read_config(path)[0].epochs


def check_read(result, given):
    assert result == 3


# -- training


SETTINGS = dict(
    p=2, q=2, alpha=1.0, delta=5.0, reciprocal=False, spread=0.05, rotate=True, dtype="float64",
    device="cpu", method="j-jobcd", relation_lr=0.01, lr=0.01, schedule="linear", warmup=0,
    final_rate=0.1, epochs=2, max_time=As("number", 20.0), batch_size=16, large_batch=20,
    loss="softmax", negatives=As("count", 3), shared=True, sides="both", reject=False,
    temperature=1.0, regularisation=0.01, evaluate_every=2, patience=1, seed=0, smoothing=0.1,
    clip=As("number", 1.0), max_radius=As("number", 2.0), scaling="diagonal", dropout=0.1,
    learn_scale=True, reverse_weight=0.0, averaging=0.5,
)  # fmt: skip


def configured(**given):
    config = kge.Config(**given)
    assert config.epochs == given["epochs"]
    return config.rate(0.5)


def check_configured(result, given):
    assert 0 <= result <= 1


def chosen(preset, triples):
    return kge.Config.preset(preset).fitted(triples).epochs


def check_chosen(result, given):
    assert result == 100


def trained(**given):
    found = kge.train(GRAPH, kge.Config(**given))
    return found.model.points.detach(), found.model.relations.detach(), found.history["loss"]


def check_trained(result, given):
    _, relations, loss = result
    feasible(relations, Signature(given["p"], given["q"]))
    assert 1 <= len(loss) <= (given["epochs"] or 200)  # None: chosen for the graph


def run_train(triples, config, callback, checkpoint, distributed):
    with tempfile.TemporaryDirectory(prefix="jorth-fuzz-") as folder:
        before = Path.cwd()
        os.chdir(folder)  # where a checkpoint with a relative path is written
        try:
            found = kge.train(
                triples, config, callback=callback, checkpoint=checkpoint, distributed=distributed
            )
        finally:
            os.chdir(before)
    return found.model.relations.detach(), found.history["loss"]


def check_run(result, given):
    config = given["config"] or kge.Config()
    feasible(result[0], config.signature)


# -- PyKEEN


def factory():
    from pykeen.triples import TriplesFactory

    entities = {name: k for k, name in enumerate(GRAPH.entities)}
    relations = {name: k for k, name in enumerate(GRAPH.relations)}
    return TriplesFactory(GRAPH.train, entities, relations)


def pykeen_model(**given):
    from jorth.adapters.pykeen import UltraE

    found = UltraE(triples_factory=factory(), random_seed=0, **given)
    return found.score_hrt(GRAPH.train[:4]).detach(), found.relation_representations[0]().detach()


def check_pykeen(result, given):
    feasible(result[1], given["signature"])


def pykeen_copy(model, triples_factory):
    from jorth.adapters.pykeen import UltraE

    return (
        UltraE.from_jorth(model, triples_factory, random_seed=0).score_hrt(GRAPH.train[:4]).detach()
    )


def check_copy(result, given):
    close(result[:, 0], given["model"](GRAPH.train[:4]).detach(), 10, 1e-6)


def pykeen_matrices(max_id, signature, base):
    from jorth.adapters.pykeen import JOrthogonalRepresentation

    return JOrthogonalRepresentation(max_id, signature=signature, base=base)().detach()


def check_matrices(result, given):
    wanted = np.broadcast_to(np.eye(N), (2, N, N)) if given["base"] is None else given["base"]
    close(result, wanted, size(wanted), 1e-6)


PYKEEN = [
    Call(
        "jorth.adapters.pykeen.UltraE",
        pykeen_model,
        lambda rng: dict(signature=SIG, alpha=1.0, delta=5.0, spread=0.05, rotate=True, seed=1),
        check_pykeen,
    ),
    Call(
        "jorth.adapters.pykeen.UltraE from_jorth",
        pykeen_copy,
        lambda rng: dict(model=As("other", model()), triples_factory=As("other", factory())),
        check_copy,
    ),
    Call(
        "jorth.adapters.pykeen.JOrthogonalRepresentation",
        pykeen_matrices,
        lambda rng: dict(
            max_id=2,
            signature=SIG,
            base=jorth.random_point(SIG, batch=(2,), seed=rng, dtype=torch.float64),
        ),
        check_matrices,
    ),
]


QUICK = kge.Config(p=2, q=2, epochs=2, batch_size=64, negatives=3, method="j-jobcd")


CALLS: list[Call] = [
    Call(
        "jorth.kge.UltraE",
        made,
        lambda rng: dict(
            entities=5,
            relations=2,
            signature=SIG,
            alpha=1.0,
            delta=5.0,
            reciprocal=bool(rng.integers(2)),
            spread=0.05,
            rotate=bool(rng.integers(2)),
            scaling="curvature",
            learn_scale=bool(rng.integers(2)),
            reverse_weight=0.0,
            seed=1,
            dtype=As("other", torch.float64),
            device=As("other", "cpu"),
        ),
        check_made,
    ),
    Call(
        "jorth.kge.UltraE forward",
        scored,
        lambda rng: dict(triples=some_triples(rng)),
        check_scored,
    ),
    Call(
        "jorth.kge.UltraE score_tails",
        scored_tails,
        lambda rng: dict(head=some_triples(rng)[:, 0], relation=some_triples(rng)[:, 1]),
        check_tails,
    ),
    Call(
        "jorth.kge.UltraE score_heads",
        scored_heads,
        lambda rng: dict(relation=some_triples(rng)[:, 1], tail=some_triples(rng)[:, 2]),
        check_heads,
    ),
    Call(
        "jorth.kge.evaluate",
        ranked,
        lambda rng: dict(
            triples=some_triples(rng),
            known=some_triples(rng),
            exclude_anchor=bool(rng.integers(2)),
            batch_size=As("count", 3),
        ),
        check_ranked,
    ),
    Call(
        "jorth.kge.Ranking metrics",
        ranking_figures,
        lambda rng: dict(side="head", ties="realistic"),
        check_figures,
    ),
    Call("jorth.kge.Ranking hits", ranking_hits, lambda rng: dict(k=3), check_hits),
    Call(
        "jorth.kge.predict",
        predicted,
        lambda rng: dict(
            head=GRAPH.entities[rng.integers(ENTITIES)],
            relation=GRAPH.relations[rng.integers(RELATIONS)],
            k=4,
            known=As("other", None),
        ),
        check_predicted,
    ),
    Call(
        "jorth.kge.nearest",
        neighbours,
        lambda rng: dict(entity=GRAPH.entities[rng.integers(ENTITIES)], k=4),
        check_neighbours,
    ),
    Call(
        "jorth.kge.explain",
        explained,
        lambda rng: dict(relation=GRAPH.relations[rng.integers(RELATIONS)]),
        check_explained,
    ),
    Call(
        "jorth.kge.depths",
        depths_of,
        lambda rng: dict(relation=GRAPH.relations[rng.integers(RELATIONS)]),
        check_depths,
    ),
    Call(
        "jorth.kge.project_to_disc",
        projected,
        lambda rng: dict(signature=SIG, alpha=1.0, seed=1),
        check_projected,
        non_finite=True,
    ),
    Call(
        "jorth.kge.hold_out",
        kge.hold_out,
        lambda rng: dict(train=GRAPH.train.clone(), share=0.1, seed=1),
        check_held_out,
    ),
    Call(
        "jorth.kge.hierarchy_with_cycles",
        generated,
        lambda rng: dict(branching=3, depth=2, share=0.1, seed=1),
        check_generated,
    ),
    Call(
        "jorth.kge.load_triples",
        loaded_triples,
        lambda rng: dict(path=FOLDER, seed=1),
        check_loaded,
        raises=(FileNotFoundError,),
    ),
    Call(
        "jorth.kge.load_model",
        loaded_model,
        lambda rng: dict(folder=MODEL, device=As("other", None)),
        check_loaded_model,
        raises=(FileNotFoundError,),
    ),
    Call(
        "jorth.kge.read_config",
        read,
        lambda rng: dict(path=FOLDER / "settings.toml"),
        check_read,
        raises=(FileNotFoundError,),
    ),
    Call("jorth.kge.Config", configured, lambda rng: dict(SETTINGS), check_configured),
    Call(
        "jorth.kge.Config preset",
        chosen,
        lambda rng: dict(preset="paper", triples=As("other", GRAPH)),
        check_chosen,
    ),
    Call(
        "jorth.kge.train settings",
        trained,
        lambda rng: dict(SETTINGS),
        check_trained,
        raises=(FloatingPointError,),
    ),
    Call(
        "jorth.kge.train",
        run_train,
        lambda rng: dict(
            triples=As("other", GRAPH),
            config=As("other", QUICK),
            callback=lambda row: False,
            checkpoint=As("path", None),
            distributed=False,
        ),
        check_run,
        raises=(RuntimeError,),  # torch.distributed is not initialised
    ),
]

if importlib.util.find_spec("pykeen"):
    CALLS += PYKEEN

WITHOUT: dict[str, str] = {
    "jorth.kge.NamedModel": "a record; load_model makes it",
    "jorth.kge.Answer": "a result; predict makes it",
    "jorth.kge.Disc": "a result; project_to_disc makes it",
    "jorth.kge.Explanation": "a result; explain makes it",
    "jorth.kge.Neighbour": "a result; nearest makes it",
    "jorth.kge.draw_entities": "writes files; tests/kge has its cases",
    "jorth.kge.draw_relations": "writes files; tests/kge has its cases",
    "jorth.kge.Training": "a result; train makes it",
    "jorth.kge.Triples": "a record; load_triples makes it",
    "jorth.kge.CSVLog": "a callback of train",
    "jorth.kge.TensorBoardLog": "a callback of train",
    "jorth.kge.save_model": "writes files; tests/kge has its cases",
}
