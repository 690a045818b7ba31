"""The settings of a training run."""

from __future__ import annotations

import dataclasses
import json
from ast import literal_eval
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import torch

from jorth import _inputs
from jorth._inputs import describe, suggestion, whole_number
from jorth.kge.graph import Triples
from jorth.kge.model import STARTS, reverse_number
from jorth.signature import Signature

DTYPES = {"float64": torch.float64, "float32": torch.float32}
ALL = "all"
CHOICES = {"method": ("j-jobcd", "vr-j-jobcd", "csdm"), "dtype": tuple(DTYPES), "start": STARTS}
OPEN = (
    "p", "epochs", "batch_size", "large_batch", "smoothing", "negatives", "regularisation",
    "evaluate_every",
)  # fmt: skip
"""What may be None, which stands for what `Config.fitted` chooses for the graph."""
AUTOMATIC: Any = None


LARGE_GRAPH: dict[str, Any] = {
    "p": 32,
    "dtype": "float32",
    "start": "separate",
    "final_rate": 0.05,
    "warmup": 1,
    "averaging": 0.2,
}

PRESETS: dict[str, dict[str, Any]] = {
    "default": {},
    "WN18RR": LARGE_GRAPH
    | {
        "epochs": 200,
        "batch_size": 2000,
        "negatives": 10_000,
        "lr": 0.1,
        "relation_lr": 0.002,
        "regularisation": 0.08,
        "reverse_weight": 0.6,
    },
    "FB15k-237": LARGE_GRAPH
    | {
        "epochs": 50,
        "batch_size": 1000,
        "negatives": 4000,
        "reject": True,
        "lr": 0.05,
        "relation_options": {"max_norm": 100.0},
        "regularisation": 0.05,
    },
}
"""What a preset changes in the defaults of `jorth.kge.Config`.

Those with names of graphs are the best that were found for them in 32 dimensions; add
``device="cuda"``.
"""


