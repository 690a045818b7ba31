"""The work of `jorth kge`: train into a folder, and evaluate the model in it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from jorth._files import replacing
from jorth.kge.config import ALL, Config
from jorth.kge.graph import Triples, hierarchy_with_cycles, load_triples
from jorth.kge.model import ABOUT, NamedModel, load_model, save_model
from jorth.kge.ranking import SIDES, TIES, Frequencies, Ranking, evaluate
from jorth.kge.training import Callback, Training, train
from jorth.solvers import Interrupt

STANDARD, IRREFLEXIVE = PROTOCOLS = ("standard", "irreflexive")
"""Rankings among all entities, and by the rule on the entity that a query starts from."""


class Ranked(NamedTuple):
    """The ranks by a model and, as a baseline, those by `jorth.kge.Frequencies`."""

    model: Ranking
    baseline: Ranking


def run(
    config: Config, triples: Triples, data: Path | None, output: Path, callback: Callback
) -> tuple[Training, Ranked | None]:
    """Train and write model, history.csv, test.json and checkpoint to ``output``.

    Returns the training and the ranks of the test triples. After Ctrl-C there are no ranks, but the
    best model so far, history.csv and the checkpoint.
    """
    with _threads_for(config, triples):
        training = train(triples, config, callback=callback, checkpoint=output / "checkpoint")
    about = training.about | {"data": None if data is None else str(data.resolve())}
    _save(output, training, about, _csv(training.history), "history.csv")
    if training.interrupted:
        return training, None
    try:
        ranked = {name: rank(training, triples, "test", name) for name in PROTOCOLS}
    except KeyboardInterrupt:
        return training, None
    test = ranked[STANDARD]
    figures = json.dumps(all_metrics(ranked, triples.relations), indent=1)
    _save(output, training, about | {"test": test.model.metrics()}, figures, "test.json")
    return training, test


def _save(output: Path, model: NamedModel, about: dict[str, Any], text: str, name: str) -> None:
    """Write the model and the text of a file; Ctrl-C has to wait for that."""
    with Interrupt() as interrupt:
        interrupt.hold()
        save_model(output, replace(model, about=about))
        with replacing(output / name) as stream:
            stream.write(text.encode())


def _csv(history: dict[str, Any]) -> str:
    """Return a history as CSV, one line per epoch."""
    text = StringIO()
    columns = np.column_stack(list(history.values()))
    np.savetxt(text, columns, "%.17g", delimiter=",", header=",".join(history), comments="")
    return text.getvalue()


def load_graph(data: Path | None, seed: int) -> Triples:
    """Return the graph of a folder or a file; None stands for the generated one."""
    return hierarchy_with_cycles(seed=seed) if data is None else load_triples(data, seed=seed)


@contextmanager
def _threads_for(config: Config, triples: Triples) -> Iterator[None]:
    """Use one thread if the products of a step are so small that more would only wait."""
    before = torch.get_num_threads()
    candidates = len(triples.entities) if config.negatives == ALL else int(config.negatives)
    if config.batch_size * candidates < 2**17:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def rank(named: NamedModel, triples: Triples, part: str, protocol: str) -> Ranked:
    """Return the filtered ranks of a part of a graph, computed on the device of the model.

    A model that has no rule takes that of the graph.
    """
    device = named.model.points.device
    asked, known = getattr(triples, part).to(device), triples.known.to(device)
    rule = triples.irreflexive if named.irreflexive is None else named.irreflexive
    mask = rule if protocol == IRREFLEXIVE else None
    models = (named, Frequencies(triples))
    return Ranked(*(evaluate(model, asked, known, irreflexive=mask) for model in models))


def all_metrics(rankings: dict[str, Ranked], relations: Sequence[str]) -> dict[str, Any]:
    """Return, by protocol, the metrics of every side, every rule for ties and every relation.

    Those of the baseline are beside them, under "frequencies".
    """

    def metrics(ranking: Ranking) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for side in SIDES:
            found[side] = {ties: ranking.metrics(side, ties) for ties in TIES}
        parts = ranking.by_relation(relations)
        return found | {"relations": {name: part.metrics() for name, part in parts.items()}}

    return {
        protocol: metrics(ranked.model) | {"frequencies": metrics(ranked.baseline)}
        for protocol, ranked in rankings.items()
    }


def evaluate_folder(
    folder: Path, *, data: Path | None, part: str, device: str, protocols: Sequence[str]
) -> tuple[dict[str, Ranked], NamedModel]:
    """Rank a part of the graph in ``data``, or of the one that the model was trained on."""
    named = load_model(folder, device=device)
    triples = graph_of(named, folder, data)
    return {protocol: rank(named, triples, part, protocol) for protocol in protocols}, named


def graph_of(named: NamedModel, folder: Path, data: Path | None) -> Triples:
    """Return the graph in ``data``, or the one that the model in ``folder`` was trained on."""
    about = named.about
    try:
        trained_on = None if about.get("data") is None else Path(about["data"])
        seed = int(about.get("config", {}).get("seed", 0))
    except (TypeError, ValueError, AttributeError):
        expected = "data, a folder or null, and config with a seed"
        raise ValueError(f"{folder / ABOUT}: about must have {expected}") from None
    if data is None and "data" not in about:
        raise ValueError(f"the model in {folder} does not name its graph: give it by --data")
    triples = load_graph(trained_on if data is None else data, seed)
    for kind in ("entities", "relations"):
        expected, found = getattr(named, kind), getattr(triples, kind)
        if list(expected) != list(found):
            other = next(iter(sorted(set(found) ^ set(expected))), None)
            differ = "in another order" if other is None else f"{other!r} is in one only"
            names = f"the {len(expected)} {kind} of the model"
            raise ValueError(f"the graph must have {names}, got {len(found)}; {differ}")
    return triples
