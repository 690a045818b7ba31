"""Adam for entities and biases beside one of three optimisers for the relations."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from jorth.kge.config import Config, check_key
from jorth.kge.model import UltraE
from jorth.optim import JOBCD, VRJOBCD, make
from jorth.ranks import Ranks

NAMES = {"j-jobcd": "jobcd", "vr-j-jobcd": "vr-jobcd", "csdm": "csdm"}

PROGRESS = ("turn", "not_finite", "too_far", "stale")
"""What changes of a parameter group from step to step."""


class Optimisers:
    """Steps both optimisers on the loss of a batch. With "csdm" the relations of the model become parametrised.

    With ``ranks`` losses and gradients are summed over the processes, by one all-reduce: all take the same step.
    """

    def __init__(self, model: UltraE, config: Config, ranks: Ranks | None = None) -> None:
        _check_options(config)
        self._config = config
        self._ranks = ranks
        options: dict[str, Any] = dict(lr=config.relation_lr, **config.relation_options)
        if config.method != "csdm":
            options.setdefault("seed", config.seed)
        self._entities = torch.optim.Adam([model.points, model.bias], lr=config.lr, fused=True)
        self._away = _away(model, config)
        owner: torch.nn.Module = model if self._away is None else self._away
        name: Any = NAMES[config.method]
        self._relations = make(name, owner, model.signature, name="relations", **options)
        self._model = model
        self._params = [
            p
            for o in (self._entities, self._relations)
            for g in o.param_groups
            for p in g["params"]
        ]

    def set_rates(self, factor: float) -> None:
        """Both learning rates as the ``factor`` of their start."""
        for optimiser, rate in (
            (self._entities, self._config.lr),
            (self._relations, self._config.relation_lr),
        ):
            for group in optimiser.param_groups:
                group["lr"] = factor * rate

    def wants_large_batch(self) -> bool:
        """Whether the coming step is a refresh of the variance-reduced method."""
        return isinstance(self._relations, VRJOBCD) and self._relations.wants_large_batch()

    def step(self, loss: Callable[[], Tensor]) -> Tensor:
        """One step of both; the loss before it. ``loss`` is called twice for a difference of gradients."""

        def closure() -> Tensor:
            for parameter in self._params:
                parameter.grad = None
            if self._away is not None:
                self._away.bring(self._model)
            value = loss()
            value.backward()  # type: ignore[no-untyped-call]
            value = self._summed(value.detach())
            if self._away is not None:
                self._away.take_gradient(self._model)
            return value

        relations: Any = self._relations  # torch's stub wants a float of the closure
        value: Tensor = relations.step(closure)
        self._entities.step()
        if self._away is not None:
            self._away.bring(self._model)
        return value

    def _summed(self, value: Tensor) -> Tensor:
        """The loss of all processes; their gradients take the place of this one's."""
        if self._ranks is None:
            return value
        found = [p.grad for p in self._model.parameters() if p.grad is not None]
        total, *sums = self._ranks.sum([value, *found], same=self._model.points)
        for gradient, whole in zip(found, sums, strict=True):
            gradient.copy_(whole)
        return total

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Everything that the next step depends on: tensors, and the rest as what JSON can hold."""
        tensors: dict[str, Tensor] = {}
        rest: dict[str, Any] = {}
        for name, optimiser in self._named():
            packed = optimiser.state_dict()
            groups = [{key: g[key] for key in PROGRESS if key in g} for g in packed["param_groups"]]
            entries: dict[str, Any] = {}
            for number, entry in packed["state"].items():
                for key, value in entry.items():
                    if isinstance(value, Tensor):
                        tensors[f"{name}.{number}.{key}"] = value
                    else:
                        entries.setdefault(str(number), {})[key] = value
            rest[name] = {"groups": groups, "entries": entries}
        return tensors, rest

    def restore(self, tensors: dict[str, Tensor], rest: dict[str, Any]) -> None:
        """Back to what `state` gave."""
        for name, optimiser in self._named():
            packed = optimiser.state_dict()
            entries = {int(number): dict(entry) for number, entry in rest[name]["entries"].items()}
            for key, value in tensors.items():
                owner, number, field = key.split(".", 2)
                if owner == name:
                    entries.setdefault(int(number), {})[field] = value
            for group, saved in zip(packed["param_groups"], rest[name]["groups"], strict=True):
                group.update(saved)
            optimiser.load_state_dict(packed | {"state": entries})
        if self._away is not None:
            self._away.fetch(self._model)

    def _named(self) -> tuple[tuple[str, torch.optim.Optimizer], ...]:
        return ("entities", self._entities), ("relations", self._relations)


class _Away(torch.nn.Module):
    """The relations on another device than that of the model, and the way there and back."""

    def __init__(self, model: UltraE, device: torch.device) -> None:
        super().__init__()
        self.relations = torch.nn.Parameter(model.relations.detach().to(device, copy=True))

    @torch.no_grad()
    def bring(self, model: UltraE) -> None:
        """The matrices to the model."""
        model.relations.copy_(self.relations)

    @torch.no_grad()
    def fetch(self, model: UltraE) -> None:
        """The matrices from the model."""
        self.relations.copy_(model.relations)

    def take_gradient(self, model: UltraE) -> None:
        """The gradient from the model."""
        if model.relations.grad is not None:
            self.relations.grad = model.relations.grad.to(self.relations.device)
            model.relations.grad = None


def _away(model: UltraE, config: Config) -> _Away | None:
    if (
        config.relation_device is None
        or torch.device(config.relation_device) == model.relations.device
    ):
        return None
    if config.method == "csdm":
        raise ValueError('relation_device must be that of the model for method "csdm"')
    return _Away(model, torch.device(config.relation_device))


def _check_options(config: Config) -> None:
    """A ValueError for an option that the optimiser of the relations does not have."""
    kinds = {"j-jobcd": (JOBCD,), "vr-j-jobcd": (VRJOBCD, JOBCD), "csdm": (torch.optim.Adam,)}[
        config.method
    ]
    own = {"self", "params", "signature", "lr", "options"}
    valid = sorted(
        {name for kind in kinds for name in inspect.signature(kind.__init__).parameters} - own
    )
    for key in config.relation_options:
        check_key(key, valid, f"relation_options of {config.method}")
