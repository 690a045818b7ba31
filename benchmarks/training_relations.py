"""Relations of time zones as matrices of O(8, 2): test MRR by the way of training, as in
docs/results/training.md.

    python benchmarks/training_relations.py

The countries, regions, offsets, abbreviations and neighbours of the places of the package tzdata.
Rates are chosen by the validation triples, with another seed than those of the table.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from importlib import resources
from itertools import product
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

os.environ.setdefault("OMP_NUM_THREADS", "1")
ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

import jorth
from benchmarks.training_tasks import METHODS, Method, Training, batches
from jorth.kge.graph import both_directions
from jorth.kge.model import squared_arc

NEIGHBOURS, BATCH, STEPS = 4, 256, 1600
NAMES = ("JOBCD", "CS form + Adam", "exp form + Adam", "geoopt RiemannianAdam on our manifold")
RATES, MOMENTA = (0.003, 0.01, 0.03, 0.1, 0.3), (0.0, 0.9)
TUNING, SEEDS = 100, range(3)


def time_zones() -> Iterator[tuple[str, str, str]]:
    """The facts of every place."""
    table = (resources.files("tzdata") / "zoneinfo" / "zone.tab").read_text("utf-8")
    rows = [line.split("\t") for line in table.splitlines() if not line.startswith("#")]
    names = [row[2] for row in rows]
    spots = np.stack([direction(row[1]) for row in rows])
    for (country, _, name, *_), near in zip(rows, np.argsort(-spots @ spots.T), strict=True):
        yield name, "country", country
        yield name, "region", name.split("/")[0]
        for month in (1, 7):
            local = datetime(2025, month, 1, tzinfo=ZoneInfo(name))
            yield name, f"offset {month}", str(local.utcoffset())
            yield name, f"abbreviation {month}", str(local.tzname())
        for other in near[1 : NEIGHBOURS + 1]:
            yield name, "near", names[other]


def direction(coordinates: str) -> Any:
    """The unit vector of +DDMM+DDDMM, with or without seconds."""
    angles = []
    for sign, digits in re.findall(r"([+-])(\d+)", coordinates):
        whole = len(digits) - (2 if len(digits) < 6 else 4)
        parts = digits[:whole], digits[whole : whole + 2], digits[whole + 2 :] or "0"
        degrees = sum(int(part) / 60**k for k, part in enumerate(parts))
        angles.append(np.radians(float(sign + "1") * degrees))
    north, east = angles
    return np.array([np.cos(north) * np.cos(east), np.cos(north) * np.sin(east), np.sin(north)])


def split_graph() -> jorth.kge.Triples:
    """All facts, a tenth of them each held out for validation and for test."""
    facts = np.random.default_rng(0).permutation(sorted(set(time_zones())))
    tenth = len(facts) // 10
    parts = np.split(facts, [tenth, 2 * tenth])
    names = [np.unique(facts[:, [0, 2]]), np.unique(facts[:, 1])]
    valid, test, train = (
        np.stack([np.searchsorted(names[k % 2], part[:, k]) for k in range(3)], axis=1)
        for part in parts
    )
    return jorth.kge.Triples(*map(tuple, names), train, valid, test)


class Relations:
    """Points in R^10 with a bias each, and a matrix per relation and direction, all (8, 2).

    Logits are biases minus squared distances; all entities compete by cross-entropy. It is a task
    for `Training`, and a model for `jorth.kge.evaluate`.
    """

    def __init__(self, graph: jorth.kge.Triples, seed: int) -> None:
        self.signature = jorth.Signature(8, 2)
        self.n_entities, self.n_relations = len(graph.entities), len(graph.relations)
        self.queries = both_directions(graph.train, self.n_relations)
        generator = torch.Generator().manual_seed(seed)
        self.start = [torch.eye(10).repeat(2 * self.n_relations, 1, 1)]
        space = 0.1 * torch.randn(self.n_entities, 9, generator=generator)
        self.others = [space, torch.zeros(self.n_entities)]
        self.rows = batches(len(self.queries), BATCH, STEPS, generator)

    def loss(self, X: Any, step: int | None, others: Any) -> Tensor:
        self.X, self.points, self.bias = X[0], *others
        rows = slice(None) if step is None else self.rows[step]
        head, code, tail = self.queries[rows].unbind(-1)
        return F.cross_entropy(self.score_tails(head, code), tail)

    def score_tails(self, head: Tensor, code: Tensor) -> Tensor:
        points = jorth.ultrahyperbolic.lift(self.points, self.signature)
        images = (self.X[code] @ points[head, :, None])[..., 0]
        products = images @ (points * self.signature.vector(points)).mT
        return self.bias - squared_arc(products)

    def score_heads(self, relation: Tensor, tail: Tensor) -> Tensor:
        return self.score_tails(tail, relation + self.n_relations)


def run(
    graph: jorth.kge.Triples, name: str, rate: float, momentum: float, seed: int
) -> list[float]:
    """The loss on the training triples, both MRR and the largest norm at the end of a run."""
    option = {"momentum": momentum} if name == "JOBCD" else {"betas": (momentum, 0.999)}
    METHODS["variant"] = Method(partial(METHODS[name].make, **option))
    task = Relations(graph, seed)
    training = Training(task, "variant", rate)
    try:
        for step in range(STEPS):
            training.step(step)
    except ValueError:  # a matrix is not finite
        return [np.nan] * 4
    loss = training.score()
    mrr = [jorth.kge.evaluate(task, part, graph.known).mrr for part in (graph.valid, graph.test)]
    return [loss, *mrr, float(torch.linalg.matrix_norm(task.X.detach(), 2).max())]


def tuned(graph: jorth.kge.Triples, name: str) -> tuple[float, float]:
    """The rate and the momentum of the best validation MRR."""
    trials = {}
    for trial in product(RATES, MOMENTA):
        trials[trial] = found = run(graph, name, *trial, TUNING)
        print(name, *trial, *(f"{x:.3f}" for x in found), file=sys.stderr, flush=True)
    return max(trials, key=lambda trial: np.nan_to_num(trials[trial][1]))


def main() -> None:
    torch.set_num_threads(1)
    graph = split_graph()
    chosen = [(name, *tuned(graph, name)) for name in NAMES]
    print("| method | lr | momentum | loss | valid MRR | test MRR | norm |\n" + "|---" * 7 + "|")
    for row in [("JOBCD", 0.01, 0.9), *chosen]:
        found = np.array([run(graph, *row, seed) for seed in SEEDS])
        loss, valid, test, _ = found.mean(axis=0)
        error = found[:, 2].std(ddof=1) / len(found) ** 0.5
        print(
            f"| {row[0]} | {row[1]:g} | {row[2]:g} | {loss:.2f} | {valid:.3f} | "
            f"{test:.3f} ± {error:.3f} | {found[:, 3].max():.3g} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
