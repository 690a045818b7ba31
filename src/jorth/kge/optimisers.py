"""Adam for entities and biases, together with one of three optimisers for the relations."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from jorth._distributed import Ranks
from jorth.kge.config import Config, check_name
from jorth.kge.model import UltraE
from jorth.nn import declare
from jorth.optim import JOBCD, VRJOBCD, make
from jorth.optim.jobcd import is_one_launch

MAX_NORM = {"float32": 1e3}
"""The largest norm of a relation R: beyond it float32 has too few digits of <R x, y>_J."""


def largest_relation(config: Config) -> Any:
    """The largest norm that a relation may have, as given or as its precision asks for."""
    return config.relation_options.get("max_norm", MAX_NORM.get(config.dtype))


@dataclass
class OptimiserState:
    """What the next step of an optimiser depends on."""

    counters: list[dict[str, Any]]
    """The numbers of each parameter group, such as its step counter."""
    memory: list[dict[str, Any]]
    """For each parameter, what the optimiser remembers of earlier gradients."""

    @classmethod
    def of(cls, optimiser: torch.optim.Optimizer) -> OptimiserState:
        packed = optimiser.state_dict()
        groups = packed["param_groups"]
        counters = [
            {key: value for key, value in group.items() if isinstance(value, (int, float))}
            for group in groups
        ]
        parameters = sum(len(group["params"]) for group in groups)
        return cls(counters, [packed["state"].get(number, {}) for number in range(parameters)])

    def restore(self, optimiser: torch.optim.Optimizer) -> None:
        packed = optimiser.state_dict()
        for group, counters in zip(packed["param_groups"], self.counters, strict=True):
            group.update(counters)
        memory = {number: entry for number, entry in enumerate(self.memory) if entry}
        optimiser.load_state_dict(packed | {"state": memory})


class Optimisers:
    """Both optimisers, stepped together on the loss of a batch.

    With "csdm" the relations of the model become parametrised. With ``ranks`` losses and gradients
    are summed over the processes by one all-reduce, so that all of them take the same step.
    """

    def __init__(self, model: UltraE, config: Config, ranks: Ranks | None = None) -> None:
        _check_options(config)
        self._model = model
        self._config = config
        self._ranks = ranks
        self._copy = _copy_for(model, config)
        options: dict[str, Any] = dict(lr=config.relation_lr, **config.relation_options)
        if config.method != "csdm":
            options = {"seed": config.seed} | options | {"max_norm": largest_relation(config)}
        method: Any = config.method
        owner: torch.nn.Module = self._copy or model
        self._others = [part for name, part in model.weights().items() if name != "relations"]
        self._entities = torch.optim.Adam(self._others, lr=config.lr, fused=True)
        self._relations = make(method, owner, model.signature, name="relations", **options)
        self._both: tuple[torch.optim.Optimizer, ...] = (self._entities, self._relations)
        if self.stays_on_device:
            self._put_rates_on_device()

    @property
    def stays_on_device(self) -> bool:
        """Whether a step needs nothing from the host but the pairs of J-JOBCD."""
        X = self._model.relations
        alone = X.is_cuda and self._ranks is None and self._copy is None
        return alone and type(self._relations) is JOBCD and is_one_launch(self.relation_group, X)

    @property
    def relation_group(self) -> dict[str, Any]:
        """The parameter group of the relations."""
        group: dict[str, Any] = self._relations.param_groups[0]
        return group

    def _put_rates_on_device(self) -> None:
        """There a CUDA graph reads them. torch's fused Adam takes a rate in float32 alone."""
        device = self._model.points.device
        for optimiser, dtype in zip(self._both, (torch.float32, torch.float64), strict=True):
            for group in optimiser.param_groups:
                group["lr"] = torch.tensor(group["lr"], dtype=dtype, device=device)
        for group in self._entities.param_groups:
            group["capturable"] = True

    def set_rates(self, factor: float) -> None:
        """Set both learning rates to ``factor`` times their initial values."""
        rates = (self._config.lr, self._config.relation_lr)
        for optimiser, rate in zip(self._both, rates, strict=True):
            for group in optimiser.param_groups:
                if isinstance(group["lr"], Tensor):
                    group["lr"].fill_(factor * rate)
                else:
                    group["lr"] = factor * rate

    def wants_large_batch(self) -> bool:
        """Whether the next step is a refresh of "vr-j-jobcd"."""
        return isinstance(self._relations, VRJOBCD) and self._relations.wants_large_batch()

    def step(self, loss: Callable[[], Tensor]) -> Tensor:
        """Take one step of both and return the loss before it.

        ``loss`` is called twice where the method takes differences of gradients.
        """

        def closure() -> Tensor:
            for optimiser in self._both:
                optimiser.zero_grad()
            if self._copy is not None:
                self._copy.write_to(self._model)
            value = loss()
            value.backward()  # type: ignore[no-untyped-call]
            value = self._summed(value.detach())
            if self._copy is not None:
                self._copy.take_gradient(self._model)
            return value

        relations: Any = self._relations  # torch's stub expects a closure that returns a float
        value: Tensor = relations.step(closure)
        if self._config.clip is not None:
            torch.nn.utils.clip_grad_norm_(self._others, self._config.clip)
        self._entities.step()
        if self._config.max_radius is not None:
            shorten(self._model, self._config.max_radius)
        if self._copy is not None:
            self._copy.write_to(self._model)
        return value

    def _summed(self, value: Tensor) -> Tensor:
        """The loss summed over all processes; the gradients become sums as well."""
        if self._ranks is None:
            return value
        gradients = [p.grad for p in self._model.parameters() if p.grad is not None]
        total, *sums = self._ranks.sum([value, *gradients], same=self._model.points)
        for gradient, summed in zip(gradients, sums, strict=True):
            gradient.copy_(summed)
        return total

    def states(self) -> list[OptimiserState]:
        """The states of both for a checkpoint."""
        return [OptimiserState.of(optimiser) for optimiser in self._both]

    def restore(self, states: list[OptimiserState]) -> None:
        """Continue from the result of `states`, after the model has been restored."""
        for state, optimiser in zip(states, self._both, strict=True):
            state.restore(optimiser)
        if self._copy is not None:
            self._copy.read_from(self._model)


