"""What a training run is told: one record, the same from Python and from a TOML file."""

from __future__ import annotations

import dataclasses
import difflib
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from jorth.arrays import (
    check_choice,
    check_square,
    describe,
    file_path,
    is_number,
    seed_number,
    shown,
    whole_number,
)
from jorth.signature import Signature
from jorth.storage.texts import read_toml

METHODS = ("j-jobcd", "vr-j-jobcd", "csdm")
LOSSES = ("logistic", "self-adversarial", "softmax")
SIDES = ("both", "uniform", "bernoulli")
SCHEDULES = ("constant", "linear", "cosine")
DTYPES = {"float64": torch.float64, "float32": torch.float32}
ALL = "all"


@dataclass(frozen=True, kw_only=True)
class Config:
    """The settings of `train`. The defaults of model, negatives and entities are the paper's.

    Attributes:
        p: Positive signs of J.
        q: Negative signs of J, at least 1.
        alpha: The radius of the pseudo-hyperboloid.
        delta: The margin.
        reciprocal: Whether the other direction of a relation has a matrix of its own.
        spread: Of the random start of the entities.
        rotate: Whether the relations start at random rotations of the positive coordinates, not at I.
        dtype: "float64" or "float32".
        device: "cpu", "cuda", "cuda:1", ...
        method: How the relations are optimised: "j-jobcd", "vr-j-jobcd" or "csdm".
        relation_lr: Of the relations.
        relation_options: Further options of `jorth.optim.JOBCD`, `VRJOBCD` or, for "csdm", torch.optim.Adam.
        relation_device: Where the relations are stepped, that of the model by default. "cpu" beside a GPU: the compiled
            steps of a few small matrices are faster than many small kernels, and worth the copies.
        lr: Of Adam on entities and biases.
        schedule: Of both rates over the epochs: "constant", "linear" or "cosine", the last two down to zero.
        warmup: Epochs in which the rates rise from zero.
        epochs: At most so many.
        max_time: At most so many seconds of training.
        batch_size: Queries in one step.
        large_batch: Queries in a refresh of "vr-j-jobcd".
        loss: "logistic" (the paper's), "self-adversarial" or "softmax".
        negatives: False answers for each query, or "all" entities.
        shared: Whether the queries of a batch have the same negatives: then scores are one matrix product.
        sides: Which end of a triple is asked for: "both" ends in every epoch, or one end, by chance, "uniform" or
            "bernoulli" (the end with the more answers the more often).
        reject: Whether known answers among the negatives are left out.
        temperature: Of the weights in the loss "self-adversarial".
        regularisation: The weight of the mean |s|^2 over the entities of a batch, x = (s, t).
        evaluate_every: Epochs between two evaluations.
        patience: Evaluations without a better validation MRR before the run ends; 0 for never.
        seed: Of everything random.
    """

    p: int = 18
    q: int = 18
    alpha: float = 1.0
    delta: float = 5.0
    reciprocal: bool = False
    spread: float = 0.05
    rotate: bool = True
    dtype: str = "float64"
    device: str = "cpu"
    method: str = "j-jobcd"
    relation_lr: float = 1e-2
    relation_options: dict[str, Any] = field(default_factory=dict)
    relation_device: str | None = None
    lr: float = 5e-4
    schedule: str = "constant"
    warmup: int = 0
    epochs: int = 100
    max_time: float | None = None
    batch_size: int = 128
    large_batch: int = 1024
    loss: str = "logistic"
    negatives: int | str = 50
    shared: bool = False
    sides: str = "uniform"
    reject: bool = False
    temperature: float = 1.0
    regularisation: float = 0.0
    evaluate_every: int = 5
    patience: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        checked: dict[str, Any] = {"seed": seed_number(self.seed)}
        for name in ("p", "warmup", "patience"):
            checked[name] = whole_number(getattr(self, name), name, 0)
        for name in ("q", "epochs", "batch_size", "large_batch", "evaluate_every"):
            checked[name] = whole_number(getattr(self, name), name, 1)
        for name in ("alpha", "spread"):
            checked[name] = _number(getattr(self, name), name, least=0, least_allowed=False)
        for name in ("lr", "relation_lr", "temperature", "regularisation"):
            checked[name] = _number(getattr(self, name), name, least=0)
        checked["delta"] = _number(self.delta, "delta")
        if self.max_time is not None:
            checked["max_time"] = _number(self.max_time, "max_time", least=0, least_allowed=False)
        for name in ("reciprocal", "rotate", "shared", "reject"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} must be true or false, got {shown(getattr(self, name))}")
        if not (isinstance(self.negatives, str) and self.negatives == ALL):
            checked["negatives"] = whole_number(self.negatives, 'negatives, when not "all",', 1)
        if not isinstance(self.relation_options, dict):
            raise TypeError(
                f"relation_options must be a table of names and values, got {describe(self.relation_options)}"
            )
        for name, device in (
            ("device", self.device),
            ("relation_device", self.relation_device or "cpu"),
        ):
            if not isinstance(device, str):
                raise TypeError(f"{name} must be the name of a device, got {describe(device)}")
        for name, value in checked.items():  # numbers of NumPy and fractions as those of Python
            object.__setattr__(self, name, value)
        check_choice(self.method, "method", METHODS)
        check_choice(self.loss, "loss", LOSSES)
        check_choice(self.sides, "sides", SIDES)
        check_choice(self.schedule, "schedule", SCHEDULES)
        check_choice(self.dtype, "dtype", tuple(DTYPES))
        for name in ("alpha", "spread"):
            check_square(getattr(self, name), name, DTYPES[self.dtype])

    @property
    def signature(self) -> Signature:
        """The signs of J, sorted."""
        return Signature(self.p, self.q)

    def rate(self, epoch: float) -> float:
        """The factor of both learning rates after so many epochs."""
        rise = 1.0 if epoch >= self.warmup else (epoch + 1) / (self.warmup + 1)
        share = min(epoch / self.epochs, 1.0)
        fall = {"constant": 1.0, "linear": 1 - share, "cosine": (1 + math.cos(math.pi * share)) / 2}
        return rise * fall[self.schedule]


def read_config(path: Path, *, others: tuple[str, ...] = ()) -> tuple[Config, dict[str, Any]]:
    """The settings in a TOML file, and the values of the ``others`` keys that it may have beside them."""
    path = file_path(path, "path")
    if not path.is_file():
        raise FileNotFoundError(
            f"path must be that of a file of settings, and there is none at {path}"
        )
    found = read_toml(path)
    names = [setting.name for setting in dataclasses.fields(Config)]
    for key in found:
        check_key(key, [*names, *others], str(path))
    try:
        return Config(**{key: found[key] for key in found if key in names}), {
            key: found[key] for key in found if key in others
        }
    except (TypeError, ValueError) as error:
        raise type(error)(f"{path}: {error}") from None


def check_key(key: str, valid: list[str], where: str) -> None:
    """A ValueError for a key that does not exist, with the nearest that does."""
    if key in valid:
        return
    near = difflib.get_close_matches(key, valid, n=1, cutoff=0.0)
    raise ValueError(f"{where}: there is no key {key!r}; the nearest is {near[0]!r}")


def _number(
    value: Any, name: str, *, least: float | None = None, least_allowed: bool = True
) -> float:
    if not is_number(value) or not math.isfinite(value):
        raise TypeError(f"{name} must be a number, got {shown(value)}")
    if least is not None and (value < least or (value == least and not least_allowed)):
        raise ValueError(
            f"{name} must be {'at least' if least_allowed else 'above'} {least:g}, got {shown(value)}"
        )
    return float(value)
