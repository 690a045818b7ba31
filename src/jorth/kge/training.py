"""`train`: one loop for all methods, with early stopping, checkpoints that resume bit for bit, and a history."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth.arrays import check_device, check_flag, describe, file_path
from jorth.kge import losses
from jorth.kge.config import ALL, DTYPES, Config
from jorth.kge.known import Known
from jorth.kge.model import UltraE
from jorth.kge.negatives import Negatives, Queries
from jorth.kge.optimisers import Optimisers
from jorth.kge.ranking import evaluate
from jorth.kge.triples import Triples
from jorth.ranks import Ranks, naming_checkpoint, only_first
from jorth.storage import checkpoint as checkpoints

COLUMNS = ("epoch", "time", "queries", "loss", "mrr", "hits@1", "hits@3", "hits@10")
Row = dict[str, float]
Callback = Callable[[Row], object]


@dataclass(frozen=True, eq=False)
class Training:
    """What `train` returns.

    Attributes:
        model: The model with the best validation MRR.
        history: Arrays of equal length, one entry an epoch: epoch, time (seconds of training, evaluation not counted),
            queries (trained on so far), loss (mean over the epoch), and mrr, hits@1, hits@3, hits@10 on the validation
            triples, NaN in epochs without an evaluation.
        best_epoch: The epoch of the model.
        message: Why it ended.
    """

    model: UltraE
    history: dict[str, NDArray[np.float64]]
    best_epoch: int
    message: str


def train(
    triples: Triples,
    config: Config | None = None,
    *,
    callback: Callback | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    distributed: bool = False,
) -> Training:
    """Embed a knowledge graph by UltraE.

    Args:
        triples: The graph; its validation part chooses the model.
        config: The settings; the paper's model with J-JOBCD by default.
        callback: Is given the row of every epoch; the run ends when it returns True.
        checkpoint: A folder. It is written after every evaluation, and a run that finds its own there goes on from it:
            the result is that of the uninterrupted run, bit for bit on the CPU. Where it cannot be written any more
            there is a warning, and the run goes on.
        distributed: Whether the processes of `torch.distributed` share the queries of every batch. All of them call
            this with the same graph and settings and return the same model; the first writes the checkpoint.

    Raises:
        jorth.RankLost: Another process has ended.
        jorth.CheckpointMismatch: The folder belongs to another graph or other settings.
        ValueError: The checkpoint in it is damaged.
        FloatingPointError: The loss or the model is not finite any more before the first evaluation. Later the run ends
            with the best model, and its message says so.
    """
    config = Config() if config is None else config
    for value, kind, name in ((triples, Triples, "triples"), (config, Config, "config")):
        if not isinstance(value, kind):
            raise TypeError(f"{name} must be a jorth.kge.{kind.__name__}, got {describe(value)}")
    if callback is not None and (isinstance(callback, type) or not callable(callback)):
        raise TypeError(
            f"callback must be a function of the row of an epoch, got {describe(callback)}"
        )
    check_flag(distributed, "distributed")
    check_device(config.device)
    check_device(config.relation_device, "relation_device")
    folder = None if checkpoint is None else file_path(checkpoint, "checkpoint")
    ranks = Ranks(device=config.device) if distributed else None
    with naming_checkpoint(folder, checkpoints.FILE):
        return _train(_Run(triples, config, ranks), callback, folder, ranks)


def _train(
    run: _Run, callback: Callback | None, folder: Path | None, ranks: Ranks | None
) -> Training:
    """Go on from the checkpoint, if there is one, to the end."""
    keeper = None
    if folder is not None:
        keeper = checkpoints.Folder(folder, _identity(run.triples, run.config))
        found = keeper.open(run.model.points.device, ranks)
        if found is not None:
            run.restore(*found)
    while not run.message:
        row = run.epoch()
        stop = callback is not None and callback(dict(row)) is True
        if ranks is not None:
            stop = ranks.largest([stop])[0] > 0
        if (
            keeper is not None
            and only_first(ranks)
            and (stop or run.message or row["mrr"] == row["mrr"])
        ):
            keeper.save(*run.state())
        if stop and not run.message:  # not saved: another call goes on
            run.message = "stopped by the callback"
    return run.result()


class _Run:
    """A training run between two epochs: all that changes in it is written by `state`."""

    def __init__(self, triples: Triples, config: Config, ranks: Ranks | None = None) -> None:
        self.config, self.triples, self._ranks = config, triples, ranks
        device = torch.device(config.device)
        relations = len(triples.relations)
        self.model = _model(triples, config)
        self._optimisers = Optimisers(self.model, config, ranks)
        train_triples = triples.train.to(device)
        self._queries = Queries(train_triples, relations, config.sides)
        self._negatives = Negatives(
            len(triples.entities),
            None if config.negatives == ALL else int(config.negatives),
            config.shared,
            Known(train_triples, len(triples.entities), relations) if config.reject else None,
        )
        self.rows: list[Row] = []
        self.message = ""
        self._best: dict[str, Tensor] = {}
        self._best_epoch, self._best_mrr, self._waited = 0, -1.0, 0

    def epoch(self) -> Row:
        """Train for one epoch, evaluate when it is time, decide whether to go on."""
        number = len(self.rows) + 1
        start = time.perf_counter()
        loss, seen = self._train(number)
        seconds = time.perf_counter() - start
        if self._ranks is not None:  # one time limit for all
            (seconds,) = self._ranks.largest([seconds])
        last = self.rows[-1] if self.rows else {"time": 0.0, "queries": 0}
        row = dict.fromkeys(COLUMNS, np.nan) | {
            "epoch": number,
            "time": last["time"] + seconds,
            "queries": last["queries"] + seen,
            "loss": loss,
        }
        if not self._finite(loss):
            return self._broken(row)
        out_of_time = self.config.max_time is not None and row["time"] >= self.config.max_time
        if number % self.config.evaluate_every == 0 or number == self.config.epochs or out_of_time:
            ranking = evaluate(self.model, self._valid(), self._known()).metrics()
            row.update({name: ranking[name] for name in ("mrr", "hits@1", "hits@3", "hits@10")})
            self._compare(number, row["mrr"])
        self.rows.append(row)
        if number >= self.config.epochs:
            self.message = f"all {number} epochs are done"
        elif out_of_time:
            self.message = f"max_time of {self.config.max_time:g} s is over"
        elif self.config.patience and self._waited >= self.config.patience:
            self.message = f"no better validation MRR in {self._waited} evaluations"
        return row

    def _finite(self, loss: float) -> bool:
        return np.isfinite(loss) and all(
            bool(part.isfinite().all()) for part in _weights(self.model).values()
        )

    def _broken(self, row: Row) -> Row:
        """End with the best model so far; an error if there is none."""
        what = "loss is" if not np.isfinite(row["loss"]) else "model is not finite, its loss"
        self.message = f"the {what} {row['loss']:g} in epoch {row['epoch']}; a smaller lr or relation_lr may help, "
        self.message += "or alpha, delta, spread, temperature and regularisation nearer to one"
        if not self._best_epoch:
            raise FloatingPointError(self.message)
        self.rows.append(row)
        return row

    def _train(self, number: int) -> tuple[float, int]:
        """All steps of an epoch: the mean loss, and the queries used. The random numbers are those of the epoch."""
        device = self.model.points.device
        generator = torch.Generator(device).manual_seed(_epoch_seed(self.config.seed, number))
        queries = self._queries.epoch(generator)
        total, seen = torch.zeros((), dtype=torch.float64, device=device), 0
        steps = -(-len(queries) // self.config.batch_size)
        for step in range(steps):
            self._optimisers.set_rates(self.config.rate(number - 1 + step / steps))
            batch = queries[step * self.config.batch_size : (step + 1) * self.config.batch_size]
            if self._optimisers.wants_large_batch():
                chosen = torch.randint(
                    len(queries), (self.config.large_batch,), generator=generator, device=device
                )
                batch = queries[chosen]
            candidates = self._negatives.draw(batch, generator)
            loss = self._optimisers.step(lambda b=batch, c=candidates: self._share(b, c))  # type: ignore[misc]
            total += loss * len(batch)
            seen += len(batch)
        return float(total) / seen, seen

    def _share(self, queries: Tensor, candidates: Tensor | None) -> Tensor:
        """The part of this process in the mean loss of a batch: its queries are a run of them."""
        if self._ranks is None:
            return self._loss(queries, candidates)
        every = torch.arange(len(queries), device=queries.device)
        own = every.tensor_split(self._ranks.size)[self._ranks.rank]
        weight = len(own) / len(queries)
        own = own if len(own) else every[:1]  # of no weight, for gradients to be there
        if candidates is not None and candidates.ndim == 2:
            candidates = candidates[own]
        return weight * self._loss(queries[own], candidates)

    def _loss(self, queries: Tensor, candidates: Tensor | None) -> Tensor:
        anchor, code, answer = queries.unbind(-1)
        model = self.model
        if candidates is None:
            E = model.embeddings()
            x, y = E.index_select(0, anchor), E.index_select(0, answer)
            scores = model.score_points(
                model.move(x, code), model.bias.index_select(0, anchor), E, model.bias
            )
            positive = scores.gather(1, answer[:, None])[:, 0]
        else:
            (x, x_bias), (y, y_bias), (E, bias) = model.read(anchor, answer, candidates)
            moved = model.move(x, code)
            scores = model.score_points(moved, x_bias, E, bias)
            positive = model.score_points(moved, x_bias, y[:, None], y_bias[:, None])[:, 0]
        loss = self._compare_scores(positive, scores, queries, candidates)
        if self.config.regularisation:
            s = torch.cat([x, y]).index_select(1, model.plus)
            loss = loss + self.config.regularisation * s.square().sum(-1).mean()
        return loss

    def _compare_scores(
        self, positive: Tensor, scores: Tensor, queries: Tensor, candidates: Tensor | None
    ) -> Tensor:
        config = self.config
        if (
            candidates is None and config.loss == "softmax" and not config.reject
        ):  # the same with half the memory
            return torch.nn.functional.cross_entropy(scores, queries[:, 2])
        negative = self._negatives.leave_out(scores, queries, candidates)
        if config.loss == "logistic":
            return losses.logistic(positive, negative)
        if config.loss == "softmax":
            return losses.softmax(positive, negative)
        return losses.self_adversarial(positive, negative, config.temperature)

    def _valid(self) -> Tensor:
        return self.triples.valid.to(self.model.points.device)

    def _known(self) -> Tensor:
        return self.triples.known.to(self.model.points.device)

    def _compare(self, number: int, mrr: float) -> None:
        """Keep the model if it is the best so far."""
        self._waited += 1
        if mrr > self._best_mrr:
            self._best_mrr, self._best_epoch, self._waited = mrr, number, 0
            self._best = {
                name: value.detach().clone() for name, value in _weights(self.model).items()
            }

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors and numbers for a checkpoint."""
        tensors = {f"model.{name}": value for name, value in self.model.state_dict().items()}
        tensors |= {f"best.{name}": value for name, value in self._best.items()}
        optimiser_tensors, optimisers = self._optimisers.state()
        tensors |= {f"optimiser.{name}": value for name, value in optimiser_tensors.items()}
        tensors["history"] = torch.tensor(
            [[row[name] for name in COLUMNS] for row in self.rows], dtype=torch.float64
        )
        own = {"message": self.message, "optimisers": optimisers}
        return tensors, own | {"best": [self._best_epoch, self._best_mrr, self._waited]}

    def restore(self, tensors: dict[str, Tensor], numbers: dict[str, Any]) -> None:
        """Back to what `state` gave."""
        parts: dict[str, dict[str, Tensor]] = {"model": {}, "best": {}, "optimiser": {}}
        rows = tensors.pop("history").tolist()
        for name, value in tensors.items():
            part, rest = name.split(".", 1)
            parts[part][rest] = value
        self.model.load_state_dict(parts["model"])
        self._optimisers.restore(parts["optimiser"], numbers["optimisers"])
        self._best, self.message = parts["best"], numbers["message"]
        self.rows = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
        self._best_epoch, self._best_mrr, self._waited = numbers["best"]

    def result(self) -> Training:
        """The best model and the history."""
        plain = _model(self.triples, self.config)
        plain.load_state_dict(self._best or _weights(self.model))
        history = {name: np.array([row[name] for row in self.rows]) for name in COLUMNS}
        return Training(plain, history, self._best_epoch, self.message)


def _model(triples: Triples, config: Config) -> UltraE:
    """The model at its start."""
    return UltraE(
        len(triples.entities),
        len(triples.relations),
        signature=config.signature,
        alpha=config.alpha,
        delta=config.delta,
        reciprocal=config.reciprocal,
        spread=config.spread,
        rotate=config.rotate,
        seed=config.seed,
        dtype=DTYPES[config.dtype],
        device=config.device,
    )


def _weights(model: UltraE) -> dict[str, Tensor]:
    """Points, biases and J-orthogonal matrices, however the latter are parametrised."""
    return {"points": model.points, "bias": model.bias, "relations": model.relations}


def _epoch_seed(seed: int, number: int) -> int:
    return int(
        np.random.SeedSequence([seed, number]).generate_state(1, np.uint64)[0] >> np.uint64(1)
    )


def _identity(triples: Triples, config: Config) -> dict[str, str]:
    """What a checkpoint must agree in."""
    digest = hashlib.sha256()
    for part in (triples.train, triples.valid, triples.test):
        digest.update(part.numpy().tobytes())
    digest.update(json.dumps([triples.entities, triples.relations]).encode())
    return {
        "graph": digest.hexdigest()[:16],
        **{key: repr(value) for key, value in asdict(config).items()},
    }
