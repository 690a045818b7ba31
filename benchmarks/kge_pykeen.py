"""Queries per second in PyKEEN's training loops: UltraE beside MuRE, RotatE and TransE.

JORTH_DATA=folder python benchmarks/kge_pykeen.py [--dataset FB15k-237]

All models have embeddings of 32 numbers (RotatE 16 complex ones), all in float32 with Adam, on one
thread. Some triples of the graph are trained on, with all of its entities. A query is a triple with
so many negatives of its own (sLCWA), or a head and a relation with all entities (LCWA). The last
column is `jorth.kge.train` with as many negatives, shared by the batch. Rounds go through all
models; the figures are from the median processor time of a step, what PyKEEN does once per epoch
left out. In brackets: the ratio to MuRE.
"""

from __future__ import annotations

import argparse
import logging
import os
import time
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np
import torch
from pykeen.models import Model, MuRE, RotatE, TransE
from pykeen.training import LCWATrainingLoop, SLCWATrainingLoop, TrainingLoop
from pykeen.training.callbacks import TrainingCallback
from pykeen.triples import TriplesFactory

from jorth import Signature
from jorth.adapters.pykeen import UltraE
from jorth.kge import Config, Triples, load_triples, train
from jorth.kge.settings.config import ALL

DIMENSION = 32
MODELS: dict[str, tuple[type[Model], dict[str, object]]] = {
    "UltraE": (UltraE, {"signature": Signature(DIMENSION - 1, 1)}),
    "MuRE": (MuRE, {"embedding_dim": DIMENSION}),
    "RotatE": (RotatE, {"embedding_dim": DIMENSION // 2}),
    "TransE": (TransE, {"embedding_dim": DIMENSION}),
}
OWN = "jorth.kge.train"
SHARED = Config(
    p=DIMENSION - 1,
    q=1,
    dtype="float32",
    relation_lr=0.003,
    relation_options={"momentum": 0.9, "curvature": "per-plane", "metric": "invariant"},
    loss="softmax",
    shared=True,
    sides="uniform",
    epochs=5,
    evaluate_every=5,
)


@dataclass(frozen=True)
class Setting:
    """A training loop of PyKEEN: with so many negatives per query, or None for all entities."""

    negatives: int | None
    batch: int
    steps: int

    @property
    def loop(self) -> str:
        return "LCWA" if self.negatives is None else "sLCWA"


SETTINGS = (Setting(1, 1024, 8), Setting(32, 512, 8), Setting(256, 256, 6), Setting(None, 32, 4))


class Clock(TrainingCallback):  # type: ignore[misc]
    """The processor time after every step."""

    def __init__(self) -> None:
        super().__init__()
        self.times: list[float] = []

    def post_batch(self, *args: object, **kwargs: object) -> None:
        self.times.append(time.process_time())


def steps_in_pykeen(name: str, factory: TriplesFactory, setting: Setting) -> list[float]:
    """Seconds of the steps of an epoch after the first, data and negatives included."""
    kind, options = MODELS[name]
    model = kind(triples_factory=factory, loss="crossentropy", random_seed=0, **options)
    common = {"model": model, "triples_factory": factory, "optimizer": "adam"}
    if setting.negatives is None:
        loop: TrainingLoop = LCWATrainingLoop(**common)
    else:
        drawn = {"num_negs_per_pos": setting.negatives}
        loop = SLCWATrainingLoop(**common, negative_sampler_kwargs=drawn)
    clock = Clock()
    loop.train(factory, num_epochs=1, batch_size=setting.batch, callbacks=clock, use_tqdm=False)
    return [float(seconds) for seconds in np.diff(clock.times)[: setting.steps]]


def steps_in_jorth(graph: Triples, setting: Setting) -> list[float]:
    """Mean seconds of a step in each epoch, without the first, and the last, which ranks."""
    times: list[float] = []
    count = ALL if setting.negatives is None else setting.negatives
    config = replace(SHARED, negatives=count, batch_size=setting.batch)
    train(graph, config, callback=lambda row: times.append(time.process_time()))
    steps = -(-len(graph.train) // setting.batch)
    return [float(seconds) / steps for seconds in np.diff(times)[:-1]]


def line(graph: Triples, setting: Setting, rounds: int) -> str:
    """A row of the table: queries per second of all models, medians over all steps."""
    names = ({part: k for k, part in enumerate(kind)} for kind in (graph.entities, graph.relations))
    factory = TriplesFactory(graph.train, *names)
    found: dict[str, list[float]] = {name: [] for name in (*MODELS, OWN)}
    for _ in range(rounds):
        for name in MODELS:
            found[name] += steps_in_pykeen(name, factory, setting)
        found[OWN] += steps_in_jorth(graph, setting)
    rates = {name: setting.batch / float(np.median(seconds)) for name, seconds in found.items()}
    cells = [f"{rate:,.0f} ({rate / rates['MuRE']:.2f})" for rate in rates.values()]
    negatives = "all" if setting.negatives is None else setting.negatives
    return f"| {setting.loop} | {negatives} | {setting.batch} | {' | '.join(cells)} |"


def part_of(graph: Triples, count: int) -> Triples:
    """The graph with so many training triples, drawn at random, and a few to validate with."""
    chosen = np.random.default_rng(0).permutation(len(graph.train))[:count]
    return replace(graph, train=graph.train[torch.from_numpy(chosen)], valid=graph.valid[:20])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dataset", default="WN18RR")
    parser.add_argument("--data-dir", default=os.path.join(os.environ.get("JORTH_DATA", "."), "kg"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="one round")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    graph = load_triples(Path(arguments.data_dir) / arguments.dataset)
    print(f"{arguments.dataset}: {graph}\n")
    print(f"| loop | negatives | batch | {' | '.join([*MODELS, OWN])} |")
    print("|" + "---|" * (4 + len(MODELS)))
    rounds = 1 if arguments.quick else arguments.rounds
    for setting in SETTINGS:
        # a head and a relation with several tails are one query of LCWA
        part = part_of(graph, (setting.steps + 2) * setting.batch)
        print(line(part, setting, rounds), flush=True)


if __name__ == "__main__":
    main()
