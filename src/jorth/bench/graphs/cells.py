"""Which runs there are on a knowledge graph: trials of every setting, then the chosen ones on several seeds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any, Literal

import numpy as np

from jorth.bench.records import Row
from jorth.kge import Config

MINIS = ("WN18RR-mini", "FB15k-237-mini")
"""The folders of the paper's two graphs."""
GENERATED = "generated"
"""A small graph that every installation has."""
METHODS = ("CSDM", "J-JOBCD", "VR-J-JOBCD")
Options = tuple[tuple[str, Any], ...]
Setting = tuple[float, Options]
"""The learning rate of the relations, and further options of their optimiser."""

_PLANES: Options = (("curvature", "per-plane"), ("metric", "invariant"), ("momentum", 0.9))
_SCHEDULED: Options = (("curvature", "scheduled"), ("metric", "embedding"), ("momentum", 0.9))
_JACOBI: tuple[Setting, ...] = (
    *((lr, _PLANES) for lr in (1e-4, 3e-4, 1e-3, 3e-3)),
    *((lr, _SCHEDULED) for lr in (1e-4, 1e-3, 1e-2, 3e-2)),
)
SETTINGS: dict[str, tuple[Setting, ...]] = {
    "CSDM": tuple((lr, ()) for lr in (3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)),
    "J-JOBCD": _JACOBI,
    "VR-J-JOBCD": _JACOBI,
}
"""What is tried: the same number of settings for every method."""
LARGEST_NORM = np.finfo(float).eps ** -0.25
"""Of a relation: <R x, y>_J carries an error of u ||R||^2, beyond this norm half of its digits."""


@dataclass(frozen=True, kw_only=True)
class GraphCell:
    """One run on a knowledge graph. All that it does not name has the values of `BASE`.

    Attributes:
        graph: The name of the folder, or "generated".
        method: One of METHODS, for the relations; entities and biases have Adam.
        stage: A "trial" sees the training triples alone; a "test" also ranks the test triples, once.
        seed: Of the triples held out, the start, and the method.
        relation_lr: Learning rate of the relations.
        options: Further options of their optimiser.
        p: Positive signs.
        q: Negative signs.
        epochs: The budget, in passes over the training triples.
        problem: Tells the rows from those of matrices.
    """

    graph: str
    method: str
    stage: Literal["trial", "test"]
    seed: int
    relation_lr: float
    options: Options = ()
    p: int = 18
    q: int = 18
    epochs: int = 600
    problem: Literal["kge"] = "kge"

    @property
    def key(self) -> str:
        """What a finished run is known by: all fields, in a fixed order."""
        return json.dumps(asdict(self), sort_keys=True)

    @property
    def size(self) -> str:
        """The graph and the signature."""
        return f"{self.graph}({self.p},{self.q})"

    @property
    def setting(self) -> str:
        """The setting in words."""
        words = [f"lr {self.relation_lr:g}", *(f"{name} {value}" for name, value in self.options)]
        return ", ".join(words)

    @property
    def config(self) -> Config:
        """What `train` is told."""
        return replace(
            BASE,
            p=self.p,
            q=self.q,
            epochs=self.epochs,
            method=self.method.lower(),
            relation_lr=self.relation_lr,
            relation_options=dict(self.options),
            seed=self.seed,
        )

    @staticmethod
    def from_json(fields: dict[str, Any]) -> GraphCell:
        """The cell of a row."""
        return GraphCell(
            **fields | {"options": tuple((name, value) for name, value in fields["options"])}
        )


BASE = Config(
    alpha=1.0,
    delta=5.0,
    negatives=50,
    loss="logistic",
    lr=5e-4,
    batch_size=16,
    large_batch=64,
    shared=True,
)
"""The paper's model, loss and rate of the entities; the queries of a batch share their negatives, for speed."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A benchmark: every setting of every method is tried on one seed, the best one is run on all seeds.

    Attributes:
        graphs: Names of folders, or "generated".
        methods: Of METHODS.
        seeds: Of the tests.
        epochs: Passes over the training triples.
        trials: So many settings of each method, from the first.
        p: Positive signs.
        q: Negative signs.
    """

    graphs: Sequence[str] = MINIS
    methods: Sequence[str] = METHODS
    seeds: Sequence[int] = (3, 4, 5)
    epochs: int = 600
    trials: int = len(_JACOBI)
    p: int = 18
    q: int = 18

    def trial_cells(self) -> list[GraphCell]:
        """All trials."""
        return [
            GraphCell(
                graph=graph, method=method, stage="trial", seed=self.seeds[0], relation_lr=lr, options=options,
                p=self.p, q=self.q, epochs=self.epochs,
            )
            for graph, method in product(self.graphs, self.methods)
            for lr, options in SETTINGS[method][: self.trials]
        ]  # fmt: skip

    def test_cells(self, rows: Sequence[Row]) -> list[GraphCell]:
        """The settings with the best MRR on the held-out triples among the ``rows`` of the trials, on all seeds.

        Equal ones: the first. A trial that ran away is chosen only if all of its method did; a method none of whose
        trials was completed is left out.
        """
        wanted = {cell.key for cell in self.trial_cells()}
        done = [row for row in rows if row["key"] in wanted and row["outcome"] == "done"]
        scores = {row["key"]: (not ran_away(row), row["valid"]["mrr"]) for row in done}
        cells = []
        for graph, method in product(self.graphs, self.methods):
            tried = [
                c
                for c in self.trial_cells()
                if (c.graph, c.method) == (graph, method) and c.key in scores
            ]
            if tried:
                best = max(tried, key=lambda cell: scores[cell.key])
                cells += [replace(best, stage="test", seed=seed) for seed in self.seeds]
        return cells


def ran_away(row: Row) -> bool:
    """Whether the loss of a run ended above its start, or a relation above `LARGEST_NORM`, or one is not a number."""
    losses = row["history"]["loss"]
    return not (losses[-1] <= losses[0] and row["norm"] <= LARGEST_NORM)


QUICK = Plan(graphs=(GENERATED,), seeds=(0,), epochs=2, trials=2, p=4, q=2)
"""A few seconds."""
