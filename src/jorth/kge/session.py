"""What `jorth kge` does: train into a folder, evaluate and ask the model in it."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import NoneType
from typing import Any

import torch

from jorth.kge.config import ALL, Config, read_config
from jorth.kge.export import ABOUT, NamedModel, load_model, save_model
from jorth.kge.generated import hierarchy_with_cycles
from jorth.kge.logs import CSVLog, TensorBoardLog
from jorth.kge.picture import draw_history
from jorth.kge.ranking import Ranking, evaluate
from jorth.kge.training import Callback, Row, Training, train
from jorth.kge.triples import Triples, load_triples
from jorth.storage.atomic import replacing

GENERATED = Config(
    p=15,
    q=1,
    relation_lr=0.03,
    relation_options={"momentum": 0.9, "curvature": "per-plane", "metric": "invariant"},
    lr=0.05,
    schedule="linear",
    epochs=60,
    batch_size=128,
    loss="softmax",
    negatives="all",
    sides="both",
)
"""Of the generated graph: ten seconds on one core."""
SMALL = 2**17
"""Scores in a step, below which threads do not pay."""
OTHERS = ("data", "tensorboard")


@dataclass(frozen=True)
class Request:
    """A run: settings, the folder of the triples (None for the generated graph), whether TensorBoard gets it too."""

    config: Config = GENERATED
    data: Path | None = None
    tensorboard: bool = False

    @property
    def name(self) -> str:
        """What the graph is called."""
        return "generated hierarchy with cycles" if self.data is None else self.data.name


@dataclass(frozen=True, eq=False)
class Outcome:
    """A finished run: the training, the ranking of the test triples, and the graph."""

    training: Training
    test: Ranking
    triples: Triples


def read_request(path: Path) -> Request:
    """A run from a TOML file: ``data``, a folder relative to the file, and the keys of `Config`."""
    config, others = read_config(path, others=OTHERS)
    if "data" not in others:
        raise ValueError(f"{path} must have the key 'data', the folder of train, valid and test")
    data, tensorboard = others["data"], others.get("tensorboard", False)
    if not isinstance(data, str):
        raise ValueError(f"{path}: data must be the name of a folder, got {type(data).__name__}")
    if not isinstance(tensorboard, bool):
        raise ValueError(
            f"{path}: tensorboard must be true or false, got {type(tensorboard).__name__}"
        )
    return Request(config, path.parent / data, tensorboard)


def load_graph(data: Path | None, seed: int) -> Triples:
    """The triples of a folder, or the generated graph."""
    return hierarchy_with_cycles(seed=seed) if data is None else load_triples(data, seed=seed)


def run(request: Request, output: Path, *, callback: Callback | None = None) -> Outcome:
    """Train, and leave in ``output`` the best model, history.csv, history.png, test.json and the checkpoint."""
    triples = load_graph(request.data, request.config.seed)
    listeners: list[Callback] = [CSVLog(output / "history.csv")]
    if request.tensorboard:
        listeners.append(TensorBoardLog(output / "tensorboard"))
    if callback is not None:
        listeners.append(callback)

    def tell(row: Row) -> bool:
        replies = [listener(row) for listener in listeners]
        return any(reply is True for reply in replies)

    with _threads_for(request.config, triples):
        training = train(triples, request.config, callback=tell, checkpoint=output / "checkpoint")
    device = training.model.points.device
    test = evaluate(training.model, triples.test.to(device), triples.known.to(device))
    about: dict[str, Any] = {"data": None if request.data is None else str(request.data.resolve())}
    about |= {
        "config": asdict(request.config),
        "best_epoch": training.best_epoch,
        "test": test.metrics(),
    }
    save_model(output, NamedModel(training.model, triples.entities, triples.relations, about))
    with replacing(output / "test.json") as stream:
        stream.write(json.dumps(figures(test, triples.relations), indent=1).encode())
    draw_history(training.history, output / "history.png", title=request.name)
    return Outcome(training, test, triples)


@contextmanager
def _threads_for(config: Config, triples: Triples) -> Iterator[None]:
    """One thread while the products of a step are small: more would only wait for each other."""
    before = torch.get_num_threads()
    candidates = len(triples.entities) if config.negatives == ALL else int(config.negatives)
    if config.batch_size * candidates < SMALL:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def figures(ranking: Ranking, relations: Sequence[str]) -> dict[str, Any]:
    """All figures of a ranking: every side under every rule for ties, and every relation."""
    sides = {
        side: {
            ties: ranking.metrics(side, ties) for ties in ("realistic", "optimistic", "pessimistic")
        }
        for side in ("both", "head", "tail")
    }
    return sides | {
        "relations": {name: part.metrics() for name, part in ranking.by_relation(relations).items()}
    }


def evaluate_folder(
    folder: Path, *, data: Path | None, part: str, device: str
) -> tuple[Ranking, NamedModel]:
    """Rank a part of a graph by the model in a folder; ``data=None`` is the graph that it was trained on."""
    named = load_model(folder, device=device)
    trained_on, seed = _graph_of(named, folder)
    triples = load_graph(trained_on if data is None else data, seed)
    for what, ours, theirs in (
        ("entities", named.entities, triples.entities),
        ("relations", named.relations, triples.relations),
    ):
        if list(ours) != list(theirs):
            other = next(iter(sorted(set(theirs) ^ set(ours))), None)
            differ = "in another order" if other is None else f"{other!r} is in one only"
            raise ValueError(
                f"the graph must have the {len(ours)} {what} of the model, got {len(theirs)}; {differ}"
            )
    known = triples.known.to(device)
    return evaluate(named.model, getattr(triples, part).to(device), known), named


def _graph_of(named: NamedModel, folder: Path) -> tuple[Path | None, int]:
    """The folder of the triples that a model was trained on (None: the generated graph), and the seed."""
    data, config = named.about.get("data"), named.about.get("config", {})
    seed = config.get("seed", 0) if isinstance(config, dict) else None
    if not isinstance(data, (str, NoneType)) or type(seed) is not int or seed < 0:
        raise ValueError(
            f"{folder / ABOUT}: about must have data, a folder or null, and config with a seed"
        )
    return (Path(data) if data else None), seed


def answers(
    named: NamedModel, head: str, relation: str, tail: str, count: int
) -> list[tuple[str, float]]:
    """The ``count`` best entities in the place of the ``?``, with their scores."""
    if (head == "?") == (tail == "?"):
        raise ValueError(
            f"one of head and tail must be '?', the thing asked for; got {head!r} and {tail!r}"
        )
    code = torch.tensor([_number(relation, named.relations, "relation")])
    model = named.model
    with torch.no_grad():
        if tail == "?":
            scores = model.score_tails(
                torch.tensor([_number(head, named.entities, "entity")]), code
            )[0]
        else:
            scores = model.score_heads(
                code, torch.tensor([_number(tail, named.entities, "entity")])
            )[0]
    best = scores.topk(min(count, len(scores)))
    return [
        (named.entities[i], float(s))
        for s, i in zip(best.values, best.indices.tolist(), strict=True)
    ]


def _number(name: str, names: Sequence[str], what: str) -> int:
    try:
        return list(names).index(name)
    except ValueError:
        near = difflib.get_close_matches(name, names, n=1, cutoff=0.0)
        raise ValueError(f"there is no {what} {name!r}; the nearest is {near[0]!r}") from None


def changed(request: Request, **changes: Any) -> Request:
    """The request with some settings replaced; None leaves one as it is."""
    wanted = {name: value for name, value in changes.items() if value is not None}
    data = wanted.pop("data", request.data)
    return replace(request, config=replace(request.config, **wanted), data=data)
