"""`train`: one loop for all methods, with early stopping, exact resumption and a history."""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.utils import parametrize

from jorth._inputs import check_device, describe, file_path
from jorth.kge.batches import Batch, BatchLoss, Negatives
from jorth.kge.config import ALL, DTYPES, Config
from jorth.kge.graph import Known, Triples, both_directions
from jorth.kge.model import NamedModel, UltraE
from jorth.kge.optimisers import CapturedStep, Optimisers, OptimiserState, largest_relation
from jorth.kge.ranking import evaluate
from jorth.optim import AveragedModel
from jorth.solvers import CheckpointFolder, Interrupt, pack, unpack

METRICS = ("mrr", "hits@1", "hits@3", "hits@10")
COLUMNS = ("epoch", "time", "queries", "loss", *METRICS)
Row = dict[str, float]
Callback = Callable[[Row], object]


@dataclass(frozen=True, eq=False, kw_only=True)
class Training(NamedModel):
    """What `train` returns: a `NamedModel` with its history, so that `predict` and others take it.

    Attributes:
        model: The model with the best validation MRR; before the first evaluation, the latest one.
        entities: The names of the entities, from the graph.
        relations: The names of the relations, from the graph.
        about: The settings, the epoch of the model and the message, as JSON can hold them.
        irreflexive: Which relations never relate an entity to itself in training, from the graph.
        frequencies: How often each relation occurs in training, from the graph.
        history: Arrays of equal length with one entry per epoch: epoch, time (seconds of training,
            without evaluation), queries (seen so far), loss (mean over the epoch), and mrr, hits@1,
            hits@3 and hits@10 on the validation triples, NaN in epochs without an evaluation.
        best_epoch: The epoch of the model.
        config: The settings, with the sizes that were chosen for the graph.
        message: Why the run ended.
        interrupted: Whether Ctrl-C was pressed, which ends a run early.
    """

    history: dict[str, NDArray[np.float64]]
    best_epoch: int
    message: str
    config: Config
    interrupted: bool = False

    @property
    def best_mrr(self) -> float:
        """Return the validation MRR of the model, NaN if it was not evaluated."""
        return float(self.history["mrr"][self.best_epoch - 1]) if self.best_epoch else math.nan