@dataclass(frozen=True, kw_only=True)
class Config:
    """The settings of `train`.

    A step asks for the missing end of a batch of triples and lowers the cross-entropy of the true
    answer among negatives that the batch shares. Options that are None by default are chosen for
    the size of the graph by `fitted`.

    Attributes:
        p: The number of positive signs of J; by default 31, but less than the number of entities.
        q: The number of negative signs of J, at least 1.
        alpha: As in `UltraE`.
        reciprocal: As in `UltraE`.
        reverse_weight: As in `UltraE`: the weight of the other direction's matrix in predictions.
        start: As in `UltraE`: where the relations start.
        dtype: "float64" or "float32".
        device: "cpu", "cuda", "cuda:1", ...
        method: How the relations are optimised: "j-jobcd", "vr-j-jobcd" or "csdm".
        relation_lr: The learning rate of the relations.
        relation_options: Further options of `jorth.optim.JOBCD`, `VRJOBCD` or torch.optim.Adam. The
            defaults are theirs, but for a max_norm of 1e3 in float32. A relation that would exceed
            max_norm turns without its boost in that step.
        lr: The learning rate of Adam for entities and biases.
        averaging: The share of ``epochs``, at their end, over which the model is averaged, 0 for
            none: 0.2 of 200 epochs is the mean of the models after epochs 161 to 200, by
            `jorth.optim.AveragedModel`. The average is then evaluated in place of the model. A run
            whose relations jump too far for a mean goes on without it, with a warning.
        final_rate: The share of their initial values to which both rates fall linearly; 1 keeps
            them constant.
        warmup: The number of epochs in which the rates rise from zero.
        epochs: The largest number of epochs.
        max_time: The largest number of seconds of training; the time is looked at after every
            epoch.
        batch_size: The number of queries per step.
        large_batch: The number of queries in a refresh of "vr-j-jobcd".
        smoothing: The label smoothing e: among k false answers the true one has the weight 1 - e +
            e / (k + 1), and each of the others e / (k + 1).
        negatives: The number of false answers, or "all" entities. They are all different, the same
            for all queries of a batch, and never the answer asked for. With all entities, and
            without ``reject``, the model also learns ``loops``.
        reject: Whether all answers known from training are left out of the negatives.
        regularisation: The factor of the mean |s|^2 over the entities of a batch, x = (s, t).
        evaluate_every: The number of epochs between two evaluations; by default a twelfth of all.
        patience: How many evaluations without a better validation MRR end the run; 0 for no limit.
        seed: The seed of everything random.

    >>> jorth.kge.Config(p=4, q=4, epochs=100).epochs
    100
    """

    p: int = AUTOMATIC
    q: int = 1
    alpha: float = 1.0
    reciprocal: bool = True
    reverse_weight: float = 0.0
    start: str = "shared"
    dtype: str = "float64"
    device: str = "cpu"
    method: str = "j-jobcd"
    relation_lr: float = 1e-2
    relation_options: dict[str, Any] = field(default_factory=dict)
    lr: float = 0.1
    averaging: float = 0.0
    final_rate: float = 0.0
    warmup: int = 0
    epochs: int = AUTOMATIC
    max_time: float | None = None
    batch_size: int = AUTOMATIC
    large_batch: int = AUTOMATIC
    smoothing: float = AUTOMATIC
    negatives: int | str = AUTOMATIC
    reject: bool = False
    regularisation: float = AUTOMATIC
    evaluate_every: int = AUTOMATIC
    patience: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        given = {setting.name: getattr(self, setting.name) for setting in dataclasses.fields(self)}
        left_open = {name for name in OPEN if given[name] is None}
        for name, choices in CHOICES.items():
            _inputs.check_choice(given[name], name, choices)
        for name in {"p", "warmup", "patience"} - left_open:
            given[name] = whole_number(given[name], name, 0)
        for name in {"q", "epochs", "batch_size", "large_batch", "evaluate_every"} - left_open:
            given[name] = whole_number(given[name], name, 1)
        for name in {"lr", "relation_lr", "regularisation"} - left_open:
            given[name] = _inputs.nonnegative_number(given[name], name)
        given["alpha"] = _inputs.positive_number(self.alpha, "alpha")
        for name in {"smoothing", "averaging"} - left_open:
            given[name] = _inputs.real_number(given[name], name, "in [0, 1)", lambda x: 0 <= x < 1)
        given["final_rate"] = _inputs.real_number(
            self.final_rate, "final_rate", "in [0, 1]", lambda x: 0 <= x <= 1
        )
        for name in ("reciprocal", "reject"):
            _inputs.check_flag(given[name], name)
            given[name] = bool(given[name])
        given["reverse_weight"] = reverse_number(self.reverse_weight, self.reciprocal)
        given["seed"] = _inputs.whole_number(self.seed, "seed", 0)
        if self.max_time is not None:
            given["max_time"] = _inputs.positive_number(self.max_time, "max_time")
        is_all = isinstance(self.negatives, str) and self.negatives == ALL
        if not is_all and "negatives" not in left_open:
            given["negatives"] = whole_number(self.negatives, 'negatives, when not "all",', 1)
        options: object = self.relation_options
        if not isinstance(options, dict):
            raise TypeError(f"relation_options must be a dictionary, got {describe(options)}")
        given["relation_options"] = dict(options)
        if not isinstance(self.device, str):
            raise TypeError(f"device must be the name of a device, got {describe(self.device)}")
        for name, value in given.items():  # as Python's own numbers
            object.__setattr__(self, name, value)

    @classmethod
    def preset(cls, name: str, **changes: Any) -> Config:
        """Return a preset with changes: "default", "WN18RR" or "FB15k-237".

        The options that a preset has for the relations hold for JOBCD, not for the method "csdm";
        ``relation_options`` among the changes add to them.
        """
        _inputs.check_choice(name, "preset", tuple(PRESETS))
        own, added = PRESETS[name].get("relation_options", {}), changes.get("relation_options", {})
        if changes.get("method") != "csdm" and isinstance(added, dict):
            added = own | added
        return cls(**PRESETS[name] | changes | {"relation_options": added})

    def fitted(self, triples: Triples) -> Config:
        """Return the settings with everything that is None chosen for the graph.

        `train` does this first. It depends on the numbers of triples and entities alone, by rules
        that were found on graphs of 14 to 1400 entities and, for large ones, on WN18RR and
        FB15k-237.
        """
        if not isinstance(triples, Triples):
            raise TypeError(f"triples must be a jorth.kge.Triples, got {describe(triples)}")
        queries = 2 * len(triples.train)
        batch = self.batch_size or max(64, min(1024, round(queries / 20)))  # 20 steps per epoch
        steps = -(-queries // batch)
        epochs = self.epochs or max(100, min(200, round(2000 / steps)))  # 2000 steps
        is_small = len(triples.entities) <= 4096
        chosen: dict[str, Any] = {
            "p": max(2, min(31, len(triples.entities) - 1)),  # more only overfits
            "epochs": epochs,
            "batch_size": batch,
            "large_batch": 8 * batch,
            "smoothing": 0.25 if is_small else 0.1,
            "negatives": ALL if is_small else 4096,
            "regularisation": 0.1 if is_small else 0.06,  # more entities need more room
            "evaluate_every": max(1, epochs // 12),
        }
        left_open = {name: chosen[name] for name in OPEN if getattr(self, name) is None}
        return dataclasses.replace(self, **left_open)

    @property
    def signature(self) -> Signature:
        """Return the signs of J, positive ones first, of settings that have p."""
        return Signature(self.p, self.q)

    @property
    def averaged_from(self) -> int:
        """Return the first epoch whose model enters the average; beyond ``epochs`` without one."""
        count = round(self.averaging * self.epochs)
        return self.epochs - max(count, 1 if self.averaging else 0) + 1

    def rate(self, epoch: float) -> float:
        """Return the factor of both learning rates after the given number of epochs."""
        share = min(epoch / self.epochs, 1.0)
        rise = 1.0 if epoch >= self.warmup else (epoch + 1) / (self.warmup + 1)
        return rise * (self.final_rate + (1 - self.final_rate) * (1 - share))


def changes_from(texts: Sequence[str]) -> dict[str, Any]:
    """Return settings from texts such as "lr = 0.1" or "relation_options.max_norm=30".

    Values are those of JSON or Python, or else texts without quotes.
    """
    found: dict[str, Any] = {}
    names = [setting.name for setting in dataclasses.fields(Config)]
    for text in texts:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not equals:
            raise ValueError(f"a setting must be KEY=VALUE, got {_inputs.describe(text)}")
        key, _, option = key.partition(".")
        if key not in names:
            hint = suggestion(key, names) or f"; there are {', '.join(names)}"
            raise ValueError(f"there is no setting {key!r}{hint}")
        parsed: Any = value
        for parse in (literal_eval, json.loads):
            with suppress(ValueError, SyntaxError):
                parsed = parse(value)
        found[key] = found.get(key, {}) | {option: parsed} if option else parsed
    Config(**found)  # its errors name the setting
    return found
