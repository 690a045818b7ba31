"""The grid of runs: trials of every setting, then the best settings on several seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal

from jorth.bench.core.cells import Cell
from jorth.bench.core.records import Row

MINIS = ("WN18RR-mini", "FB15k-237-mini")  # the folders of the paper's two graphs
GENERATED = "generated"  # a small graph that needs no data files
GRAPH_METHODS = ("CSDM", "J-JOBCD", "VR-J-JOBCD")
Options = tuple[tuple[str, Any], ...]
Setting = tuple[float, Options]
"""The learning rate of the relations, and further options of their optimiser."""

_PER_PLANE: Options = (("curvature", "per-plane"), ("metric", "invariant"), ("momentum", 0.9))
_SCHEDULED: Options = (("curvature", "scheduled"), ("metric", "embedding"), ("momentum", 0.9))
_JACOBI: tuple[Setting, ...] = (
    *((lr, _PER_PLANE) for lr in (1e-4, 3e-4, 1e-3, 3e-3)),
    *((lr, _SCHEDULED) for lr in (1e-4, 1e-3, 1e-2, 3e-2)),
)
SETTINGS: dict[str, tuple[Setting, ...]] = {
    "CSDM": tuple((lr, ()) for lr in (3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)),
    "J-JOBCD": _JACOBI,
    "VR-J-JOBCD": _JACOBI,
}
"""The settings that are tried, equally many for every method."""
LARGEST_NORM = 2.0**13
"""u^(-1/4), u = 2^-52: for larger ||R|| the error u ||R||^2 of <R x, y>_J takes half its digits."""


@dataclass(frozen=True, kw_only=True)
class GraphCell(Cell):
    """One run on a knowledge graph; all other settings are in the runner's `BASE_CONFIG`.

    A "trial" uses the training triples alone; a "test" also ranks the test triples. The method is
    that of the relations; entities and biases use Adam. The seed is used for the held-out triples,
    the start and the method.
    """

    problem: str = "kge"
    graph: str  # the name of the folder, or "generated"
    stage: Literal["trial", "test"]
    relation_lr: float  # learning rate of the relations
    options: Options = ()  # further options of their optimiser
    p: int = 18  # positive signs
    q: int = 18  # negative signs
    epochs: int = 600  # the budget, in passes over the training triples

    @property
    def size(self) -> str:
        return f"{self.graph}({self.p},{self.q})"

    @property
    def setting(self) -> str:
        """The learning rate and the options as text."""
        options = [f"{name} {value}" for name, value in self.options]
        return ", ".join([f"lr {self.relation_lr:g}", *options])

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> GraphCell:
        options = tuple((name, value) for name, value in fields["options"])
        return cls(**fields | {"options": options})


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Every setting of each method is tried on one seed; the best one is run on all seeds."""

    graphs: Sequence[str] = MINIS
    methods: Sequence[str] = GRAPH_METHODS
    seeds: Sequence[int] = (3, 4, 5)  # of the tests; trials use the first
    epochs: int = 600
    trials: int = len(_JACOBI)  # number of settings of each method
    p: int = 18
    q: int = 18

    def trial_cells(self) -> list[GraphCell]:
        cells = []
        for graph, method in product(self.graphs, self.methods):
            for lr, options in SETTINGS[method][: self.trials]:
                cell = GraphCell(
                    graph=graph, method=method, stage="trial", seed=self.seeds[0], relation_lr=lr,
                    options=options, p=self.p, q=self.q, epochs=self.epochs,
                )  # fmt: skip
                cells.append(cell)
        return cells

    def test_cells(self, rows: Sequence[Row]) -> list[GraphCell]:
        """The settings with the best MRR on held-out triples among the trials, on all seeds.

        The first of equal settings is taken. A trial that diverged is chosen only if all trials of
        its method did; a method without a completed trial is left out.
        """
        done = {row["key"]: row for row in rows if row["outcome"] == "done"}
        scores: dict[GraphCell, tuple[bool, float]] = {}
        for cell in self.trial_cells():
            row = done.get(cell.key)
            if row is not None:
                scores[cell] = not diverged(row), row["valid"]["mrr"]
        chosen = []
        for graph, method in product(self.graphs, self.methods):
            tried = [cell for cell in scores if (cell.graph, cell.method) == (graph, method)]
            if tried:
                best = max(tried, key=lambda cell: scores[cell])
                chosen += [replace(best, stage="test", seed=seed) for seed in self.seeds]
        return chosen


QUICK_PLAN = Plan(graphs=(GENERATED,), seeds=(0,), epochs=2, trials=2, p=4, q=2)
"""A plan that takes a few seconds."""


def diverged(row: Row) -> bool:
    """Whether the loss ended above its start or a relation above LARGEST_NORM, or either is NaN."""
    losses = row["history"]["loss"]
    return not (losses[-1] <= losses[0] and row["norm"] <= LARGEST_NORM)