def train(
    triples: Triples,
    config: Config | None = None,
    *,
    callback: Callback | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> Training:
    """Embed a knowledge graph by UltraE.

    Ctrl-C ends the run after the step that it is at, and the best model so far is returned, with
    ``interrupted`` set. A second Ctrl-C before there is a model raises KeyboardInterrupt.

    Args:
        triples: The graph; its validation part selects the model.
        config: The settings. The defaults are meant for graphs that nobody has tuned for.
        callback: A function that is given the row of every epoch, and ends the run by returning
            True.
        checkpoint: A folder that is written after every evaluation. A run that finds its own
            checkpoint there continues from it, with the result of the uninterrupted run, bit for
            bit on the CPU with the same number of threads. If the folder cannot be written, there
            is a warning.

    Raises:
        jorth.CheckpointMismatch: The folder belongs to another graph or to other settings.
        ValueError: There are no training or no validation triples, or the checkpoint in the folder
            is damaged.
        FloatingPointError: The loss or the model is no longer finite before the first evaluation.
            Afterwards such a run ends with the best model and a message that says so.

    >>> graph = jorth.kge.hierarchy_with_cycles(depth=2)
    >>> trained = jorth.kge.train(graph, jorth.kge.Config(p=7, epochs=3))
    >>> jorth.kge.predict(trained, "0.2.1", "parent", k=1)
    [Answer(entity=..., score=..., probability=...)]
    """
    config = Config() if config is None else config
    for value, kind, name in ((triples, Triples, "triples"), (config, Config, "config")):
        if not isinstance(value, kind):
            hint = "; jorth.kge.load_triples reads a folder" if kind is Triples else ""
            what = f"a jorth.kge.{kind.__name__}, got {describe(value)}{hint}"
            raise TypeError(f"{name} must be {what}")
    triples.require("train", "valid")
    if callback is not None and (isinstance(callback, type) or not callable(callback)):
        expected = "a function of the row of an epoch"
        raise TypeError(f"callback must be {expected}, got {describe(callback)}")
    check_device(config.device)
    run, store = _Run(triples, config), None
    if checkpoint is not None:
        store = CheckpointFolder(
            file_path(checkpoint, "checkpoint"), _identity(triples, run.config)
        )
        found = store.load()
        if found is not None:
            run.restore(*found)
    with warnings.catch_warnings():
        # without a limit the warning says that the precision of relations is lost, and is given
        if config.method != "csdm" and largest_relation(config) is not None:
            warnings.filterwarnings("ignore", "a step would end beyond", RuntimeWarning)
        return _train(run, callback, store)


def _train(run: _Run, callback: Callback | None, store: CheckpointFolder | None) -> Training:
    """Train epoch by epoch, save after evaluations, and return what was found."""
    progress = run.progress
    with Interrupt() as interrupt:
        interrupt.hold()
        run.stop_requested = interrupt.requested
        try:
            while not (progress.message or run.stop_requested()):
                if run.time_is_over():
                    run.end_by_time()
                    break
                row = run.epoch()
                stop = callback is not None and is_stop(callback(dict(row)))
                ended = stop or progress.message or run.time_is_over()
                if store is not None and (ended or not math.isnan(row["mrr"])):
                    store.save(*run.packed())
                if stop and not progress.message:  # after saving, so that another call continues
                    progress.message = "stopped by the callback"
        except _StoppedInEpochError:
            pass
        except KeyboardInterrupt:  # a step may be half done; the best model is a copy
            if not progress.best.epoch:
                raise
            return run.result(interrupted=True)
        return run.result(interrupted=interrupt.requested())


def is_stop(reply: object) -> bool:
    """Return whether a callback has returned True, Python's or NumPy's."""
    return reply is True or (isinstance(reply, np.bool_) and bool(reply))


@dataclass(frozen=True)
class _Best:
    """The best model so far."""

    weights: dict[str, Tensor] = field(default_factory=dict)
    epoch: int = 0
    mrr: float = -1.0
    evaluations_since: int = 0

    def better_of(self, mrr: float, epoch: int, model: UltraE) -> _Best:
        """Return the better one of this and of the model after an epoch."""
        if not mrr > self.mrr:
            return replace(self, evaluations_since=self.evaluations_since + 1)
        weights = {name: part.detach().clone() for name, part in model.weights().items()}
        return _Best(weights, epoch, mrr)


@dataclass
class _Progress:
    """How far a run has come, and its best model so far."""

    rows: list[Row] = field(default_factory=list)
    best: _Best = field(default_factory=_Best)
    message: str = ""
    """Why the run has ended, empty while it goes on."""
    remark: str = ""
    """What else the user should know at the end."""


class _StoppedInEpochError(Exception):
    """Ctrl-C between two steps: the model is whole, the epoch is not."""


@dataclass
class _Checkpoint:
    """Everything that changes from epoch to epoch."""

    progress: _Progress
    parameters: dict[str, Tensor]
    optimisers: list[OptimiserState]
    average: dict[str, Tensor]
    """The average of the model, empty while there is none."""


class _Run:
    """A training run between two epochs."""

    def __init__(self, triples: Triples, config: Config) -> None:
        self.config = config = config.fitted(triples)
        self.triples = triples
        self.model = _model(triples, config)
        self.progress = _Progress()
        self._optimisers = Optimisers(self.model, config)
        entities = len(triples.entities)
        relations = len(triples.relations)
        train_triples = triples.train.to(config.device)
        self._queries = both_directions(train_triples, relations)
        count = None if config.negatives == ALL else int(config.negatives)
        known = Known(train_triples, entities, relations) if config.reject else None
        self._negatives = Negatives(entities, count, known)
        self.loss = BatchLoss(self.model, self._negatives, config.smoothing, config.regularisation)
        self._average: AveragedModel | None = None
        self._unparametrised = _model(triples, config)
        self._step = self._step_function()
        self.stop_requested: Callable[[], bool] = lambda: False
        """Whether the run shall end after the step that it is at."""

    def _step_function(self) -> Callable[[Batch], Tensor]:
        """Return a function that takes a step, replayed from a CUDA graph where it can be."""

        def plain(batch: Batch) -> Tensor:
            return self._optimisers.step(lambda: self.loss(batch))

        if self._optimisers.stays_on_device:
            return CapturedStep(plain, self._optimisers.relation_group)
        return plain

    @property
    def evaluated(self) -> UltraE:
        """Return the model that is evaluated and returned: the average once there is one."""
        return self.model if self._average is None else cast(UltraE, self._average.module)

    def epoch(self) -> Row:
        """Train for one epoch, evaluate when it is due, and decide whether to go on."""
        config, progress = self.config, self.progress
        number = len(progress.rows) + 1
        start = time.perf_counter()
        loss, seen = self.steps(number)
        broken = self._broken(loss)
        if not broken:
            self._update_average(number)
        seconds = time.perf_counter() - start
        last = progress.rows[-1] if progress.rows else {"time": 0.0, "queries": 0}
        row = dict.fromkeys(COLUMNS, math.nan) | {
            "epoch": number,
            "time": last["time"] + seconds,
            "queries": last["queries"] + seen,
            "loss": loss,
        }
        progress.rows.append(row)
        if broken:
            progress.message = (
                f"the {broken} in epoch {number}; a smaller lr or relation_lr may help, or alpha "
                "and regularisation nearer to one"
            )
            if not progress.best.epoch:  # there is no earlier model to return
                raise FloatingPointError(progress.message)
            return row
        if number % config.evaluate_every == 0 or number == config.epochs:
            self._evaluate(row)
        evaluations = progress.best.evaluations_since
        if number == config.epochs:
            progress.message = f"all {number} epochs are done"
        elif config.patience and evaluations >= config.patience:
            progress.message = f"no better validation MRR in {evaluations} evaluations"
        return row

    def _evaluate(self, row: Row) -> None:
        """Rank the validation triples, and keep the model of this epoch if it is the best."""
        device = self.model.points.device
        known = self.triples.known.to(device)
        metrics = evaluate(self.evaluated, self.triples.valid.to(device), known).metrics()
        row.update({name: metrics[name] for name in METRICS})
        best = self.progress.best.better_of(row["mrr"], int(row["epoch"]), self.evaluated)
        self.progress.best = best

    def time_is_over(self) -> bool:
        """Return whether the epochs so far have taken ``max_time``."""
        rows, limit = self.progress.rows, self.config.max_time
        return limit is not None and bool(rows) and rows[-1]["time"] >= limit

    def end_by_time(self) -> None:
        """Evaluate the last model, which no checkpoint knows: a run with more time goes on."""
        if math.isnan(self.progress.rows[-1]["mrr"]):
            self._evaluate(self.progress.rows[-1])
        self.progress.message = f"stopped after max_time, {self.config.max_time:g} s"

    @torch.no_grad()
    def _update_average(self, number: int) -> None:
        """Let the model after an epoch enter the average if it is one of the last epochs.

        All parameters have their mean, the relations its polar factors. Where there is no mean on
        the group, the run goes on without an average.
        """
        if number == self.config.averaged_from:
            self._average = AveragedModel(self._unparametrised)
        if self._average is None:
            return
        model = self.model
        if parametrize.is_parametrized(model):
            model = self._unparametrised
            for name, value in self.model.weights().items():
                getattr(model, name).copy_(value)
        try:
            self._average.update_parameters(model)
        except ValueError as error:
            self._average = None
            self.progress.remark = f"no average: {str(error).split(':')[0]} in epoch {number}"
            warnings.warn(self.progress.remark, RuntimeWarning, stacklevel=2)

    def _broken(self, loss: float) -> str:
        """Return what is no longer a number after an epoch, or an empty text."""
        if not math.isfinite(loss):
            return f"loss is {loss:g}"
        if not all(bool(part.isfinite().all()) for part in self.model.weights().values()):
            return f"model is not finite, its loss {loss:g}"
        return ""

    def steps(self, number: int) -> tuple[float, int]:
        """Take all steps of an epoch and return the mean loss and the number of queries used.

        The random numbers depend on the seed and on the number of the epoch alone.
        """
        config = self.config
        device = self.model.points.device
        (word,) = np.random.SeedSequence([config.seed, number]).generate_state(1, np.uint64)
        generator = torch.Generator(device).manual_seed(int(word >> np.uint64(1)))
        order = torch.randperm(len(self._queries), generator=generator, device=device)
        queries = self._queries[order]
        negatives = self._negatives.epoch(generator)
        total = torch.zeros((), dtype=torch.float64, device=device)
        seen = 0
        starts = range(0, len(queries), config.batch_size)
        for step, start in enumerate(starts):
            self._optimisers.set_rates(config.rate(number - 1 + step / len(starts)))
            chosen = queries[start : start + config.batch_size]
            if self._optimisers.wants_large_batch():
                size = (config.large_batch,)
                numbers = torch.randint(len(queries), size, generator=generator, device=device)
                chosen = queries[numbers]
            loss = self._step(Batch(chosen, negatives.next(chosen)))
            total += loss * len(chosen)
            seen += len(chosen)
            if self.stop_requested():
                raise _StoppedInEpochError
        return float(total) / seen, seen

    def packed(self) -> tuple[dict[str, Tensor], Any]:
        """Return the content of a checkpoint."""
        tensors: dict[str, Tensor] = {}
        average = {} if self._average is None else self._average.state_dict()
        states = self._optimisers.states()
        state = _Checkpoint(self.progress, self.model.state_dict(), states, average)
        return tensors, pack(state, "run", tensors)

    def restore(self, tensors: dict[str, Tensor], numbers: dict[str, Any]) -> None:
        """Continue from the result of `packed`."""
        device = self.model.points.device
        placed = {name: tensor.to(device) for name, tensor in tensors.items()}
        state: _Checkpoint = unpack(numbers, _Checkpoint, placed)
        self.progress = state.progress
        self.model.load_state_dict(state.parameters)
        self._optimisers.restore(state.optimisers)
        self._step = self._step_function()
        if state.average and len(self.progress.rows) >= self.config.averaged_from:
            self._average = AveragedModel(self._unparametrised)
            self._average.load_state_dict(state.average)

    def result(self, *, interrupted: bool = False) -> Training:
        """Return the best model, without parametrisations, and the history."""
        progress = self.progress
        plain = _model(self.triples, self.config)
        plain.load_state_dict(progress.best.weights or self.evaluated.weights())
        history = {name: np.array([row[name] for row in progress.rows]) for name in COLUMNS}
        done = len(progress.rows)
        epoch = progress.best.epoch or done
        ended = progress.message
        if interrupted and not ended:
            ended = f"interrupted in epoch {min(done + 1, self.config.epochs)}"
        remark, first = progress.remark, self.config.averaged_from
        if self.config.averaging and epoch < first and not remark:
            remark = f"the model is no average: averages begin with epoch {first}"
        message = "; ".join(text for text in (ended, remark) if text)
        return Training(
            plain,
            self.triples.entities,
            self.triples.relations,
            {"config": asdict(self.config), "best_epoch": epoch, "message": message},
            self.triples.irreflexive,
            self.triples.frequencies,
            history=history,
            best_epoch=epoch,
            message=message,
            config=self.config,
            interrupted=interrupted,
        )


def _model(triples: Triples, config: Config) -> UltraE:
    """Return the model before training."""
    return UltraE(
        len(triples.entities),
        len(triples.relations),
        signature=config.signature,
        alpha=config.alpha,
        reciprocal=config.reciprocal,
        reverse_weight=config.reverse_weight,
        start=config.start,
        seed=config.seed,
        dtype=DTYPES[config.dtype],
        device=config.device,
    )


def _identity(triples: Triples, config: Config) -> dict[str, str]:
    """Return the graph and the settings, in which a run and its checkpoint must agree.

    The time limit only says how long a run goes.
    """
    digest = hashlib.sha256()
    for part in (triples.train, triples.valid, triples.test):
        digest.update(part.cpu().numpy().tobytes())
    digest.update(json.dumps([triples.entities, triples.relations]).encode())
    settings = {key: repr(value) for key, value in asdict(config).items()}
    del settings["max_time"]
    return {"graph": digest.hexdigest()[:16], **settings}
