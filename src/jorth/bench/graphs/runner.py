"""Run a cell on a knowledge graph: train within the budget, rank, and make its row."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from jorth.bench.core.records import Row, reason
from jorth.bench.core.runs import Kind, NoResult
from jorth.bench.graphs.cells import GENERATED, MINIS, GraphCell
from jorth.datasets.files import VARIABLE
from jorth.group import residual
from jorth.kge import Config, Triples, evaluate, hierarchy_with_cycles, load_triples, train
from jorth.kge.graph import found_in

RANKING_METRICS = ("mrr", "hits@1", "hits@3", "hits@10")
BASE_CONFIG = replace(
    Config.preset("paper"), relation_options={}, batch_size=16, large_batch=64, shared=True
)
"""The paper's model, loss and learning rate of the entities; a batch shares its negatives."""
EVALUATIONS = 10  # the number of evaluations on the held-out triples during a run


def tiny(cell: GraphCell) -> GraphCell:
    """The same method on a tiny graph."""
    tried = replace(cell, graph=GENERATED, stage="trial", seed=0, p=4, q=2, epochs=1)
    return replace(tried, relation_lr=1e-3, options=())


def config_of(cell: GraphCell) -> Config:
    """The settings of a cell for `train`."""
    return replace(
        BASE_CONFIG,
        p=cell.p,
        q=cell.q,
        epochs=cell.epochs,
        method=cell.method.lower(),
        relation_lr=cell.relation_lr,
        relation_options=dict(cell.options),
        seed=cell.seed,
    )


def measure(cell: GraphCell, row: Row, data_dir: Path | None, rows: Sequence[Row]) -> None:
    """Train until the budget of queries is spent, and rank with the best model."""
    try:
        triples = _triples(cell.graph, cell.seed, data_dir)
    except FileNotFoundError as error:
        how = f"name the folder that has it by --data-dir or {VARIABLE}"
        raise NoResult("missing", f"knowledge graph {cell.graph} is not at hand: {how}") from error
    row["notes"] = _notes(triples)
    config = replace(config_of(cell), evaluate_every=max(1, cell.epochs // EVALUATIONS))
    budget = cell.epochs * len(triples.train)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # a step is too small for more
    try:
        result = train(triples, config, callback=lambda now: now["queries"] >= budget)
    finally:
        torch.set_num_threads(threads)
    if result.interrupted:
        raise KeyboardInterrupt
    relations = result.model.relations.detach()
    history = {
        name: [float(f"{number:.6g}") for number in column]
        for name, column in result.history.items()
    }
    history["passes"] = [queries / len(triples.train) for queries in history["queries"]]
    row |= {
        "config": asdict(config),
        "message": result.message,
        "loss": history["loss"][-1],
        "best_epoch": result.best_epoch,
        "valid": _best(result.history, result.best_epoch),
        "norm": float(torch.linalg.matrix_norm(relations, 2).max()),
        "residual": float(torch.as_tensor(residual(relations, config.signature)).max()),
        "time": history["time"][-1],
        "history": history,
    }
    if cell.stage == "test":
        row["test"] = evaluate(result.model, triples.test, triples.known).metrics()


def _best(history: Mapping[str, Any], epoch: int) -> dict[str, float]:
    """The metrics on the held-out triples after an epoch; all are 0 if it is 0."""
    return {name: float(history[name][epoch - 1]) if epoch else 0.0 for name in RANKING_METRICS}


def _notes(triples: Triples) -> dict[str, float]:
    """Sizes, and the share of the test triples whose reverse is a training triple."""
    seen = torch.cat([triples.train, triples.valid])
    reverse = found_in(triples.test.flip(-1), seen)
    return {
        "entities": len(triples.entities),
        "relations": len(triples.relations),
        "train": len(triples.train),
        "valid": len(triples.valid),
        "test": len(triples.test),
        "reverse_in_train": float(reverse.double().mean()),
    }


@lru_cache(maxsize=1)
def _triples(graph: str, seed: int, data_dir: Path | None) -> Triples:
    if graph == GENERATED:
        return hierarchy_with_cycles(branching=3, depth=2, seed=seed)
    places = [place / graph for place in _places(data_dir)]
    if not places:
        raise FileNotFoundError(graph)
    return load_triples(next(filter(Path.is_dir, places), places[-1]), seed=seed)


def at_hand(cell: GraphCell, data_dir: Path | None) -> bool:
    """Whether the graph of a cell is generated, or has a folder."""
    folders = (place / cell.graph for place in _places(data_dir))
    return cell.graph == GENERATED or any(folder.is_dir() for folder in folders)


def known_graphs(data_dir: Path | None) -> list[str]:
    """The names of all graphs: the generated one, the paper's, and the folders in the data."""
    folders = [
        folder.name
        for place in _places(data_dir)
        if place.is_dir()
        for folder in sorted(place.iterdir())
        if any(folder.glob("train.*"))
    ]
    return list(dict.fromkeys([GENERATED, *MINIS, *folders]))


def _places(data_dir: Path | None) -> list[Path]:
    """The folders in which a graph may be, if any is known."""
    folder = data_dir or os.environ.get(VARIABLE)
    return [Path(folder) / "kg", Path(folder)] if folder else []


def describe(row: Row) -> str:
    """A row in one line."""
    cell = GraphCell.from_json(row["cell"])
    head = f"{cell.size:<22} {cell.stage:<5} {cell.method:<10} seed {cell.seed}, {cell.setting}:"
    if row["outcome"] != "done":
        return f"{head} {reason(row)}"
    part = "test" if cell.stage == "test" else "valid"
    return f"{head} loss {row['loss']:.4g}, {part} MRR {row[part]['mrr']:.3f}  {row['time']:.1f} s"


KIND = Kind("graphs", GraphCell, measure, tiny, describe, at_hand)
