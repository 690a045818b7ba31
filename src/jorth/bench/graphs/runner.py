"""Run the cells of knowledge graphs: train on equal budgets, rank, a row each."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from jorth.bench.graphs.cells import GENERATED, GraphCell
from jorth.bench.loop import Outcome, failure, new_row, run_unfinished
from jorth.bench.records import Row
from jorth.datasets.files import VARIABLE
from jorth.group import residual
from jorth.kge import Training, Triples, evaluate, hierarchy_with_cycles, load_triples, train

FIGURES = ("mrr", "hits@1", "hits@3", "hits@10")
RECORDS = 10
"""Evaluations on the held-out triples in a run."""


def run_graphs(
    cells: Sequence[GraphCell],
    folder: Path,
    *,
    data_dir: Path | None = None,
    retry_failed: bool = False,
    on_row: Callable[[Row], object] = lambda row: None,
    on_start: Callable[[GraphCell], object] = lambda cell: None,
) -> Outcome:
    """Run what is not finished yet and append a row for each to ``folder``/runs.jsonl, as `run_cells` does.

    Args:
        cells: The runs.
        folder: Of the rows.
        data_dir: The folder that holds the graphs, or holds them under ``kg``.
        retry_failed: Run the cells that failed again.
        on_row: Told every new row.
        on_start: Told every cell before it runs.
    """
    return run_unfinished(
        cells,
        folder,
        lambda cell: run_graph(cell, data_dir),
        warm_up=warm_up,
        retry_failed=retry_failed,
        on_row=on_row,
        on_start=on_start,
    )


def warm_up(cells: Sequence[GraphCell]) -> None:
    """Compilation is not part of any clock."""
    for method in {cell.method for cell in cells}:
        tiny = GraphCell(
            graph=GENERATED,
            method=method,
            stage="trial",
            seed=0,
            relation_lr=1e-3,
            p=4,
            q=2,
            epochs=1,
        )
        train(_triples(GENERATED, 0, None), tiny.config)


def run_graph(cell: GraphCell, data_dir: Path | None = None) -> Row:
    """The row of a cell, whatever happens; only Ctrl-C passes through."""
    row = new_row(cell.key, asdict(cell))
    try:
        triples = _triples(cell.graph, cell.seed, data_dir)
    except FileNotFoundError:
        return row | {"outcome": "missing", "error": _how_to_get(cell.graph)}
    except Exception as error:
        return row | failure(error)
    row["notes"] = _notes(triples)
    began = time.perf_counter()
    try:
        row |= _measure(cell, triples)
    except Exception as error:
        row |= failure(error)
    return row | {"wall": time.perf_counter() - began}


def _measure(cell: GraphCell, triples: Triples) -> Row:
    """Train until the queries are used up; rank the test triples by the model that the held-out ones chose."""
    config = replace(cell.config, evaluate_every=max(1, cell.epochs // RECORDS))
    budget = cell.epochs * len(triples.train)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # a step is too small for more
    try:
        result = train(triples, config, callback=lambda row: row["queries"] >= budget)
    finally:
        torch.set_num_threads(threads)
    relations = result.model.relations.detach()
    history = {
        name: [float(f"{number:.6g}") for number in column]
        for name, column in result.history.items()
    }
    history["passes"] = [queries / len(triples.train) for queries in history["queries"]]
    found: dict[str, Any] = {
        "config": asdict(config),
        "message": result.message,
        "loss": history["loss"][-1],
        "best_epoch": result.best_epoch,
        "valid": _best(result),
        "norm": float(torch.linalg.matrix_norm(relations, 2).max()),
        "residual": float(torch.as_tensor(residual(relations, config.signature)).max()),
        "time": history["time"][-1],
        "history": history,
    }
    if cell.stage == "test":
        found["test"] = evaluate(result.model, triples.test, triples.known).metrics()
    return found


def _best(result: Training) -> dict[str, float]:
    """The figures of the chosen model on the held-out triples."""
    if not result.best_epoch:
        return dict.fromkeys(FIGURES, 0.0)
    return {name: float(result.history[name][result.best_epoch - 1]) for name in FIGURES}


def _notes(triples: Triples) -> dict[str, float]:
    """Sizes, and the share of the test triples whose reverse is a training triple."""
    seen = {tuple(triple) for triple in torch.cat([triples.train, triples.valid]).tolist()}
    reverse = [(tail, relation, head) in seen for head, relation, tail in triples.test.tolist()]
    return {
        "entities": len(triples.entities),
        "relations": len(triples.relations),
        "train": len(triples.train),
        "valid": len(triples.valid),
        "test": len(triples.test),
        "reverse_in_train": float(np.mean(reverse)),
    }


@lru_cache(maxsize=1)
def _triples(graph: str, seed: int, data_dir: Path | None) -> Triples:
    if graph == GENERATED:
        return hierarchy_with_cycles(branching=3, depth=2, seed=seed)
    root = data_folder(data_dir)
    if root is None:
        raise FileNotFoundError(graph)
    under = root / "kg" / graph
    return load_triples(under if under.is_dir() else root / graph, seed=seed)


def data_folder(data_dir: Path | None) -> Path | None:
    """The folder asked for, else that of JORTH_DATA."""
    named = os.environ.get(VARIABLE)
    return data_dir if data_dir is not None else (Path(named) if named else None)


def _how_to_get(graph: str) -> str:
    return f"knowledge graph {graph} is not at hand: name the folder that has it by --data-dir or {VARIABLE}"
