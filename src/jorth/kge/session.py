"""The work of `jorth kge`: train into a folder, and evaluate the model in it."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import NoneType
from typing import Any

import torch

from jorth._files import replacing
from jorth._inputs import check_device
from jorth.kge.config import ALL, Config, read_config
from jorth.kge.export import ABOUT, NamedModel, load_model, save_model
from jorth.kge.graph import Triples, hierarchy_with_cycles
from jorth.kge.logs import CSVLog, TensorBoardLog, draw_history
from jorth.kge.model import UltraE
from jorth.kge.ranking import SIDES, TIES, Ranking, evaluate
from jorth.kge.reading import load_triples
from jorth.kge.training import Callback, Row, Training, is_stop, train
from jorth.solvers import Interrupt

log = logging.getLogger(__name__)
STANDARD, EXCLUDE_ANCHOR = PROTOCOLS = ("standard", "exclude_anchor")
"""Rankings among all entities, and without the entity that a query starts from."""
SCORES_FOR_THREADS = 2**17
"""The number of scores per step below which several threads do not pay off."""


@dataclass(frozen=True)
class Request:
    """What a run is asked to do."""

    config: Config = field(default_factory=Config)
    data: Path | None = None
    """The folder or the file of the triples; None stands for the generated graph."""
    header: bool | None = None
    """Whether the files of the graph begin with headings; None finds out."""
    tensorboard: bool = False

    @property
    def name(self) -> str:
        """The name of the graph."""
        return "generated hierarchy with cycles" if self.data is None else self.data.name

    def as_toml(self) -> str:
        """A file of settings that asks for the same."""
        data = None if self.data is None else str(self.data.resolve())
        values: dict[str, Any] = {"data": data, "header": self.header}
        values |= {"tensorboard": self.tensorboard or None, **asdict(self.config)}
        return "\n".join(f"{k} = {_toml(v)}" for k, v in values.items() if v is not None)


@dataclass(frozen=True, eq=False)
class FinishedRun:
    """The training, the graph, and the ranking of its test triples; None after Ctrl-C."""

    training: Training
    triples: Triples
    test: Ranking | None


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key} = {_toml(part)}' for key, part in value.items())}}}"
    return json.dumps(value)


def read_request(
    path: Path,
    *,
    data: Path | None = None,
    header: bool | None = None,
    preset: str | None = None,
    changes: dict[str, Any] | None = None,
) -> Request:
    """A run from a TOML file: ``data``, relative to the file, and the keys of `Config`.

    The arguments stand in for what the file has.
    """
    keys = ("data", "header", "tensorboard")
    config, others = read_config(path, others=keys, preset=preset, changes=changes)
    if "data" not in others and data is None:
        expected = "a folder of train, valid and test or a file of triples"
        raise ValueError(f"{path} must have the key 'data', {expected}, unless --data names it")
    own = others.get("data", "")
    tensorboard = others.get("tensorboard", False)
    if not isinstance(own, str):
        expected = "the name of a folder or a file"
        raise ValueError(f"{path}: data must be {expected}, got {type(own).__name__}")
    for name in {"header", "tensorboard"} & set(others):
        if not isinstance(others[name], bool):
            found = type(others[name]).__name__
            raise ValueError(f"{path}: {name} must be true or false, got {found}")
    header = others.get("header") if header is None else header
    return Request(config, path.parent / own if data is None else data, header, tensorboard)


def fitted(request: Request) -> tuple[Request, Triples]:
    """The graph, and the request with the sizes that its settings leave open."""
    check_device(request.config.device)
    check_device(request.config.relation_device, "relation_device")
    triples = _load_graph(request.data, request.config.seed, request.header)
    return replace(request, config=request.config.fitted(triples)), triples


def run(
    request: Request, triples: Triples, output: Path, *, callback: Callback | None = None
) -> FinishedRun:
    """Train and write model, history.csv, test.json, checkpoint and a picture to ``output``.

    After Ctrl-C there are the best model so far, history.csv and the checkpoint.
    """
    config = request.config
    listeners: list[Callback] = [CSVLog(output / "history.csv")]
    if request.tensorboard:
        listeners.append(TensorBoardLog(output / "tensorboard"))
    if callback is not None:
        listeners.append(callback)

    def notify_all(row: Row) -> bool:
        replies = [listener(row) for listener in listeners]
        return any(map(is_stop, replies))

    with _threads_for(config, triples):
        training = train(triples, config, callback=notify_all, checkpoint=output / "checkpoint")
    data = None if request.data is None else str(request.data.resolve())
    about = training.about | {"data": data, "header": request.header}
    _save(output, training, about)  # before anything else takes its time
    if training.interrupted:
        return FinishedRun(training, triples, None)
    try:
        ranked = {name: rank(training.model, triples, "test", name) for name in PROTOCOLS}
    except KeyboardInterrupt:
        return FinishedRun(training, triples, None)
    test = ranked[STANDARD]
    figures = json.dumps(all_metrics(ranked, triples.relations), indent=1)
    _save(output, training, about | {"test": test.metrics()}, figures)
    try:
        draw_history(training.history, output / "history.png", title=request.name)
    except ImportError as missing:
        log.warning("%s", missing)
    return FinishedRun(training, triples, test)


def _save(output: Path, model: NamedModel, about: dict[str, Any], figures: str = "") -> None:
    """Write the model and, if given, ``test.json``; Ctrl-C has to wait for that."""
    with Interrupt() as interrupt:
        interrupt.hold()
        save_model(output, replace(model, about=about))
        if figures:
            with replacing(output / "test.json") as stream:
                stream.write(figures.encode())


def _load_graph(data: Path | None, seed: int, header: bool | None) -> Triples:
    if data is None:
        return hierarchy_with_cycles(seed=seed)
    return load_triples(data, seed=seed, header=header)


@contextmanager
def _threads_for(config: Config, triples: Triples) -> Iterator[None]:
    """Use one thread if the products of a step are so small that more would only wait."""
    before = torch.get_num_threads()
    candidates = len(triples.entities) if config.negatives == ALL else int(config.negatives)
    if config.batch_size * candidates < SCORES_FOR_THREADS:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def rank(model: UltraE, triples: Triples, part: str, protocol: str) -> Ranking:
    """The filtered ranks of a part of a graph, computed on the device of the model."""
    device = model.points.device
    asked, known = getattr(triples, part).to(device), triples.known.to(device)
    return evaluate(model, asked, known, exclude_anchor=protocol == EXCLUDE_ANCHOR)


def all_metrics(rankings: dict[str, Ranking], relations: Sequence[str]) -> dict[str, Any]:
    """The metrics of every side under every rule for ties, and of every relation.

    Those of the standard protocol are at the top; others are below their names.
    """
    found: dict[str, Any] = {}
    for protocol, ranking in rankings.items():
        place = found if protocol == STANDARD else found.setdefault(protocol, {})
        for side in SIDES:
            place[side] = {ties: ranking.metrics(side, ties) for ties in TIES}
        parts = ranking.by_relation(relations)
        place["relations"] = {name: part.metrics() for name, part in parts.items()}
    return found


def evaluate_folder(
    folder: Path, *, data: Path | None, part: str, device: str, protocols: Sequence[str]
) -> tuple[dict[str, Ranking], NamedModel]:
    """Rank a part of the graph in ``data``, or of the one that the model was trained on."""
    named = load_model(folder, device=device)
    triples = graph_of(named, folder, data)
    return {protocol: rank(named.model, triples, part, protocol) for protocol in protocols}, named


def graph_of(named: NamedModel, folder: Path, data: Path | None) -> Triples:
    """The graph in ``data``, or the one that the model in ``folder`` was trained on."""
    trained_on, seed, header = _origin(named, folder)
    if data is None and "data" not in named.about:
        raise ValueError(f"the model in {folder} does not name its graph: give it by --data")
    triples = _load_graph(trained_on if data is None else data, seed, header)
    for what, ours, theirs in (
        ("entities", named.entities, triples.entities),
        ("relations", named.relations, triples.relations),
    ):
        if list(ours) != list(theirs):
            other = next(iter(sorted(set(theirs) ^ set(ours))), None)
            differ = "in another order" if other is None else f"{other!r} is in one only"
            expected = f"the {len(ours)} {what} of the model"
            raise ValueError(f"the graph must have {expected}, got {len(theirs)}; {differ}")
    return triples


def _origin(named: NamedModel, folder: Path) -> tuple[Path | None, int, bool | None]:
    """The data that a model was trained on, the seed, and whether the files have headings."""
    data, header = named.about.get("data"), named.about.get("header")
    config = named.about.get("config", {})
    seed = config.get("seed", 0) if isinstance(config, dict) else None
    valid = isinstance(data, (str, NoneType)) and isinstance(header, (bool, NoneType))
    if not valid or type(seed) is not int or seed < 0:
        expected = "data, a folder or null, and config with a seed"
        raise ValueError(f"{folder / ABOUT}: about must have {expected}")
    return (Path(data) if data else None), seed, header