@torch.no_grad()
def shorten(model: UltraE, max_radius: float) -> None:
    """Shorten s to ``max_radius`` in every point x = (s, t) in which it is longer."""
    positive = model.signs > 0
    length = torch.linalg.vector_norm(model.points * positive, dim=1, keepdim=True)
    factor = (max_radius / length).clamp(max=1.0)
    model.points.mul_(torch.where(positive, factor, 1.0))


class _RelationCopy(torch.nn.Module):
    """A copy of the relations on a device other than the model's."""

    def __init__(self, model: UltraE, device: torch.device) -> None:
        super().__init__()
        self.relations = torch.nn.Parameter(model.relations.detach().to(device, copy=True))
        declare(self, "relations", model.signature)

    @torch.no_grad()
    def write_to(self, model: UltraE) -> None:
        model.relations.copy_(self.relations)

    @torch.no_grad()
    def read_from(self, model: UltraE) -> None:
        self.relations.copy_(model.relations)

    def take_gradient(self, model: UltraE) -> None:
        if model.relations.grad is not None:
            self.relations.grad = model.relations.grad.to(self.relations.device)
            model.relations.grad = None


def _copy_for(model: UltraE, config: Config) -> _RelationCopy | None:
    if config.relation_device is None:
        return None
    device = torch.device(config.relation_device)
    if device == model.relations.device:
        return None
    if config.method == "csdm":
        raise ValueError('relation_device must be that of the model for method "csdm"')
    return _RelationCopy(model, device)


def _check_options(config: Config) -> None:
    """Raise a ValueError for an option that the optimiser of the relations does not have."""
    kinds = {"j-jobcd": (JOBCD,), "vr-j-jobcd": (VRJOBCD, JOBCD), "csdm": (torch.optim.Adam,)}
    names = {
        name
        for kind in kinds[config.method]
        for name in inspect.signature(kind.__init__).parameters
    }
    valid = sorted(names - {"self", "params", "signature", "lr", "options"})
    for key in config.relation_options:
        check_name(key, valid, "key", f"relation_options of {config.method}: ")
